package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/held"
)

// A guard in memory, over each way to the gateway: see package held.
func TestFlight_contextEnds(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{held.HTTP1, held.HTTP2, held.InMemory} {
		held.Test(t, proto, func(*testing.T) gateway.OrderGuard { return new(gateway.MemoryGuard) })
	}
}

// Once a context is cancelled, no attempt begins to send. After a deadline, the next attempt of a flight does.
func TestFlight_attempts(t *testing.T) {
	t.Parallel()
	busy := statusTrip(503, refused("Down."), "Retry-After", "15")
	late := func(req *http.Request) (*http.Response, error) {
		time.Sleep(15 * time.Second)
		return goodTrip(req)
	}
	for _, tt := range []struct {
		name    string
		trips   trips
		cancels int // the attempt before whose first byte the context is cancelled; 0 for a deadline after 10 s
		left    int // the attempts at the deadline
		reads   int // how many attempts read the invoice
		want    gateway.Outcome
	}{
		{"cancelled in the first attempt", trips{goodTrip}, 1, 0, 0, notSent},
		{"cancelled in the second attempt", trips{reset, goodTrip}, 2, 0, 1, unknown},
		{"a deadline between two attempts", trips{busy, goodTrip}, 0, 1, 2, unknown},
		{"a deadline in the second attempt", trips{reset, late}, 0, 2, 2, unknown},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			made, reads := 0, 0
			ctx, cancel := context.WithCancel(lasting(t, 10*time.Second))
			defer cancel()
			c := newClient(t, "http://localhost", gateway.WithIdempotentOrders(), over(func(req *http.Request) (*http.Response, error) {
				if made++; made == tt.cancels {
					cancel()
				}
				if n, _ := req.Body.Read(make([]byte, 1)); n == 0 {
					return nil, errBreaker
				}
				reads++
				return tt.trips[made-1](req)
			}))
			_, err := c.CreateInvoice(ctx, order("A-17"))
			assert.Equal(t, tt.want, gateway.OutcomeOf(err), "%v", err)
			assert.Equal(t, tt.left > 0, errors.Is(err, gateway.ErrStillSending), "%v", err)
			assert.Equal(t, tt.cancels > 0, errors.Is(err, context.Canceled), "%v", err)
			if left, ok := errors.AsType[*gateway.TransportError](err); ok && tt.left > 0 {
				assert.Equal(t, tt.left, left.Attempts)
			}
			require.NoError(t, c.Shutdown(t.Context()))
			assert.Equal(t, tt.reads, reads)
			assert.Len(t, tt.trips, made)
		})
	}
}

// A flightGuard is a guard in memory whose functions, if they are set, run before it.
type flightGuard struct {
	gateway.MemoryGuard
	begin func(context.Context) error
	end   func(ctx context.Context, r gateway.OrderRecord) error
}

func (g *flightGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	if g.begin != nil {
		if err := g.begin(ctx); err != nil {
			return gateway.Lease{}, err
		}
	}
	return g.MemoryGuard.Begin(ctx, o)
}

func (g *flightGuard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	if g.end != nil {
		if err := g.end(ctx, r); err != nil {
			return gateway.OrderRecord{}, err
		}
	}
	return g.MemoryGuard.End(ctx, o, r)
}

// slowly responds after a time.
func slowly(after time.Duration, then tripper) gateway.Option {
	return over(func(req *http.Request) (*http.Response, error) {
		drain(req)
		if err := held.Sleep(req.Context(), after); err != nil {
			return nil, err
		}
		return then(req)
	})
}

