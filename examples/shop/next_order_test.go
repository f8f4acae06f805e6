package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onBothDatabases runs a test over SQLite and over PostgreSQL.
func onBothDatabases(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, newHarness(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.database = newPostgres(t).database(t)
		test(t, h)
	})
}

// refusedOrder returns an order whose invoice the gateway has refused once.
func (v *visitor) refusedOrder(h *harness, server, product string) (path string) {
	v.t.Helper()
	path = v.order(server, product)
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Refuse(400, "no"))
	require.Equal(v.t, path, v.pay(server, path, h.pair("BTC", "Bitcoin")).location)
	return path
}

// After a refusal a buyer presses Try again and Choose again concurrently,
// on two servers: exactly one of them takes effect.
func TestNextOrder_concurrentRetry(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		_, one := h.open()
		_, two := h.open()
		winners := map[bool]int{}
		for range 15 {
			v := newVisitor(t)
			at := v.refusedOrder(h, one.URL, "mug")
			locations := v.retryAndReorder([]string{one.URL, two.URL}, at)
			last := v.post(one.URL+"/orders", "product", "mug").location
			assert.Equal(t, map[string]int{last: 16}, locations, "all redirects lead to the winner's order")
			invoices := h.gw.InvoicesFor(path.Base(at))
			if winners[last == at]++; last == at {
				assert.Len(t, invoices, 1)
			} else {
				assert.Empty(t, invoices, "an order with a next one was sent")
			}
		}
		t.Logf("retried: %d; replaced: %d", winners[true], winners[false])
	})
}

// retryAndReorder posts both forms of a refused order eight times
// concurrently, and counts the locations of the redirects.
func (v *visitor) retryAndReorder(servers []string, path string) map[string]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	locations, start := map[string]int{}, make(chan struct{})
	for i := range 16 {
		wg.Go(func() {
			<-start
			to, form := "/orders", formOf("product", "mug", "after", "1")
			if i%2 == 0 {
				to, form = path+"/pay", formOf()
			}
			res, err := v.do(http.MethodPost, servers[i/2%2]+to, form)
			assert.NoError(v.t, err)
			mu.Lock()
			defer mu.Unlock()
			locations[res.location]++
		})
	}
	close(start)
	wg.Wait()
	return locations
}

// readOrder returns the stored order of a path.
func (h *harness) readOrder(s *shop, at string) order {
	h.t.Helper()
	o, err := s.orders.byID(h.t.Context(), path.Base(at))
	require.NoError(h.t, err)
	return o
}

// nextOrder returns the next order of the same buyer, which is not stored
// yet.
func nextOrder(o order) order {
	return order{ID: rand.Text(), Buyer: o.Buyer, Product: o.Product, Number: o.Number + 1, Price: o.Price, Currency: o.Currency}
}

// fromNow returns the time after a duration.
func fromNow(d time.Duration) timestamp { return timestamp{time.Now().Add(d)} }

// An order that has changed since it was read can neither be claimed nor
// replaced by a next one. An unchanged order allows one of them, once.
func TestOrder_claimedOrReplacedOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		claim := func(o order) (bool, error) { return s.orders.claim(t.Context(), o, fromNow(time.Hour)) }
		openNext := func(o order) (bool, error) { return s.orders.openNext(t.Context(), o, nextOrder(o)) }
		setState := func(now state) func(order) (bool, error) {
			return func(o order) (bool, error) { o.State = now; return true, s.orders.record(t.Context(), o) }
		}
		for name, first := range map[string]func(order) (bool, error){
			"claimed": claim, "replaced": openNext, "created": setState(stateCreated), "unknown": setState(stateUnknown),
		} {
			for otherName, other := range map[string]func(order) (bool, error){"claimed": claim, "replaced": openNext} {
				o := h.expiredClaim(s, newVisitor(t).refusedOrder(h, server.URL, "mug"))
				changed, err := first(o)
				require.NoError(t, err)
				require.True(t, changed, name)
				ok, err := other(o)
				require.NoError(t, err)
				assert.False(t, ok, "%s and then %s", name, otherName)
			}
		}
	})
}

