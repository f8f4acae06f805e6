package main

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver of sqlite:

	"github.com/cryptogw/gateway/sqlguard"
)

// envDB is the environment variable with the URL of the database.
const envDB = "GATEWAY_ORDERS_DB"

const databaseForms = "postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:PATH, or user@tcp(host:3306)/database or file:PATH"

// openDatabase opens the database of a URL, or of the driver's own form of it. Only create lets SQLite create a file. No error
// has the URL, nor a part of a password in which special characters are not escaped.
func (s *session) openDatabase(text string, create bool) (err error) {
	scheme, rest, _ := strings.Cut(text, ":")
	u, wrong := url.Parse(text)
	if wrong != nil || u.Opaque != "" || strings.Count(text, "@") > 1 || strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") {
		u = nil
	}
	switch {
	case scheme == "sqlite":
		s.db, err = s.openSQLite(rest, create)
	case scheme == "file":
		s.db, err = s.openSQLite(pathOf(rest), create)
	case strings.Contains(text, "@tcp(") || strings.Contains(text, "@unix("):
		s.db, err = openMariaDB(mysql.ParseDSN(text))
	case u != nil && (scheme == "postgres" || scheme == "postgresql"):
		s.db, err = openPostgres(text)
	case u != nil && (scheme == "mysql" || scheme == "mariadb"):
		s.db, err = openMariaDB(mariaDBOf(u))
	default:
		err = errWrongURL
	}
	if err == nil {
		s.db.SetMaxOpenConns(2)
	}
	return err
}

// pathOf returns the path of a file: URI, whose settings are replaced by the command's own.
func pathOf(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	path = strings.TrimPrefix(strings.TrimPrefix(path, "//localhost"), "//")
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

var errWrongURL = usage("the database of %s is %s; "+
	"special characters of a user or a password are written with %%, such as / as %%2F and @ as %%40", envDB, databaseForms)

func (s *session) closeDatabase() {
	if s.db != nil {
		_ = s.db.Close() // everything is committed
	}
}

func openPostgres(text string) (*sql.DB, error) {
	pool, err := pgxpool.ParseConfig(text) // which knows the settings of a pool too
	if err != nil {                        // it has parts of the URL, and of a service file
		return nil, usage("%s, a service file or a variable PG… has a setting that cannot be used: "+
			"compare the host, port, sslmode and the others with the documentation of libpq", envDB)
	}
	cfg := pool.ConnConfig
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "gateway")
	return stdlib.OpenDB(*cfg), nil
}

// mariaDBOf returns the configuration of a URL, with the settings of the driver.
func mariaDBOf(u *url.URL) (*mysql.Config, error) {
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	cfg, err := mysql.ParseDSN("tcp(" + address + ")/" + strings.Trim(u.EscapedPath(), "/") + "?" + strings.ReplaceAll(u.RawQuery, "/", "%2F"))
	if err == nil {
		cfg.User = u.User.Username()
		cfg.Passwd, _ = u.User.Password()
	}
	return cfg, err
}

func openMariaDB(cfg *mysql.Config, err error) (*sql.DB, error) {
	if err == nil {
		cfg.InterpolateParams, cfg.RejectReadOnly = true, false // which would hide that a server is read-only
		var connector driver.Connector
		if connector, err = mysql.NewConnector(cfg); err == nil {
			return sql.OpenDB(connector), nil
		}
	}
	return nil, usage("%s has a setting that cannot be used: compare it with the documentation of github.com/go-sql-driver/mysql", envDB)
}

// openSQLite opens a file, and reports a new one.
func (s *session) openSQLite(path string, create bool) (*sql.DB, error) {
	path = filepath.Clean(path)
	switch info, err := os.Stat(path); { // #nosec G703 -- whoever runs the command chooses the file
	case errors.Is(err, fs.ErrNotExist) && create:
		file, err := os.OpenFile(path, os.O_CREATE, 0o600) // #nosec G304 G703 -- likewise; nobody else reads it
		if err != nil {
			return nil, fmt.Errorf("the file of the database: %w", err)
		}
		_ = file.Close()
		s.tell("This is a new, empty order file: it knows no earlier order.")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the file of the database: %w: correct the path; only for a new shop, gateway orders migrate creates it", fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("the file of the database: %w", err)
	case !info.Mode().IsRegular():
		return nil, errors.New("the file of the database is not a regular file")
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	return sql.Open("sqlite", "file:"+escaped+"?_pragma=busy_timeout(10000)&_pragma=synchronous(EXTRA)&mode=rw")
}

// orderFile returns the guard of `invoice create --orders`.
func (s *session) orderFile(ctx context.Context, path string) (guard *sqlguard.Guard, err error) {
	if s.db, err = s.openSQLite(path, true); err != nil {
		return nil, err
	}
	if guard, err = sqlguard.New(s.db); err != nil {
		return nil, err
	}
	return guard, guard.Migrate(ctx)
}

// connect returns the guard over the database of the environment, and the version of its table; 0 if there is none. Only
// create lets SQLite create a file.
func (s *session) connect(ctx context.Context, create bool, opts ...sqlguard.Option) (guard *sqlguard.Guard, version int, err error) {
	text := strings.TrimSpace(os.Getenv(envDB))
	if text == "" {
		return nil, 0, usage("no database is named: set %s: %s", envDB, databaseForms)
	}
	if err := s.openDatabase(text, create); err != nil {
		return nil, 0, err
	}
	if guard, err = sqlguard.New(s.db, append(opts, sqlguard.WithTable(s.table))...); err != nil {
		return nil, 0, usage("--table: %w", err)
	}
	if version, err = guard.SchemaVersion(ctx); err != nil {
		return nil, 0, fmt.Errorf("the database cannot be used: %w", err)
	}
	return guard, version, nil
}

// guard returns the guard over the table, which must be there.
func (s *session) guard(ctx context.Context, opts ...sqlguard.Option) (*sqlguard.Guard, error) {
	guard, version, err := s.connect(ctx, false, opts...)
	if err == nil && version == 0 {
		err = errors.New("there is no such table. Is this the database of the shop, and does this user see the shop's schema (search_path) and the table (grants)? " +
			"Is the table's name the one of --table? Only for a new shop, create it with gateway orders migrate")
	}
	return guard, err
}
