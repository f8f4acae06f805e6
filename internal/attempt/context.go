package attempt

import (
	"context"
	"errors"
)

// A detached context keeps the values and the deadline of the caller's context, and does not end with
// it: [attempt.callerEnded] decides when a write ends.
type detached struct{ context.Context }

func (detached) Done() <-chan struct{} { return nil }
func (detached) Err() error            { return nil }

// callerEnded ends a write after its caller's context has ended. If the body was read for sending,
// cancelling does not end it: it goes on until it has a response, for as long as its own ctx, or until
// the deadline of the caller's context. With Begin, whoever sets it decides when the context ends.
func (a *attempt) callerEnded(ctx, caller context.Context) {
	why := context.Cause(caller)
	if !a.body.Seal() && a.body.template.Begin == nil && errors.Is(caller.Err(), context.Canceled) {
		deadline, bounded := caller.Deadline()
		if !bounded {
			return
		}
		expired, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		<-expired.Done()
		if ctx.Err() != nil {
			return
		}
		why = context.DeadlineExceeded
	}
	a.ended.Store(&why)
	a.cancel()
}
