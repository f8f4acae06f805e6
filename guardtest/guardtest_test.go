package guardtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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
	name string
	rows map[string]row
	now  int64
	last int64 // attempt
}

// A guard is one over a memory, with a mistake.
type guard struct {
	*memory
	mistake
}

// A mistake spoils the transitions of a guard; a nil function spoils none.
type mistake struct {
	key     func(merchant, id string) string
	id      func(o gateway.Order) string
	begin   func(r *row, b *begin, now int64)
	end     func(r *row, e *end)
	drops   func(r row, e end, now int64) bool // the whole End
	given   bool                               // End returns what it was given
	silent  bool                               // Begin returns no record
	forgets bool                               // unknown orders at a restart
	expires time.Time                          // of each lease
}

// keyOf returns the name of an order in the memory.
func (g *guard) keyOf(o gateway.Order) string {
	id := o.Key()
	if g.id != nil {
		id = g.id(o)
	}
	if g.key != nil {
		return g.key(o.Merchant, id)
	}
	return o.Merchant + "\x00" + id
}

func (g *guard) Begin(_ context.Context, o gateway.Order) (gateway.Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	before := g.rows[g.keyOf(o)]
	b := begin{Gateway: o.Gateway, Attempt: g.last, Lease: 100, Resubmit: o.Resubmit, Record: gateway.OrderRecord{Request: o.Request}}
	after := before
	if g.begin != nil {
		g.begin(&after, &b, g.now)
	}
	after, answer := after.Begin(b, g.now)
	lease := gateway.Lease{State: gateway.OrderState(before.State(g.now)), Known: orders.Known(&before, g.now)}
	if answer.Granted {
		g.rows[g.keyOf(o)] = after
		lease.State, lease.Attempt, lease.Expires = gateway.OrderFree, orders.NameOf(g.last), g.expires
	}
	if g.silent {
		lease.Known = nil
	}
	return lease, answer.Err
}

func (g *guard) End(_ context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := orders.EndOf(o.Gateway, orders.AttemptOf(o.Attempt), r)
	after := g.rows[g.keyOf(o)]
	if g.drops == nil || !g.drops(after, e, g.now) {
		if g.end != nil {
			g.end(&after, &e)
		}
		after, _ = after.End(e, g.now)
		g.rows[g.keyOf(o)] = after
	}
	if g.given {
		return r, nil
	}
	return orders.Ended(&after, e, g.now), nil
}

func compact(text []byte) []byte {
	var compacted bytes.Buffer
	_ = json.Compact(&compacted, text)
	return compacted.Bytes()
}

func when(is bool, do func()) {
	if is {
		do()
	}
}

