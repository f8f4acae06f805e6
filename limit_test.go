package gateway_test

import (
	"bytes"
	"context"
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

// A limitObserver notes what it is told of the limit.
type limitObserver struct {
	gateway.NopObserver
	told []gateway.UnknownLimit
}

func (o *limitObserver) UnknownLimit(_ context.Context, u gateway.UnknownLimit) {
	o.told = append(o.told, u)
}

// A limited is a client for a bubble and what becomes of its invoices, each for an order of its own.
type limited struct {
	*limitObserver
	t      *testing.T
	client *gateway.Client
	trip   func() (*http.Response, error)
	orders int
	sent   int
}

func newLimited(t *testing.T, opts ...gateway.Option) *limited {
	l := &limited{t: t, limitObserver: &limitObserver{}, trip: cutOff}
	l.client = newClient(t, "http://localhost", append(opts, once(), gateway.WithObserver(l.limitObserver), gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		response, err := l.trip()
		if err != errBreaker {
			l.sent++
			drain(req)
		}
		return response, err
	})}))...)
	return l
}

// create sends an invoice for a new order.
func (l *limited) create(trip func() (*http.Response, error)) error {
	l.trip = trip
	l.orders++
	got, err := l.client.CreateInvoice(l.t.Context(), order(fmt.Sprint("A-", l.orders)))
	assertInvariants(l.t, got, err)
	return err
}

func (l *limited) unknown(times int) {
	l.t.Helper()
	for range times {
		assert.ErrorIs(l.t, l.create(cutOff), gateway.ErrOutcomeUnknown)
	}
}

