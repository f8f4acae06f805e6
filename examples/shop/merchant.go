package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
)

// An ordersPage is the merchant's list of orders.
type ordersPage struct {
	Query   url.Values
	Number  int  // of the page, from 1
	More    bool // whether there are more pages
	Pending []pendingOrder
	Problem error // why buyers are not shown where to pay
	Orders  []order
	States  []state
	Counts  map[state]int
	Totals  map[string]total
}

// Count returns the number of the selected orders.
func (p ordersPage) Count() int { return p.Counts[stateAny] }

// Link returns the query of another page.
func (p ordersPage) Link(step int) string {
	q := maps.Clone(p.Query)
	q.Set("page", strconv.Itoa(p.Number+step))
	return "?" + q.Encode()
}

// A pendingOrder is an order to look up at the gateway.
type pendingOrder struct {
	order
	Age time.Duration
}

// pageSize is the number of orders on a page.
const pageSize = 50

// filterOf reads a filter from the query of a URL.
func filterOf(q url.Values) (filter, error) {
	f := filter{Text: singleLine(q.Get("text"), 100), State: state(q.Get("state"))}
	var errs [2]error
	f.From, errs[0] = time.Parse(time.DateOnly, cmp.Or(q.Get("from"), "0001-01-01"))
	f.To, errs[1] = time.Parse(time.DateOnly, cmp.Or(q.Get("to"), "9999-12-30"))
	f.To = f.To.AddDate(0, 0, 1)
	switch {
	case f.State != stateAny && !slices.Contains(states(), f.State):
		return f, badInput("There is no such state of an order.")
	case errs != [2]error{}:
		return f, badInput("A date must be written as 2006-12-31.")
	}
	return f, nil
}

// showOrders shows the orders to look up, and the orders of a filter.
func (s *shop) showOrders(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	page := ordersPage{Query: r.URL.Query(), States: states()}
	f, err := filterOf(page.Query)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(page.Query.Get("page"))
	page.Number = min(max(number, 1), math.MaxInt32/pageSize)
	var err1, err2, err3 error
	page.Pending, err1 = s.pending(ctx)
	page.Counts, page.Totals, err2 = s.db.summary(ctx, f)
	page.Orders, err3 = s.db.orders(ctx, f, pageSize, (page.Number-1)*pageSize)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	page.More = page.Number*pageSize < page.Count()
	if newest, err := s.db.newestCreated(ctx); err == nil {
		_, page.Problem = s.cfg.fields.payment(newest)
	}
	return s.render(w, r, http.StatusOK, "orders", "Orders", page)
}

// pending returns the orders to look up, oldest first. An order whose process died is
// recorded as unknown here; one whose invoice is recorded needs no look-up.
func (s *shop) pending(ctx context.Context) (all []pendingOrder, err error) {
	unknown, err := s.guard.Pending(ctx, sqlguard.PendingQuery{})
	for _, u := range unknown {
		o, err := s.db.order(ctx, u.ID)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			o = order{ID: u.ID} // of another program that uses the same guard
		case err != nil:
			return nil, err
		case o.Invoice != "":
			if err := s.guard.Resolve(ctx, u, sqlguard.Resolution{Exists: true, By: "the shop", Note: "its invoice is recorded", Invoice: []byte(o.Invoice)}); err != nil && !changedSince(err) {
				return nil, err
			}
			continue
		case o.State != stateUnknown:
			if err := s.db.catchUp(ctx, u.ID, stateUnknown); err != nil {
				return nil, err
			}
		}
		all = append(all, pendingOrder{o, time.Since(u.Since).Truncate(time.Second)})
	}
	return all, errors.Join(err, s.catchUpCreated(ctx))
}

// catchUpCreated records the invoices of the last days of which only the guard knows,
// because the process died in between.
func (s *shop) catchUpCreated(ctx context.Context) error {
	recent := filter{State: stateUnsent, From: utcNow().Add(-2 * orderLifetime), To: utcNow()}
	unsent, err := s.db.orders(ctx, recent, 4*pageSize, 0)
	for _, o := range unsent {
		o, now, stateErr := s.latest(ctx, o)
		if err = errors.Join(err, stateErr); now == stateCreated {
			o.State = now
			err = errors.Join(err, s.db.record(ctx, o))
		}
	}
	return err
}

