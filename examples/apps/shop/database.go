package main

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
	_ "github.com/jackc/pgx/v5/stdlib" // PostgreSQL
	_ "modernc.org/sqlite"             // SQLite
)

// A database is PostgreSQL or SQLite, with the same statements for both.
type database struct {
	*sql.DB
	sqlite bool
}

// sqliteSettings make concurrent writers wait instead of fail, take the write lock at
// the start of a transaction, make commits survive a power failure, and times sortable.
const sqliteSettings = "?_txlock=immediate&_time_format=sqlite&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// openDatabase opens the database of a DATABASE_URL, and refuses one that may lose
// orders.
func openDatabase(ctx context.Context, url string) (*database, error) {
	d := &database{sqlite: strings.HasPrefix(url, "file:")}
	var err error
	switch {
	case d.sqlite && (url == "file:" || strings.ContainsAny(url, "?#%")):
		err = errors.New("must be file: and the name of a file, without settings and escapes: some settings lose orders")
	case strings.Count(url, "@") > 1: // an error of the driver could show a part of the password
		err = errors.New("has more than one @: those in the name and in the password must be written as %40, and / as %2F")
	case d.sqlite:
		d.DB, err = sql.Open("sqlite", url+sqliteSettings)
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		d.DB, err = sql.Open("pgx", url)
	default:
		err = errors.New("must be a postgres:// or file: address")
	}
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	d.SetMaxOpenConns(16)
	d.SetMaxIdleConns(16) // with the default, 2, a busy shop makes new connections all the time
	d.SetConnMaxIdleTime(time.Minute)
	if err := d.checkSettings(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("DATABASE_URL: %w", err), d.Close())
	}
	return d, nil
}

// checkSettings checks what sqlguard requires of a database: an order that was sent and
// then lost would be sent again.
func (d *database) checkSettings(ctx context.Context) error {
	settings := map[string]string{"SHOW synchronous_commit": "on", "SHOW default_transaction_isolation": "read committed"}
	if d.sqlite {
		settings = map[string]string{"PRAGMA journal_mode": "wal"} // a database in memory has none
	}
	for setting, want := range settings {
		var value string
		if err := d.QueryRowContext(ctx, setting).Scan(&value); err != nil {
			return fmt.Errorf("the database does not respond: %w", err)
		}
		if value != want {
			return fmt.Errorf("the database could lose or duplicate orders: %s is %q, not %q", setting, value, want)
		}
	}
	return nil
}

//go:embed schema.sql
var schema string

// createTables creates the tables of the shop if they do not exist. On PostgreSQL it
// takes a lock, because concurrent CREATE TABLE IF NOT EXISTS can fail.
func (d *database) createTables(ctx context.Context) error {
	lock := "SELECT pg_advisory_xact_lock(hashtext('shop'));" // until the end of all statements
	if d.sqlite {
		lock = ""
	}
	_, err := d.ExecContext(ctx, lock+schema)
	return err
}

// bindGateway assigns a new database to a gateway and refuses a database of another
// gateway, so that the demo's invented orders never mix with real ones.
func (d *database) bindGateway(ctx context.Context, gateway string) error {
	var owner string
	err := d.QueryRowContext(ctx, `INSERT INTO shop_gateway (id, name) VALUES (1, $1)
		ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING name`, gateway).Scan(&owner)
	if err != nil || owner == gateway {
		return err
	}
	return fmt.Errorf("the database of DATABASE_URL has the orders of %s, and this shop uses %s: use another database", owner, gateway)
}

// change executes a statement and reports whether it changed a row.
func (d *database) change(ctx context.Context, query string, args ...any) (bool, error) {
	result, err := d.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// each calls a function for each row of a query.
func each[T any](ctx context.Context, d *database, do func(T) error, query string, args ...any) error {
	rows, err := d.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for scanner := sqlscan.NewRowScanner(rows); rows.Next(); {
		var row T
		if err := scanner.Scan(&row); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// utcNow is the current time as it is stored.
func utcNow() time.Time { return time.Now().UTC() }
