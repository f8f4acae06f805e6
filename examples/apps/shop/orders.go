package main

import (
	"context"
	_ "embed" // orders.sql
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/shopspring/decimal"
)

// A state is the state of an order.
type state string

const (
	stateAny       state = ""          // of a filter and a sum
	stateOpen      state = "open"      // no coin is chosen yet
	stateUnsent    state = "unsent"    // the invoice did not reach the gateway
	stateRefused   state = "refused"   // the gateway refused the invoice
	stateNone      state = "none"      // the merchant has found no invoice
	stateSending   state = "sending"   // an invoice is being created
	stateUnknown   state = "unknown"   // the invoice may exist; the merchant has to look it up
	stateCreated   state = "created"   // the invoice exists
	statePaid      state = "paid"      // the merchant has seen the payment
	stateShipped   state = "shipped"   // the merchant has shipped the order
	stateCancelled state = "cancelled" // the merchant has cancelled the order
)

//go:embed orders.sql
var withState string

// fromOrders returns the orders with their state, by the clock of the database.
func (d *database) fromOrders() string {
	if d.sqlite {
		return strings.Replace(withState, "now()", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", 1)
	}
	return withState
}

// states returns all states in display order.
func states() []state {
	return []state{stateUnknown, stateSending, stateCreated, statePaid, stateShipped, stateOpen, stateUnsent, stateRefused, stateNone, stateCancelled}
}

// Label returns the words of a state for the merchant.
func (s state) Label() string {
	return map[state]string{
		stateOpen: "No coin chosen", stateUnsent: "Not sent", stateRefused: "Refused", stateNone: "No invoice found", stateSending: "Being sent",
		stateUnknown: "To look up", stateCreated: "Waiting for payment", statePaid: "Paid", stateShipped: "Shipped", stateCancelled: "Cancelled",
	}[s]
}

// Next returns the states that a merchant may mark an order with.
func (s state) Next() []state {
	if s.canBeSent() {
		return []state{stateCancelled}
	}
	return map[state][]state{
		stateCreated: {statePaid, stateCancelled}, statePaid: {stateShipped, stateCreated, stateCancelled}, stateShipped: {statePaid},
	}[s]
}

func (s state) canBeSent() bool {
	return s == stateOpen || s == stateUnsent || s == stateRefused || s == stateNone
}

// An order is a row of shop_orders with its state. From Price to Network it is what was
// sent last.
type order struct {
	ID, Buyer, Product, Contact string
	MadeAt                      time.Time
	State                       state
	Price                       decimal.Decimal
	Currency                    string
	Amount                      decimal.Decimal // in units of the coin
	Coin, Network               string
	Changes                     int    // how often it was marked or about to be sent
	Invoice                     []byte // the gateway's response, if it is known
}

// insertOrder stores an order, unless there is one with its identifier.
func (d *database) insertOrder(ctx context.Context, o order) error {
	_, err := d.change(ctx, `INSERT INTO shop_orders (id, buyer, product, made_at) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING`,
		o.ID, o.Buyer, o.Product, utcNow())
	return err
}

// choose records what is about to be sent. It reports false if the merchant has cancelled
// the order.
func (d *database) choose(ctx context.Context, r gateway.InvoiceRequest) (bool, error) {
	return d.change(ctx, `UPDATE shop_orders SET price = $2, currency = $3, amount = $4, coin = $5, network = $6, changes = changes + 1
		WHERE id = $1 AND mark = ''`, r.OrderID, r.Price, r.BaseCurrency, r.Amount, r.CoinSymbol, r.NetworkName)
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

// mark records a state that the merchant gives an order, and who does it. It reports false
// if the order was marked or sent since it was read.
func (d *database) mark(ctx context.Context, o order, to state, name string) (bool, error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx, `UPDATE shop_orders SET mark = CASE $3 WHEN 'created' THEN '' ELSE $3 END, changes = changes + 1
		WHERE id = $1 AND changes = $2`, o.ID, o.Changes, string(to))
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); n == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO shop_history (order_id, at, name, what) VALUES ($1, $2, $3, $4)`,
		o.ID, utcNow(), name, "marked the order as: "+to.Label())
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

const orderColumns = `SELECT id, buyer, product, contact, made_at, state, price, currency, amount, coin, network, changes, invoice
`

// order returns an order, or [sql.ErrNoRows].
func (d *database) order(ctx context.Context, id string) (o order, err error) {
	err = sqlscan.Get(ctx, d, &o, orderColumns+d.fromOrders()+` WHERE id = $1`, id)
	return o, err
}

// ordersByID returns those of some orders that the shop has.
func (d *database) ordersByID(ctx context.Context, known []sqlguard.Order) (map[string]order, error) {
	all, places, ids := map[string]order{}, []string{"NULL"}, []any{}
	for i, o := range known {
		places, ids = append(places, "$"+strconv.Itoa(i+1)), append(ids, o.ID)
	}
	err := each(ctx, d, func(o order) error { all[o.ID] = o; return nil },
		orderColumns+d.fromOrders()+` WHERE id IN (`+strings.Join(places, ", ")+`)`, ids...)
	return all, err
}

// newestCreated returns the newest orders that have the gateway's response, oldest first.
func (d *database) newestCreated(ctx context.Context, limit int) (all []order, err error) {
	err = sqlscan.Select(ctx, d, &all, orderColumns+d.fromOrders()+` WHERE invoice IS NOT NULL ORDER BY made_at DESC LIMIT $1`, limit)
	slices.Reverse(all)
	return all, err
}

// tags returns, by coin and network, an order that had a tag.
func (d *database) tags(ctx context.Context) (map[[2]string]string, error) {
	type row struct{ Coin, Network, OrderID string }
	all := map[[2]string]string{}
	err := each(ctx, d, func(r row) error { all[[2]string{r.Coin, r.Network}] = r.OrderID; return nil }, `SELECT coin, network, order_id FROM shop_tags`)
	return all, err
}

// addTag records that an order had a tag.
func (d *database) addTag(ctx context.Context, o order) error {
	_, err := d.change(ctx, `INSERT INTO shop_tags (coin, network, order_id) VALUES ($1, $2, $3) ON CONFLICT (coin, network) DO NOTHING`,
		o.Coin, o.Network, o.ID)
	return err
}

// newestFirst orders what a filter selects.
const newestFirst = selected + ` ORDER BY made_at DESC, id`

// orders returns some of the selected orders, newest first.
func (d *database) orders(ctx context.Context, f filter, limit, offset int) (all []order, err error) {
	err = sqlscan.Select(ctx, d, &all, orderColumns+d.fromOrders()+newestFirst+` LIMIT $5 OFFSET $6`, append(f.args(), limit, offset)...)
	return all, err
}

// eachOrder calls a function for the selected orders, newest first.
func (d *database) eachOrder(ctx context.Context, f filter, do func(order) error) error {
	return each(ctx, d, do, orderColumns+d.fromOrders()+newestFirst, f.args()...)
}

// A total is the sum of the orders in one coin.
type total struct{ Waiting, Paid decimal.Decimal }

// owed is the amount of an order with an invoice; those of all others are one group.
const owed = `CASE WHEN state IN ('created', 'paid', 'shipped') THEN amount ELSE '0' END`

// summary returns the number of the selected orders by state, and their totals by coin.
func (d *database) summary(ctx context.Context, f filter) (counts map[state]int, totals map[string]total, err error) {
	type group struct {
		State  state
		Coin   string
		Amount decimal.Decimal
		Orders int
	}
	counts, totals = map[state]int{}, map[string]total{}
	err = each(ctx, d, func(g group) error {
		counts[stateAny] += g.Orders
		counts[g.State] += g.Orders
		sum, amount := totals[g.Coin], g.Amount.Mul(decimal.NewFromInt(int64(g.Orders)))
		switch g.State {
		case stateCreated:
			sum.Waiting = sum.Waiting.Add(amount)
		case statePaid, stateShipped:
			sum.Paid = sum.Paid.Add(amount)
		default:
			return nil
		}
		totals[g.Coin] = sum
		return nil
	}, `SELECT state, coin, `+owed+` AS amount, count(*) AS orders
`+d.fromOrders()+selected+` GROUP BY 1, 2, 3`, f.args()...)
	return counts, totals, err
}