// expiredClaim returns an order whose sender died before sending it.
func (h *harness) expiredClaim(s *shop, at string) order {
	h.t.Helper()
	claimed, err := s.orders.claim(h.t.Context(), h.readOrder(s, at), fromNow(-time.Second))
	require.NoError(h.t, err)
	require.True(h.t, claimed)
	return h.readOrder(s, at)
}

// A request that waits for the lock of an order checks for a next order
// after it has the lock: a PostgreSQL statement sees the state from before
// it waited.
func TestClaim_afterWaitingForLock(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.database = newPostgres(t).database(t)
	s, server := h.open()
	o := h.readOrder(s, newVisitor(t).refusedOrder(h, server.URL, "mug"))
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), `SELECT 1 FROM shop_orders WHERE id = $1 FOR UPDATE`, o.ID)
	require.NoError(t, err)
	claimed := make(chan bool)
	go func() {
		ok, err := s.orders.claim(context.WithoutCancel(t.Context()), o, fromNow(time.Hour))
		assert.NoError(t, err)
		claimed <- ok
	}()
	eventually(t, "the claim waits for the lock", func() bool {
		var waiting int
		err := s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waiting)
		return err == nil && waiting == 1
	})
	_, err = tx.ExecContext(t.Context(), insertOrder, nextOrder(o).insertArgs()...)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	assert.False(t, <-claimed)
}

// The order guard has precedence: it knows about processes that are missing
// from the recorded state.
func TestNextOrder_guardHasPrecedence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outcome gateway.Outcome // -1 while the order is being sent
		heading string
	}{
		"being sent": {-1, "Your invoice is being created"},
		"unknown":    {gateway.OutcomeUnknown, "Your order is being checked"},
		"created":    {gateway.OutcomeSucceeded, "Pay your order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			s, server := h.open()
			v := newVisitor(t)
			at := v.refusedOrder(h, server.URL, "mug")
			require.NoError(t, s.guard.Begin(t.Context(), path.Base(at), false))
			if test.outcome >= 0 {
				require.NoError(t, s.guard.End(t.Context(), path.Base(at), test.outcome))
			}
			require.Equal(t, stateRefused, h.readOrder(s, at).State)
			assert.Equal(t, at, v.post(server.URL+"/orders", "product", "mug", "after", "1").location)
			assert.Equal(t, at, v.pay(server.URL, at, "").location)
			assert.Equal(t, at, v.post(server.URL+"/orders", "product", "mug").location)
			assert.Contains(t, v.get(server.URL+at).visibleText(), test.heading)
			assert.Equal(t, 1, h.sent(), "only the refused invoice")
		})
	}
}

// A claim is kept although other requests record results of an earlier
// attempt.
func TestClaim_keptByItsOwner(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v := newVisitor(t)
		at := v.refusedOrder(h, server.URL, "mug")
		stale := h.expiredClaim(s, at)
		require.Equal(t, stateSending, stale.State)
		claimed, err := s.orders.claim(t.Context(), stale, fromNow(time.Hour))
		require.NoError(t, err)
		require.True(t, claimed, "the first claim has expired")

		require.NoError(t, s.orders.updateState(t.Context(), stale.ID, stateSending, stateUnsent))
		stale.State = stateRefused
		require.NoError(t, s.orders.record(t.Context(), stale))
		newVisitor(t).logIn(server.URL).get(server.URL + "/admin")
		assert.Equal(t, stateSending, h.readOrder(s, at).State)
		assert.Equal(t, at, v.post(server.URL+"/orders", "product", "mug", "after", "1").location)
		stale.State = stateUnknown
		require.NoError(t, s.orders.record(t.Context(), stale))
		assert.Equal(t, stateUnknown, h.readOrder(s, at).State, "unknown is always recorded")
	})
}
