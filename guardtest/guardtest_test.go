package guardtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/guardtest"
	"github.com/cryptogw/gateway/internal/orders"
)

func TestMemoryGuard(t *testing.T) {
	guardtest.Run(t, guardtest.Guard{New: func(*testing.T) gateway.OrderGuard { return new(gateway.MemoryGuard) }})
}

type (
	row   = orders.Row[gateway.OrderRecord]
	begin = orders.Begin[gateway.OrderRecord]
	end   = orders.End[gateway.OrderRecord]
)

// A memory is a store that outlives its guards, with a clock that is set.
type memory struct {
	mu   sync.Mutex
	rows map[string]row
	now  int64
	last int64 // attempt
}

// A guard is one over a memory, with a mistake.
type guard struct {
	*memory
	mistake
}

// A mistake replaces transitions of a guard; a nil function replaces none.
type mistake struct {
	key   func(o gateway.Order) string
	begin func(r row, b begin, now int64) (row, orders.Answer)
	end   func(r row, e end, now int64) (row, orders.Answer)
	known func(known *gateway.OrderRecord) *gateway.OrderRecord // of Begin
	has   func(given, has gateway.OrderRecord) gateway.OrderRecord
	keep  func(r row) bool // over a restart

	expires time.Time // of each lease
}

func keyOf(o gateway.Order) string { return o.Merchant + "\x00" + o.Key() }

func (g *guard) Begin(_ context.Context, o gateway.Order) (gateway.Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	key, before := g.key(o), g.rows[g.key(o)]
	after, answer := g.begin(before, begin{
		Gateway: o.Gateway, Attempt: g.last, Lease: 100, Resubmit: o.Resubmit, Record: gateway.OrderRecord{Request: o.Request},
	}, g.now)
	lease := gateway.Lease{State: gateway.OrderState(before.State(g.now)), Known: recordOf(before, g.now)}
	if answer.Granted {
		g.rows[key], lease.State, lease.Attempt = after, gateway.OrderFree, fmt.Sprint(g.last)
		lease.Expires = g.expires
	}
	lease.Known = g.known(lease.Known)
	return lease, answer.Err
}

func (g *guard) End(_ context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := g.key(o)
	e := end{Gateway: o.Gateway, Attempt: g.attempt(o.Attempt), Record: r}
	switch r.Outcome {
	case gateway.OutcomeSucceeded:
		e.Result, e.Bare = orders.Success, r.Invoice == nil
	case gateway.OutcomeUnknown:
		e.Result = orders.Undecided
	}
	after, answer := g.end(g.rows[key], e, g.now)
	if answer.Changed {
		g.rows[key] = after
	}
	if has := recordOf(after, g.now); has != nil && after.State(g.now) != orders.InFlight {
		return g.has(r, *has), nil
	}
	return g.has(r, r), nil
}

// attempt returns the number of an attempt; a new one for the attempt of another guard.
func (g *guard) attempt(name string) int64 {
	if n, err := strconv.ParseInt(name, 10, 64); err == nil {
		return n
	}
	g.last++
	return g.last
}

func recordOf(r row, now int64) *gateway.OrderRecord {
	switch r.State(now) {
	case orders.InFlight:
		return r.Held
	case orders.Created:
		known := r.Invoices[0].Record
		for _, other := range r.Invoices[1:] {
			known.Others = append(known.Others, other.Record.Invoice)
		}
		return &known
	case orders.Unknown:
		open := r.Unsettled()
		return &open[len(open)-1].Record
	default:
		return nil
	}
}

