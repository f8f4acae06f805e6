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

// An overviewPage is the merchant's first page.
type overviewPage struct {
	Waiting int      // how many orders are to be looked up
	Unknown []lookUp // the first of them, the oldest first
	Orders  []order
	Of      state // the state that Orders are of, "" for all
	States  []state
	Bars    []bar
	Lines   []sparkline
	Since   stamp // since when there are rates
	Drift   []driftSeen
	Listed  int // how many places of drift are listed at most
}

// A lookUp is an order whose outcome is unknown, and since when.
type lookUp struct {
	order
	Since time.Time
}

// maxListed bounds the orders on one page.
const maxListed = 50

// showOverview shows orders by state, the rates of the last hour and drift.
func (s *shop) showOverview(w http.ResponseWriter, r *http.Request) error {
	of := state(r.URL.Query().Get("state"))
	if of != "" && !slices.Contains(states(), of) {
		return badInput("There is no such state.")
	}
	if err := s.settle(r.Context()); err != nil {
		return err
	}
	page := overviewPage{Of: of, States: states(), Drift: s.observer.drift(), Listed: maxDrifts}
	var err1, err2, err3 error
	page.Unknown, page.Waiting, err1 = s.toLookUp(r.Context())
	page.Orders, err2 = s.orders.recent(r.Context(), of, maxListed)
	counts, err3 := s.orders.count(r.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	page.Bars = barsOf(counts)
	page.Lines, page.Since = s.history.lines()
	return s.render(w, r, http.StatusOK, "overview", "Orders", page)
}

// toLookUp returns the orders that have been unknown for the longest, and how
// many there are. One that was recorded as something else becomes unknown: an
// earlier attempt may have been recorded last. But where the invoice is at
// hand, only the guard was not told.
func (s *shop) toLookUp(ctx context.Context) (first []lookUp, waiting int, err error) {
	pending, err := s.guard.Pending(ctx)
	if err != nil {
		return nil, 0, err
	}
	waiting = len(pending)
	for _, known := range pending[:min(waiting, maxListed)] {
		o, err := s.orders.byID(ctx, known.ID)
		if errors.Is(err, errNoOrder) {
			o, err = order{ID: known.ID}, nil // not the shop's, and yet to be looked up
		}
		atHand := o.State == stateCreated && o.Invoice != ""
		switch {
		case err != nil:
		case atHand:
			waiting--
			err = s.tellGuard(ctx, known)
		case o.State == stateRefused || o.State == stateUnsent:
			err = s.orders.suspect(ctx, known.ID)
		}
		if err != nil {
			return nil, 0, err
		}
		if !atHand {
			first = append(first, lookUp{o, known.Since})
		}
	}
	return first, waiting, nil
}

// tellGuard resolves an order whose invoice the shop has recorded, and whose
// outcome the order guard was not told.
func (s *shop) tellGuard(ctx context.Context, known sqlguard.Order) error {
	err := s.guard.Resolve(ctx, known, sqlguard.Resolution{Exists: true, By: "the shop", Note: "Its invoice is recorded."})
	if errors.Is(err, sqlguard.ErrTriedAgain) || errors.Is(err, sqlguard.ErrNotUnknown) {
		return nil // somebody else was first
	}
	return err
}

// settle brings the recorded states up to what the order guard knows: of
// processes that died, leases that ran out, and orders resolved elsewhere.
func (s *shop) settle(ctx context.Context) error {
	orders, err := s.orders.unsettled(ctx, 4*maxListed)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := s.settleOne(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) settleOne(ctx context.Context, o order) error {
	now, err := s.stateOf(ctx, o)
	if err != nil || now == o.State {
		return err
	}
	return s.orders.settle(ctx, o.ID, o.State, now)
}

// A recordPage is all that is known of an order.
type recordPage struct {
	Order order
	State state
	Known sqlguard.Order
}

// showRecord shows what is known of an order and, when its outcome is not,
// asks what the merchant has found at the gateway.
func (s *shop) showRecord(w http.ResponseWriter, r *http.Request) error {
	page, err := s.recordOf(r)
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "record", "Order "+page.Order.ID, page)
}

func (s *shop) recordOf(r *http.Request) (page recordPage, err error) {
	id := r.PathValue("id")
	if !isSecret(id) {
		return page, notFound()
	}
	if page.Order, err = s.orders.byID(r.Context(), id); errors.Is(err, errNoOrder) {
		return page, notFound()
	} else if err != nil {
		return page, err
	}
	if page.Known, err = s.guard.Order(r.Context(), id); err != nil {
		return page, err
	}
	page.State, err = s.stateOf(r.Context(), page.Order)
	return page, err
}

// resolveOrder records what the merchant has found out. It counts only for the
// attempt that the page was of.
func (s *shop) resolveOrder(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	page, err := s.recordOf(r)
	if err != nil {
		return err
	}
	found, note := r.PostForm.Get("found"), line(r.PostForm.Get("note"), 400)
	if found != "exists" && found != "none" {
		return badInput("Please say whether the gateway has an invoice for the order.")
	}
	if note == "" && strings.TrimSpace(r.PostForm.Get("note")) != "" {
		return badInput("The note is too long. Nothing was recorded.")
	}
	if r.PostForm.Get("attempts") != strconv.Itoa(page.Known.Attempts) {
		return outdated()
	}
	err = s.guard.Resolve(r.Context(), page.Known, sqlguard.Resolution{
		Exists: found == "exists", By: merchant(r.Context()), Note: note,
	})
	if errors.Is(err, sqlguard.ErrTriedAgain) || errors.Is(err, sqlguard.ErrNotUnknown) {
		return outdated()
	}
	if err != nil {
		return err
	}
	s.logger.InfoContext(r.Context(), "order resolved", "order", page.Order.ID, "found", found, "by", merchant(r.Context()))
	if err := s.settleOne(r.Context(), page.Order); err != nil {
		return err
	}
	http.Redirect(w, r, "/admin/orders/"+page.Order.ID, http.StatusSeeOther)
	return nil
}

func outdated() error {
	return &problem{http.StatusConflict, "The order has moved on", "It was resolved or sent again since you have opened its page. Look at it again before you decide."}
}
