package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// mostOrders is how many orders a page of the merchant shows.
const mostOrders = 100

// An orderRow is an order in the merchant's list.
type orderRow struct {
	orderPage
	Refused bool  // whether the gateway has refused the last choice
	Trouble error // why the buyer is not told how to pay; nil if they are
}

// Label returns the words of a state for the merchant.
func (r orderRow) Label() string {
	if r.Refused {
		return "Refused"
	}
	return map[string]string{
		"choose": "Not ordered", "expired": "Not ordered", "sending": "Being sent", "unknown": "To look up", "pay": "Waiting for payment",
		"nodetails": "Write to the buyer", "late": "Too late to pay", "paid": "Paid",
	}[r.View]
}

// CanBePaid reports whether the order has an invoice that may have been paid, or was.
func (r orderRow) CanBePaid() bool {
	return slices.Contains([]string{"pay", "nodetails", "late", "paid"}, r.View)
}

// showOrders shows how many orders are to be looked up, and what buyers have ordered, newest first.
func (s *shop) showOrders(w http.ResponseWriter, r *http.Request) error {
	pending, err1 := s.guard.PendingSummary(r.Context())
	all, err2 := s.orders.ordered(r.Context(), mostOrders)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var rows []orderRow
	for _, o := range all {
		status, err := s.guard.Order(r.Context(), "", o.ID)
		if err != nil {
			return err
		}
		row := orderRow{orderPage: newOrderPage(o, status), Refused: status.State == gateway.OrderFree && status.Record.Outcome == gateway.OutcomeRejected}
		if row.View == "nodetails" {
			_, row.Trouble = detailsOf(status)
		}
		rows = append(rows, row)
	}
	return s.render(w, r, http.StatusOK, "orders", "Orders", map[string]any{"Pending": pending, "Orders": rows})
}

// setPaid records whether the merchant has seen the payment of an order. The interface reports none.
func (s *shop) setPaid(w http.ResponseWriter, r *http.Request) error {
	if err := s.orders.setPaid(r.Context(), r.PostFormValue("order"), r.PostFormValue("paid") == "true"); err != nil {
		return err
	}
	return redirect(w, r, "/admin")
}

// An unknownOrder is an order to look up at the gateway.
type unknownOrder struct {
	gateway.OrderStatus
	Token       string
	Email       string    // of the buyer; empty for an order of another program
	AbsentFrom  time.Time // from when on nobody can overlook an invoice that is still being made
	CanBeAbsent bool      // whether the order was read after that
}

// Sent returns what was sent, the oldest attempt first.
func (o unknownOrder) Sent() []gateway.OrderRecord { return append(o.Earlier, o.Record) }

// showUnknown shows the orders to look up, those that have waited longest first.
func (s *shop) showUnknown(w http.ResponseWriter, r *http.Request) error {
	pending, err := s.guard.Pending(r.Context(), gateway.PendingQuery{Most: mostOrders})
	if err != nil {
		return err
	}
	var all []unknownOrder
	for _, status := range pending {
		o, _ := s.orders.order(r.Context(), status.OrderID) // an order of another program has none
		from := status.SentUntil.Add(s.margin)
		all = append(all, unknownOrder{status, sqlguard.Token(status), o.Email, from, status.GuardReadAt.After(from)})
	}
	return s.render(w, r, http.StatusOK, "unknown", "Orders to look up", map[string]any{"Orders": all, "Done": r.FormValue("done")})
}

// resolve records what the merchant has found at the gateway. The token is the order as the page has shown it,
// so that nothing is recorded of an attempt that the merchant has not seen.
func (s *shop) resolve(w http.ResponseWriter, r *http.Request) error {
	seen, err := sqlguard.ParseToken(r.PostFormValue("token"))
	if err != nil {
		return badInput("The form is not whole. Please open the page again.")
	}
	found, invoice := r.PostFormValue("found"), strings.TrimSpace(r.PostFormValue("invoice"))
	if found != "exists" && found != "absent" {
		return badInput("Please select whether the gateway has an invoice for the order.")
	}
	name, _, _ := r.BasicAuth()
	err = s.guard.Resolve(r.Context(), seen, gateway.Finding{
		Exists: found == "exists", By: cmp.Or(name, "the merchant"), Note: r.PostFormValue("note"),
		Invoice: json.RawMessage(invoice), Margin: s.margin,
	})
	switch wrong, isWrong := errors.AsType[*gateway.ArgumentError](err); {
	case isWrong:
		return badInput("Nothing was recorded: " + wrong.Name + " " + wrong.Reason + ".")
	case errors.Is(err, gateway.ErrTooEarly):
		return badInput("Nothing was recorded: the gateway may still be making the invoice. Please open the page again later, and look again.")
	case errors.Is(err, gateway.ErrTriedAgain), errors.Is(err, gateway.ErrNotUnknown):
		return &problem{http.StatusConflict, "The order has changed", "It has changed since you opened the page. Nothing was recorded. Please look at it again."}
	case err != nil:
		return err
	}
	return redirect(w, r, "/admin/unknown?done="+url.QueryEscape(seen.OrderID))
}
