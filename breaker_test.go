package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

// A breaking is a client for a bubble whose circuit breaker is tested.
type breaking struct {
	t      *testing.T
	client *gateway.Client
	trip   func() (*http.Response, error) // of the next invoice
	orders int
	sent   int
}

func newBreaking(t *testing.T, opts ...gateway.Option) *breaking {
	b := &breaking{t: t}
	b.client = newClient(t, "http://localhost", append(opts, once(), gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		response, err := b.trip()
		if err != errBreaker { // of brokenOff
			b.sent++
			drain(req)
		}
		return response, err
	})}))...)
	return b
}

// create sends an invoice for a new order.
func (b *breaking) create(trip func() (*http.Response, error), opts ...gateway.CallOption) error {
	b.orders++
	return b.createOrder(fmt.Sprint("A-", b.orders), trip, opts...)
}

func (b *breaking) createOrder(id string, trip func() (*http.Response, error), opts ...gateway.CallOption) error {
	b.trip = trip
	got, err := b.client.CreateInvoice(b.t.Context(), order(id), opts...)
	assertInvariants(b.t, got, err)
	return err
}

// unknown makes the outcome of new orders unknown.
func (b *breaking) unknown(times int, opts ...gateway.CallOption) {
	b.t.Helper()
	for range times {
		assert.Equal(b.t, gateway.OutcomeUnknown, gateway.OutcomeOf(b.create(cutOff, opts...)))
	}
}

// heldBack asserts that a new order is not sent, and that the error says so.
func (b *breaking) heldBack(opts ...gateway.CallOption) {
	b.t.Helper()
	b.isHeldBack(b.create(succeed, opts...))
}