// heldBack asserts that an invoice is not sent, and says so.
func (l *limited) heldBack() {
	l.t.Helper()
	before := l.sent
	err := l.create(respondWith(201, enveloped(invoiceJSON)))
	assert.ErrorIs(l.t, err, gateway.ErrTooManyUnknown)
	assert.ErrorIs(l.t, err, gateway.ErrNotSent)
	assert.Equal(l.t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.True(l.t, gateway.SafeToRetry(err))
	assert.Equal(l.t, before, l.sent)
}

func (l *limited) succeeds() {
	l.t.Helper()
	assert.NoError(l.t, l.create(respondWith(201, enveloped(invoiceJSON))))
}

func TestWithUnknownLimit(t *testing.T) {
	t.Parallel()
	reached, over := gateway.UnknownLimit{Reached: true, Unknown: 5}, gateway.UnknownLimit{}
	for _, tt := range []struct {
		name string
		opts []gateway.Option
		run  func(l *limited)
		told []gateway.UnknownLimit
	}{
		{"after 5 in a row the others are held back", nil, func(l *limited) {
			l.unknown(5)
			l.heldBack()
			l.heldBack()
		}, []gateway.UnknownLimit{reached}},
		{"a success in between begins anew", nil, func(l *limited) {
			l.unknown(4)
			l.succeeds()
			l.unknown(4)
			l.succeeds()
		}, nil},
		{"so does a refusal", nil, func(l *limited) {
			l.unknown(4)
			assert.Equal(l.t, gateway.OutcomeRejected, gateway.OutcomeOf(l.create(respondWith(422, refused("No.")))))
			l.unknown(4)
			l.succeeds()
		}, nil},
		{"one that is not sent does not", nil, func(l *limited) {
			l.unknown(4)
			assert.Equal(l.t, gateway.OutcomeNotSent, gateway.OutcomeOf(l.create(brokenOff)))
			l.unknown(1)
			l.heldBack()
		}, []gateway.UnknownLimit{reached}},
		{"a success of the one that is tried ends it", nil, func(l *limited) {
			l.unknown(5)
			time.Sleep(time.Second)
			l.succeeds()
			l.unknown(4)
			l.succeeds()
		}, []gateway.UnknownLimit{reached, over}},
		{"one is tried after 1, 2, 4 to 60 s", nil, func(l *limited) {
			l.unknown(5)
			for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
				time.Sleep(time.Duration(seconds)*time.Second - time.Nanosecond)
				l.heldBack()
				time.Sleep(time.Nanosecond)
				l.unknown(1)
				l.heldBack()
			}
		}, []gateway.UnknownLimit{reached}},
		{"one that is tried and not sent lets the next one try", nil, func(l *limited) {
			l.unknown(5)
			time.Sleep(time.Second)
			assert.Equal(l.t, gateway.OutcomeNotSent, gateway.OutcomeOf(l.create(brokenOff)))
			l.succeeds()
		}, []gateway.UnknownLimit{reached, over}},
		{"an order that is unknown stays that", nil, func(l *limited) {
			l.unknown(5)
			_, err := l.client.CreateInvoice(l.t.Context(), order("A-1"), gateway.AllowResubmit())
			assert.ErrorIs(l.t, err, gateway.ErrOrderOutcomeUnknown)
			assert.ErrorContains(l.t, err, "too many invoices")
			assert.Equal(l.t, 5, l.sent)
		}, []gateway.UnknownLimit{reached}},
		{"an order that is created is returned", nil, func(l *limited) {
			l.succeeds()
			l.unknown(5)
			got, err := l.client.CreateInvoice(l.t.Context(), order("A-1"))
			assert.NoError(l.t, err)
			assert.True(l.t, got.Replayed)
		}, []gateway.UnknownLimit{reached}},
		{"without a guard too", []gateway.Option{gateway.WithOrderGuard(nil)}, func(l *limited) {
			l.unknown(5)
			l.heldBack()
		}, []gateway.UnknownLimit{reached}},
		{"reads go on", nil, func(l *limited) {
			l.unknown(5)
			l.trip = respondWith(200, enveloped(withdrawalJSON))
			_, err := l.client.Withdrawal(l.t.Context(), requestID)
			assert.NoError(l.t, err)
		}, []gateway.UnknownLimit{reached}},
		{"of 1", []gateway.Option{gateway.WithUnknownLimit(1)}, func(l *limited) {
			l.unknown(1)
			l.heldBack()
		}, []gateway.UnknownLimit{{Reached: true, Unknown: 1}}},
		{"of 0, which is none", []gateway.Option{gateway.WithUnknownLimit(0)}, func(l *limited) {
			l.unknown(50)
			l.succeeds()
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimited(t, tt.opts...)
				tt.run(l)
				assert.Equal(t, tt.told, l.told)
			})
		})
	}
}

// What is being sent when the limit is reached goes on, and of many calls at once one is tried.
func TestWithUnknownLimit_atOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outcomes := map[gateway.Outcome]int{}
		var mu sync.Mutex
		slow := tripper(func(req *http.Request) (*http.Response, error) {
			drain(req)
			time.Sleep(10 * time.Second)
			return cutOff()
		})
		c := newClient(t, "http://localhost", once(), gateway.WithHTTPClient(&http.Client{Transport: slow}))
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
		assert.Equal(t, map[gateway.Outcome]int{gateway.OutcomeUnknown: 20}, outcomes, "all were being sent")
		send(20)
		assert.Equal(t, map[gateway.Outcome]int{gateway.OutcomeUnknown: 20, gateway.OutcomeNotSent: 20}, outcomes)
		time.Sleep(time.Second)
		send(20)
		assert.Equal(t, map[gateway.Outcome]int{gateway.OutcomeUnknown: 21, gateway.OutcomeNotSent: 39}, outcomes)
	})
}

// The logger has a line when invoices are held back, and one when they are sent again.
func TestWithUnknownLimit_logged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		handler := slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		l := newLimited(t, gateway.WithLogger(slog.New(handler)))
		l.unknown(5)
		time.Sleep(time.Second)
		l.succeeds()
		assert.Equal(t, `level=WARN msg="gateway: invoices are held back: too many in a row have an unknown outcome" unknown=5
level=WARN msg="gateway: invoices are sent again" unknown=0
`, text.String())
	})
}