// Calls for one order make one flight, in whatever case its UUID is: the others get its invoice or its unknown outcome as
// soon as it ends. After a refusal, or if nothing was sent, one of them begins the next flight.
// I-122
func TestFlight_join(t *testing.T) {
	t.Parallel()
	const calls = 21
	busy, no, spellings := statusTrip(503, refused("Down.")), statusTrip(422, refused("No.")), []string{uuid, strings.ToUpper(uuid)}
	for _, tt := range []struct {
		name         string
		first, later tripper
		opts         []gateway.Option
		want         gateway.Outcome // of the calls that wait for the first
		flights      int             // calls of Begin
		sent         int             // 0 if Begin fails
	}{
		{"the guard fails for all of them", nil, nil, nil, unknown, 1, 0},
		{"a success is replayed", goodTrip, nil, nil, succeeded, 1, 1},
		{"an unknown outcome is replayed", busy, nil, nil, unknown, 1, 1},
		{
			"an unknown outcome is replayed, although the next call would send the order again", busy, nil,
			[]gateway.Option{gateway.WithIdempotentOrders(), once()},
			unknown, 1, 1,
		},
		{"after a refusal each call sends", no, no, nil, rejected, calls, calls},
		{"after a refusal the next one succeeds", no, goodTrip, nil, succeeded, 2, 2},
		{"if nothing was sent each call tries", brokenOff, brokenOff, nil, notSent, calls, calls},
		{"if nothing was sent the next one succeeds", brokenOff, goodTrip, nil, succeeded, 2, 2},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			var flights, sent, created, ends, noAttempt atomic.Int32
			guard := &flightGuard{begin: func(context.Context) error {
				flights.Add(1)
				if tt.sent > 0 {
					return nil
				}
				time.Sleep(time.Second)
				return errOfTheGuard
			}}
			trip := func(req *http.Request) (*http.Response, error) {
				isFirst := sent.Add(1) == 1
				time.Sleep(time.Second)
				if isFirst {
					return tt.first(req)
				}
				return tt.later(req)
			}
			watch := gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) {
				ends.Add(1)
				if c.Attempts == 0 {
					noAttempt.Add(1)
				}
			}})
			c := newClient(t, "http://localhost", append(tt.opts, gateway.WithOrderGuard(guard), watch, over(trip))...)
			begun := time.Now()
			create := func(i int) gateway.Outcome {
				got, err := c.CreateInvoice(t.Context(), order(spellings[i%2]))
				assertInvariants(t, got, err)
				if err == nil && !got.Replayed {
					created.Add(1)
				}
				return gateway.OutcomeOf(err)
			}
			go create(0)
			synctest.Wait()
			atOnce(calls-1, func(i int) { assert.Equal(t, tt.want, create(i+1)) })
			assert.EqualValues(t, tt.flights, flights.Load())
			assert.EqualValues(t, tt.sent, sent.Load())
			assert.Equal(t, tt.want == succeeded, created.Load() == 1, "one call reports that it created the invoice")
			assert.EqualValues(t, calls, ends.Load())
			assert.EqualValues(t, calls-tt.sent, noAttempt.Load(), "a call that waits makes no attempt")
			assert.Equal(t, time.Duration(tt.flights)*time.Second, time.Since(begun))
		})
	}
}

// atOnce calls a function so many times at once.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// A call that waits returns when its context ends, and at once if its request is another one. It waits no longer than one
// invoice may take, and the order's own invoice is a conflict for another request.
func TestFlight_join_otherwise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://localhost", slowly(3*time.Second, goodTrip))
		first := make(chan error)
		go func() { _, err := c.CreateInvoice(t.Context(), order("A-17")); first <- err }()
		synctest.Wait()
		begun := time.Now()

		other := order("A-17")
		otherPrice(&other)
		_, err := c.CreateInvoice(t.Context(), other)
		assert.ErrorIs(t, err, gateway.ErrOrderInFlight)
		assert.Zero(t, time.Since(begun), "another request does not wait")

		_, err = c.CreateInvoice(lasting(t, time.Second), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOrderInFlight)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, gateway.SafeToRetry(err))
		assert.Equal(t, time.Second, time.Since(begun))
		require.NoError(t, <-first)

		_, err = c.CreateInvoice(t.Context(), other)
		assert.Equal(t, conflict, gateway.OutcomeOf(err))
	})
}

// Calls that wait get the record that the guard has at the end, which may say more than the attempt has proved.
func TestFlight_join_guardKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := &recordingGuard{has: &gateway.OrderRecord{Outcome: succeeded, Request: order("A-17"), Invoice: []byte(invoiceJSON)}}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), slowly(time.Second, statusTrip(500, refused("Down."))))
		atOnce(2, func(int) {
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			if assert.NoError(t, err) {
				assert.JSONEq(t, invoiceJSON, string(got.Raw))
			}
		})
		assert.Len(t, guard.begun, 1)
	})
}

