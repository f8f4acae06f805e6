package guardtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

const (
	modelLease   = 1 << 40
	mostAttempts = 8 // of an order: a guard need not remember more of unknown outcome
)

// A model is an order as it should be.
type model struct {
	order gateway.Order
	row   orders.Row[gateway.OrderRecord]
	begun []holder
}

// A walker takes random steps over some orders, by some guards over one store.
type walker struct {
	*store
	rand   *rand.Rand
	guards []gateway.OrderGuard
	models [3]model
	now    int64 // by the clock of the models
}

// walk takes random steps, and compares the orders with their models.
func walk(s *store) {
	seed := rand.Uint64()                                                                               // #nosec G404 -- any walk will do
	w := &walker{store: s, rand: rand.New(rand.NewPCG(seed, 0)), guards: []gateway.OrderGuard{s.first}} // #nosec G404
	if s.guard.Store != nil && s.guard.Reopen != nil {
		w.guards = append(w.guards, s.another(), s.another())
	}
	for i := range 200 {
		m := &w.models[i%len(w.models)]
		if i < len(w.models) || len(m.begun) == mostAttempts {
			*m = model{order: orderOf(fmt.Sprint("W-", i))}
		}
		w.step(m)
		for i := range w.models[:min(i+1, len(w.models))] {
			w.compare(&w.models[i])
		}
		if s.Failed() {
			s.Fatalf("seed %d, after %q", seed, w.done)
		}
	}
}

func (w *walker) did(m *model, what ...any) {
	w.done = append(w.done, m.order.Request.OrderID+" "+fmt.Sprint(what...))
	w.now++
}

func (w *walker) step(m *model) {
	w.Helper()
	_, isKept := w.first.(keeper)
	switch choice := w.rand.IntN(8); {
	case choice == 0 && w.guard.Store != nil && w.guard.Expire != nil:
		w.did(m, "and all others expire")
		w.expire()
		w.now += modelLease
	case choice == 1 && isKept:
		w.looksUp(m, [...]string{"exists", "shown", "absent", "forget"}[w.rand.IntN(4)])
	case choice < 5 && len(m.begun) > 0:
		w.ends(m, m.begun[w.rand.IntN(len(m.begun))], [...]string{"success", "bare", "unknown", "rejected", "unsent"}[w.rand.IntN(5)])
	default:
		o := m.order
		o.Resubmit = w.rand.IntN(2) == 0
		w.did(m, "begins, resubmit ", o.Resubmit)
		lease, h := w.begin(w.guards[w.rand.IntN(len(w.guards))], o)
		row, answer := m.row.Begin(orders.Begin[gateway.OrderRecord]{
			Gateway: o.Gateway, Attempt: orders.AttemptOf(lease.Attempt), Lease: modelLease, Resubmit: o.Resubmit,
			Record: orders.Held[gateway.OrderRecord](o.Request, sentAt),
		}, w.now)
		if m.row = row; answer.Granted {
			m.begun = append(m.begun, h)
		}
		if isFree := lease.State == gateway.OrderFree; isFree != answer.Granted {
			w.Errorf("a lease is granted: %t, want %t", isFree, answer.Granted)
		}
	}
}

// ends ends an attempt, perhaps not for the first time, and sometimes after a call whose context ends at any moment.
func (w *walker) ends(m *model, h holder, outcome string) {
	w.Helper()
	w.did(m, "ends: ", outcome)
	r := recordOf(h.order, outcome, fmt.Sprint(len(w.done)))
	m.row, _ = m.row.End(orders.EndOf(m.order.Gateway, orders.AttemptOf(h.order.Attempt), r), w.now)
	if w.rand.IntN(4) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.rand.IntN(2000))*time.Microsecond)
		_, _ = h.guard.End(ctx, h.order, r)
		cancel()
	}
	w.end(h, outcome, fmt.Sprint(len(w.done)))
}

// looksUp has a person end or forget an order.
func (w *walker) looksUp(m *model, step string) {
	w.Helper()
	w.did(m, step)
	w.see(m.order.Request.OrderID)
	err := w.person(step)
	var want error
	if f, finds := findings[step]; finds {
		resolve := orders.ResolveOf(&m.row, orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note}, f.Invoice)
		resolve.Attempt, resolve.Read, resolve.Waited = m.row.Attempt, w.now, math.MaxInt64
		var answer orders.Answer
		if want = f.Validate(w.seen); want == nil {
			m.row, answer = m.row.Resolve(resolve, w.now)
			want = answer.Err
		}
	} else if want = m.row.Forget(m.row.Attempt, w.now); want == nil {
		m.row = orders.Row[gateway.OrderRecord]{}
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) != errors.Is(want, refusal) || (err == nil) != (want == nil) {
			w.Errorf("%v, want %v", err, want)
		}
	}
}

// compare looks at an order by one of the guards.
func (w *walker) compare(m *model) {
	w.Helper()
	state, known := w.look(w.guards[w.rand.IntN(len(w.guards))], m.order)
	wanted := *cmp.Or(orders.Known(&m.row, w.now), &gateway.OrderRecord{})
	if got, want := describe(state, known), describe(gateway.OrderState(m.row.State(w.now)), wanted); got != want {
		w.Errorf("%s is %s, want it %s", m.order.Request.OrderID, got, want)
	}
}
