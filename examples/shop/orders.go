package main

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// A state is the state of an order.
type state string

const (
	stateOpen      state = "open"      // no coin is chosen yet
	stateUnsent    state = "unsent"    // a coin is chosen, and there is no invoice
	stateRefused   state = "refused"   // the gateway refused the invoice
	stateSending   state = "sending"   // an invoice is being created; never stored
	stateUnknown   state = "unknown"   // the invoice may exist; the merchant has to look it up
	stateCreated   state = "created"   // the invoice exists
	statePaid      state = "paid"      // the merchant has seen the payment
	stateShipped   state = "shipped"   // the merchant has shipped the order
	stateCancelled state = "cancelled" // the merchant has cancelled the order
)

// states returns the stored states in display order.
func states() []state {
	return []state{stateUnknown, stateCreated, statePaid, stateShipped, stateOpen, stateUnsent, stateRefused, stateCancelled}
}

// Label returns the words of a state for the merchant.
func (s state) Label() string {
	return map[state]string{
		stateOpen: "No coin chosen", stateUnsent: "Not sent", stateRefused: "Refused", stateSending: "Being sent", stateUnknown: "To look up",
		stateCreated: "Waiting for payment", statePaid: "Paid", stateShipped: "Shipped", stateCancelled: "Cancelled",
	}[s]
}

// Next returns the states that a merchant may mark an order with.
func (s state) Next() []state {
	return map[state][]state{
		stateOpen: {stateCancelled}, stateUnsent: {stateCancelled}, stateRefused: {stateCancelled},
		stateCreated: {statePaid, stateCancelled}, statePaid: {stateShipped, stateCreated, stateCancelled}, stateShipped: {statePaid},
	}[s]
}

func (s state) canBeSent() bool { return s == stateOpen || s == stateUnsent || s == stateRefused }

func (s state) isMarked() bool { return s == statePaid || s == stateShipped || s == stateCancelled }

// An order is a row of shop_orders. From Price to Network it is what was chosen last.
type order struct {
	ID, Buyer, Product, Contact string
	MadeAt                      timestamp
	State                       state // as recorded last; see stateOf
	Price                       decimal.Decimal
	Currency                    string
	Amount                      decimal.Decimal // in units of the coin
	Coin, Network               string
	SentAt                      timestamp
	Invoice                     string // the gateway's response
	LastStatus                  int
	LastBody, LastError         string
}

const ordersTable = `CREATE TABLE IF NOT EXISTS shop_orders (
	id text NOT NULL PRIMARY KEY,
	buyer text NOT NULL,
	product text NOT NULL,
	contact text NOT NULL DEFAULT '',
	made_at text NOT NULL,
	state text NOT NULL DEFAULT 'open',
	price text NOT NULL DEFAULT '0',
	currency text NOT NULL DEFAULT '',
	amount text NOT NULL DEFAULT '0',
	coin text NOT NULL DEFAULT '',
	network text NOT NULL DEFAULT '',
	sent_at text NOT NULL DEFAULT '',
	invoice text NOT NULL DEFAULT '',
	last_status integer NOT NULL DEFAULT 0,
	last_body text NOT NULL DEFAULT '',
	last_error text NOT NULL DEFAULT ''
)`

// historyTable has what merchants have done, with their names.
const historyTable = `CREATE TABLE IF NOT EXISTS shop_history (
	order_id text NOT NULL,
	at text NOT NULL,
	name text NOT NULL,
	what text NOT NULL
)`

// An orderStore stores the orders.
type orderStore struct{ db *database }

var errNoOrder = errors.New("order not found")

// insert stores an order, unless there is one with its identifier.
func (b orderStore) insert(ctx context.Context, o order) error {
	_, err := b.db.change(ctx, `INSERT INTO shop_orders (id, buyer, product, made_at) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING`,
		o.ID, o.Buyer, o.Product, timestampNow().text())
	return err
}

// choose records what is about to be sent. It reports false if the order must not be
// sent any more.
func (b orderStore) choose(ctx context.Context, o order) (bool, error) {
	return b.db.change(ctx, `UPDATE shop_orders SET state = 'unsent', price = $2, currency = $3, amount = $4, coin = $5, network = $6, sent_at = $7
		WHERE id = $1 AND state IN ('open', 'unsent', 'refused')`,
		o.ID, o.Price, o.Currency, o.Amount, o.Coin, o.Network, timestampNow().text())
}

// record stores a result. A created invoice is always recorded, and does not undo what
// the merchant has marked. Any other result is dropped if the order has gone on since:
// processes may record in another order than they send.
func (b orderStore) record(ctx context.Context, o order) error {
	where := ` WHERE id = $1 AND state IN ('open', 'unsent', 'refused')`
	if o.State == stateCreated {
		where = ` WHERE id = $1`
	}
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = CASE WHEN state IN ('paid', 'shipped', 'cancelled') THEN state ELSE $2 END,
		invoice = $3, last_status = $4, last_body = $5, last_error = $6`+where,
		o.ID, o.State, o.Invoice, o.LastStatus, o.LastBody, o.LastError)
	return err
}

// catchUp records the state of an order whose process died before it recorded a result.
func (b orderStore) catchUp(ctx context.Context, id string, now state) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET state = $2 WHERE id = $1 AND state IN ('open', 'unsent', 'refused')`, id, now)
	return err
}