// Calls of two merchants for orders of one name do not wait for each other.
func TestFlight_join_merchants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://localhost", slowly(time.Second, goodTrip))
		begun := time.Now()
		atOnce(2, func(i int) {
			got, err := c.CreateInvoice(t.Context(), order("A-17"), gateway.WithMerchant(fmt.Sprint("shop ", i)))
			if assert.NoError(t, err) {
				assert.False(t, got.Replayed)
			}
		})
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

// Calls that wait because another process has the order ask the guard as one, and take the place of a call that leaves.
func TestFlight_otherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := &flightGuard{}
		lease, err := guard.Begin(t.Context(), gateway.Order{Gateway: "http://localhost", Request: order("A-17")})
		require.NoError(t, err)
		var begins atomic.Int32
		guard.begin = func(context.Context) error { begins.Add(1); return nil }
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), neverSends())
		var all sync.WaitGroup
		for i := range 1500 {
			all.Go(func() {
				got, err := c.CreateInvoice(lasting(t, time.Duration(i+1)*10*time.Millisecond), order("A-17")) // at most 15 s
				if err == nil {
					assert.True(t, got.Replayed)
					return
				}
				assert.ErrorIs(t, err, gateway.ErrOrderInFlight)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		time.Sleep(10 * time.Second)
		assert.Less(t, begins.Load(), int32(1500), "a call that takes the place of another one asks once, and then seldom")
		_, err = guard.End(t.Context(), gateway.Order{Gateway: "http://localhost", Request: order("A-17"), Attempt: lease.Attempt},
			gateway.OrderRecord{Outcome: succeeded, Request: order("A-17"), Invoice: json.RawMessage(invoiceJSON)})
		require.NoError(t, err)
		all.Wait()
	})
}

// If the guard cannot record an outcome, the call returns it, and the client goes on recording: a success for an hour,
// any other outcome until the lease has expired, both until Shutdown stops waiting. If the guard will always fail, the
// client does not go on.
func TestFlight_recordsLater(t *testing.T) {
	t.Parallel()
	no := statusTrip(422, refused("No."))
	errLocked, misused := errors.New("the table is locked"), &gateway.ArgumentError{Operation: "guard", Name: "table", Reason: "is of another version"}
	for _, tt := range []struct {
		name      string
		trip      tripper
		fails     error
		locked    time.Duration
		lease     time.Duration // 0 for a lease that never ends
		shutsDown bool          // with a context that ends after a second
		want      gateway.OrderState
	}{
		{"a success after 25 s", goodTrip, errLocked, 25 * time.Second, 4 * time.Minute, false, gateway.OrderCreated},
		{"a success after 50 minutes, long after its lease", goodTrip, errLocked, 50 * time.Minute, 4 * time.Minute, false, gateway.OrderCreated},
		{"no success after an hour", goodTrip, errLocked, 70 * time.Minute, 4 * time.Minute, false, gateway.OrderInFlight},
		{"a refusal after 25 s", no, errLocked, 25 * time.Second, 4 * time.Minute, false, gateway.OrderFree},
		{"no refusal after its lease", no, errLocked, 5 * time.Minute, 4 * time.Minute, false, gateway.OrderInFlight},
		{"a refusal whose lease never ends, after 50 minutes", no, errLocked, 50 * time.Minute, 0, false, gateway.OrderFree},
		{"nothing after Shutdown gives up", goodTrip, errLocked, 25 * time.Second, 4 * time.Minute, true, gateway.OrderInFlight},
		{"nothing if the guard is misused", goodTrip, misused, 25 * time.Second, 4 * time.Minute, false, gateway.OrderInFlight},
		{"nothing if the order is of another gateway", goodTrip, gateway.ErrOtherGateway, 25 * time.Second, 0, false, gateway.OrderInFlight},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			begun := time.Now()
			guard := &leasedGuard{lease: tt.lease}
			guard.end = func(context.Context, gateway.OrderRecord) error {
				if time.Since(begun) < tt.locked {
					return tt.fails
				}
				return nil
			}
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(tt.trip), muted())
			ctx := lasting(t, 2*time.Hour)
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			if assertInvariants(t, got, err); err == nil {
				assert.ErrorContains(t, got.GuardErr, strings.TrimPrefix(tt.fails.Error(), "gateway: "))
				again, err := c.CreateInvoice(ctx, order("A-17"))
				if errors.Is(tt.fails, errLocked) {
					require.NoError(t, err, "the client knows the invoice, if not the guard")
					assert.True(t, again.Replayed)
				}
			} else {
				_, err := c.CreateInvoice(ctx, order("A-17"))
				assert.Equal(t, tt.locked < time.Minute, gateway.OutcomeOf(err) == rejected, "nothing is sent until it is recorded: %v", err)
			}
			if tt.shutsDown {
				ctx = lasting(t, time.Second)
			} else {
				time.Sleep(time.Until(begun.Add(tt.locked + 15*time.Second)))
				synctest.Wait()
				status, _ := guard.Order(t.Context(), "", "A-17")
				assert.Equal(t, tt.want, status.State, "after the longest pause")
			}
			assert.Equal(t, tt.shutsDown, c.Shutdown(ctx) != nil)
			synctest.Wait()
			status, _ := guard.Order(t.Context(), "", "A-17")
			assert.Equal(t, tt.want, status.State)
		})
	}
}

