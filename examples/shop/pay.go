package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// quoteLifetime is how long an amount that was not sent remains valid.
const quoteLifetime = 15 * time.Minute

// claimTTL is how long a claim lasts before the order guard acquires the
// order.
const claimTTL = 10 * time.Second

// payOrder handles the button that requests an invoice. Concurrent requests,
// in several tabs and on several servers, use the choice that was recorded
// first, and one of them claims the order for sending.
func (s *shop) payOrder(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyerOrder(r)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	if o.State == stateOpen {
		problem := ""
		if o, problem, err = s.choose(r.Context(), o, r.PostForm); err != nil {
			return err
		}
		if problem != "" {
			return s.showOffers(w, r, o, r.PostForm.Get("pair"), problem)
		}
	}
	if o, err = s.sendInvoiceOnce(r.Context(), o); err != nil {
		return err
	}
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
	return nil
}

// sendInvoiceOnce creates the invoice of an order if its state allows it,
// and returns the order whose page the buyer is redirected to. It sends
// neither an order that has a next one nor an amount that has expired. It
// continues when the buyer disconnects, because an aborted invoice is
// unknown, but not longer than the guard's lease: after that, other requests
// decide.
func (s *shop) sendInvoiceOnce(ctx context.Context, o order) (order, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.lease())
	defer cancel()
	now, err := s.stateOf(ctx, o)
	if err != nil {
		return o, err
	}
	if (now == stateRefused || now == stateUnsent) && o.amountValid() {
		until := timestamp{time.Now().Add(claimTTL)}
		claimed, err := s.orders.claim(ctx, o, until)
		if claimed {
			o.State, o.SendingUntil = stateSending, until
			err = s.createInvoice(ctx, o)
		}
		if err != nil {
			return o, err
		}
	}
	return s.orders.latest(ctx, o.Buyer, o.Product)
}

// amountValid reports whether the amount of an order has not expired.
func (o order) amountValid() bool { return time.Since(o.ChosenAt.Time) < quoteLifetime }

// createInvoice sends the invoice of a claimed order and records the result.
func (s *shop) createInvoice(ctx context.Context, o order) error {
	created, err := s.client.CreateInvoice(withClaim(ctx, &o), gateway.InvoiceRequest{
		OrderID: o.ID, Price: o.Price, BaseCurrency: o.Currency,
		Amount: o.Amount, CoinSymbol: o.Coin, NetworkName: o.Network,
	})
	for _, earlier := range []error{gateway.ErrOrderInFlight, gateway.ErrOrderOutcomeUnknown, sqlguard.ErrOrderCreated} {
		if errors.Is(err, earlier) {
			return nil // nothing was sent, and the guard has the reason
		}
	}
	o = o.withResult(created, err)
	s.logger.InfoContext(ctx, "invoice", "order", o.ID, "state", o.State, "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if failed := s.orders.record(ctx, o); failed != nil {
		s.logger.ErrorContext(ctx, "invoice result not recorded", "order", o.ID, "state", o.State,
			"invoice", o.Invoice, "sent", o.SentAt.text(), "status", o.LastStatus, "body", o.LastBody, "error", failed)
		return failed
	}
	return nil
}

// withResult returns the order with the result of its invoice.
func (o order) withResult(created *gateway.Invoice, err error) order {
	o.SentAt, o.Invoice, o.LastStatus, o.LastBody, o.LastError = timestampNow(), "", 0, "", ""
	switch gateway.OutcomeOf(err) {
	case gateway.OutcomeSucceeded: // err is nil
		o.State, o.Invoice = stateCreated, string(created.Raw)
		return o
	case gateway.OutcomeRejected:
		o.State = stateRefused
	case gateway.OutcomeNotSent:
		o.State, o.SentAt = stateUnsent, timestamp{}
	default:
		o.State = stateUnknown
	}
	o.LastError = printable(err.Error())
	if rejection, ok := errors.AsType[*gateway.APIError](err); ok {
		o.LastStatus, o.LastBody = rejection.StatusCode, printable(string(rejection.Body))
	}
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		o.SentAt = timestamp{unknown.SentAt}
		o.LastStatus, o.LastBody = unknown.StatusCode, printable(string(unknown.Body))
	}
	return o
}

// stateOf returns the current state of an order. The order guard has
// precedence, because it knows about other processes, crashes and the
// merchant's resolutions.
func (s *shop) stateOf(ctx context.Context, o order) (state, error) {
	if o.State == stateOpen || o.State == stateCreated && o.Invoice != "" {
		return o.State, nil
	}
	guardOrder, err := s.guard.Order(ctx, o.ID)
	if err != nil {
		return "", err
	}
	switch {
	case guardOrder.State == sqlguard.StateCreated:
		return stateCreated, nil
	case guardOrder.State == sqlguard.StateUnknown:
		return stateUnknown, nil
	case guardOrder.State == sqlguard.StateInFlight, o.State == stateSending && time.Now().Before(o.SendingUntil.Time):
		return stateSending, nil
	case o.State == stateRefused:
		return stateRefused, nil
	default:
		return stateUnsent, nil
	}
}
