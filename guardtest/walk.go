package guardtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cryptogw/gateway"
)

// A model is the expected state of an order.
type model struct {
	order    gateway.Order
	unknown  bool     // an attempt has an unknown outcome
	invoices []string // of these attempts
	held     *holder  // who has the lease
	late     []holder // who had it when it expired
}

func (m *model) state() gateway.OrderState {
	switch {
	case m.held != nil:
		return gateway.OrderInFlight
	case len(m.invoices) > 0:
		return gateway.OrderCreated
	case m.unknown:
		return gateway.OrderUnknown
	default:
		return gateway.OrderFree
	}
}

const (
	walkSteps  = 200
	walkOrders = 3
)

// walk takes random steps, and compares the order of each with its model; at the end all orders.
func walk(s *store) {
	seed := rand.Uint64()                    // #nosec G404 -- any walk will do
	random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404
	w := &walker{store: s, rand: random, guards: []gateway.OrderGuard{s.first}, models: make([]model, walkOrders)}
	if s.isDurable() {
		w.guards = append(w.guards, s.another(), s.another())
	}
	for i := range w.models {
		w.models[i].order = orderOf(fmt.Sprint("W-", i))
	}
	for range walkSteps {
		m := &w.models[w.rand.IntN(walkOrders)]
		w.step(m)
		if w.compare(m); s.Failed() {
			s.Fatalf("seed %d, after %q", seed, w.done)
		}
	}
	for i := range w.models {
		w.compare(&w.models[i])
	}
}

type walker struct {
	*store
	rand   *rand.Rand
	guards []gateway.OrderGuard
	models []model
}

func (w *walker) step(m *model) {
	w.Helper()
	did := func(format string, args ...any) {
		w.done = append(w.done, m.order.Request.OrderID+" "+fmt.Sprintf(format, args...))
	}
	attempt := fmt.Sprint(len(w.done))
	switch choice := w.rand.IntN(10); {
	case choice == 0 && w.isDurable() && w.guard.Expire != nil:
		did("all leases expire")
		w.expire()
		for i := range w.models {
			if m := &w.models[i]; m.held != nil {
				m.held, m.unknown, m.late = nil, true, append(m.late, *m.held)
			}
		}
	case choice == 1 && len(m.late) > 0:
		did("a success comes late")
		w.end(m.late[0], success, invoiceOf(attempt))
		m.late, m.invoices = m.late[1:], append(m.invoices, attempt)
	case m.held != nil:
		outcome := []gateway.Outcome{success, unknown, rejected, notSent}[w.rand.IntN(4)]
		did("ends: %v", outcome)
		text := attempt
		if outcome == success {
			text = invoiceOf(attempt)
			m.invoices = append(m.invoices, attempt)
		}
		w.end(*m.held, outcome, text)
		m.held, m.unknown = nil, m.unknown || outcome == unknown
	default:
		o, g, want := m.order, w.guards[w.rand.IntN(len(w.guards))], m.state()
		if o.Resubmit = w.rand.IntN(2) == 0; o.Resubmit && want == gateway.OrderUnknown {
			want = gateway.OrderFree
		}
		did("begins, resubmit %t", o.Resubmit)
		lease := w.begin(g, o)
		if lease.State != want {
			w.Errorf("%s is %s, want %s", o.Request.OrderID, lease.State, want)
		} else if want == gateway.OrderFree {
			m.held = new(w.holder(g, o, lease))
		}
	}
}

// compare looks at an order by one of the guards.
func (w *walker) compare(m *model) {
	w.Helper()
	state, known := w.look(w.guards[w.rand.IntN(len(w.guards))], m.order)
	want := m.state().String()
	got := state.String()
	if state == gateway.OrderCreated {
		got, want = describe(m.order, state, known), want+" "+strings.Join(m.invoices, " + ")
	}
	if got != want {
		w.Errorf("%s is %s, want it %s", m.order.Request.OrderID, got, want)
	}
}
