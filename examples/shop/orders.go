package main

import (
	"context"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/shopspring/decimal"
)

// A state is the state of an order.
type state string

const (
	stateAny       state = ""          // of a filter and a sum
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
	MadeAt                      time.Time
	State                       state // as recorded last; see latest
	Price                       decimal.Decimal
	Currency                    string
	Amount                      decimal.Decimal // in units of the coin
	Coin, Network               string
	SentAt                      time.Time
	Invoice                     string // the gateway's response
	LastStatus                  int
	LastBody, LastError         string
}

// insertOrder stores an order, unless there is one with its identifier.
func (d *database) insertOrder(ctx context.Context, o order) error {
	_, err := d.change(ctx, `INSERT INTO shop_orders (id, buyer, product, made_at) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING`,
		o.ID, o.Buyer, o.Product, utcNow())
	return err
}

// choose records what is about to be sent. It reports false if the order must not be
// sent any more.
func (d *database) choose(ctx context.Context, r gateway.InvoiceRequest) (bool, error) {
	return d.change(ctx, `UPDATE shop_orders SET state = 'unsent', price = $2, currency = $3, amount = $4, coin = $5, network = $6, sent_at = $7
		WHERE id = $1 AND state IN ('open', 'unsent', 'refused')`,
		r.OrderID, r.Price, r.BaseCurrency, r.Amount, r.CoinSymbol, r.NetworkName, utcNow())
}

// record stores a result. A created invoice is always recorded, and does not undo what
// the merchant has marked. Any other result is dropped if the order has gone on since:
// processes may record in another order than they send.
func (d *database) record(ctx context.Context, o order) error {
	where := ` WHERE id = $1 AND state IN ('open', 'unsent', 'refused')`
	if o.State == stateCreated {
		where = ` WHERE id = $1`
	}
	_, err := d.change(ctx, `UPDATE shop_orders SET state = CASE WHEN state IN ('paid', 'shipped', 'cancelled') THEN state ELSE $2 END,
		invoice = $3, last_status = $4, last_body = $5, last_error = $6`+where,
		o.ID, o.State, o.Invoice, o.LastStatus, o.LastBody, o.LastError)
	return err
}

// catchUp records the state of an order whose process died before it recorded a result.
func (d *database) catchUp(ctx context.Context, id string, now state) error {
	_, err := d.change(ctx, `UPDATE shop_orders SET state = $2 WHERE id = $1 AND state IN ('open', 'unsent', 'refused')`, id, now)
	return err
}

func (d *database) setContact(ctx context.Context, id, contact string) error {
	_, err := d.change(ctx, `UPDATE shop_orders SET contact = $2 WHERE id = $1`, id, contact)
	return err
}

// An event is something that a merchant has done with an order.
type event struct {
	At         time.Time
	Name, What string
}

// mark changes the state of an order, and records who did it and why. It reports false
// if the order has another state by now.
func (d *database) mark(ctx context.Context, id string, from, to state, name, what string) (bool, error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx, `UPDATE shop_orders SET state = $3 WHERE id = $1 AND state = $2`, id, from, to)
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); n == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO shop_history (order_id, at, name, what) VALUES ($1, $2, $3, $4)`, id, utcNow(), name, what)
	if err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// history returns what merchants have done with an order, oldest first.
func (d *database) history(ctx context.Context, id string) (events []event, err error) {
	err = sqlscan.Select(ctx, d, &events, `SELECT at, name, what FROM shop_history WHERE order_id = $1 ORDER BY at`, id)
	return events, err
}

// A filter selects orders.
type filter struct {
	Text     string    // a part of the order's number or of the contact
	State    state     // or stateAny
	From, To time.Time // made from the one until before the other
}

// selected is the condition of a filter, with its four arguments.
const selected = ` WHERE lower(id || ' ' || contact) LIKE $1 ESCAPE '!' AND ($2 = '' OR state = $2) AND made_at >= $3 AND made_at < $4`

func (f filter) args() []any {
	text := "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(f.Text)) + "%"
	return []any{text, string(f.State), f.From, f.To}
}

const orderColumns = `SELECT id, buyer, product, contact, made_at, state, price, currency, amount, coin, network,
	sent_at, invoice, last_status, last_body, last_error FROM shop_orders`

// order returns an order, or [sql.ErrNoRows].
func (d *database) order(ctx context.Context, id string) (o order, err error) {
	err = sqlscan.Get(ctx, d, &o, orderColumns+` WHERE id = $1`, id)
	return o, err
}

// newestCreated returns the newest order that has the gateway's response, or
// [sql.ErrNoRows].
func (d *database) newestCreated(ctx context.Context) (o order, err error) {
	err = sqlscan.Get(ctx, d, &o, orderColumns+` WHERE invoice <> '' ORDER BY sent_at DESC LIMIT 1`)
	return o, err
}

// newestFirst selects orders.
const newestFirst = orderColumns + selected + ` ORDER BY made_at DESC, id`

// orders returns some of the selected orders, newest first.
func (d *database) orders(ctx context.Context, f filter, limit, offset int) (all []order, err error) {
	err = sqlscan.Select(ctx, d, &all, newestFirst+` LIMIT $5 OFFSET $6`, append(f.args(), limit, offset)...)
	return all, err
}

// eachOrder calls a function for the selected orders, newest first.
func (d *database) eachOrder(ctx context.Context, f filter, do func(order) error) error {
	return each(ctx, d, do, newestFirst, f.args()...)
}

// A total is the sum of the orders in one coin.
type total struct{ Waiting, Paid decimal.Decimal }

// summary returns the number of the selected orders by state, and their totals by coin.
func (d *database) summary(ctx context.Context, f filter) (counts map[state]int, totals map[string]total, err error) {
	counts, totals = map[state]int{}, map[string]total{}
	err = each(ctx, d, func(o order) error {
		counts[stateAny]++
		counts[o.State]++
		sum := totals[o.Coin]
		switch o.State {
		case stateCreated:
			sum.Waiting = sum.Waiting.Add(o.Amount)
		case statePaid, stateShipped:
			sum.Paid = sum.Paid.Add(o.Amount)
		default:
			return nil
		}
		totals[o.Coin] = sum
		return nil
	}, `SELECT state, coin, amount FROM shop_orders`+selected, f.args()...)
	return counts, totals, err
}
