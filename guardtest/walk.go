package guardtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/cryptogw/gateway"
)

// A model is the expected state of an order.
type model struct {
	held     bool
	unknown  bool // an attempt has an unknown outcome
	invoices []string

	holder holder   // who has the lease
	late   []holder // who had it when it expired
}

// A holder is a guard that was granted a lease, and the order with the name of the attempt.
type holder struct {
	guard gateway.OrderGuard
	order gateway.Order
}

func (m *model) state() gateway.OrderState {
	switch {
	case m.held:
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
	walkSteps  = 300
	walkOrders = 3
)

// walk takes random steps, and compares the order with the model after each one.
func walk(s *store) {
	seed := rand.Uint64()                    // #nosec G404 -- any walk will do
	random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404
	w := &walker{store: s, rand: random, guards: []gateway.OrderGuard{s.first}, isDurable: s.guard.Reopen != nil && s.guard.Store != nil && s.guard.Expire != nil}
	if w.isDurable {
		w.guards = append(w.guards, s.another(), s.another())
	}
	for i := range walkOrders {
		w.orders = append(w.orders, orderOf(fmt.Sprint("W-", i)))
		w.models = append(w.models, &model{})
	}
	for range walkSteps {
		w.step()
		for i, m := range w.models {
			w.compare(w.orders[i], m)
		}
		if s.Failed() {
			s.Fatalf("seed %d, after %q", seed, w.steps)
		}
	}
}

type walker struct {
	*store
	rand      *rand.Rand
	guards    []gateway.OrderGuard
	isDurable bool
	orders    []gateway.Order
	models    []*model
	steps     []string
	made      int // invoices
}

func (w *walker) step() {
	w.Helper()
	i := w.rand.IntN(walkOrders)
	o, m := w.orders[i], w.models[i]
	did := func(format string, args ...any) {
		w.steps = append(w.steps, o.Request.OrderID+" "+fmt.Sprintf(format, args...))
	}
	switch choice := w.rand.IntN(10); {
	case choice == 0 && w.isDurable:
		did("all leases expire")
		w.expire()
		for _, m := range w.models {
			if m.held {
				m.held, m.unknown, m.late = false, true, append(m.late, m.holder)
			}
		}
	case choice == 1 && len(m.late) > 0:
		late := m.late[0]
		m.late = m.late[1:]
		did("a success comes late")
		m.invoices = append(m.invoices, w.newInvoice())
		w.end(late.guard, late.order, success, m.invoices[len(m.invoices)-1])
	case m.held:
		outcome := []gateway.Outcome{success, unknown, rejected, notSent}[w.rand.IntN(4)]
		did("ends: %v", outcome)
		m.held = false
		text := "cause"
		if outcome == success {
			text = w.newInvoice()
			m.invoices = append(m.invoices, text)
		}
		m.unknown = m.unknown || outcome == unknown
		w.end(m.holder.guard, m.holder.order, outcome, text)
	default:
		o.Resubmit = w.rand.IntN(2) == 0
		g := w.guards[w.rand.IntN(len(w.guards))]
		want := m.state()
		if want == gateway.OrderFree || want == gateway.OrderUnknown && o.Resubmit {
			want = gateway.OrderFree
		}
		did("begins, resubmit %t", o.Resubmit)
		lease := w.begin(g, o)
		if lease.State != want {
			w.Errorf("%s is %s, want %s", o.Request.OrderID, lease.State, want)
		} else if want == gateway.OrderFree {
			m.held, m.holder = true, holder{g, w.granted(o, lease)}
		}
	}
}

func (w *walker) newInvoice() string {
	w.made++
	return fmt.Sprintf(`{"id":%d}`, w.made)
}

// compare looks at an order by one of the guards.
func (w *walker) compare(o gateway.Order, m *model) {
	w.Helper()
	known := w.want(w.guards[w.rand.IntN(len(w.guards))], o, m.state())
	if m.state() == gateway.OrderCreated {
		w.wantInvoice(known, m.invoices[0], len(m.invoices)-1)
	}
}
