package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/shopspring/decimal"
)

// A state is the state of an order.
type state string

const (
	stateOpen    state = "open"    // no coin is chosen yet
	stateSending state = "sending" // an invoice is being created
	stateCreated state = "created" // the invoice exists
	stateUnknown state = "unknown" // the invoice may exist; the merchant has to look it up
	stateRefused state = "refused" // the gateway refused the invoice
	stateUnsent  state = "unsent"  // no invoice exists, and none was refused
)

// states returns all states in display order.
func states() []state {
	return []state{stateOpen, stateSending, stateCreated, stateUnknown, stateRefused, stateUnsent}
}

// An order is a row of shop_orders. Once a coin is chosen, nothing that is
// sent to the gateway changes.
type order struct {
	ID, Buyer, Product string
	Number             int
	Price              decimal.Decimal
	Currency           string
	MadeAt             timestamp
	State              state // as recorded last; the order guard has precedence
	Coin, Network      string
	Amount             decimal.Decimal // in units of the coin
	ChosenAt           timestamp
	SendingUntil       timestamp // when the last claim for sending expires
	Invoice            string
	SentAt             timestamp
	LastStatus         int
	LastBody           string
	LastError          string
}

// An orderStore stores the orders.
type orderStore struct{ db *database }

const orderColumns = `SELECT id, buyer, product, number, price, currency, made_at, state, coin, network, amount,
	chosen_at, sending_until, invoice, sent_at, last_status, last_body, last_error FROM shop_orders `

var errNoOrder = errors.New("order not found")

const insertOrder = `INSERT INTO shop_orders (id, buyer, product, number, price, currency, made_at, state)
	VALUES ($1, $2, $3, $4, $5, $6, $7, 'open') ON CONFLICT (buyer, product, number) DO NOTHING`

func (o order) insertArgs() []any {
	return []any{o.ID, o.Buyer, o.Product, o.Number, o.Price, o.Currency, timestampNow().text()}
}

// open inserts an order, unless the buyer has one of that product and
// number.
func (b orderStore) open(ctx context.Context, o order) error {
	_, err := b.db.change(ctx, insertOrder, o.insertArgs()...)
	return err
}

// openNext inserts the next order of the same buyer and product. It reports
// false if the last order has changed since it was read, or already has a
// next one.
func (b orderStore) openNext(ctx context.Context, last, next order) (bool, error) {
	return b.execIfLast(ctx, last, insertOrder, next.insertArgs()...)
}

// claim claims an order for sending its invoice, until the result is
// recorded or the claim expires. It reports false if another request has
// claimed the order or opened the next one: an order is either sent or
// replaced by the next one, never both.
func (b orderStore) claim(ctx context.Context, o order, until timestamp) (bool, error) {
	return b.execIfLast(ctx, o, `UPDATE shop_orders SET state = 'sending', sending_until = $2 WHERE id = $1`, o.ID, until.text())
}

