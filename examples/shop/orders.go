package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/shopspring/decimal"
)

// A state is where an order stands.
type state string

const (
	stateOpen    state = "open"    // the buyer has chosen no coin yet
	stateSending state = "sending" // an invoice is being created
	stateCreated state = "created" // the invoice exists
	stateUnknown state = "unknown" // it may exist: the merchant has to look it up
	stateRefused state = "refused" // the gateway said no
	stateUnsent  state = "unsent"  // no invoice exists, and none was refused
)

// states are all states, in the order in which they are shown.
func states() []state {
	return []state{stateOpen, stateSending, stateCreated, stateUnknown, stateRefused, stateUnsent}
}

// An order is a row of shop_orders. Once a coin is chosen nothing of what is
// sent to the gateway changes any more.
type order struct {
	ID, Buyer, Product string
	Number             int
	Price              decimal.Decimal
	Currency           string
	MadeAt             stamp
	State              state // as it was recorded last; the order guard knows better
	Coin, Network      string
	Amount             decimal.Decimal // in units of the coin
	ChosenAt           stamp
	SendingUntil       stamp // until when whoever took it last for sending has it
	Invoice            string
	SentAt             stamp
	LastStatus         int
	LastBody           string
	LastError          string
}

// An orderBook keeps the orders.
type orderBook struct{ db *database }

const orderColumns = `SELECT id, buyer, product, number, price, currency, made_at, state, coin, network, amount,
	chosen_at, sending_until, invoice, sent_at, last_status, last_body, last_error FROM shop_orders `

var errNoOrder = errors.New("there is no such order")

const insertOrder = `INSERT INTO shop_orders (id, buyer, product, number, price, currency, made_at, state)
	VALUES ($1, $2, $3, $4, $5, $6, $7, 'open') ON CONFLICT (buyer, product, number) DO NOTHING`

func (o order) inserted() []any {
	return []any{o.ID, o.Buyer, o.Product, o.Number, o.Price, o.Currency, stampNow().text()}
}

// open makes an order, unless its buyer has one of that product and number.
func (b orderBook) open(ctx context.Context, o order) error {
	_, err := b.db.change(ctx, insertOrder, o.inserted()...)
	return err
}

// follow makes the successor of an order. It reports false when that order has
// moved on since it was read, or has a successor.
func (b orderBook) follow(ctx context.Context, last, next order) (bool, error) {
	return b.ifLast(ctx, last, insertOrder, next.inserted()...)
}

// take takes an order for sending its invoice, until it is recorded what came
// of that or the time is over: whoever dies leaves an order that is looked
// into. It reports false when somebody else was first, with this order or with
// a successor: an order is sent or followed, and never both.
func (b orderBook) take(ctx context.Context, o order, until stamp) (bool, error) {
	return b.ifLast(ctx, o, `UPDATE shop_orders SET state = 'sending', sending_until = $2 WHERE id = $1`, o.ID, until.text())
}