func (b *breaking) isHeldBack(err error) {
	b.t.Helper()
	assert.ErrorIs(b.t, err, gateway.ErrCircuitOpen)
	assert.Equal(b.t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.True(b.t, gateway.SafeToRetry(err))
	failure, _ := err.(*gateway.TransportError)
	assert.Equal(b.t, gateway.PhaseStart, failure.Phase)
}

func (b *breaking) succeeds(opts ...gateway.CallOption) {
	b.t.Helper()
	before := b.sent
	assert.NoError(b.t, b.create(succeed, opts...))
	assert.Equal(b.t, before+1, b.sent)
}

func (b *breaking) isRejected() {
	b.t.Helper()
	assert.Equal(b.t, gateway.OutcomeRejected, gateway.OutcomeOf(b.create(respondWith(422, refused("No.")))))
}

func (b *breaking) isNotSent() {
	b.t.Helper()
	assert.Equal(b.t, gateway.OutcomeNotSent, gateway.OutcomeOf(b.create(brokenOff)))
}

func succeed() (*http.Response, error) { return reply(201, enveloped(invoiceJSON)), nil }

func TestWithCircuitBreaker(t *testing.T) {
	t.Parallel()
	noGuard := []gateway.Option{gateway.WithOrderGuard(nil)}
	for _, tt := range []struct {
		name string
		opts []gateway.Option
		run  func(b *breaking)
	}{
		{"after 3 orders the others are held back", nil, func(b *breaking) {
			b.unknown(3)
			b.heldBack()
			b.heldBack()
			assert.Equal(b.t, 3, b.sent)
		}},
		{"without a guard too", noGuard, func(b *breaking) {
			b.unknown(3)
			b.heldBack()
		}},
		{"a success in between begins anew", nil, func(b *breaking) {
			b.unknown(2)
			b.succeeds()
			b.unknown(2)
			b.succeeds()
		}},
		{"so does a refusal", nil, func(b *breaking) {
			b.unknown(2)
			b.isRejected()
			b.unknown(2)
			b.succeeds()
		}},
		{"one that is not sent does not", nil, func(b *breaking) {
			b.unknown(2)
			b.isNotSent()
			b.unknown(1)
			b.heldBack()
		}},
		{"refusals and what is not sent open nothing", nil, func(b *breaking) {
			for range 10 {
				b.isRejected()
				b.isNotSent()
				assert.ErrorIs(b.t, b.createOrder("", succeed), gateway.ErrInvalidArgument)
			}
			b.succeeds()
		}},
		{"an order counts once", nil, func(b *breaking) {
			b.unknown(2)
			for range 10 {
				assert.Equal(b.t, gateway.OutcomeUnknown, gateway.OutcomeOf(b.createOrder("A-1", cutOff, gateway.AllowResubmit())))
			}
			assert.Equal(b.t, 12, b.sent)
			b.succeeds()
		}},
		{"an order counts once, without a guard", noGuard, func(b *breaking) {
			b.unknown(1)
			for range 10 {
				assert.Equal(b.t, gateway.OutcomeUnknown, gateway.OutcomeOf(b.createOrder("A-1", cutOff)))
			}
			b.succeeds()
		}},
		{"orders that always fail are not counted again after a success", nil, func(b *breaking) {
			for range 3 {
				b.unknown(1)
				b.succeeds()
			}
			for range 3 {
				for _, id := range []string{"A-1", "A-3", "A-5"} {
					assert.Equal(b.t, gateway.OutcomeUnknown, gateway.OutcomeOf(b.createOrder(id, cutOff, gateway.AllowResubmit())))
				}
			}
			assert.Equal(b.t, 15, b.sent)
			b.succeeds()
		}},
		{"a probe that is created closes the circuit", nil, func(b *breaking) {
			b.unknown(3)
			time.Sleep(time.Second)
			b.succeeds()
			b.unknown(2)
			b.succeeds()
		}},
		{"so does one that is rejected", nil, func(b *breaking) {
			b.unknown(3)
			time.Sleep(time.Second)
			b.isRejected()
			b.unknown(2)
			b.succeeds()
		}},
		{"a probe is sent after 1, 2, 4 to 60 s", nil, func(b *breaking) {
			b.unknown(3)
			for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
				time.Sleep(time.Duration(seconds)*time.Second - time.Nanosecond)
				b.heldBack()
				time.Sleep(time.Nanosecond)
				b.unknown(1)
				b.heldBack()
			}
		}},
		{"a circuit that opens again is probed after a second", nil, func(b *breaking) {
			for range 3 {
				b.unknown(3)
				b.heldBack()
				time.Sleep(time.Second)
				b.succeeds()
			}
		}},
		{"after a probe that is not sent, the next order is one", nil, func(b *breaking) {
			b.unknown(3)
			time.Sleep(time.Second)
			b.isNotSent()
			b.succeeds()
		}},
		{"an order that was unknown is no probe", nil, func(b *breaking) {
			b.unknown(3)
			time.Sleep(time.Second)
			err := b.createOrder("A-1", succeed, gateway.AllowResubmit())
			assertUnknownBefore(b.t, err, "it stays unknown")
			assert.ErrorContains(b.t, err, "circuit open")
			assert.Equal(b.t, 3, b.sent)
			b.succeeds()
			assert.NoError(b.t, b.createOrder("A-1", succeed, gateway.AllowResubmit()), "the circuit is closed")
		}},
		{"nor is one that was unknown before the last success", nil, func(b *breaking) {
			b.unknown(1)
			b.succeeds()
			b.unknown(3)
			time.Sleep(time.Second)
			assertUnknownBefore(b.t, b.createOrder("A-1", succeed, gateway.AllowResubmit()))
			assert.Equal(b.t, 5, b.sent)
			b.succeeds()
		}},
		{"an order that was unknown is no probe, without a guard", noGuard, func(b *breaking) {
			b.unknown(3)
			time.Sleep(time.Second)
			b.isHeldBack(b.createOrder("A-1", succeed))
			b.unknown(1)
			time.Sleep(2 * time.Second)
			b.isHeldBack(b.createOrder("A-4", succeed))
			b.succeeds()
		}},
		{"an order that was created is returned", nil, func(b *breaking) {
			b.succeeds()
			b.unknown(3)
			got, err := b.client.CreateInvoice(b.t.Context(), order("A-1"))
			assert.NoError(b.t, err)
			assert.True(b.t, got.Replayed)
		}},
		{"reads go on", nil, func(b *breaking) {
			b.unknown(3)
			b.trip = respondWith(200, enveloped(withdrawalJSON))
			_, err := b.client.Withdrawal(b.t.Context(), requestID)
			assert.NoError(b.t, err)
		}},
		{"a merchant does not hold another back", nil, func(b *breaking) {
			one, other := gateway.WithMerchant("one"), gateway.WithMerchant("other")
			b.unknown(2, one)
			b.unknown(2, other)
			b.unknown(2)
			b.unknown(1, one)
			b.heldBack(one)
			b.succeeds(other)
			b.succeeds()
			b.heldBack(one)
			time.Sleep(time.Second)
			b.succeeds(one)
		}},
		{"a panic of the transport counts", nil, func(b *breaking) {
			for range 3 {
				assert.Panics(b.t, func() { _ = b.create(func() (*http.Response, error) { panic("of the transport") }) })
			}
			b.heldBack()
		}},
		{"of 1", []gateway.Option{gateway.WithCircuitBreaker(1)}, func(b *breaking) {
			b.unknown(1)
			b.heldBack()
		}},
		{"of 0, which never opens", []gateway.Option{gateway.WithCircuitBreaker(0)}, func(b *breaking) {
			b.unknown(50)
			b.succeeds()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tt.run(newBreaking(t, append([]gateway.Option{gateway.WithCircuitBreaker(3)}, tt.opts...)...))
			})
		})
	}
}

