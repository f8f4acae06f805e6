package guardtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

const (
	modelLease   = 1 << 40
	mostAttempts = 8 // of an order: a guard need not remember more of unknown outcome
)

// A model is an order as it should be.
type model struct {
	id    string
	row   orders.Row[gateway.OrderRecord]
	begun []string // the names of its attempts
}

// A walker takes random steps over some orders, by some guards over one store.
type walker struct {
	*store
	rand *rand.Rand
	now  int64 // by the clock of the models
}

// walk takes random steps, and compares the orders with their models.
func walk(s *store) {
	seed := rand.Uint64()                                                // #nosec G404 -- any walk will do
	w := &walker{store: s, rand: rand.New(rand.NewPCG(seed, 0)), now: 1} // #nosec G404
	guards := []gateway.OrderGuard{s.first}
	if s.guard.Store != nil && s.guard.Reopen != nil {
		guards = append(guards, s.another(), s.another())
	}
	var models [3]model
	for i := range 200 {
		m := &models[i%len(models)]
		if i < len(models) || len(m.begun) == mostAttempts {
			*m = model{id: fmt.Sprint("W-", i)}
		}
		s.id, s.asked = m.id, guards[w.rand.IntN(len(guards))]
		s.done = append(s.done, m.id)
		w.step(m)
		if s.do("is " + describe(m.id, gateway.OrderState(m.row.State(w.now)), orders.Known(&m.row, w.now))); s.Failed() {
			s.Fatalf("seed %d", seed)
		}
	}
}

func (w *walker) step(m *model) {
	w.Helper()
	w.now++
	_, isKept := w.first.(keeper)
	switch choice := w.rand.IntN(8); {
	case choice == 0 && w.guard.Store != nil && w.guard.Expire != nil:
		w.do("expire")
		w.now += modelLease
	case choice == 1 && isKept:
		w.looksUp(m, w.any("exists", "shown", "absent", "forget"))
	case choice < 5 && len(m.begun) > 0:
		w.endsAny(m, w.any("success", "bare", "unknown", "rejected", "unsent"), w.any(m.begun...))
	case m.row.State(w.now) == orders.Free:
		w.begins(m, w.any("begin", "resubmit"))
	case m.row.State(w.now) == orders.Unknown:
		w.begins(m, "resubmit")
	}
}

func (w *walker) any(words ...string) string { return words[w.rand.IntN(len(words))] }

func (w *walker) begins(m *model, verb string) {
	w.Helper()
	name := fmt.Sprint(m.id, "/", len(m.begun))
	m.begun = append(m.begun, name)
	w.do(verb + " " + name)
	o := w.attempts[name].order
	m.row, _ = m.row.Begin(orders.Begin[gateway.OrderRecord]{
		Gateway: o.Gateway, Attempt: orders.AttemptOf(o.Attempt), Lease: modelLease, Resubmit: verb == "resubmit",
		Record: orders.Held[gateway.OrderRecord](o.Request, sentAt),
	}, w.now)
}

// endsAny ends an attempt, perhaps not for the first time, after a call whose context may end at any moment.
func (w *walker) endsAny(m *model, outcome, name string) {
	w.Helper()
	h := w.attempts[name]
	r := recordOf(h.order, outcome, name)
	m.row, _ = m.row.End(orders.EndOf(h.order.Gateway, orders.AttemptOf(h.order.Attempt), r), w.now)
	ctx, cancel := brief()
	_, _ = h.guard.End(ctx, h.order, r)
	cancel()
	w.do(outcome + " " + name)
}

// looksUp has a person end or forget an order.
func (w *walker) looksUp(m *model, step string) {
	w.Helper()
	w.do("see")
	var err error
	if f, finds := findings[step]; finds {
		resolve := orders.ResolveOf(&m.row, orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note}, f.Invoice)
		resolve.Attempt, resolve.Read, resolve.Waited = m.row.Attempt, w.now, math.MaxInt64
		if err = f.Validate(w.seen); err == nil {
			row, answer := m.row.Resolve(resolve, w.now)
			m.row, err = row, answer.Err
		}
	} else if err = m.row.Forget(m.row.Attempt, w.now); err == nil {
		m.row = orders.Row[gateway.OrderRecord]{}
	}
	for text, refusal := range refusals {
		if errors.Is(err, refusal) {
			step = text + " " + step
		}
	}
	w.do(step)
}
