package main

import (
	"cmp"
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
	Pending sqlguard.PendingSummary
	Odd     oddities
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

// showOrders shows how many orders are to be looked up, and the orders of a filter.
func (s *shop) showOrders(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	page := ordersPage{Query: r.URL.Query(), States: states()}
	f, err := filterOf(page.Query)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(page.Query.Get("page"))
	page.Number = min(max(number, 1), math.MaxInt32/pageSize)
	var err1, err2, err3, err4 error
	page.Pending, err1 = s.guard.PendingSummary(ctx)
	page.Counts, page.Totals, err2 = s.db.summary(ctx, f)
	page.Orders, err3 = s.db.orders(ctx, f, pageSize, (page.Number-1)*pageSize)
	page.Odd, err4 = s.oddities(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	page.More = page.Number*pageSize < page.Count()
	return s.render(w, r, http.StatusOK, "orders", "Orders", page)
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
	Guard   sqlguard.Order
	History []event
	Payment payment // of an order that waits for it
}

// showRecord shows the record of an order to the merchant.
func (s *shop) showRecord(w http.ResponseWriter, r *http.Request, o order) error {
	known, err1 := s.guard.Order(r.Context(), "", o.ID)
	history, err2 := s.db.history(r.Context(), o.ID)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	page := recordPage{Order: o, Guard: known, History: history}
	if o.State == stateCreated {
		payments, err := s.payments(r.Context(), o)
		if err != nil {
			return err
		}
		page.Payment = payments[0]
	}
	return s.render(w, r, http.StatusOK, "record", "Order "+o.ID, page)
}

// resolveOrder records what the merchant found at the gateway. The token is valid only
// for the attempt that the page showed.
func (s *shop) resolveOrder(w http.ResponseWriter, r *http.Request, o order) error {
	found, note := r.PostFormValue("found"), singleLine(r.PostFormValue("note"), 400)
	if found != "exists" && found != "none" {
		return badInput("Please select whether the gateway has an invoice for the order.")
	}
	if note == "" && r.PostFormValue("note") != "" {
		return badInput("The note is too long. Nothing was recorded.")
	}
	seen, err := sqlguard.ParseToken(r.PostFormValue("token"))
	if err != nil || seen.ID != o.ID {
		return outdated()
	}
	err = s.guard.Resolve(r.Context(), seen, sqlguard.Resolution{Exists: found == "exists", By: merchant(r.Context()), Note: note, Margin: s.cfg.transit})
	switch {
	case errors.Is(err, sqlguard.ErrTriedAgain), errors.Is(err, sqlguard.ErrNotUnknown):
		return outdated()
	case errors.Is(err, sqlguard.ErrTooEarly):
		return badInput("The request may still be on its way to the gateway. Please look again " + s.cfg.transit.String() + " after it was sent last. Nothing was recorded.")
	case err != nil:
		return err
	}
	return redirect(w, r, "/admin/pending?done="+url.QueryEscape(o.ID))
}

// markOrder marks an order as paid, shipped or cancelled.
func (s *shop) markOrder(w http.ResponseWriter, r *http.Request, o order) error {
	to := state(r.PostFormValue("to"))
	if string(o.State) != r.PostFormValue("from") || !slices.Contains(o.State.Next(), to) {
		return outdated()
	}
	changed, err := s.db.mark(r.Context(), o, to, merchant(r.Context()))
	if err != nil {
		return err
	}
	if !changed {
		return outdated()
	}
	return redirect(w, r, "/admin/orders/"+o.ID)
}

func outdated() error {
	return &problem{http.StatusConflict, "The order has changed", "It has changed since you opened its page. Nothing was recorded. Please look at it again."}
}