// mistakes are those that Run finds, by the rule that says so.
var mistakes = map[string]struct {
	rule string
	mistake
}{
	"none":                       {},
	"it forgets who has a lease": {"an order in flight is granted to nobody else", mistake{begin: func(r row, b begin, now int64) (row, orders.Answer) { r.Held = nil; return r.Begin(b, now) }}},
	"it does not return the request in flight": {"an order in flight is granted to nobody else", mistake{known: func(*gateway.OrderRecord) *gateway.OrderRecord { return nil }}},
	"it writes an invoice in its own form": {"after a success the order is created, with its invoice byte for byte", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		var text bytes.Buffer
		_ = json.Compact(&text, e.Record.Invoice)
		e.Record.Invoice = text.Bytes()
		return r.End(e, now)
	}}},
	"it sends a created order again": {"a created order is granted to nobody", mistake{begin: func(r row, b begin, now int64) (row, orders.Answer) {
		if b.Resubmit {
			r.Invoices = nil
		}
		return r.Begin(b, now)
	}}},
	"it takes a success without invoice for nothing": {"a success whose invoice is not known makes the order created", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if e.Bare {
			e.Result = orders.Nothing
		}
		return r.End(e, now)
	}}},
	"it keeps a rejected order": {"after a rejection, or if nothing was sent, the order is free", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if e.Result == orders.Nothing {
			e.Result = orders.Undecided
		}
		return r.End(e, now)
	}}},
	"it drops the evidence": {"after an unknown outcome the order is unknown, with the evidence", mistake{end: func(r row, e end, now int64) (row, orders.Answer) { e.Record.Body = nil; return r.End(e, now) }}},
	"it sends an unknown order again": {"an order of unknown outcome is granted to Resubmit only, with its record", mistake{begin: func(r row, b begin, now int64) (row, orders.Answer) {
		b.Resubmit = true
		return r.Begin(b, now)
	}}},
	"it believes the refusal of a resubmission": {"a resubmission that is rejected, or not sent, leaves the order unknown", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if e.Result == orders.Nothing {
			r.Open = nil
		}
		return r.End(e, now)
	}}},
	"it returns what it was given": {"a resubmission that is rejected, or not sent, leaves the order unknown", mistake{has: func(given, _ gateway.OrderRecord) gateway.OrderRecord { return given }}},
	"it keeps the first evidence only": {"the unknown outcome of a resubmission replaces the earlier one", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if len(r.Open) > 0 && e.Result == orders.Undecided {
			e.Record = r.Open[0].Record
		}
		return r.End(e, now)
	}}},
	"it believes the last one": {"a success is never taken back by what comes late", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if e.Result != orders.Success {
			r.Invoices = nil
		}
		return r.End(e, now)
	}}},
	"it replaces an invoice": {"a further invoice is kept beside the first", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if e.Result == orders.Success {
			r.Invoices = nil
		}
		return r.End(e, now)
	}}},
	"it drops a further invoice": {"a further invoice is kept beside the first", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if len(r.Invoices) > 0 {
			return r, orders.Answer{}
		}
		return r.End(e, now)
	}}},
	"it drops the success of what it does not have": {"a success is recorded although the guard has no such order", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if r.Attempts == 0 {
			return r, orders.Answer{}
		}
		return r.End(e, now)
	}}},
	"it drops the unknown outcome of what it does not have": {"an unknown outcome is recorded although the guard has no such order", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if r.Attempts == 0 && e.Result == orders.Undecided {
			return r, orders.Answer{}
		}
		return r.End(e, now)
	}}},
	"it rounds amounts": {"a request is kept with every digit", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		e.Record.Request.Amount = e.Record.Request.Amount.Round(6)
		return r.End(e, now)
	}}},
	"it knows one merchant":       {"the orders of two merchants are two, however their names are written", mistake{key: func(o gateway.Order) string { return o.Key() }}},
	"it joins names with a colon": {"the orders of two merchants are two, however their names are written", mistake{key: func(o gateway.Order) string { return o.Merchant + ":" + o.Key() }}},
	"it folds case of merchants":  {"the orders of two merchants are two, however their names are written", mistake{key: func(o gateway.Order) string { return strings.ToLower(o.Merchant) + "\x00" + o.Key() }}},
	"it trims merchants":          {"the orders of two merchants are two, however their names are written", mistake{key: func(o gateway.Order) string { return strings.TrimSpace(o.Merchant) + "\x00" + o.Key() }}},
	"it cuts merchants":           {"the orders of two merchants are two, however their names are written", mistake{key: func(o gateway.Order) string { return o.Merchant[:min(len(o.Merchant), 255)] + "\x00" + o.Key() }}},
	"it keeps a lease for a year": {"a lease is not granted for more than a day", mistake{expires: time.Now().AddDate(1, 0, 0)}},
	"it drops a large invoice": {"an invoice of 1 MiB is kept byte for byte", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if len(e.Record.Invoice) > 64<<10 {
			e.Record.Invoice = nil
		}
		return r.End(e, now)
	}}},
	"it folds case":                {"orders with different identifiers are different orders", mistake{key: func(o gateway.Order) string { return strings.ToLower(keyOf(o)) }}},
	"it drops spaces at the end":   {"orders with different identifiers are different orders", mistake{key: func(o gateway.Order) string { return strings.TrimRight(keyOf(o), " ") }}},
	"it cuts identifiers":          {"orders with different identifiers are different orders", mistake{key: func(o gateway.Order) string { return keyOf(o)[:min(len(keyOf(o)), 255)] }}},
	"it takes orderId for the key": {"a UUID is the same order in either case", mistake{key: func(o gateway.Order) string { return o.Merchant + "\x00" + o.Request.OrderID }}},
	"it knows one gateway": {"an order of another gateway is refused, and both are named", mistake{begin: func(r row, b begin, now int64) (row, orders.Answer) {
		b.Gateway = ""
		return r.Begin(b, now)
	}}},
	"it forgets unknown orders when it restarts": {"a restart changes nothing", mistake{keep: func(r row) bool { return len(r.Open) == 0 }}},
	"it frees an order when its lease expires": {"an order whose process died is unknown when its lease has expired", mistake{begin: func(r row, b begin, now int64) (row, orders.Answer) {
		if now >= r.Lease {
			r.Held = nil
		}
		return r.Begin(b, now)
	}}},
	"it drops a success that comes late": {"a success that comes after the lease is recorded", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if now >= r.Lease && r.Held != nil {
			return r, orders.Answer{}
		}
		return r.End(e, now)
	}}},
	"it lets anyone end a lease": {"End is about the attempt that it names, also in one process", mistake{end: func(r row, e end, now int64) (row, orders.Answer) {
		if r.Held != nil {
			e.Attempt = r.Attempt
		}
		return r.End(e, now)
	}}},
}

