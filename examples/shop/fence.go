package main

import (
	"context"
	"errors"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A fence is the order guard of the shop. When the guard holds an order, the
// order is taken once more: if somebody else has gone on with it meanwhile, for
// its time was over, nothing is sent. From then on nobody goes on with it, for
// the guard holds it. So no clock decides whether an order is sent and followed.
type fence struct {
	*sqlguard.Guard
	orders orderBook
	lease  time.Duration
}

var errTakenOver = errors.New("somebody else has gone on with the order")

type takenKey struct{}

// withTaken is the context of sending an order that was taken for it.
func withTaken(ctx context.Context, o *order) context.Context {
	return context.WithValue(ctx, takenKey{}, o)
}

// Begin implements [gateway.OrderGuard].
func (f fence) Begin(ctx context.Context, id string, resubmit bool) error {
	if err := f.Guard.Begin(ctx, id, resubmit); err != nil {
		return err
	}
	err := f.takeAgain(ctx)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, f.End(ctx, id, gateway.OutcomeNotSent))
}

func (f fence) takeAgain(ctx context.Context) error {
	o, ok := ctx.Value(takenKey{}).(*order)
	if !ok {
		return errors.New("the order was not taken")
	}
	until := stamp{time.Now().Add(f.lease)}
	mine, err := f.orders.take(ctx, *o, until)
	if err != nil {
		return err
	}
	if !mine {
		return errTakenOver
	}
	o.SendingUntil = until
	return nil
}