// execIfLast executes a statement if an order is unchanged since it was read
// and is the last of its buyer and product, and reports whether it did. The
// row stays locked until the statement is done. The check for a next order
// runs after the lock is acquired, because only then does PostgreSQL see
// what other transactions committed in the meantime.
func (b orderStore) execIfLast(ctx context.Context, o order, query string, args ...any) (bool, error) {
	tx, err := b.db.beginTx(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	same, err := b.exists(ctx, tx, `SELECT 1 FROM shop_orders WHERE id = $1 AND state = $2 AND sending_until = $3 FOR UPDATE`,
		o.ID, o.State, o.SendingUntil.text())
	if err != nil || !same {
		return false, err
	}
	hasNext, err := b.exists(ctx, tx, `SELECT 1 FROM shop_orders WHERE buyer = $1 AND product = $2 AND number > $3 LIMIT 1`,
		o.Buyer, o.Product, o.Number)
	if err != nil || hasNext {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, b.db.text(query), args...); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// byID returns an order, or errNoOrder.
func (b orderStore) byID(ctx context.Context, id string) (order, error) {
	return b.queryOne(ctx, `WHERE id = $1`, id)
}

// latest returns a buyer's latest order of a product, or errNoOrder.
func (b orderStore) latest(ctx context.Context, buyer, product string) (order, error) {
	return b.queryOne(ctx, `WHERE buyer = $1 AND product = $2 ORDER BY number DESC LIMIT 1`, buyer, product)
}

// recent returns the orders of a state, or of all for "", newest first.
func (b orderStore) recent(ctx context.Context, of state, limit int) ([]order, error) {
	return b.queryAll(ctx, `WHERE $1 = '' OR state = $1 ORDER BY made_at DESC LIMIT $2`, string(of), limit)
}

// unresolved returns the orders that the order guard may know more about.
func (b orderStore) unresolved(ctx context.Context, limit int) ([]order, error) {
	return b.queryAll(ctx, `WHERE state IN ('sending', 'unknown') ORDER BY state, made_at LIMIT $1`, limit)
}

// exists reports whether a query returns a row.
func (b orderStore) exists(ctx context.Context, tx *sql.Tx, query string, args ...any) (bool, error) {
	var found int
	err := tx.QueryRowContext(ctx, b.db.text(query), args...).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// updatePrice sets the price of an open order to the product's current
// price.
func (b orderStore) updatePrice(ctx context.Context, id string, p product) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET price = $2, currency = $3 WHERE id = $1 AND state = 'open'`, id, p.Price, p.Currency)
	return err
}

// choose records the payment choice of an order once. It reports false if a
// choice was recorded before, or if the price is no longer the one that the
// amount was computed for.
func (b orderStore) choose(ctx context.Context, o order) (bool, error) {
	return b.db.change(ctx, `UPDATE shop_orders SET coin = $2, network = $3, amount = $4, chosen_at = $5, state = 'unsent'
		WHERE id = $1 AND state = 'open' AND price = $6 AND currency = $7`,
		o.ID, o.Coin, o.Network, o.Amount, timestampNow().text(), o.Price, o.Currency)
}

// markUnknown records that the outcome of an order is unknown although an
// earlier attempt was refused or not sent.
func (b orderStore) markUnknown(ctx context.Context, id string) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = 'unknown' WHERE id = $1 AND state IN ('refused', 'unsent')`, id)
	return err
}

// record stores the result of sending an invoice. A created order stays
// created, and an unknown order does not become refused: two servers may
// record in a different order than they sent. The results refused and unsent
// are stored only for the current claim, because another request may have
// claimed the order since.
func (b orderStore) record(ctx context.Context, o order) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = $2, invoice = $3, sent_at = $4, last_status = $5, last_body = $6, last_error = $7
		WHERE id = $1 AND (state <> 'created' OR ($2 = 'created' AND invoice = ''))
		AND (state <> 'unknown' OR $2 IN ('created', 'unknown')) AND (sending_until = $8 OR $2 IN ('created', 'unknown'))`,
		o.ID, o.State, o.Invoice, o.SentAt.text(), o.LastStatus, o.LastBody, o.LastError, o.SendingUntil.text())
	return err
}

// updateState changes the recorded state, unless another request has changed
// it or holds a claim that has not expired.
func (b orderStore) updateState(ctx context.Context, id string, from, to state) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = $3 WHERE id = $1 AND state = $2
		AND ($2 <> 'sending' OR $3 IN ('created', 'unknown') OR sending_until <= $4)`, id, from, to, timestampNow().text())
	return err
}

// count returns the number of orders in each state.
func (b orderStore) count(ctx context.Context) (counts map[state]int, err error) {
	rows, err := b.db.QueryContext(ctx, `SELECT state, count(*) FROM shop_orders GROUP BY state`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	counts = map[state]int{}
	for rows.Next() {
		var of state
		var n int
		if err := rows.Scan(&of, &n); err != nil {
			return nil, err
		}
		counts[of] = n
	}
	return counts, rows.Err()
}

func (b orderStore) queryOne(ctx context.Context, where string, args ...any) (order, error) {
	return scanOrder(b.db.QueryRowContext(ctx, b.db.text(orderColumns+where), args...))
}

func (b orderStore) queryAll(ctx context.Context, where string, args ...any) (orders []order, err error) {
	rows, err := b.db.QueryContext(ctx, b.db.text(orderColumns+where), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		o, err := scanOrder(rows)
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

func scanOrder(row interface{ Scan(...any) error }) (o order, err error) {
	err = row.Scan(&o.ID, &o.Buyer, &o.Product, &o.Number, &o.Price, &o.Currency, &o.MadeAt, &o.State,
		&o.Coin, &o.Network, &o.Amount, &o.ChosenAt, &o.SendingUntil, &o.Invoice, &o.SentAt, &o.LastStatus, &o.LastBody, &o.LastError)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoOrder
	}
	return o, err
}
