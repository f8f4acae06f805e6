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

// takenFor is how long an order is taken for until the order guard holds it.
const takenFor = 10 * time.Second

// payOrder is the button that asks for an invoice. It may be pressed twice, in
// two tabs and on two servers: what is sent was fixed by whoever came first,
// and one of them takes the order for sending.
func (s *shop) payOrder(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyersOrder(r)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	if o.State == stateOpen {
		refused := ""
		if o, refused, err = s.choose(r.Context(), o, r.PostForm); err != nil {
			return err
		}
		if refused != "" {
			return s.showOffers(w, r, o, r.PostForm.Get("pair"), refused)
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
// sent any more, nor is an amount that is too old. It goes on when the buyer
// has left: an invoice that is cut off is unknown. But not for longer than the
// guard holds the order: from then on others decide.
func (s *shop) sendOnce(ctx context.Context, o order) (order, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.lease())
	defer cancel()
	now, err := s.stateOf(ctx, o)
	if err != nil {
		return o, err
	}
	if (now == stateRefused || now == stateUnsent) && o.fresh() {
		until := stamp{time.Now().Add(takenFor)}
		mine, err := s.orders.take(ctx, o, until)
		if mine {
			o.State, o.SendingUntil = stateSending, until
			err = s.createInvoice(ctx, o)
		}
		if err != nil {
			return o, err
		}
	}
	return s.orders.latest(ctx, o.Buyer, o.Product)
}

// fresh reports whether the amount of an order still holds.
func (o order) fresh() bool { return time.Since(o.ChosenAt.Time) < quoteFor }

// createInvoice sends the invoice of an order that was taken for it, until ctx
// ends, and records what came of it.
func (s *shop) createInvoice(ctx context.Context, o order) error {
	created, err := s.client.CreateInvoice(withTaken(ctx, &o), gateway.InvoiceRequest{
		OrderID: o.ID, Price: o.Price, BaseCurrency: o.Currency,
		Amount: o.Amount, CoinSymbol: o.Coin, NetworkName: o.Network,
	})
	for _, earlier := range []error{gateway.ErrOrderInFlight, gateway.ErrOrderOutcomeUnknown, sqlguard.ErrOrderCreated} {
		if errors.Is(err, earlier) {
			return nil // nothing was sent, and the guard knows why
		}
	}
	o = o.after(created, err)
	s.logger.InfoContext(ctx, "invoice", "order", o.ID, "state", o.State, "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
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
	case gateway.OutcomeSucceeded: // there is no error to tell of
		o.State, o.Invoice = stateCreated, string(created.Raw)
		return o
	case gateway.OutcomeRejected:
		o.State = stateRefused
	case gateway.OutcomeNotSent:
		o.State, o.SentAt = stateUnsent, stamp{}
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
	case known.State == sqlguard.StateInFlight, o.State == stateSending && time.Now().Before(o.SendingUntil.Time):
		return stateSending, nil
	case o.State == stateRefused:
		return stateRefused, nil
	default:
		return stateUnsent, nil
	}
}