// sendsAgain returns a client and its guard, for which the outcome of order A-17 is unknown. Later attempts end as then
// says, after a second.
func sendsAgain(t *testing.T, then tripper) (*gateway.Client, *flightGuard) {
	guard, trip := &flightGuard{}, reset
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), gateway.WithIdempotentOrders(), once(), muted(),
		slowly(time.Second, func(req *http.Request) (*http.Response, error) { return trip(req) }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.Equal(t, unknown, gateway.OutcomeOf(err))
	trip = then
	return c, guard
}

// If the guard cannot record that an order of unknown outcome was refused when it was sent again, calls that wait learn at
// once that it is still unknown, and may be made again if theirs is the same request.
func TestFlight_recordsLater_unknownBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, guard := sendsAgain(t, statusTrip(429, refused("Slower.")))
		guard.end = func(context.Context, gateway.OrderRecord) error { return errors.New("the table is locked") }
		begun := time.Now()
		atOnce(2, func(int) {
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertUnknownBefore(t, err)
			assert.True(t, gateway.SafeToRetry(err))
			assert.Equal(t, time.Second, time.Since(begun))
		})
		other := order("A-17")
		otherPrice(&other)
		_, err := c.CreateInvoice(t.Context(), other)
		assertUnknownBefore(t, err)
		assert.False(t, gateway.SafeToRetry(err))
	})
}

// A recorder begins when the leader has decided about its call: calls that wait may be made again if that one may.
func TestFlight_recordsLater_afterDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, guard := sendsAgain(t, statusTrip(422, refused("No.")))
		var ends atomic.Int32
		guard.end = func(context.Context, gateway.OrderRecord) error {
			if ends.Add(1) == 1 {
				return errors.New("the table is locked")
			}
			return nil
		}
		slow := endingContext{t.Context(), func() error {
			if ends.Load() == 0 {
				return nil
			}
			time.Sleep(5 * time.Second) // longer than the first pause of a recorder
			return context.DeadlineExceeded
		}}
		go func() { _, _ = c.CreateInvoice(slow, order("A-17")) }()
		synctest.Wait()
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		assertUnknownBefore(t, err)
		assert.True(t, gateway.SafeToRetry(err))
		require.NoError(t, c.Shutdown(t.Context()))
		assert.EqualValues(t, 2, ends.Load())
	})
}

// An endingContext ends as a function says.
type endingContext struct {
	context.Context
	err func() error
}

func (c endingContext) Err() error { return c.err() }

// A recorder ends once the guard says that it will always fail.
func TestFlight_recordsLater_final(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ends, guard := 0, &flightGuard{}
		guard.end = func(context.Context, gateway.OrderRecord) error {
			if ends++; ends > 1 {
				return gateway.ErrOtherGateway
			}
			return errors.New("the table is locked")
		}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(goodTrip), muted())
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Equal(t, 2, ends)
	})
}

// A leasedGuard is a guard in memory whose leases end for the client.
type leasedGuard struct {
	flightGuard
	lease time.Duration
}

func (g *leasedGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	lease, err := g.flightGuard.Begin(ctx, o)
	if g.lease > 0 {
		lease.Expires = time.Now().Add(g.lease)
	}
	return lease, err
}

