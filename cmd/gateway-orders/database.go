package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver of sqlite:

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

// forms is how a database is named.
const forms = "postgres://user@host:5432/database or sqlite:PATH"

// open opens the table, which must be there.
func (s *session) open(ctx context.Context) error {
	if err := s.connect(ctx, false); err != nil {
		return err
	}
	version, err := s.guard.SchemaVersion(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the database cannot be used: %w", err)
	case version == 0:
		return errors.New("the database has no such table: name another with --table, or create it with gateway-orders migrate")
	}
	return nil
}

// connect makes the guard over the database. Only create lets SQLite create a file.
func (s *session) connect(ctx context.Context, create bool) error {
	name, err := s.database(ctx)
	if err != nil {
		return err
	}
	var db *sql.DB
	scheme, path, _ := strings.Cut(name, ":")
	switch scheme {
	case "postgres", "postgresql":
		db, err = openPostgres(name)
	case "sqlite":
		s.sqlite = true
		db, err = openSQLite(path, create)
	default:
		err = &cli.UsageError{Text: "the database is " + forms}
	}
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(2)
	if s.guard, err = sqlguard.New(db, sqlguard.WithTable(s.table)); err != nil {
		return errors.Join(&cli.UsageError{Text: "--table: " + err.Error()}, db.Close())
	}
	s.close = db.Close
	return nil
}

// maxURL is the largest size of the URL of a database, in bytes.
const maxURL = 64 << 10

// database returns the URL of --db, --db-file or the environment.
func (s *session) database(ctx context.Context) (string, error) {
	switch {
	case s.db != "" && s.dbFile != "":
		return "", &cli.UsageError{Text: "give --db or --db-file, not both"}
	case s.db != "":
		if hasPassword(s.db) {
			return "", &cli.UsageError{Text: "--db takes no password, because other users of the machine can read it: put the URL into " +
				envDB + " or a file for --db-file, or the password into PGPASSWORD or ~/.pgpass"}
		}
		return s.db, nil
	case s.dbFile != "":
		text, err := within(ctx, func() ([]byte, error) {
			file, err := os.Open(s.dbFile)
			if err != nil {
				return nil, err
			}
			defer func() { _ = file.Close() }()
			return io.ReadAll(io.LimitReader(file, maxURL))
		})
		if err != nil {
			return "", fmt.Errorf("--db-file: %w", cli.Reason(err))
		}
		return strings.TrimSpace(string(text)), nil
	case os.Getenv(envDB) != "":
		return strings.TrimSpace(os.Getenv(envDB)), nil
	default:
		return "", &cli.UsageError{Text: "no database is named: set " + envDB + ", or give --db-file or --db: " + forms}
	}
}

// hasPassword reports whether a URL of PostgreSQL, or keywords in its place, have a password.
func hasPassword(text string) bool {
	if strings.HasPrefix(text, "sqlite:") {
		return false
	}
	_, rest, _ := strings.Cut(text, "://")
	user := rest[:max(0, strings.LastIndex(rest, "@"))]
	return strings.Contains(user, ":") || strings.Contains(strings.ToLower(text), "password")
}

func openPostgres(text string) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil { // which has parts of the URL, and of a service file
		return nil, &cli.UsageError{Text: "the URL of the database, a service file or a variable PG… has a setting that cannot be used: " +
			"what is special in a user or a password is written with %, such as / as %2F and @ as %40; compare the host, port, sslmode and the others with the documentation of libpq"}
	}
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "gateway-orders")
	return stdlib.OpenDB(*cfg), nil
}

// withoutURL returns why there is no connection, without what the driver and the server say of the URL: of
// one with a password that is not escaped, a part of it is the host or the database.
func withoutURL(err error) string {
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

func openSQLite(path string, create bool) (*sql.DB, error) {
	if path == "" || strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") || strings.HasPrefix(path, "file:") || strings.Contains(path, "://") {
		return nil, &cli.UsageError{Text: "after sqlite: comes the path of a file, such as sqlite:orders.db or sqlite:/var/lib/shop/orders.db"}
	}
	path = filepath.Clean(path)
	mode := "rw"
	switch info, err := os.Stat(path); { // #nosec G703 -- whoever runs the command chooses the file
	case errors.Is(err, os.ErrNotExist) && create:
		mode = "rwc&_pragma=journal_mode(WAL)"
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the file of the database: %w: correct the path; only for a new shop, gateway-orders migrate creates it", os.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("the file of the database: %w", cli.Reason(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("the file of the database is not a regular file")
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	return sql.Open("sqlite", "file:"+escaped+"?_pragma=busy_timeout(10000)&mode="+mode)
}