// ifLast runs a statement if an order is as it was read and has no successor,
// and reports whether it was. The order is locked from the question until the
// statement is done; the successor is asked for when it is, for only then does
// PostgreSQL show what others have done meanwhile.
func (b orderBook) ifLast(ctx context.Context, o order, query string, args ...any) (bool, error) {
	tx, err := b.db.begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	same, err := b.finds(ctx, tx, `SELECT 1 FROM shop_orders WHERE id = $1 AND state = $2 AND sending_until = $3 FOR UPDATE`,
		o.ID, o.State, o.SendingUntil.text())
	if err != nil || !same {
		return false, err
	}
	followed, err := b.finds(ctx, tx, `SELECT 1 FROM shop_orders WHERE buyer = $1 AND product = $2 AND number > $3 LIMIT 1`,
		o.Buyer, o.Product, o.Number)
	if err != nil || followed {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, b.db.text(query), args...); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// byID returns an order, or errNoOrder.
func (b orderBook) byID(ctx context.Context, id string) (order, error) {
	return b.one(ctx, `WHERE id = $1`, id)
}

// latest returns the last order of a product that a buyer has made, or
// errNoOrder.
func (b orderBook) latest(ctx context.Context, buyer, product string) (order, error) {
	return b.one(ctx, `WHERE buyer = $1 AND product = $2 ORDER BY number DESC LIMIT 1`, buyer, product)
}

// recent returns the orders of a state, or of all for "", newest first.
func (b orderBook) recent(ctx context.Context, of state, limit int) ([]order, error) {
	return b.list(ctx, `WHERE $1 = '' OR state = $1 ORDER BY made_at DESC LIMIT $2`, string(of), limit)
}

// unsettled returns the orders that the order guard may know more of.
func (b orderBook) unsettled(ctx context.Context, limit int) ([]order, error) {
	return b.list(ctx, `WHERE state IN ('sending', 'unknown') ORDER BY state, made_at LIMIT $1`, limit)
}

// finds reports whether a query finds a row.
func (b orderBook) finds(ctx context.Context, tx *sql.Tx, query string, args ...any) (bool, error) {
	var one int
	err := tx.QueryRowContext(ctx, b.db.text(query), args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// reprice gives an order on which nothing is chosen yet the price of now.
func (b orderBook) reprice(ctx context.Context, id string, p product) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET price = $2, currency = $3 WHERE id = $1 AND state = 'open'`, id, p.Price, p.Currency)
	return err
}

// choose records what an order is paid with, once: it reports false when that
// was chosen before, or when the price is not the one of the amount any more.
func (b orderBook) choose(ctx context.Context, o order) (bool, error) {
	return b.db.change(ctx, `UPDATE shop_orders SET coin = $2, network = $3, amount = $4, chosen_at = $5, state = 'unsent'
		WHERE id = $1 AND state = 'open' AND price = $6 AND currency = $7`,
		o.ID, o.Coin, o.Network, o.Amount, stampNow().text(), o.Price, o.Currency)
}

// suspect records that an order's outcome is unknown of which an earlier
// attempt came to nothing.
func (b orderBook) suspect(ctx context.Context, id string) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = 'unknown' WHERE id = $1 AND state IN ('refused', 'unsent')`, id)
	return err
}

// record writes what came of sending an invoice. A created one stays created,
// and one whose outcome is unknown does not become refused: two servers may
// record in another order than they sent. That nothing came of it counts only
// from whoever has the order: somebody else may have taken it since.
func (b orderBook) record(ctx context.Context, o order) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = $2, invoice = $3, sent_at = $4, last_status = $5, last_body = $6, last_error = $7
		WHERE id = $1 AND (state <> 'created' OR ($2 = 'created' AND invoice = ''))
		AND (state <> 'unknown' OR $2 IN ('created', 'unknown')) AND (sending_until = $8 OR $2 IN ('created', 'unknown'))`,
		o.ID, o.State, o.Invoice, o.SentAt.text(), o.LastStatus, o.LastBody, o.LastError, o.SendingUntil.text())
	return err
}

// settle changes the recorded state, unless somebody else has meanwhile. One
// who has taken the order for sending keeps it.
func (b orderBook) settle(ctx context.Context, id string, from, to state) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = $3 WHERE id = $1 AND state = $2
		AND ($2 <> 'sending' OR $3 IN ('created', 'unknown') OR sending_until <= $4)`, id, from, to, stampNow().text())
	return err
}

// count returns how many orders there are of each state.
func (b orderBook) count(ctx context.Context) (counts map[state]int, err error) {
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

func (b orderBook) one(ctx context.Context, where string, args ...any) (order, error) {
	return scanOrder(b.db.QueryRowContext(ctx, b.db.text(orderColumns+where), args...))
}

func (b orderBook) list(ctx context.Context, where string, args ...any) (orders []order, err error) {
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