// TestMistake is a process of TestRun.
func TestMistake(t *testing.T) {
	m, ok := mistakes[os.Getenv("MISTAKE")]
	if !ok {
		t.Skip("is run by TestRun")
	}
	if m.key == nil {
		m.key = keyOf
	}
	if m.begin == nil {
		m.begin = row.Begin
	}
	if m.end == nil {
		m.end = row.End
	}
	if m.known == nil {
		m.known = func(known *gateway.OrderRecord) *gateway.OrderRecord { return known }
	}
	if m.has == nil {
		m.has = func(_, has gateway.OrderRecord) gateway.OrderRecord { return has }
	}
	stores := map[string]*memory{}
	guardtest.Run(t, guardtest.Guard{
		New: func(t *testing.T) gateway.OrderGuard {
			stores[t.Name()] = &memory{rows: map[string]row{}, now: 1}
			return &guard{stores[t.Name()], m.mistake}
		},
		Store: func(g gateway.OrderGuard) string {
			for name, one := range stores {
				if one == g.(*guard).memory {
					return name
				}
			}
			return ""
		},
		Reopen: func(name string) (gateway.OrderGuard, error) {
			one := stores[name]
			for key, r := range one.rows {
				if m.keep != nil && !m.keep(r) {
					delete(one.rows, key)
				}
			}
			return &guard{one, m.mistake}, nil
		},
		Expire: func(name string) error { stores[name].now += 1000; return nil },
	})
}

// Run finds the mistakes of guards, by the rule that each breaks, and no fault in a right guard.
func TestRun(t *testing.T) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The store of these guards is in memory: no other process has it.
			cmd := exec.Command(os.Args[0], "-test.run=^TestMistake$", "-test.skip=/processes", "-test.timeout=1m") // #nosec G204 -- this program
			cmd.Env = append(os.Environ(), "MISTAKE="+name)
			told, err := cmd.CombinedOutput()
			if failed := err != nil; failed != (m.rule != "") || failed && !strings.Contains(string(told), "FAIL: TestMistake/"+strings.ReplaceAll(m.rule, " ", "_")+" ") {
				t.Errorf("%v, want a failure of %q\n%s", err, m.rule, told)
			}
		})
	}
}
