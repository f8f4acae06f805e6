package sqlguard

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

// A row is an order in the table.
type row = orders.Row[gateway.OrderRecord]

// A key identifies an order.
type key struct{ merchant, order string }

const (
	maxMerchant = 256 // bytes
	maxOrder    = 1024
	maxGateway  = 512
)

// idOf returns the text that identifies an order. Equal UUIDs have the same one.
func idOf(orderID string) string {
	return gateway.Order{Request: gateway.InvoiceRequest{OrderID: orderID}}.Key()
}

// checkStorable returns an error for a text that not every database can store.
func checkStorable(name, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return badArgument(name, fmt.Sprintf("must be valid UTF-8 of at most %d bytes without NUL", most))
	}
	return nil
}

func (k key) check() error {
	if k.order == "" {
		return badArgument("orderId", "is required")
	}
	return errors.Join(checkStorable("orderId", k.order, maxOrder), checkStorable("WithMerchant", k.merchant, maxMerchant))
}

func (k key) error(err error) error {
	err = advised(err)
	if k.merchant != "" {
		return fmt.Errorf("sqlguard: order %q of merchant %q: %w", k.order, k.merchant, err)
	}
	return fmt.Errorf("sqlguard: order %q: %w", k.order, err)
}

// A stored row is a row as the database has it: with its version, and the time when it was read.
type stored struct {
	row
	version int64 // 0 for a row that is not there
	known   bool  // or expected to be so
	now     int64 // by the clock of the database, when it was read
}

// randomName returns a number that no other version or attempt has.
func randomName() int64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:])                                // never fails
	return int64(binary.LittleEndian.Uint64(bytes[:])>>1 | 1) // #nosec G115 -- of 63 bits
}

const mostTries = 20

// change makes a transition of an order: it writes the row that step returns if nothing has changed the one
// that was passed. The first one may be a guess, which spares a query. Step is called again for a row that
// was changed by others, or by a try whose answer was lost.
func (g *Guard) change(ctx context.Context, k key, guess stored, step func(row, int64) (row, orders.Answer)) (has stored, answer orders.Answer, err error) {
	err = g.onConn(ctx, isRepeatable, func(ctx context.Context, h handle) error {
		has, answer, err = g.changeIn(ctx, h, k, guess, step)
		return err
	})
	return has, answer, err
}

func (g *Guard) changeIn(ctx context.Context, q querier, k key, has stored, step func(row, int64) (row, orders.Answer)) (stored, orders.Answer, error) {
	var failure error
	for range mostTries {
		if !has.known {
			var err error
			if has, err = g.read(ctx, q, k); err != nil {
				return has, orders.Answer{}, err
			}
		}
		after, answer := step(has.row, has.now)
		if !answer.Changed {
			return has, answer, nil
		}
		version := randomName()
		written, err := g.write(ctx, q, k, has, after, version)
		switch {
		case err != nil && !g.sql.isTransient(err):
			return has, orders.Answer{}, err
		case written:
			return stored{row: after, version: version, known: true, now: has.now}, answer, nil
		}
		has, failure = stored{}, err
	}
	if failure != nil {
		return stored{}, orders.Answer{}, failure
	}
	return stored{}, orders.Answer{}, fmt.Errorf("the row was changed by others %d times, or the connection commits nothing, as with autocommit=0", mostTries)
}

// guessed is a row that is expected to be as it was, by the clock of this process.
func (g *Guard) guessed(has stored) stored {
	has.known, has.now = true, g.now().UnixMicro()
	return has
}

// read reads the row of an order; its version is 0 if there is none.
func (g *Guard) read(ctx context.Context, q querier, k key) (has stored, err error) {
	has = g.guessed(has)
	rows, err := q.QueryContext(ctx, g.queries.order, []byte(k.merchant), []byte(k.order))
	err = readRows(rows, err, func() error {
		_, has, err = scan(rows)
		return err
	})
	return has, err
}

func scan(rows *sql.Rows) (k key, has stored, err error) {
	var invoice, record []byte
	r := &has.row
	err = rows.Scan(&k.merchant, &k.order, &r.Gateway, &has.version, &r.Attempts, &r.Attempt,
		&r.Begun, &r.Lease, &r.OpenSince, &r.Ended, &r.Created, &invoice, &record, &has.now)
	if err == nil {
		err = readRecord(record, r)
	}
	if len(r.Invoices) > 0 {
		r.Invoices[0].Record.Invoice = invoice
	}
	has.known = true
	return k, has, err
}

