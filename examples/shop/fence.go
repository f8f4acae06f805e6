package main

import (
	"context"
	"errors"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A fence is the order guard of the shop. After the guard has acquired an
// order, it renews the claim on it: if the claim has expired and another
// request has claimed the order or opened the next one, nothing is sent.
// Once the claim is renewed, the guard's lease keeps other requests away. So
// no clock decides whether an order is sent or replaced by the next one.
type fence struct {
	*sqlguard.Guard
	orders orderStore
	lease  time.Duration
}

var errClaimLost = errors.New("another request has claimed the order or opened the next one")

type claimKey struct{}

// withClaim returns a context for sending an order that has been claimed.
func withClaim(ctx context.Context, o *order) context.Context {
	return context.WithValue(ctx, claimKey{}, o)
}

// Begin implements [gateway.OrderGuard].
func (f fence) Begin(ctx context.Context, id string, resubmit bool) error {
	if err := f.Guard.Begin(ctx, id, resubmit); err != nil {
		return err
	}
	err := f.renewClaim(ctx)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, f.End(ctx, id, gateway.OutcomeNotSent))
}

func (f fence) renewClaim(ctx context.Context) error {
	o, ok := ctx.Value(claimKey{}).(*order)
	if !ok {
		return errors.New("the order was not claimed")
	}
	until := timestamp{time.Now().Add(f.lease)}
	claimed, err := f.orders.claim(ctx, *o, until)
	if err != nil {
		return err
	}
	if !claimed {
		return errClaimLost
	}
	o.SendingUntil = until
	return nil
}
