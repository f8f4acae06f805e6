// Package database opens the databases that orders are kept in.
package database

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver of sqlite:

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

// Forms is how a database is named.
const Forms = "postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:PATH"

// Open opens the database of a URL. Only create lets SQLite create a file. No error has the URL.
func Open(name string, create bool) (*sql.DB, sqlguard.Dialect, error) {
	scheme, path, _ := strings.Cut(name, ":")
	switch scheme {
	case "postgres", "postgresql":
		db, err := openPostgres(name)
		return db, sqlguard.PostgreSQL, err
	case "mysql", "mariadb":
		db, err := openMariaDB(name)
		return db, sqlguard.MariaDB, err
	case "sqlite":
		db, err := SQLite(path, create)
		return db, sqlguard.SQLite, err
	default:
		return nil, 0, &cli.UsageError{Text: "the database is " + Forms}
	}
}

// HasPassword reports whether a URL, or keywords of PostgreSQL in its place, have a password.
func HasPassword(text string) bool {
	if strings.HasPrefix(text, "sqlite:") {
		return false
	}
	_, rest, _ := strings.Cut(text, "://")
	user := rest[:max(0, strings.LastIndex(rest, "@"))]
	return strings.Contains(user, ":") || strings.Contains(strings.ToLower(text), "password")
}

const escape = "what is special in a user or a password is written with %, such as / as %2F and @ as %40"

func openPostgres(text string) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil { // which has parts of the URL, and of a service file
		return nil, &cli.UsageError{Text: "the URL of the database, a service file or a variable PG… has a setting that cannot be used: " +
			escape + "; compare the host, port, sslmode and the others with the documentation of libpq"}
	}
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "gateway-orders")
	return stdlib.OpenDB(*cfg), nil
}

func openMariaDB(text string) (*sql.DB, error) {
	u, err := url.Parse(text)
	wrong := &cli.UsageError{Text: "the URL of the database is mysql://user@host:3306/database, with ?tls=true, skip-verify or preferred if need be: " + escape}
	if err != nil || u.Host == "" || strings.Contains(u.EscapedPath(), "@") || strings.Trim(u.Path, "/") == "" {
		return nil, wrong
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), strings.Trim(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.InterpolateParams = true
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

// WithoutURL returns the text of an error without what the driver and the server say of the URL: of
// one with a password that is not escaped, a part of it is the host or the database.
func WithoutURL(err error) string {
	var refused error
	why := ""
	if postgres, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		refused, why = postgres, refusal(postgres)
	}
	if mariadb, ok := errors.AsType[*mysql.MySQLError](err); ok {
		refused, why = mariadb, map[uint16]string{
			1040: "the server has too many connections", 1044: "the server refuses the database to the user",
			1045: "the server refuses the user or the password", 1049: "the server has no such database", 1698: "the server refuses the user",
		}[mariadb.Number]
	}
	if why == "" {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), refused.Error(), why)
}

func refusal(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		why := map[string]string{
			"28P01": "the server refuses the user or the password", "28000": "the server refuses the user",
			"3D000": "the server has no such database", "53300": "the server has too many connections",
		}[refused.Code]
		return cmp.Or(why, "the server refuses the connection") + " (SQLSTATE " + refused.Code + ")"
	}
	if failed, ok := errors.AsType[net.Error](err); ok {
		return "no connection: " + cli.Reason(failed).Error()
	}
	return "no connection: the server refuses TLS or has a wrong certificate, or is not PostgreSQL"
}

// SQLite opens a file.
func SQLite(path string, create bool) (*sql.DB, error) {
	if path == "" || strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") || strings.HasPrefix(path, "file:") || strings.Contains(path, "://") {
		return nil, &cli.UsageError{Text: "after sqlite: comes the path of a file, such as sqlite:orders.db or sqlite:/var/lib/shop/orders.db"}
	}
	path = filepath.Clean(path)
	switch info, err := os.Stat(path); { // #nosec G703 -- whoever runs the command chooses the file
	case errors.Is(err, os.ErrNotExist) && create:
		file, err := os.OpenFile(path, os.O_CREATE, 0o600) // #nosec G304 -- likewise; nobody else reads it
		if err != nil {
			return nil, fmt.Errorf("the file of the database: %w", cli.Reason(err))
		}
		_ = file.Close()
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the file of the database: %w: correct the path; only for a new shop, gateway-orders migrate creates it", os.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("the file of the database: %w", cli.Reason(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("the file of the database is not a regular file")
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	return sql.Open("sqlite", "file:"+escaped+"?_pragma=busy_timeout(10000)&mode=rw")
}
