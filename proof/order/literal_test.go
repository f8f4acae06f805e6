package order

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/literal"
)

var (
	literalSchedules = flag.Int("schedules", 2000, "how many schedules TestLiteral runs")
	literalSeed      = flag.Uint64("schedules.seed", 1, "the seed of the first of them")
)

// The merchant who follows the outcomes literally does no harm, with a guard in memory, and with
// one that outlives its processes.
func TestLiteral(t *testing.T) {
	for name, open := range map[string]func() (literal.Store, error){"in memory": literal.Memory, "with leases": literal.Leased} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				report := literal.World{HTTP2: http2, Open: open}.Run(t, *literalSeed, *literalSchedules/4)
				t.Log(report)
				report.Verify(t)
			})
		}
	}
}

// Nor does he where he declares that a repeated order returns the first invoice, and it does: then
// unknown orders are sent again.
func TestLiteral_idempotent(t *testing.T) {
	for name, open := range map[string]func() (literal.Store, error){"in memory": literal.Memory, "with leases": literal.Leased} {
		t.Run(name, func(t *testing.T) {
			report := literal.World{Idempotent: true, Open: open}.Run(t, *literalSeed, *literalSchedules/4)
			t.Log(report)
			report.Verify(t)
		})
	}
}

// The same merchant does harm where an order that the guard refuses is reported as not sent,
// which is true of the call, where he cancels an order that another call may still send, and
// where no guard keeps his orders: the schedules find all three, the last one also at gateways
// that create no second invoice.
func TestLiteral_doesHarm(t *testing.T) {
	ofTheCall := literal.World{Open: literal.Memory, Reading: func(invoice *gateway.Invoice, err error) (*gateway.Invoice, error) {
		unknown, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
		if invoice != nil && invoice.Replayed || errors.Is(err, gateway.ErrOrderInFlight) || isUnknown && unknown.Replayed ||
			gateway.OutcomeOf(err) == gateway.OutcomeConflict {
			return nil, &gateway.ArgumentError{Operation: gateway.OpCreateInvoice, Name: "orderId", Reason: "is that of an earlier call"}
		}
		return invoice, err
	}}.Run(t, 1, 300)
	t.Log(ofTheCall)
	assert.NotZero(t, ofTheCall.Wrong[literal.SentElsewhere])
	assert.NotZero(t, ofTheCall.Wrong[literal.Forgotten])
	hasty := literal.World{Open: literal.Memory, Hasty: true}.Run(t, 1, 300)
	t.Log(hasty)
	assert.NotZero(t, hasty.Wrong[literal.SentElsewhere])
	unguarded := literal.World{Open: func() (literal.Store, error) { return noGuard{}, nil }}.Run(t, 1, 300)
	t.Log(unguarded)
	assert.NotZero(t, unguarded.Wrong[literal.Doubled])
	assert.Greater(t, unguarded.Wrong[literal.SentAgain], 2*unguarded.Wrong[literal.Doubled])
}

// A noGuard is a store without orders, and a guard that admits all of them.
type noGuard struct{}

func (noGuard) Guard() (gateway.OrderGuard, func() error, error) {
	return noGuard{}, func() error { return nil }, nil
}
func (noGuard) Expire(string) error { return nil }
func (noGuard) Survives() bool      { return false }
func (noGuard) Close() error        { return nil }

func (noGuard) Begin(context.Context, gateway.Order) (gateway.Lease, error) {
	return gateway.Lease{}, nil
}

func (noGuard) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, nil
}