// changedSince reports whether an order was resolved or sent again since it was read.
func changedSince(err error) bool {
	return errors.Is(err, sqlguard.ErrTriedAgain) || errors.Is(err, sqlguard.ErrNotUnknown)
}

// exportOrders writes the orders of a filter as CSV.
func (s *shop) exportOrders(w http.ResponseWriter, r *http.Request) error {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="orders.csv"`)
	table := csv.NewWriter(w)
	_ = table.Write([]string{"order", "made", "state", "product", "price", "currency", "amount", "coin", "network", "contact"})
	err = s.db.eachOrder(r.Context(), f, func(o order) error {
		return table.Write([]string{
			o.ID, o.MadeAt.Format(time.RFC3339), string(o.State), o.Product, o.Price.String(), o.Currency,
			o.Amount.String(), o.Coin, o.Network, noFormula(o.Contact),
		})
	})
	table.Flush()
	return errors.Join(err, table.Error())
}

// noFormula keeps a spreadsheet from calculating a text that a buyer has entered.
func noFormula(text string) string {
	if text != "" && strings.Contains("=+-@", text[:1]) {
		return "'" + text
	}
	return text
}

// A recordPage holds everything known about one order.
type recordPage struct {
	Order   order
	State   state
	Guard   sqlguard.Order
	History []event
	Payment payment
	Problem error // why the buyer is not shown where to pay
}

func (s *shop) showRecord(w http.ResponseWriter, r *http.Request, page recordPage) error {
	if page.State == stateCreated {
		page.Payment, page.Problem = s.cfg.fields.payment(page.Order)
	}
	return s.render(w, r, http.StatusOK, "record", "Order "+page.Order.ID, page)
}

// forMerchant returns a page for the order of the path.
func (s *shop) forMerchant(h func(http.ResponseWriter, *http.Request, recordPage) error) http.HandlerFunc {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		o, err := s.db.order(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		known, err1 := s.guard.Order(r.Context(), "", o.ID)
		history, err2 := s.db.history(r.Context(), o.ID)
		o, now, err3 := s.latest(r.Context(), o)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		return h(w, r, recordPage{Order: o, State: now, Guard: known, History: history})
	})
}

// resolveOrder records what the merchant found at the gateway. The form is valid only
// for the attempt that the page showed. The shop's own record comes first: if only that
// succeeds, the order is listed again.
func (s *shop) resolveOrder(w http.ResponseWriter, r *http.Request, page recordPage) error {
	found, note := r.PostFormValue("found"), singleLine(r.PostFormValue("note"), 400)
	to := map[string]state{"exists": stateCreated, "none": stateUnsent}[found]
	what := map[string]string{"exists": "found the invoice at the gateway", "none": "found no invoice at the gateway"}[found]
	if what == "" {
		return badInput("Please select whether the gateway has an invoice for the order.")
	}
	if note == "" && r.PostFormValue("note") != "" {
		return badInput("The note is too long. Nothing was recorded.")
	}
	if page.Guard.State != sqlguard.StateUnknown || r.PostFormValue("attempts") != strconv.Itoa(page.Guard.Attempts) {
		return outdated()
	}
	if note != "" {
		what += ": " + note
	}
	name := merchant(r.Context())
	if _, err := s.db.mark(r.Context(), page.Order.ID, page.Order.State, to, name, what); err != nil {
		return err
	}
	err := s.guard.Resolve(r.Context(), page.Guard, sqlguard.Resolution{Exists: found == "exists", By: name, Note: note})
	if changedSince(err) {
		return outdated()
	} else if err != nil {
		return err
	}
	return redirect(w, r, "/admin?done="+url.QueryEscape(page.Order.ID))
}

// markOrder marks an order as paid, shipped or cancelled.
func (s *shop) markOrder(w http.ResponseWriter, r *http.Request, page recordPage) error {
	to := state(r.PostFormValue("to"))
	if string(page.State) != r.PostFormValue("from") || !slices.Contains(page.State.Next(), to) {
		return outdated()
	}
	changed, err := s.db.mark(r.Context(), page.Order.ID, page.Order.State, to, merchant(r.Context()), "marked the order as: "+to.Label())
	if err != nil {
		return err
	}
	if !changed {
		return outdated()
	}
	return redirect(w, r, "/admin/orders/"+page.Order.ID)
}

func outdated() error {
	return &problem{http.StatusConflict, "The order has changed", "It has changed since you opened its page. Nothing was recorded. Please look at it again."}
}