// Without a limit nothing waits for another invoice.
func TestWithUnknownLimit_none(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://localhost", gateway.WithUnknownLimit(0), through(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return reply(201, enveloped(invoiceJSON)), nil
		}))
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				_, err := c.CreateInvoice(t.Context(), order(fmt.Sprint("A-", i)))
				assert.NoError(t, err)
			})
		}
		all.Wait()
	})
}

func TestWithUnknownLimit_negative(t *testing.T) {
	t.Parallel()
	_, err := gateway.New("https://gateway.example", canary, gateway.WithUnknownLimit(-1))
	assert.EqualError(t, err, "gateway: new: WithUnknownLimit: must not be negative: 0 is no limit")
}

// A creatingObserver creates an invoice when it is told, and takes a second.
type creatingObserver struct {
	*limitObserver
	client *gateway.Client
}

func (o *creatingObserver) UnknownLimit(ctx context.Context, u gateway.UnknownLimit) {
	_, _ = o.client.CreateInvoice(ctx, order(fmt.Sprint("B-", len(o.told))))
	time.Sleep(time.Second)
	o.limitObserver.UnknownLimit(ctx, u)
}

// Observers are told in turn, also where the limit is over before they know that it is reached.
func TestWithUnknownLimit_toldInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &creatingObserver{limitObserver: &limitObserver{}}
		o.client = newClient(t, "http://localhost", once(), gateway.WithUnknownLimit(1), gateway.WithObserver(o), through(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Slow") != "" {
				time.Sleep(time.Second / 2)
				return reply(201, enveloped(invoiceJSON)), nil
			}
			return cutOff()
		}))
		var all sync.WaitGroup
		all.Go(func() {
			_, err := o.client.CreateInvoice(t.Context(), order("A-1"), gateway.WithHeader("X-Slow", "1"))
			assert.NoError(t, err)
		})
		synctest.Wait()
		_, err := o.client.CreateInvoice(t.Context(), order("A-2"))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		all.Wait()
		assert.Equal(t, []gateway.UnknownLimit{{Reached: true, Unknown: 1}, {}, {Reached: true, Unknown: 1}}, o.told)
	})
}

// What an observer does when it is told of the limit comes after the guard has the outcome.
func TestWithUnknownLimit_panic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, gateway.WithUnknownLimit(1), gateway.WithObserver(panickingObserver{}))
		l.unknown(1)
		time.Sleep(time.Second)
		assert.PanicsWithValue(t, "told", l.succeeds)
		got, err := l.client.CreateInvoice(t.Context(), order("A-2"))
		assert.NoError(t, err)
		assert.True(t, got.Replayed)
	})
}

// A panickingObserver panics when invoices are sent again.
type panickingObserver struct{ gateway.NopObserver }

func (panickingObserver) UnknownLimit(_ context.Context, u gateway.UnknownLimit) {
	if !u.Reached {
		panic("told")
	}
}

// One that was tried long ago does not let a second one through beside the one that is being tried now.
func TestWithUnknownLimit_lateProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trip := make(map[string]func() (*http.Response, error))
		sent := 0
		c := newClient(t, "http://localhost", once(), gateway.WithUnknownLimit(1), through(func(req *http.Request) (*http.Response, error) {
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
		create("refused late") // is under way when the limit is reached
		create("lost")
		time.Sleep(time.Second)
		create("lost at 5 s") // is tried
		time.Sleep(time.Second + time.Millisecond)
		trip["lost again"] = cutOff
		create("lost again") // the refusal has ended the limit, and this reaches it again
		time.Sleep(time.Second)
		create("lost at 20 s") // is tried
		time.Sleep(10 * time.Second)
		assert.Equal(t, 5, sent)
		_, err := c.CreateInvoice(t.Context(), order("A-next"), gateway.WithHeader("X-Trip", "lost"))
		assert.ErrorIs(t, err, gateway.ErrTooManyUnknown)
		assert.Equal(t, 5, sent)
		all.Wait()
	})
}
