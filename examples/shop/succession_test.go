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

// onBoth runs a test over SQLite and over PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, st *stage)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, newStage(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		st := newStage(t)
		st.database = newPostgres(t).database(t)
		test(t, st)
	})
}

// refused is an order that the gateway has said no to once.
func (v *visitor) refused(st *stage, server, product string) (path string) {
	v.t.Helper()
	path = v.order(server, product)
	st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Refuse(400, "no"))
	require.Equal(v.t, path, v.pay(server, path, st.pair("BTC", "Bitcoin")).location)
	return path
}

// After a refusal buyers press Try once more and Choose again at once, on two
// servers: one of the two comes true.
func TestOnePurchase_isOneOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		_, one := st.open()
		_, two := st.open()
		won := map[bool]int{}
		for range 15 {
			v := newVisitor(t)
			at := v.refused(st, one.URL, "mug")
			ends := v.pressBoth([]string{one.URL, two.URL}, at)
			last := v.post(one.URL+"/orders", "product", "mug").location
			assert.Equal(t, map[string]int{last: 16}, ends, "everybody is led to the order of whoever won")
			invoices := st.gw.InvoicesFor(path.Base(at))
			if won[last == at]++; last == at {
				assert.Len(t, invoices, 1)
			} else {
				assert.Empty(t, invoices, "an order with a successor has been sent")
			}
		}
		t.Logf("sent again: %d; chosen again: %d", won[true], won[false])
	})
}

// pressBoth presses both buttons of a refused order eight times at once, and
// counts where that leads to.
func (v *visitor) pressBoth(servers []string, path string) map[string]int {
	var presses sync.WaitGroup
	var mu sync.Mutex
	ends, begin := map[string]int{}, make(chan struct{})
	for i := range 16 {
		presses.Go(func() {
			<-begin
			to, form := "/orders", formOf("product", "mug", "after", "1")
			if i%2 == 0 {
				to, form = path+"/pay", formOf()
			}
			a, err := v.do(http.MethodPost, servers[i/2%2]+to, form)
			assert.NoError(v.t, err)
			mu.Lock()
			defer mu.Unlock()
			ends[a.location]++
		})
	}
	close(begin)
	presses.Wait()
	return ends
}

// read is the order of a path as it is now.
func (st *stage) read(s *shop, at string) order {
	st.t.Helper()
	o, err := s.orders.byID(st.t.Context(), path.Base(at))
	require.NoError(st.t, err)
	return o
}

// nextOf is a successor of an order, which is not made yet.
func nextOf(o order) order {
	return order{ID: rand.Text(), Buyer: o.Buyer, Product: o.Product, Number: o.Number + 1, Price: o.Price, Currency: o.Currency}
}

// in is so long from now.
func in(d time.Duration) stamp { return stamp{time.Now().Add(d)} }

// What was read of an order that has moved on since is good for nothing, be it
// taken or followed. What has not moved on is taken or followed once.
func TestOrder_isTakenOrFollowedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		s, server := st.open()
		take := func(o order) (bool, error) { return s.orders.take(t.Context(), o, in(time.Hour)) }
		follow := func(o order) (bool, error) { return s.orders.follow(t.Context(), o, nextOf(o)) }
		became := func(now state) func(order) (bool, error) {
			return func(o order) (bool, error) { o.State = now; return true, s.orders.record(t.Context(), o) }
		}
		for name, move := range map[string]func(order) (bool, error){
			"taken": take, "followed": follow, "created": became(stateCreated), "unknown": became(stateUnknown),
		} {
			for later, late := range map[string]func(order) (bool, error){"taken": take, "followed": follow} {
				o := st.abandoned(s, newVisitor(t).refused(st, server.URL, "mug"))
				moved, err := move(o)
				require.NoError(t, err)
				require.True(t, moved, name)
				ok, err := late(o)
				require.NoError(t, err)
				assert.False(t, ok, "%s and then %s", name, later)
			}
		}
	})
}

// abandoned is an order whose sender has died before it was sent.
func (st *stage) abandoned(s *shop, at string) order {
	st.t.Helper()
	taken, err := s.orders.take(st.t.Context(), st.read(s, at), in(-time.Second))
	require.NoError(st.t, err)
	require.True(st.t, taken)
	return st.read(s, at)
}

// Whoever waits for the lock of an order asks for its successor afterwards:
// what PostgreSQL shows is as old as the beginning of a question.
func TestOrder_isNotTakenByWhoeverWaited(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.database = newPostgres(t).database(t)
	s, server := st.open()
	o := st.read(s, newVisitor(t).refused(st, server.URL, "mug"))
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), `SELECT 1 FROM shop_orders WHERE id = $1 FOR UPDATE`, o.ID)
	require.NoError(t, err)
	taken := make(chan bool)
	go func() {
		ok, err := s.orders.take(context.WithoutCancel(t.Context()), o, in(time.Hour))
		assert.NoError(t, err)
		taken <- ok
	}()
	eventually(t, "somebody waits for the lock", func() bool {
		var waiting int
		err := s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waiting)
		return err == nil && waiting == 1
	})
	_, err = tx.ExecContext(t.Context(), insertOrder, nextOf(o).inserted()...)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	assert.False(t, <-taken)
}

// The order guard has the last word: it knows of processes that the recorded
// state is silent about.
func TestSuccessor_isNotMadeOfWhatTheGuardHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outcome gateway.Outcome // none while it is being sent
		heading string
	}{
		"being sent": {-1, "Your invoice is being made"},
		"unknown":    {gateway.OutcomeUnknown, "We are looking into your order"},
		"created":    {gateway.OutcomeSucceeded, "Pay your order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t)
			s, server := st.open()
			v := newVisitor(t)
			at := v.refused(st, server.URL, "mug")
			require.NoError(t, s.guard.Begin(t.Context(), path.Base(at), false))
			if test.outcome >= 0 {
				require.NoError(t, s.guard.End(t.Context(), path.Base(at), test.outcome))
			}
			require.Equal(t, stateRefused, st.read(s, at).State)
			assert.Equal(t, at, v.post(server.URL+"/orders", "product", "mug", "after", "1").location)
			assert.Equal(t, at, v.pay(server.URL, at, "").location)
			assert.Equal(t, at, v.post(server.URL+"/orders", "product", "mug").location)
			assert.Contains(t, v.get(server.URL+at).words(), test.heading)
			assert.Equal(t, 1, st.sent(), "the one that was refused")
		})
	}
}

// Whoever has taken an order keeps it, whatever others have to record of it
// that they knew before.
func TestTakenOrder_isNotLetGoByOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		s, server := st.open()
		v := newVisitor(t)
		at := v.refused(st, server.URL, "mug")
		slow := st.abandoned(s, at)
		require.Equal(t, stateSending, slow.State)
		taken, err := s.orders.take(t.Context(), slow, in(time.Hour))
		require.NoError(t, err)
		require.True(t, taken, "the first has had its time")

		require.NoError(t, s.orders.settle(t.Context(), slow.ID, stateSending, stateUnsent))
		slow.State = stateRefused
		require.NoError(t, s.orders.record(t.Context(), slow))
		newVisitor(t).asMerchant(server.URL).get(server.URL + "/admin")
		assert.Equal(t, stateSending, st.read(s, at).State)
		assert.Equal(t, at, v.post(server.URL+"/orders", "product", "mug", "after", "1").location)
		slow.State = stateUnknown
		require.NoError(t, s.orders.record(t.Context(), slow))
		assert.Equal(t, stateUnknown, st.read(s, at).State, "what is bad news counts")
	})
}