// write writes a row if the table has the version before it.
func (g *Guard) write(ctx context.Context, q querier, k key, before stored, after row, version int64) (written bool, err error) {
	record, err := recordText(after)
	if err != nil {
		return false, err
	}
	w := &writing{}
	w.add("version", "?", version)
	w.add("record", "?", record)
	w.add("attempts", "?", after.Attempts)
	w.add("attempt", "?", after.Attempt)
	if before.version == 0 || before.Gateway != after.Gateway { // a moved base URL stays
		w.add("gateway", "{id}", []byte(after.Gateway))
	}
	w.add("outcome", "{id}", []byte(outcomeOf(after)))
	if !bytes.Equal(invoiceOf(before.row), invoiceOf(after)) {
		w.add("invoice", "?", invoiceOf(after))
	}
	w.addTime("begun_at", before.Begun, after.Begun, before.now)
	w.addTime("lease_until", before.Lease, after.Lease, before.now)
	w.addTime("open_since", before.OpenSince, after.OpenSince, before.now)
	w.addTime("ended_at", before.Ended, after.Ended, before.now)
	w.addTime("created_at", before.Created, after.Created, before.now)
	w.addTime("resolved_at", before.LastFinding().At, after.LastFinding().At, before.now)
	w.addTime("changed_at", 0, before.now, before.now)
	text := ""
	if before.version == 0 {
		w.add("merchant", "{id}", []byte(k.merchant))
		w.add("order_id", "{id}", []byte(k.order))
		text = "INSERT INTO {table} (" + strings.Join(w.names, ", ") + ") " + g.sql.values[0] + strings.Join(w.values, ", ") + g.sql.values[1]
	} else {
		for i, name := range w.names {
			w.values[i] = name + " = " + w.values[i]
		}
		w.args = append(w.args, []byte(k.merchant), []byte(k.order), before.version)
		text = "UPDATE {table} SET " + strings.Join(w.values, ", ") + " WHERE merchant = {id} AND order_id = {id} AND version = ?" + g.sql.written
	}
	result, err := q.ExecContext(ctx, g.sql.fill(text), w.args...)
	if isDuplicate(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	count, err := result.RowsAffected()
	return count == 1, err
}

// outcomeOf returns the outcome of the attempt that ended last.
func outcomeOf(r row) string {
	switch {
	case len(r.Invoices) > 0:
		return gateway.OutcomeSucceeded.String()
	case r.Last != nil:
		return r.Last.Outcome.String()
	case len(r.Open) > 0:
		return gateway.OutcomeUnknown.String()
	default:
		return ""
	}
}

func invoiceOf(r row) []byte {
	if len(r.Invoices) == 0 {
		return nil
	}
	return r.Invoices[0].Record.Invoice
}

// A writing is the columns that a statement writes.
type writing struct {
	names, values []string
	args          []any
}

func (w *writing) add(name, value string, args ...any) {
	w.names, w.values, w.args = append(w.names, name), append(w.values, value), append(w.args, args...)
}

// addTime adds a time that changes, which the statement counts from its own clock.
func (w *writing) addTime(name string, before, after, now int64) {
	switch {
	case after == before:
	case after == 0:
		w.add(name, "0")
	case after == now:
		w.add(name, "{now}")
	default:
		w.add(name, fmt.Sprintf("{now} + %d", after-now))
	}
}

// isDuplicate reports whether an error of MariaDB says that a row is there, which the others do not take for an error.
func isDuplicate(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "Error 1062 ") }

// isTransient reports whether a statement that has failed may be run again.
func (s *schema) isTransient(err error) bool { return hasCode(err, s.again) }

// sqlState returns the SQLSTATE of an error of PostgreSQL, or "".
func sqlState(err error) string {
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return state.SQLState()
	}
	return ""
}

// A querier is a handle, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A handle is a querier that begins transactions.
type handle interface {
	querier
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// withBusyTimeout calls f with a connection of SQLite whose wait for another writer ends with the context, which it otherwise does not.
func (g *Guard) withBusyTimeout(ctx context.Context, f func(context.Context, handle) error) error {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return f(ctx, g.db)
	}
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // returns it to the handle
	var timeout int64
	if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&timeout); err != nil {
		return err
	}
	if left := max(0, time.Until(deadline).Milliseconds()); left < timeout {
		defer func() { // a connection that would not wait as before is not used again
			if setBusyTimeout(context.WithoutCancel(ctx), conn, timeout) != nil {
				_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
		if err := setBusyTimeout(ctx, conn, left); err != nil {
			return err
		}
	}
	return f(ctx, conn)
}

func setBusyTimeout(ctx context.Context, conn *sql.Conn, milliseconds int64) error {
	_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", milliseconds))
	return err
}

// readRows calls scan for each row. It reads to the end of the result, because a database may
// report only there that it failed.
func readRows(rows *sql.Rows, failure error, scan func() error) (err error) {
	if failure != nil {
		return failure
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// advised says in an error what to do about a table or a column that does not exist, a prepared statement or a server that
// only reads.
func advised(err error) error {
	if err == nil {
		return nil
	}
	state, text := sqlState(err), err.Error()
	switch {
	case state == "25006" || slices.ContainsFunc(readOnly, func(code string) bool { return strings.Contains(text, code) }):
		return fmt.Errorf("%w: the server is read-only, as a replica is, or the session is: connect to the primary", err)
	case strings.Contains(text, "attempt to write a readonly database"):
		return fmt.Errorf("%w: this user may not write the file, or the DSN says that it only reads", err)
	case errors.Is(err, driver.ErrBadConn):
		return fmt.Errorf("%w: the server is gone, or, with rejectReadOnly in the DSN, is read-only", err)
	case state == "42P05" || state == "26000": // of a pooler that gives each transaction another connection
		return fmt.Errorf("%w: behind PgBouncer with transaction pooling, the DSN needs default_query_exec_mode=exec", err)
	case state == "42P01" || strings.Contains(text, "no such table") || strings.HasPrefix(text, "Error 1146 "):
		return fmt.Errorf("%w: call Migrate, which creates the table", err)
	case state == "42703" || strings.Contains(text, "no such column") || strings.Contains(text, "has no column named") || strings.HasPrefix(text, "Error 1054 "):
		return fmt.Errorf("%w: the table is not one of this version of sqlguard: name another by WithTable, or rename this one and call Migrate", err)
	}
	return err
}
