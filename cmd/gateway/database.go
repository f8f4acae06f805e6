package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/spf13/pflag"
	_ "modernc.org/sqlite" // the driver of sqlite:

	"github.com/cryptogw/gateway/sqlguard"
)

// envDB is the environment variable that --db and --db-file replace.
const envDB = "GATEWAY_ORDERS_DB"

const databaseForms = "postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:PATH"

// databaseFlags name the table of the orders commands.
type databaseFlags struct{ url, file, table string }

func (d *databaseFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&d.url, "db", "", "the `URL` of the database, without a password, instead of "+envDB)
	flags.StringVar(&d.file, "db-file", "", "a `file` with the URL of the database, instead of "+envDB)
	flags.StringVar(&d.table, "table", sqlguard.DefaultTable, "the `name` of the table")
}

// maxURL is the largest size of the URL of a database, in bytes.
const maxURL = 64 << 10

// name returns the URL of --db, --db-file or the environment.
func (d *databaseFlags) name() (string, error) {
	switch {
	case d.url != "" && d.file != "":
		return "", usage("give --db or --db-file, not both")
	case d.url != "" && hasPassword(d.url):
		return "", usage("--db takes no password, because other users of the machine can read it: put the URL into %s "+
			"or a file for --db-file, or the password into PGPASSWORD or ~/.pgpass", envDB)
	case d.url != "":
		return d.url, nil
	case d.file != "":
		text, err := readFile(d.file, maxURL)
		if err != nil {
			return "", fmt.Errorf("--db-file: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	case os.Getenv(envDB) != "":
		return strings.TrimSpace(os.Getenv(envDB)), nil
	default:
		return "", usage("no database is named: set %s, or give --db-file or --db: %s", envDB, databaseForms)
	}
}

// readFile reads a file of at most some bytes. The error does not have its name.
func readFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name) // #nosec G304 -- whoever runs the command chooses the file
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = file.Close() }()
	return readBounded(file, most)
}

func readBounded(from io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return text, withoutPath(err)
}

// withoutPath returns the reason of an error about a file.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// hasPassword reports whether a URL, or keywords of PostgreSQL in its place, have a password.
func hasPassword(text string) bool {
	if strings.HasPrefix(text, "sqlite:") {
		return false
	}
	_, rest, _ := strings.Cut(text, "://")
	user := rest[:max(0, strings.LastIndex(rest, "@"))]
	return strings.Contains(user, ":") || strings.Contains(strings.ToLower(text), "password")
}

// openDatabase opens the database of a URL. Only create lets SQLite create a file. No error has the URL.
func (s *session) openDatabase(name string, create bool) (err error) {
	scheme, path, _ := strings.Cut(name, ":")
	switch scheme {
	case "postgres", "postgresql":
		s.dialect = sqlguard.PostgreSQL
		s.db, err = openPostgres(name)
	case "mysql", "mariadb":
		s.dialect = sqlguard.MariaDB
		s.db, err = openMariaDB(name)
	case "sqlite":
		s.dialect = sqlguard.SQLite
		s.db, err = s.openSQLite(path, create)
	default:
		err = usage("the database is %s", databaseForms)
	}
	if err == nil {
		s.db.SetMaxOpenConns(2)
	}
	return err
}

func (s *session) closeDatabase() {
	if s.db != nil {
		_ = s.db.Close() // everything is committed
	}
}

const howToEscape = "special characters of a user or a password are written with %, such as / as %2F and @ as %40"

func openPostgres(text string) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil { // it has parts of the URL, and of a service file
		return nil, usage("the URL of the database, a service file or a variable PG… has a setting that cannot be used: %s; "+
			"compare the host, port, sslmode and the others with the documentation of libpq", howToEscape)
	}
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "gateway")
	return stdlib.OpenDB(*cfg), nil
}

func openMariaDB(text string) (*sql.DB, error) {
	u, err := url.Parse(text)
	wrong := usage("the URL of the database is mysql://user@host:3306/database, with ?tls=true, skip-verify or preferred if need be: %s", howToEscape)
	if err != nil || u.Host == "" || strings.Contains(u.EscapedPath(), "@") || strings.Trim(u.Path, "/") == "" {
		return nil, wrong
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), strings.Trim(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.InterpolateParams, cfg.RejectReadOnly = true, true
	for name, values := range u.Query() {
		if name != "tls" {
			return nil, wrong
		}
		cfg.TLSConfig = values[0]
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, wrong
	}
	return sql.OpenDB(connector), nil
}

// openSQLite opens a file, and reports a new one.
func (s *session) openSQLite(path string, create bool) (*sql.DB, error) {
	if path == "" || strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") || strings.HasPrefix(path, "file:") || strings.Contains(path, "://") {
		return nil, usage("after sqlite: comes the path of a file, such as sqlite:/var/lib/shop/orders.db")
	}
	path = filepath.Clean(path)
	switch info, err := os.Stat(path); { // #nosec G703 -- whoever runs the command chooses the file
	case errors.Is(err, fs.ErrNotExist) && create:
		file, err := os.OpenFile(path, os.O_CREATE, 0o600) // #nosec G304 -- likewise; nobody else reads it
		if err != nil {
			return nil, fmt.Errorf("the file of the database: %w", withoutPath(err))
		}
		_ = file.Close()
		s.tell("This is a new, empty order file: it knows no earlier order.")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the file of the database: %w: correct the path; only for a new shop, gateway orders migrate creates it", fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("the file of the database: %w", withoutPath(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("the file of the database is not a regular file")
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	return sql.Open("sqlite", "file:"+escaped+"?_pragma=busy_timeout(10000)&mode=rw")
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

// connect returns the guard over the database that the flags name. Only create lets SQLite create a file.
func (s *session) connect(create bool, opts ...sqlguard.Option) (*sqlguard.Guard, error) {
	name, err := s.database.name()
	if err != nil {
		return nil, err
	}
	if err := s.openDatabase(name, create); err != nil {
		return nil, err
	}
	guard, err := sqlguard.New(s.db, append(opts, sqlguard.WithTable(s.database.table))...)
	if err != nil {
		return nil, usage("--table: %w", err)
	}
	return guard, nil
}

// guard returns the guard over the table, which must be there.
func (s *session) guard(ctx context.Context, opts ...sqlguard.Option) (*sqlguard.Guard, error) {
	guard, err := s.connect(false, opts...)
	if err != nil {
		return nil, err
	}
	version, err := guard.SchemaVersion(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the database cannot be used: %w", err)
	case version == 0:
		return nil, errors.New("there is no such table. Is this the database of the shop, and does this user see the shop's schema (search_path)? " +
			"Is the table's name the one of --table? Only for a new shop, create it with gateway orders migrate")
	}
	return guard, nil
}

// withoutURL returns the text of an error without what the driver and the server say about the URL: if its password is
// not escaped, a part of it is the host or the database.
func withoutURL(err error) string {
	const refused = "the server refuses the connection, as for a wrong user, password or database: "
	var failed error
	why := "no connection to the server, or it refuses TLS"
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		failed = connect
		if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
			why = refused + "SQLSTATE " + answer.Code
		}
	} else if answer, ok := errors.AsType[*mysql.MySQLError](err); ok && slices.Contains([]uint16{1044, 1045, 1049, 1698}, answer.Number) {
		failed, why = answer, fmt.Sprintf("%serror %d", refused, answer.Number)
	} else if dial, ok := errors.AsType[*net.OpError](err); ok {
		failed = dial
	} else {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), failed.Error(), why)
}
