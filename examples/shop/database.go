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

// A database is PostgreSQL or SQLite. The statements of the shop are the same
// for both.
type database struct {
	*sql.DB
	sqlite bool
}

// sqliteSettings make writers wait for each other instead of failing, and
// transactions from their beginning; what is committed outlives a power cut.
const sqliteSettings = "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// openDatabase opens what a DATABASE_URL names and waits until it answers.
func openDatabase(ctx context.Context, url string) (*database, error) {
	d := &database{sqlite: strings.HasPrefix(url, "file:")}
	var err error
	switch {
	case d.sqlite && strings.ContainsAny(url, "?#%"):
		err = errors.New("a file: address takes no settings and no escapes, for some settings lose orders: name the file alone")
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
		return nil, errors.Join(errors.New("the database of DATABASE_URL does not answer"), err, d.Close())
	}
	if err := d.lasts(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("DATABASE_URL: %w", err), d.Close())
	}
	return d, nil
}

// lasts returns an error for a database that may forget what it has committed:
// an order that was sent and forgotten would be sent again.
func (d *database) lasts(ctx context.Context) error {
	if d.sqlite {
		return d.says(ctx, "PRAGMA journal_mode", func(answer string) bool { return answer == "wal" },
			"it must be a file on a disk of this machine")
	}
	return errors.Join(
		d.says(ctx, "SHOW synchronous_commit", func(answer string) bool { return answer != "off" },
			"PostgreSQL must wait for its disk before it says that an order is kept"),
		d.says(ctx, "SHOW default_transaction_isolation", func(answer string) bool { return answer == "read committed" },
			"the order guard is made for read committed"),
	)
}

// says returns an error if the answer to a question is not one that is right.
func (d *database) says(ctx context.Context, question string, right func(string) bool, wanted string) error {
	var answer string
	if err := d.QueryRowContext(ctx, question).Scan(&answer); err != nil {
		return err
	}
	if !right(answer) {
		return fmt.Errorf("the database would forget orders or make them twice (%s says %q): %s", question, answer, wanted)
	}
	return nil
}

// Tables of the shop; sqlguard has one of its own. Amounts and times are
// texts, which both databases keep digit for digit.
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
	invoice text NOT NULL DEFAULT '', -- the gateway's answer, as it came
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
	name text NOT NULL -- of the gateway that all orders are of
)`
)

// begin begins a transaction in which each statement sees what others have
// committed before it: the shop asks again after it has waited for a lock.
func (d *database) begin(ctx context.Context) (*sql.Tx, error) {
	if d.sqlite {
		return d.BeginTx(ctx, nil)
	}
	return d.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
}

// createTables makes the tables of the shop if they are not there. PostgreSQL
// needs a lock for that: of several at once, all but one can fail.
func (d *database) createTables(ctx context.Context) error {
	tx, err := d.begin(ctx)
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

// belongTo makes a new database that of a gateway, and refuses the one of
// another: what the demo makes up is never to stand beside real orders.
func (d *database) belongTo(ctx context.Context, gateway string) error {
	_, err := d.change(ctx, `INSERT INTO shop_gateway (id, name) SELECT 1, CAST($1 AS text)
		WHERE NOT EXISTS (SELECT 1 FROM shop_orders) ON CONFLICT (id) DO NOTHING`, gateway)
	if err != nil {
		return err
	}
	var owner string
	err = d.QueryRowContext(ctx, `SELECT name FROM shop_gateway`).Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		owner = "a gateway that it does not name"
	case err != nil:
		return err
	case owner == gateway:
		return nil
	}
	return fmt.Errorf("the database of DATABASE_URL has the orders of %s, and this shop is for %s: name another database", owner, gateway)
}

// text writes a statement for this database. SQLite has no locks for rows: a
// transaction has all of the database.
func (d *database) text(query string) string {
	if d.sqlite {
		return strings.NewReplacer("$", "?", " FOR UPDATE", "").Replace(query)
	}
	return query
}

// change runs a statement and reports whether it changed a row.
func (d *database) change(ctx context.Context, query string, args ...any) (bool, error) {
	result, err := d.ExecContext(ctx, d.text(query), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// A stamp is a time in a column of text, which sorts.
type stamp struct{ time.Time }

const stampLayout = "2006-01-02T15:04:05.000Z"

func stampNow() stamp { return stamp{time.Now().UTC()} }

// text is the time as it is written, "" for none.
func (s stamp) text() string {
	if s.IsZero() {
		return ""
	}
	return s.UTC().Format(stampLayout)
}

// Scan implements [sql.Scanner].
func (s *stamp) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("a time is a text, not %T", value)
	}
	if text == "" {
		s.Time = time.Time{}
		return nil
	}
	at, err := time.Parse(stampLayout, text)
	s.Time = at
	return err
}