// Four outcomes are recorded at a time, and 256 in the background. For a further one the guard's error is final.
func TestFlight_recordsLater_bounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const orders = 300
		var isLocked atomic.Bool
		var recording, most atomic.Int32
		isLocked.Store(true)
		guard := &flightGuard{}
		guard.end = func(ctx context.Context, _ gateway.OrderRecord) error {
			if n := recording.Add(1); n > most.Load() && n <= orders {
				most.Store(n)
			}
			defer recording.Add(-1)
			if isLocked.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(goodTrip), muted())
		begun := time.Now()
		atOnce(orders, func(i int) {
			got, err := c.CreateInvoice(t.Context(), order(fmt.Sprint("A-", i)))
			assert.NoError(t, err)
			assert.ErrorIs(t, got.GuardErr, context.DeadlineExceeded)
		})
		assert.Equal(t, 10*time.Second, time.Since(begun), "calls return after 10 seconds")
		most.Store(0)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 4, most.Load())
		isLocked.Store(false)
		require.NoError(t, c.Shutdown(t.Context()))
		created := 0
		for i := range orders {
			if status, _ := guard.Order(t.Context(), "", fmt.Sprint("A-", i)); status.State == gateway.OrderCreated {
				created++
			}
		}
		assert.Equal(t, 256, created)
	})
}

// At most 256 invoices of a client are sent without a caller. A deadline cuts a further one, as without a guard, even if
// the others have ended before its transport returns. Then there is room again.
func TestFlight_bound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const orders = 260
		var left, cut, stillSending, unknowns atomic.Int32
		watch := gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) {
			if c.Left {
				left.Add(1)
			}
			if c.Cut {
				cut.Add(1)
			}
		}})
		c := newClient(t, "http://localhost", watch, muted(), over(func(req *http.Request) (*http.Response, error) {
			drain(req)
			if err := held.Sleep(req.Context(), 30*time.Second); err != nil {
				time.Sleep(time.Minute)
				return nil, err
			}
			return goodTrip(req)
		}))
		create := func(i int) error {
			_, err := c.CreateInvoice(lasting(t, time.Second), order(fmt.Sprint("A-", i)))
			return err
		}
		atOnce(orders, func(i int) {
			err := create(i)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			if errors.Is(err, gateway.ErrStillSending) {
				stillSending.Add(1)
			}
			if _, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err); isUnknown {
				unknowns.Add(1)
				assert.False(t, gateway.SafeToRetry(err))
			}
		})
		assert.Equal(t, []int32{256, 4}, []int32{stillSending.Load(), unknowns.Load()})
		require.ErrorIs(t, create(orders), gateway.ErrStillSending)
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Equal(t, []int32{257, 4}, []int32{left.Load(), cut.Load()})
	})
}

// Any number of callers may leave while their outcome is recorded, when nothing is sent any more.
func TestFlight_bound_recording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := &flightGuard{end: func(ctx context.Context, _ gateway.OrderRecord) error { return held.Sleep(ctx, 5*time.Second) }}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(goodTrip))
		atOnce(300, func(i int) {
			_, err := c.CreateInvoice(lasting(t, time.Second), order(fmt.Sprint("A-", i)))
			assert.ErrorIs(t, err, gateway.ErrStillSending)
		})
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

// A Begin whose caller has left goes on for 10 seconds, and what it grants is ended as not sent. A call that waits then asks
// for itself.
func TestFlight_beginOutlasts(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"it grants the order": 5 * time.Second, "it takes too long": time.Hour} {
		inBubble(t, name, func(t *testing.T) {
			var begins int
			var ended []gateway.OrderRecord
			guard := &flightGuard{begin: func(ctx context.Context) error {
				if begins++; begins == 1 {
					return held.Sleep(ctx, takes)
				}
				return nil
			}}
			guard.end = func(_ context.Context, r gateway.OrderRecord) error { ended = append(ended, r); return nil }
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(goodTrip))
			begun := time.Now()
			_, err := c.CreateInvoice(lasting(t, time.Second), order("A-17"))
			assert.Equal(t, time.Second, time.Since(begun))
			assert.Equal(t, unknown, gateway.OutcomeOf(err))
			assert.True(t, gateway.SafeToRetry(err))
			assert.NotErrorIs(t, err, gateway.ErrOrderInFlight)
			_, err = c.CreateInvoice(t.Context(), order("A-17"))
			require.NoError(t, err)
			assert.Equal(t, min(takes, 11*time.Second), time.Since(begun))
			assert.Equal(t, 2, begins)
			require.Len(t, ended, map[bool]int{true: 2, false: 1}[takes < time.Minute])
			if takes < time.Minute {
				assert.Equal(t, notSent, ended[0].Outcome)
			}
		})
	}
}