// mistakes are the mistakes that Run finds, each by a rule whose name begins so.
var mistakes = []struct {
	name, rule string
	mistake
}{
	{"it makes no mistake", "", mistake{}},
	{"it forgets who has a lease", "an order that is in flight or created", mistake{begin: func(r *row, _ *begin, _ int64) { r.Held = nil }}},
	{"it does not return the request in flight", "an order that is in flight or created", mistake{silent: true}},
	{
		"it writes an invoice in its own form", "an order that is in flight or created",
		mistake{end: func(_ *row, e *end) { e.Record.Invoice = compact(e.Record.Invoice) }},
	},
	{
		"it sends a created order again", "an order that is in flight or created",
		mistake{begin: func(r *row, b *begin, _ int64) { when(b.Resubmit, func() { r.Invoices = nil }) }},
	},
	{
		"it rounds amounts", "an order that is in flight or created",
		mistake{end: func(_ *row, e *end) { e.Record.Request.Amount = e.Record.Request.Amount.Round(6) }},
	},
	{
		"it takes a success without invoice for nothing", "a success whose invoice is not known",
		mistake{end: func(_ *row, e *end) { when(e.Bare, func() { e.Result = orders.Nothing }) }},
	},
	{"it keeps a rejected order", "after a rejection", mistake{end: func(_ *row, e *end) { e.Result = max(e.Result, orders.Undecided) }}},
	{"it drops the evidence", "an unknown order stays unknown", mistake{end: func(_ *row, e *end) { e.Record.Body = nil }}},
	{
		"it sends an unknown order again", "an unknown order stays unknown",
		mistake{begin: func(_ *row, b *begin, _ int64) { b.Resubmit = true }},
	},
	{
		"it believes the refusal of a resubmission", "an unknown order stays unknown",
		mistake{end: func(r *row, e *end) { when(e.Result == orders.Nothing, func() { r.Open = nil }) }},
	},
	{"it returns what it was given", "an unknown order stays unknown", mistake{given: true}},
	{
		"it keeps the first evidence only", "an unknown order stays unknown",
		mistake{end: func(r *row, e *end) { when(len(r.Open) > 0, func() { e.Record = r.Open[0].Record }) }},
	},
	{
		"it believes the last one", "a success is never taken back",
		mistake{end: func(r *row, e *end) { when(e.Result != orders.Success, func() { r.Invoices = nil }) }},
	},
	{
		"it replaces an invoice", "a success is never taken back",
		mistake{end: func(r *row, e *end) { when(e.Result == orders.Success, func() { r.Invoices = nil }) }},
	},
	{
		"it adds a success that is recorded again", "an order that is in flight or created",
		mistake{end: func(r *row, e *end) { when(len(r.Invoices) > 0, func() { e.Attempt += 1000 }) }},
	},
	{
		"it takes a rejection that is recorded again for the next attempt's", "an outcome that is recorded again",
		mistake{end: func(r *row, e *end) {
			when(e.Result == orders.Nothing && r.Held != nil, func() { e.Attempt = r.Attempt })
		}},
	},
	{"it drops a further invoice", "a success is never taken back", mistake{drops: func(r row, _ end, _ int64) bool { return len(r.Invoices) > 0 }}},
	{
		"it drops the success of what it does not have", "a success is recorded although",
		mistake{drops: func(r row, _ end, _ int64) bool { return r.Attempts == 0 }},
	},
	{
		"it drops the unknown outcome of what it does not have", "an unknown outcome is recorded although",
		mistake{drops: func(r row, e end, _ int64) bool { return r.Attempts == 0 && e.Result == orders.Undecided }},
	},
	{"it knows one merchant", "orders are different", mistake{key: func(_, id string) string { return id }}},
	{
		"it joins names with a colon", "orders are different",
		mistake{key: func(merchant, id string) string { return merchant + ":" + id }},
	},
	{
		"it folds case of merchants", "orders are different",
		mistake{key: func(merchant, id string) string { return strings.ToLower(merchant) + "\x00" + id }},
	},
	{
		"it trims merchants", "orders are different",
		mistake{key: func(merchant, id string) string { return strings.TrimSpace(merchant) + "\x00" + id }},
	},
	{
		"it cuts merchants", "orders are different",
		mistake{key: func(merchant, id string) string { return fmt.Sprintf("%.255s\x00%s", merchant, id) }},
	},
	{
		"it folds case", "orders are different",
		mistake{key: func(merchant, id string) string { return merchant + "\x00" + strings.ToLower(id) }},
	},
	{
		"it drops spaces at the end", "orders are different",
		mistake{key: func(merchant, id string) string { return merchant + "\x00" + strings.TrimRight(id, " ") }},
	},
	{
		"it cuts identifiers", "orders are different",
		mistake{key: func(merchant, id string) string { return fmt.Sprintf("%s\x00%.255s", merchant, id) }},
	},
	{"it takes orderId for the key", "a UUID", mistake{id: func(o gateway.Order) string { return o.Request.OrderID }}},
	{"it keeps a lease for a year", "an order that is in flight or created", mistake{expires: time.Now().AddDate(1, 0, 0)}},
	{
		"it drops a large invoice", "an invoice of 1 MiB",
		mistake{end: func(_ *row, e *end) { when(len(e.Record.Invoice) > 64<<10, func() { e.Record.Invoice = nil }) }},
	},
	{"it knows one gateway", "an order of another gateway", mistake{begin: func(_ *row, b *begin, _ int64) { b.Gateway = "" }}},
	{"it forgets unknown orders when it restarts", "a restart changes nothing", mistake{forgets: true}},
	{
		"it frees an order when its lease expires", "an order whose process died",
		mistake{begin: func(r *row, _ *begin, now int64) { when(now >= r.Lease, func() { r.Held = nil }) }},
	},
	{
		"it drops a success that comes late", "an order whose process died",
		mistake{drops: func(r row, _ end, now int64) bool { return now >= r.Lease && r.Held != nil }},
	},
	{
		"it lets anyone end a lease", "End is about the attempt that it names, also in one process",
		mistake{end: func(r *row, e *end) { when(r.Held != nil, func() { e.Attempt = r.Attempt }) }},
	},
}

// TestMistakes is the process of TestRun: it tests the guards with mistakes.
func TestMistakes(t *testing.T) {
	if os.Getenv("MISTAKES") == "" {
		return // TestRun runs it, in a process of its own: most of these tests must fail
	}
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) { guardtest.Run(t, m.guard()) })
	}
}

// guard returns guards with a mistake, over stores in memory.
func (m mistake) guard() guardtest.Guard {
	stores := map[string]*memory{}
	return guardtest.Guard{
		New: func(t *testing.T) gateway.OrderGuard {
			stores[t.Name()] = &memory{name: t.Name(), rows: map[string]row{}, now: 1}
			return &guard{stores[t.Name()], m}
		},
		Store: func(g gateway.OrderGuard) string { return g.(*guard).name },
		Reopen: func(name string) (gateway.OrderGuard, error) {
			for key, r := range stores[name].rows {
				if m.forgets && len(r.Open) > 0 {
					delete(stores[name].rows, key)
				}
			}
			return &guard{stores[name], m}, nil
		},
		Expire: func(name string) error { stores[name].now += 1000; return nil },
	}
}

// Run finds the mistakes of guards, by the rule that each breaks, and no fault in a right guard.
func TestRun(t *testing.T) {
	// The store of these guards is in memory: no other process has it.
	cmd := exec.Command(os.Args[0], "-test.run=^TestMistakes$", "-test.skip=//processes", "-test.timeout=1m") // #nosec G204 -- this program
	cmd.Env = append(os.Environ(), "MISTAKES=1")
	told, _ := cmd.CombinedOutput()
	for _, m := range mistakes {
		failure := "FAIL: TestMistakes/" + strings.ReplaceAll(strings.TrimSuffix(m.name+"/"+m.rule, "/"), " ", "_")
		if failed := strings.Contains(string(told), failure); failed != (m.rule != "") {
			t.Errorf("%s: failed is %t, want a failure of %q\n%s", m.name, failed, m.rule, told)
		}
	}
}