func (b orderStore) setContact(ctx context.Context, id, contact string) error {
	_, err := b.db.change(ctx, `UPDATE shop_orders SET contact = $2 WHERE id = $1`, id, contact)
	return err
}

// An event is something that a merchant has done with an order.
type event struct {
	At         timestamp
	Name, What string
}

// mark changes the state of an order, and records who did it and why. It reports false
// if the order has another state by now.
func (b orderStore) mark(ctx context.Context, id string, from, to state, name, what string) (bool, error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx, b.db.text(`UPDATE shop_orders SET state = $3 WHERE id = $1 AND state = $2`), id, from, to)
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); n == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, b.db.text(`INSERT INTO shop_history (order_id, at, name, what) VALUES ($1, $2, $3, $4)`), id, timestampNow().text(), name, what)
	if err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// history returns what merchants have done with an order, oldest first.
func (b orderStore) history(ctx context.Context, id string) (events []event, err error) {
	rows, err := b.db.QueryContext(ctx, b.db.text(`SELECT at, name, what FROM shop_history WHERE order_id = $1 ORDER BY at`), id)
	err = errors.Join(err, scanAll(rows, func() error {
		var e event
		err := rows.Scan(&e.At, &e.Name, &e.What)
		events = append(events, e)
		return err
	}))
	return events, err
}

// A filter selects orders. Zero fields select all.
type filter struct {
	Text     string // a part of the order's number or of the contact
	State    state
	From, To string // dates, inclusive
}

// selected is the condition of a filter, with its four arguments.
const selected = ` WHERE lower(id || ' ' || contact) LIKE $1 ESCAPE '!' AND ($2 = '' OR state = $2) AND made_at >= $3 AND ($4 = '' OR made_at < $4)`

func (f filter) args() []any {
	text := "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(f.Text)) + "%"
	to := ""
	if day, err := time.Parse(time.DateOnly, f.To); err == nil {
		to = day.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	return []any{text, string(f.State), f.From, to}
}

const orderColumns = `SELECT id, buyer, product, contact, made_at, state, price, currency, amount, coin, network,
	sent_at, invoice, last_status, last_body, last_error FROM shop_orders`

// byID returns an order, or errNoOrder.
func (b orderStore) byID(ctx context.Context, id string) (order, error) {
	return scanOrder(b.db.QueryRowContext(ctx, b.db.text(orderColumns+` WHERE id = $1`), id))
}

// newestCreated returns the newest order that has the gateway's response, or errNoOrder.
func (b orderStore) newestCreated(ctx context.Context) (order, error) {
	return scanOrder(b.db.QueryRowContext(ctx, orderColumns+` WHERE invoice <> '' ORDER BY sent_at DESC LIMIT 1`))
}

// each calls a function for the selected orders, newest first.
func (b orderStore) each(ctx context.Context, f filter, limit, offset int, do func(order) error) error {
	rows, err := b.db.QueryContext(ctx, b.db.text(orderColumns+selected+` ORDER BY made_at DESC, id LIMIT $5 OFFSET $6`), append(f.args(), limit, offset)...)
	return errors.Join(err, scanAll(rows, func() error {
		o, err := scanOrder(rows)
		if err != nil {
			return err
		}
		return do(o)
	}))
}

// A total is the sum of the orders in one coin.
type total struct {
	Coin          string
	Waiting, Paid decimal.Decimal
}

// summary returns the number of the selected orders by state, and their totals.
func (b orderStore) summary(ctx context.Context, f filter) (counts map[state]int, totals []total, err error) {
	rows, err := b.db.QueryContext(ctx, b.db.text(`SELECT state, coin, amount FROM shop_orders`+selected+` ORDER BY coin`), f.args()...)
	counts = map[state]int{}
	err = errors.Join(err, scanAll(rows, func() error {
		var of state
		var coin string
		var amount decimal.Decimal
		if err := rows.Scan(&of, &coin, &amount); err != nil {
			return err
		}
		counts[of]++
		if of != stateCreated && of != statePaid && of != stateShipped {
			return nil
		}
		if n := len(totals); n == 0 || totals[n-1].Coin != coin {
			totals = append(totals, total{Coin: coin})
		}
		sum := &totals[len(totals)-1].Paid
		if of == stateCreated {
			sum = &totals[len(totals)-1].Waiting
		}
		*sum = sum.Add(amount)
		return nil
	}))
	return counts, totals, err
}

func scanOrder(row interface{ Scan(...any) error }) (o order, err error) {
	err = row.Scan(&o.ID, &o.Buyer, &o.Product, &o.Contact, &o.MadeAt, &o.State, &o.Price, &o.Currency, &o.Amount, &o.Coin, &o.Network,
		&o.SentAt, &o.Invoice, &o.LastStatus, &o.LastBody, &o.LastError)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoOrder
	}
	return o, err
}