// A usedContext is the context of another request once the call has returned, as the contexts of some frameworks are.
type usedContext struct {
	context.Context
	isUsedAgain atomic.Bool
}

func (c *usedContext) Err() error {
	if c.isUsedAgain.Load() {
		return nil
	}
	return c.Context.Err()
}

// A call that has left before the guard granted the order sends nothing, whatever becomes of its context.
func TestFlight_contextUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := &flightGuard{begin: func(ctx context.Context) error { return held.Sleep(ctx, 5*time.Second) }}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), neverSends())
		ctx := &usedContext{Context: lasting(t, time.Second)}
		_, err := c.CreateInvoice(ctx, order("A-17"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx.isUsedAgain.Store(true)
		time.Sleep(10 * time.Second)
		status, _ := guard.Order(t.Context(), "", "A-17")
		assert.Equal(t, gateway.OrderFree, status.State)
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

// A panic, or a Goexit, of the caller's code reaches the caller that waits; if the caller has left, a panic is logged. What
// a response has proved is recorded first. A panic of a decoder is an error of the decoder.
func TestFlight_panics(t *testing.T) {
	t.Parallel()
	const free, inFlight, created, open = gateway.OrderFree, gateway.OrderInFlight, gateway.OrderCreated, gateway.OrderUnknown
	for _, tt := range []struct {
		where string
		left  bool // whether a caller can have left
		want  gateway.OrderState
	}{
		{"Start", false, free},
		{"key source", false, free},
		{"Begin of the guard", false, free},
		{"middleware, before it sends", false, free},
		{"middleware", true, open},
		{"decoder", true, created},
		{"Attempt", true, created},
		{"End of the guard", true, inFlight},
		{"End", true, created},
	} {
		for _, how := range []string{"an error", "a value", "http.ErrAbortHandler", "a Goexit"} {
			for _, caller := range []string{"without a deadline", "with a deadline", "who has left"} {
				if caller == "who has left" && !tt.left {
					continue
				}
				want := tt.want
				if tt.where == "decoder" && how == "a Goexit" {
					want = open // the decoder has not returned
				}
				inBubble(t, tt.where+"/"+how+"/a caller "+caller, func(t *testing.T) {
					testPanic(t, tt.where, how, caller, want)
				})
			}
		}
	}
}

func testPanic(t *testing.T, where, how, caller string, want gateway.OrderState) {
	values := map[string]any{"an error": errors.New("gone wrong " + canary), "a value": "gone wrong " + canary, "http.ErrAbortHandler": http.ErrAbortHandler}
	hasFailed := false
	at := func(now string) error {
		if now == where && !hasFailed {
			hasFailed = true
			if caller == "who has left" {
				time.Sleep(2 * time.Second)
			}
			if how == "a Goexit" {
				runtime.Goexit()
			}
			panic(values[how])
		}
		return nil
	}
	var log bytes.Buffer
	guard := &flightGuard{
		begin: func(context.Context) error { return at("Begin of the guard") },
		end:   func(context.Context, gateway.OrderRecord) error { return at("End of the guard") },
	}
	c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) { return canary, at("key source") },
		gateway.WithOrderGuard(guard), gateway.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		gateway.WithInvoiceDecoder(func(json.RawMessage) (gateway.InvoiceDetails, error) {
			return gateway.InvoiceDetails{ID: "1"}, at("decoder")
		}),
		gateway.WithObserver(gateway.Observer{
			Start:   func(context.Context, gateway.Call) context.Context { _ = at("Start"); return nil },
			Attempt: func(context.Context, gateway.Attempt) { _ = at("Attempt") },
			End:     func(context.Context, gateway.Call) { _ = at("End") },
		}),
		over(func(req *http.Request) (*http.Response, error) {
			_ = at("middleware, before it sends")
			drain(req)
			_ = at("middleware")
			return reply(200, enveloped(invoiceJSON)), nil
		}))
	ctx := t.Context()
	if caller != "without a deadline" {
		ctx = lasting(t, time.Second)
	}
	var got *gateway.Invoice
	var err error
	var value any
	hasReturned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { value = recover() }()
		got, err = c.CreateInvoice(ctx, order("A-17"))
		hasReturned = true
	}()
	<-done
	require.NoError(t, c.Shutdown(t.Context()))
	isDecoder := where == "decoder" && how != "a Goexit"
	assert.Equal(t, caller == "who has left" || isDecoder, hasReturned)
	switch {
	case caller == "who has left":
		assert.ErrorIs(t, err, gateway.ErrStillSending)
	case isDecoder:
		require.NoError(t, err)
		assert.Nil(t, got.Details)
		assert.ErrorContains(t, got.DetailsErr, "it panicked: ")
		assertNoKey(t, got.DetailsErr)
	case how == "a Goexit":
		assert.Nil(t, value)
	default:
		assert.Equal(t, values[how], value, "the same value")
	}
	isLogged := caller != "without a deadline" && how != "a Goexit" && !isDecoder && where != "Start" && where != "key source"
	assert.Equal(t, isLogged, strings.Contains(log.String(), "a panic has ended") && strings.Contains(log.String(), "flight_test.go"), log.String())
	assertNoKey(t, log.String())
	status, _ := guard.Order(t.Context(), "", "A-17")
	assert.Equal(t, want, status.State)
	if want == gateway.OrderCreated {
		assert.JSONEq(t, invoiceJSON, string(status.Record.Invoice))
	}
}

