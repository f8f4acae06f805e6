package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver of sqlite:

	"github.com/cryptogw/gateway/sqlguard"
)

// forms is how -db is written.
const forms = "postgres://user@host:5432/database or sqlite:PATH"

// escaping is what is wrong with a URL whose parts cannot be told apart.
const escaping = "-db is not a URL such as postgres://user:password@host:5432/database: what is special in a password is written with %, such as / as %2F and @ as %40" // #nosec G101 -- how one is written

// open opens the table of -db. It must be there, in the version that this program works with.
func (s *session) open(ctx context.Context) error {
	if err := s.connect(false); err != nil {
		return err
	}
	version, err := s.guard.SchemaVersion(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("-db cannot be used: %w", err)
	case version == 0:
		return fmt.Errorf("the database has no table %s: name another with -table, or create it with gateway-orders migrate", s.table)
	case version < sqlguard.SchemaVersion:
		return fmt.Errorf("the table %s has version %d, and this program needs %d: gateway-orders migrate brings it up", s.table, version, sqlguard.SchemaVersion)
	}
	return nil
}

// connect makes the guard over -db. Only create lets SQLite create a file.
func (s *session) connect(create bool) error {
	var db *sql.DB
	var err error
	scheme, path, _ := strings.Cut(s.db, ":")
	switch scheme {
	case "":
		return &usageError{text: "no database is named: give -db or set " + envDB + ": " + forms}
	case "postgres", "postgresql":
		db, err = openPostgres(s.db)
	case "sqlite":
		db, err = openSQLite(path, create)
	default:
		err = &usageError{text: "-db is " + forms}
	}
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(2)
	if s.guard, err = sqlguard.New(db, sqlguard.WithTable(s.table)); err != nil {
		return errors.Join(&usageError{text: "-table: " + err.Error()}, db.Close())
	}
	s.close = db.Close
	return nil
}

// openPostgres refuses a URL of which a part of the password could be taken for a host, a
// database or a setting, which errors show.
func openPostgres(text string) (*sql.DB, error) {
	if wrong := wrongURL(text); wrong != "" {
		return nil, &usageError{text: wrong}
	}
	cfg, err := pgx.ParseConfig(text)
	switch {
	case err != nil: // which has parts of the URL, and of a service file
		return nil, &usageError{text: "-db has a setting that cannot be used, in the URL, a service file or a variable PG…: compare its host, port, sslmode and the others with the documentation of libpq"}
	case strings.Contains(cfg.User, ":"):
		return nil, &usageError{text: "-db has a user with a colon: the : before the password is not written %3A"}
	}
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "gateway-orders")
	return stdlib.OpenDB(*cfg), nil
}

// wrongURL returns why the parts of a URL cannot be told apart for sure, or "". No text has a part
// of it.
func wrongURL(text string) string {
	_, rest, ok := strings.Cut(text, "://")
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "-db has a line end or another control character: take it out"
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	path, query, _ := strings.Cut(rest[len(authority):], "?")
	_, hosts, both := strings.Cut(authority, "@")
	if !both {
		hosts = authority
	}
	switch {
	case strings.Contains(hosts, "@"):
		return "-db: a @ in the user or the password must be written %40, or put the password into PGPASSWORD or ~/.pgpass"
	case !ok || strings.ContainsAny(path+query, "@#") || slices.ContainsFunc(strings.Split(hosts, ","), badPort):
		return escaping
	case query == "":
		return ""
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, ok := strings.Cut(parameter, "=")
		name, err := url.QueryUnescape(name)
		switch {
		case !ok || err != nil:
			return "-db has a parameter without =: what is special in a value is written with %, such as & as %26"
		case strings.Contains(strings.ToLower(name), "password"):
			return "-db has a password after the ?: put the password into PGPASSWORD or ~/.pgpass, and that of a key into PGSSLPASSWORD"
		}
	}
	return ""
}

// badPort reports whether what follows a host is not a port.
func badPort(host string) bool {
	host = host[strings.LastIndex(host, "]")+1:]
	_, port, _ := strings.Cut(host, ":")
	return strings.Trim(port, "0123456789") != ""
}

func openSQLite(path string, create bool) (*sql.DB, error) {
	if path == "" || strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") || strings.HasPrefix(path, "file:") || hasPassword(path) {
		return nil, &usageError{text: "-db is sqlite: and the path of a file, such as sqlite:orders.db or sqlite:/var/lib/shop/orders.db"}
	}
	path = filepath.Clean(path)
	mode := "rw"
	switch info, err := os.Stat(path); { // #nosec G703 -- whoever runs the command chooses the file
	case errors.Is(err, os.ErrNotExist) && create:
		mode = "rwc&_pragma=journal_mode(WAL)"
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("-db: %s: %w: correct the path; only for a new shop, gateway-orders migrate creates the database", path, os.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("-db: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("-db: %s is not a regular file", path)
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	return sql.Open("sqlite", "file:"+escaped+"?_pragma=busy_timeout(10000)&mode="+mode)
}

// hasPassword reports whether a text is of the kind that can have a password.
func hasPassword(text string) bool {
	return strings.Contains(text, "://") || strings.Contains(strings.ToLower(text), "password=")
}

// secrets returns what no error may show of the arguments and the environment: what has a password,
// and the passwords in URLs, unless only the whole can be in the text. The longest come first.
func secrets(args []string, onlyWhole bool) []string {
	var found []string
	for _, text := range append([]string{os.Getenv(envDB)}, args...) {
		if !hasPassword(text) {
			continue
		}
		if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(name, "-") { // -db=postgres
			text = value
		}
		found = append(found, text, strings.Trim(strconv.Quote(text), `"`))
		_, rest, ok := strings.Cut(text, "://")
		if onlyWhole || !ok {
			continue
		}
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			_, password, _ := strings.Cut(rest[:at], ":")
			found = append(found, password)
		}
		if u, err := url.Parse(text); err == nil {
			password, _ := u.User.Password()
			found = append(found, password)
		}
	}
	if !onlyWhole {
		found = append(found, os.Getenv("PGPASSWORD"))
	}
	found = slices.DeleteFunc(found, func(text string) bool { return text == "" })
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	return found
}

// redacted returns a text without the secrets.
func redacted(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}
