package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// quoteFor is how long an amount holds that was worked out and not sent.
const quoteFor = 15 * time.Minute

// payOrder is the button that asks for an invoice. It may be pressed twice, in
// two tabs and on two servers: what is sent was fixed by whoever came first,
// and the order guard lets one of them through.
func (s *shop) payOrder(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyersOrder(r)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	if o.State == stateOpen {
		pair, refused := r.PostForm.Get("pair"), ""
		if o, refused, err = s.choose(r.Context(), o, pair); err != nil {
			return err
		}
		if refused != "" {
			return s.showOffers(w, r, o, pair, refused)
		}
	}
	if o, err = s.sendOnce(r.Context(), o); err != nil {
		return err
	}
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
	return nil
}

// sendOnce creates the invoice of an order if that may be done, and returns
// the order whose page says how it stands. An order with a successor is not
// sent any more, nor is an amount that is too old.
func (s *shop) sendOnce(ctx context.Context, o order) (order, error) {
	last, err := s.orders.latest(ctx, o.Buyer, o.Product)
	if err != nil {
		return o, err
	}
	switch o.State {
	case stateSending, stateRefused, stateUnsent:
		if last.ID != o.ID || !o.fresh() {
			break
		}
		if err := s.orders.resume(ctx, o.ID); err != nil {
			return o, err
		}
		return o, s.createInvoice(ctx, o)
	}
	return last, nil
}

// fresh reports whether the amount of an order still holds.
func (o order) fresh() bool { return time.Since(o.ChosenAt.Time) < quoteFor }

// createInvoice sends the invoice of an order and records what came of it. It
// goes on when the buyer has left: an invoice that is cut off is unknown.
func (s *shop) createInvoice(ctx context.Context, o order) error {
	ctx = context.WithoutCancel(ctx)
	created, err := s.client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: o.ID, Price: o.Price, BaseCurrency: o.Currency,
		Amount: o.Amount, CoinSymbol: o.Coin, NetworkName: o.Network,
	})
	for _, earlier := range []error{gateway.ErrOrderInFlight, gateway.ErrOrderOutcomeUnknown, sqlguard.ErrOrderCreated} {
		if errors.Is(err, earlier) {
			return nil // nothing was sent: whoever came first records it
		}
	}
	o = o.after(created, err)
	s.logger.InfoContext(ctx, "invoice", "order", o.ID, "state", o.State, "error", err)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if failed := s.orders.record(ctx, o); failed != nil {
		s.logger.ErrorContext(ctx, "what came of an invoice is in this line only", "order", o.ID, "state", o.State,
			"invoice", o.Invoice, "sent", o.SentAt.text(), "status", o.LastStatus, "body", o.LastBody, "error", failed)
		return failed
	}
	return nil
}

// after is the order with what came of its invoice.
func (o order) after(created *gateway.Invoice, err error) order {
	o.SentAt, o.Invoice, o.LastStatus, o.LastBody, o.LastError = stampNow(), "", 0, "", ""
	switch gateway.OutcomeOf(err) {
	case gateway.OutcomeSucceeded:
		o.State, o.Invoice = stateCreated, string(created.Raw)
		return o
	case gateway.OutcomeRejected:
		o.State = stateRefused
	case gateway.OutcomeNotSent:
		o.State = stateUnsent
	default:
		o.State = stateUnknown
	}
	o.LastError = printable(err.Error())
	if no, ok := errors.AsType[*gateway.APIError](err); ok {
		o.LastStatus, o.LastBody = no.StatusCode, printable(string(no.Body))
	}
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		o.SentAt = stamp{unknown.SentAt}
		o.LastStatus, o.LastBody = unknown.StatusCode, printable(string(unknown.Body))
	}
	return o
}

// soon is how long a choice that was just made counts as being sent.
const soon = 10 * time.Second

// stateOf says where an order stands. The order guard has the last word, for
// it knows of other processes, crashes and what the merchant has found out.
func (s *shop) stateOf(ctx context.Context, o order) (state, error) {
	if o.State == stateOpen || o.State == stateCreated && o.Invoice != "" {
		return o.State, nil
	}
	known, err := s.guard.Order(ctx, o.ID)
	if err != nil {
		return "", err
	}
	switch {
	case known.State == sqlguard.StateCreated:
		return stateCreated, nil
	case known.State == sqlguard.StateUnknown:
		return stateUnknown, nil
	case known.State == sqlguard.StateInFlight, o.State == stateSending && known.Resolved.IsZero() && time.Since(o.ChosenAt.Time) < soon:
		return stateSending, nil
	case o.State == stateRefused:
		return stateRefused, nil
	default:
		return stateUnsent, nil
	}
}