// A context that panics, wherever the client asks it, leaves no order in flight: if nothing was sent, the order is free.
func TestFlight_brokenContext(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Deadline", "Done", "Err", "Value"} {
		inBubble(t, method, func(t *testing.T) {
			for calls := 0; ; calls++ { // that the method survives
				var memory, other flightGuard
				inMemory := testBrokenContext(t, &memory.MemoryGuard, &memory.MemoryGuard, method, calls)
				if inOther := testBrokenContext(t, &other, &other.MemoryGuard, method, calls); !inMemory && !inOther {
					assert.Positive(t, calls)
					break
				}
			}
		})
	}
}

// testBrokenContext reports whether the context has panicked.
func testBrokenContext(t *testing.T, guard gateway.OrderGuard, memory *gateway.MemoryGuard, method string, calls int) bool {
	isSent, ends := false, 0
	c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(func(req *http.Request) (*http.Response, error) {
		drain(req)
		isSent = true
		return goodTrip(req)
	}), gateway.WithObserver(gateway.Observer{End: func(context.Context, gateway.Call) { ends++ }}))
	ctx := &brokenContext{Context: t.Context(), method: method, calls: calls}
	value := panicOf(func() { _, _ = c.CreateInvoice(ctx, order("A-17")) })
	if value == nil {
		return false
	}
	assert.Equal(t, "broken "+method, value)
	assert.Equal(t, 1, ends)
	state := statusOf(t, memory, "", "A-17").State
	assert.NotEqual(t, gateway.OrderInFlight, state, "%s of %T after %d calls", method, guard, calls)
	assert.Equal(t, !isSent, state == gateway.OrderFree, "%s of %T after %d calls: %s", method, guard, calls, state)
	_, err := c.CreateInvoice(lasting(t, time.Second), order("A-17"))
	assert.NotErrorIs(t, err, gateway.ErrOrderInFlight)
	return true
}

// A brokenContext panics in one of its methods, after some calls of it.
type brokenContext struct {
	context.Context
	method string
	calls  int
}

func (ctx *brokenContext) called(method string) {
	if method != ctx.method {
		return
	}
	if ctx.calls--; ctx.calls < 0 {
		panic("broken " + method)
	}
}

func (ctx *brokenContext) Deadline() (time.Time, bool) {
	ctx.called("Deadline")
	return ctx.Context.Deadline()
}

func (ctx *brokenContext) Done() <-chan struct{} {
	ctx.called("Done")
	return ctx.Context.Done()
}

