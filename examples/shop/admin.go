package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
)

// An overviewPage holds the data of the merchant's first page.
type overviewPage struct {
	Total   int            // number of orders to look up
	Unknown []unknownOrder // the oldest of them
	Orders  []order
	Of      state // the state that Orders is filtered by, "" for all
	States  []state
	Bars    []bar
	Lines   []sparkline
	Since   timestamp // the time of the first sample of the rates
	Drift   []driftEntry
	Listed  int // the maximum number of places of drift listed
}

// An unknownOrder is an order whose outcome is unknown.
type unknownOrder struct {
	order
	Since time.Time
}

// maxListed limits the number of orders on a page.
const maxListed = 50

// showOverview shows orders by state, the rates of the last hour and drift.
func (s *shop) showOverview(w http.ResponseWriter, r *http.Request) error {
	of := state(r.URL.Query().Get("state"))
	if of != "" && !slices.Contains(states(), of) {
		return badInput("Unknown order state.")
	}
	if err := s.reconcile(r.Context()); err != nil {
		return err
	}
	page := overviewPage{Of: of, States: states(), Drift: s.observer.drift(), Listed: maxDrifts}
	var err1, err2, err3 error
	page.Unknown, page.Total, err1 = s.unknownOrders(r.Context())
	page.Orders, err2 = s.orders.recent(r.Context(), of, maxListed)
	counts, err3 := s.orders.count(r.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	page.Bars = newBars(counts)
	page.Lines, page.Since = s.history.sparklines()
	return s.render(w, r, http.StatusOK, "overview", "Orders", page)
}

// unknownOrders returns the orders that have been unknown for the longest
// time, and the number of all unknown orders. An order recorded as refused
// or unsent becomes unknown, because the result of an earlier attempt may
// have been recorded last. If the invoice is recorded, only the order guard
// lacks the outcome, and the order is resolved here.
func (s *shop) unknownOrders(ctx context.Context) (oldest []unknownOrder, total int, err error) {
	pending, err := s.guard.Pending(ctx)
	if err != nil {
		return nil, 0, err
	}
	total = len(pending)
	for _, guardOrder := range pending[:min(total, maxListed)] {
		o, err := s.orders.byID(ctx, guardOrder.ID)
		if errors.Is(err, errNoOrder) {
			o, err = order{ID: guardOrder.ID}, nil // an order of another program; it still has to be looked up
		}
		hasInvoice := o.State == stateCreated && o.Invoice != ""
		switch {
		case err != nil:
		case hasInvoice:
			total--
			err = s.resolveRecorded(ctx, guardOrder)
		case o.State == stateRefused || o.State == stateUnsent:
			err = s.orders.markUnknown(ctx, guardOrder.ID)
		}
		if err != nil {
			return nil, 0, err
		}
		if !hasInvoice {
			oldest = append(oldest, unknownOrder{o, guardOrder.Since})
		}
	}
	return oldest, total, nil
}

// resolveRecorded resolves an order whose invoice the shop has recorded but
// whose outcome never reached the order guard.
func (s *shop) resolveRecorded(ctx context.Context, guardOrder sqlguard.Order) error {
	err := s.guard.Resolve(ctx, guardOrder, sqlguard.Resolution{Exists: true, By: "the shop", Note: "Its invoice is recorded."})
	if errors.Is(err, sqlguard.ErrTriedAgain) || errors.Is(err, sqlguard.ErrNotUnknown) {
		return nil // another process was first
	}
	return err
}

// reconcile updates the recorded states from the order guard, which knows
// about processes that died, leases that expired and orders resolved
// elsewhere.
func (s *shop) reconcile(ctx context.Context) error {
	orders, err := s.orders.unresolved(ctx, 4*maxListed)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := s.reconcileOrder(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) reconcileOrder(ctx context.Context, o order) error {
	now, err := s.stateOf(ctx, o)
	if err != nil || now == o.State {
		return err
	}
	return s.orders.updateState(ctx, o.ID, o.State, now)
}

// A recordPage holds everything known about one order.
type recordPage struct {
	Order      order
	State      state
	GuardOrder sqlguard.Order
}

// showRecord shows everything known about an order. If its outcome is
// unknown, the page has the form to resolve it.
func (s *shop) showRecord(w http.ResponseWriter, r *http.Request) error {
	page, err := s.recordOf(r)
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "record", "Order "+page.Order.ID, page)
}

func (s *shop) recordOf(r *http.Request) (page recordPage, err error) {
	id := r.PathValue("id")
	if !isRandomText(id) {
		return page, notFound()
	}
	if page.Order, err = s.orders.byID(r.Context(), id); errors.Is(err, errNoOrder) {
		return page, notFound()
	} else if err != nil {
		return page, err
	}
	if page.GuardOrder, err = s.guard.Order(r.Context(), id); err != nil {
		return page, err
	}
	page.State, err = s.stateOf(r.Context(), page.Order)
	return page, err
}

// resolveOrder records what the merchant found at the gateway. The form is
// valid only for the attempt that the page showed.
func (s *shop) resolveOrder(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	page, err := s.recordOf(r)
	if err != nil {
		return err
	}
	found, note := r.PostForm.Get("found"), singleLine(r.PostForm.Get("note"), 400)
	if found != "exists" && found != "none" {
		return badInput("Please select whether the gateway has an invoice for the order.")
	}
	if note == "" && strings.TrimSpace(r.PostForm.Get("note")) != "" {
		return badInput("The note is too long. Nothing was recorded.")
	}
	if r.PostForm.Get("attempts") != strconv.Itoa(page.GuardOrder.Attempts) {
		return outdated()
	}
	err = s.guard.Resolve(r.Context(), page.GuardOrder, sqlguard.Resolution{
		Exists: found == "exists", By: merchant(r.Context()), Note: note,
	})
	if errors.Is(err, sqlguard.ErrTriedAgain) || errors.Is(err, sqlguard.ErrNotUnknown) {
		return outdated()
	}
	if err != nil {
		return err
	}
	s.logger.InfoContext(r.Context(), "order resolved", "order", page.Order.ID, "found", found, "by", merchant(r.Context()))
	if err := s.reconcileOrder(r.Context(), page.Order); err != nil {
		return err
	}
	http.Redirect(w, r, "/admin/orders/"+page.Order.ID, http.StatusSeeOther)
	return nil
}

func outdated() error {
	return &problem{http.StatusConflict, "The order has changed", "It was resolved or sent again after you opened its page. Please check it again before you decide."}
}
