package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // PostgreSQL
	_ "modernc.org/sqlite"             // SQLite
)

// A database is PostgreSQL or SQLite. The shop uses the same statements for
// both.
type database struct {
	*sql.DB
	sqlite bool
}

// sqliteSettings make concurrent writers wait instead of fail, take the
// write lock at the start of a transaction, and make commits survive a power
// failure.
const sqliteSettings = "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// openDatabase opens the database of a DATABASE_URL and checks that it
// responds.
func openDatabase(ctx context.Context, url string) (*database, error) {
	d := &database{sqlite: strings.HasPrefix(url, "file:")}
	var err error
	switch {
	case d.sqlite && strings.ContainsAny(url, "?#%"):
		err = errors.New("a file: address must have no settings and no escapes, because some settings lose orders: name the file only")
	case url == "file:":
		err = errors.New("names no file")
	case strings.Count(url, "@") > 1:
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
	d.SetConnMaxIdleTime(time.Minute)
	if err := d.PingContext(ctx); err != nil {
		return nil, errors.Join(errors.New("the database of DATABASE_URL does not respond"), err, d.Close())
	}
	if err := d.checkDurability(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("DATABASE_URL: %w", err), d.Close())
	}
	return d, nil
}

// checkDurability returns an error for a database that may lose committed
// data: an order that was sent and then lost would be sent again.
func (d *database) checkDurability(ctx context.Context) error {
	if d.sqlite {
		return d.checkSetting(ctx, "PRAGMA journal_mode", func(value string) bool { return value == "wal" },
			"it must be a file on a disk of this machine")
	}
	return errors.Join(
		d.checkSetting(ctx, "SHOW synchronous_commit", func(value string) bool { return value != "off" },
			"PostgreSQL must wait for its disk before it confirms a commit"),
		d.checkSetting(ctx, "SHOW default_transaction_isolation", func(value string) bool { return value == "read committed" },
			"the order guard requires read committed"),
	)
}

// checkSetting returns an error if the value of a setting is not allowed.
func (d *database) checkSetting(ctx context.Context, setting string, allowed func(string) bool, requirement string) error {
	var value string
	if err := d.QueryRowContext(ctx, setting).Scan(&value); err != nil {
		return err
	}
	if !allowed(value) {
		return fmt.Errorf("the database could lose or duplicate orders (%s is %q): %s", setting, value, requirement)
	}
	return nil
}

// The tables of the shop; sqlguard creates its own. Amounts and times are
// stored as text, which both databases preserve exactly.
const (
	ordersTable = `CREATE TABLE IF NOT EXISTS shop_orders (
	id text NOT NULL PRIMARY KEY,
	buyer text NOT NULL,
	product text NOT NULL,
	number integer NOT NULL, -- the buyer's first, second … order of this product
	price text NOT NULL,
	currency text NOT NULL,
	made_at text NOT NULL,
	state text NOT NULL,
	coin text NOT NULL DEFAULT '',
	network text NOT NULL DEFAULT '',
	amount text NOT NULL DEFAULT '0',
	chosen_at text NOT NULL DEFAULT '',
	sending_until text NOT NULL DEFAULT '',
	invoice text NOT NULL DEFAULT '', -- the gateway's response, unchanged
	sent_at text NOT NULL DEFAULT '',
	last_status integer NOT NULL DEFAULT 0,
	last_body text NOT NULL DEFAULT '',
	last_error text NOT NULL DEFAULT '',
	UNIQUE (buyer, product, number)
)`
	withdrawalsTable = `CREATE TABLE IF NOT EXISTS shop_withdrawals (
	id text NOT NULL PRIMARY KEY,
	added_by text NOT NULL,
	added_at text NOT NULL
)`
	gatewayTable = `CREATE TABLE IF NOT EXISTS shop_gateway (
	id integer NOT NULL PRIMARY KEY CHECK (id = 1),
	name text NOT NULL -- the gateway of all orders
)`
)

// beginTx begins a transaction in which each statement sees what other
// transactions committed before it: the shop queries again after it has
// waited for a lock.
func (d *database) beginTx(ctx context.Context) (*sql.Tx, error) {
	if d.sqlite {
		return d.BeginTx(ctx, nil)
	}
	return d.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
}

// createTables creates the tables of the shop if they do not exist. On
// PostgreSQL it takes a lock, because concurrent CREATE TABLE IF NOT EXISTS
// can fail.
func (d *database) createTables(ctx context.Context) error {
	tx, err := d.beginTx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	texts := []string{
		"SELECT pg_advisory_xact_lock(hashtext('shop'))", ordersTable, withdrawalsTable, sessionsTable, gatewayTable,
		"CREATE INDEX IF NOT EXISTS shop_orders_made ON shop_orders (made_at)",
		"CREATE INDEX IF NOT EXISTS shop_orders_state ON shop_orders (state, made_at)",
	}
	if d.sqlite {
		texts = texts[1:]
	}
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// bindGateway assigns a new database to a gateway and refuses a database of
// another gateway, so that the demo's invented orders never mix with real
// ones.
func (d *database) bindGateway(ctx context.Context, gateway string) error {
	_, err := d.change(ctx, `INSERT INTO shop_gateway (id, name) SELECT 1, CAST($1 AS text)
		WHERE NOT EXISTS (SELECT 1 FROM shop_orders) ON CONFLICT (id) DO NOTHING`, gateway)
	if err != nil {
		return err
	}
	var owner string
	err = d.QueryRowContext(ctx, `SELECT name FROM shop_gateway`).Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		owner = "an unnamed gateway"
	case err != nil:
		return err
	case owner == gateway:
		return nil
	}
	return fmt.Errorf("the database of DATABASE_URL has the orders of %s, and this shop uses %s: use another database", owner, gateway)
}

// text returns a statement in the syntax of this database. SQLite has no row
// locks: a write transaction locks the whole database.
func (d *database) text(query string) string {
	if d.sqlite {
		return strings.NewReplacer("$", "?", " FOR UPDATE", "").Replace(query)
	}
	return query
}

// change executes a statement and reports whether it changed a row.
func (d *database) change(ctx context.Context, query string, args ...any) (bool, error) {
	result, err := d.ExecContext(ctx, d.text(query), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// A timestamp is a time stored in a text column in a sortable format.
type timestamp struct{ time.Time }

const timestampLayout = "2006-01-02T15:04:05.000Z"

func timestampNow() timestamp { return timestamp{time.Now().UTC()} }

// text returns the stored form, "" for the zero time.
func (s timestamp) text() string {
	if s.IsZero() {
		return ""
	}
	return s.UTC().Format(timestampLayout)
}

// Scan implements [sql.Scanner].
func (s *timestamp) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("a timestamp is a string, not %T", value)
	}
	if text == "" {
		s.Time = time.Time{}
		return nil
	}
	at, err := time.Parse(timestampLayout, text)
	s.Time = at
	return err
}