func (ctx *brokenContext) Err() error {
	ctx.called("Err")
	return ctx.Context.Err()
}

func (ctx *brokenContext) Value(key any) any {
	ctx.called("Value")
	return ctx.Context.Value(key)
}

func panicOf(call func()) (value any) {
	defer func() { value = recover() }()
	call()
	return nil
}

// A logger that panics too ends no program.
func TestFlight_panickingLogger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logger := gateway.WithLogger(slog.New(panickingHandler{slog.DiscardHandler}))
		c := newClient(t, "http://localhost", logger, slowly(2*time.Second, func(*http.Request) (*http.Response, error) { panic("gone wrong") }))
		_, err := c.CreateInvoice(lasting(t, time.Second), order("A-17"))
		require.ErrorIs(t, err, gateway.ErrStillSending)
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingHandler) Handle(context.Context, slog.Record) error { panic("the logger too") }

// Without a guard nobody could learn the outcome: a deadline cuts the invoice, also after cancelling.
func TestFlight_noGuard(t *testing.T) {
	t.Parallel()
	for _, isCancelled := range []bool{false, true} {
		inBubble(t, fmt.Sprint("cancelled before: ", isCancelled), func(t *testing.T) {
			ctx, cancel := context.WithCancel(lasting(t, time.Second))
			defer cancel()
			c := newClient(t, "http://localhost", gateway.WithOrderGuard(nil), over(func(req *http.Request) (*http.Response, error) {
				drain(req)
				if isCancelled {
					cancel()
				}
				return hangTrip(req)
			}))
			begun := time.Now()
			_, err := c.CreateInvoice(ctx, order("A-17"))
			assert.Equal(t, time.Second, time.Since(begun))
			_ = as[*gateway.OutcomeUnknownError](t, err)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.False(t, gateway.SafeToRetry(err))
		})
	}
}

// A recorder whose guard panics leaves its place to others. A Shutdown makes recorders try again at once, and then each
// second.
func TestFlight_recordsLater_goesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var mu sync.Mutex
		failed := map[string]int{}
		guard := &flightGuard{}
		guard.end = func(_ context.Context, r gateway.OrderRecord) error {
			mu.Lock()
			defer mu.Unlock()
			id := r.Request.OrderID
			if failed[id]++; failed[id] > 1 && id != "last" {
				panic("the guard is broken")
			}
			if time.Since(begun) < time.Minute {
				return errors.New("the table is locked")
			}
			return nil
		}
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(guard), over(goodTrip), muted())
		for i := range 5 {
			_, err := c.CreateInvoice(t.Context(), order(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Second) // the recorders of these have panicked
		_, err := c.CreateInvoice(t.Context(), order("last"))
		require.NoError(t, err)
		time.Sleep(time.Until(begun.Add(50*time.Second + 500*time.Millisecond))) // within a pause of 15 seconds
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Equal(t, time.Minute+500*time.Millisecond, time.Since(begun))
		status, _ := guard.Order(t.Context(), "", "last")
		assert.Equal(t, gateway.OrderCreated, status.State)
	})
}

// A call over the guard in memory, without a deadline, runs on the goroutine of its caller alone.
func TestFlight_noGoroutine(t *testing.T) {
	var goroutine string
	c := newClient(t, "http://localhost", over(func(req *http.Request) (*http.Response, error) {
		goroutine = string(bytes.Fields(stack())[1])
		return goodTrip(req)
	}))
	for name, isSame := range map[string]bool{"no deadline": true, "a deadline": false} {
		ctx := t.Context()
		if !isSame {
			ctx = lasting(t, time.Hour)
		}
		var response gateway.Response
		_, err := c.CreateInvoice(ctx, order(name), gateway.WithResponse(&response))
		require.NoError(t, err)
		assert.Equal(t, 201, response.StatusCode, name)
		assert.Equal(t, isSame, goroutine == string(bytes.Fields(stack())[1]), name)
	}
}

// stack begins with the name of this goroutine.
func stack() []byte {
	text := make([]byte, 64)
	return text[:runtime.Stack(text, false)]
}

// muted is for tests whose warnings are expected.
func muted() gateway.Option { return gateway.WithLogger(slog.New(slog.DiscardHandler)) }