// What is in flight when the circuit opens goes on, and of many calls at once one is the probe.
func TestWithCircuitBreaker_atOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outcomes := map[gateway.Outcome]int{}
		var mu sync.Mutex
		c := newClient(t, "http://localhost", once(), gateway.WithCircuitBreaker(5), through(func(req *http.Request) (*http.Response, error) {
			drain(req)
			time.Sleep(10 * time.Second)
			return cutOff()
		}))
		send := func(n int) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					_, err := c.CreateInvoice(t.Context(), order(fmt.Sprint(time.Now().UnixNano(), "-", i)))
					mu.Lock()
					defer mu.Unlock()
					outcomes[gateway.OutcomeOf(err)]++
				})
			}
			all.Wait()
		}
		send(20)
		assert.Equal(t, map[gateway.Outcome]int{gateway.OutcomeUnknown: 20}, outcomes, "all were in flight")
		send(20)
		assert.Equal(t, map[gateway.Outcome]int{gateway.OutcomeUnknown: 20, gateway.OutcomeNotSent: 20}, outcomes)
		time.Sleep(time.Second)
		send(20)
		assert.Equal(t, map[gateway.Outcome]int{gateway.OutcomeUnknown: 21, gateway.OutcomeNotSent: 39}, outcomes)
	})
}

// A probe of a circuit that was closed since does not let a second one through beside that of the new one.
func TestWithCircuitBreaker_lateProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trip := map[string]func() (*http.Response, error){}
		sent := 0
		c := newClient(t, "http://localhost", once(), gateway.WithCircuitBreaker(1), through(func(req *http.Request) (*http.Response, error) {
			sent++
			return trip[req.Header.Get("X-Trip")]()
		}))
		after := func(d time.Duration, then func() (*http.Response, error)) func() (*http.Response, error) {
			return func() (*http.Response, error) {
				time.Sleep(d)
				return then()
			}
		}
		trip["lost"], trip["refused late"] = cutOff, after(2*time.Second, respondWith(422, refused("No.")))
		trip["lost at 5 s"], trip["lost at 20 s"] = after(4*time.Second, cutOff), after(15*time.Second, cutOff)
		var all sync.WaitGroup
		create := func(name string) {
			all.Go(func() {
				_, _ = c.CreateInvoice(t.Context(), order("A-"+name), gateway.WithHeader("X-Trip", name))
			})
			synctest.Wait()
		}
		create("refused late") // is in flight when the circuit opens
		create("lost")
		time.Sleep(time.Second)
		create("lost at 5 s") // is a probe
		time.Sleep(time.Second + time.Millisecond)
		trip["lost again"] = cutOff
		create("lost again") // the refusal has closed the circuit, and this opens it again
		time.Sleep(time.Second)
		create("lost at 20 s") // is a probe
		time.Sleep(10 * time.Second)
		assert.Equal(t, 5, sent)
		_, err := c.CreateInvoice(t.Context(), order("A-next"), gateway.WithHeader("X-Trip", "lost"))
		assert.ErrorIs(t, err, gateway.ErrCircuitOpen)
		assert.Equal(t, 5, sent)
		all.Wait()
	})
}

// The logger warns of one merchant whose orders fail in a row, until one of them gets through.
func TestWithCircuitBreaker_logged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		k    int
		text string
	}{
		{0, "the outcomes of five orders in a row are unknown: look them up, and consider WithCircuitBreaker"},
		{5, "circuit open: the outcomes of too many orders in a row are unknown: look them up"},
	} {
		t.Run(fmt.Sprint(tt.k), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				b := newBreaking(t, gateway.WithCircuitBreaker(tt.k), gateway.WithLogger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))))
				warning := `{"level":"WARN","msg":"gateway: ` + tt.text + `"}`
				own, other := []string{warning}, warning[:len(warning)-1]+`,"merchant":"shop 1"}`
				logged := func() (lines []string) {
					defer out.Reset()
					return timeless(t, &out)
				}
				b.unknown(4)
				assert.Empty(t, logged())
				b.unknown(1)
				assert.Equal(t, own, logged())
				time.Sleep(time.Second)
				b.unknown(1)
				b.unknown(5, gateway.WithMerchant("shop 1"))
				assert.Empty(t, logged(), "one merchant is warned of already")
				time.Sleep(time.Minute)
				b.succeeds()
				b.succeeds(gateway.WithMerchant("shop 1"))
				b.unknown(5, gateway.WithMerchant("shop 1"))
				assert.Equal(t, []string{other}, logged())
			})
		})
	}
}
