package contract

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
)

// canary is the key of every client here. No text may show it.
const canary = "canary-key-5f1d93b7c2e84a60"

// TestMain sets how many schedules the property test draws, unless -rapid.checks
// does, and fails when the tests leave a goroutine behind.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "10000")
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
	log.SetOutput(io.Discard) // net/http's own remarks; TestHostile_Remarks counts them
	goleak.VerifyTestMain(m,
		// toxiproxy leaves the two ends of a link behind that was cut
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
	)
}

// order is a request for an invoice with every field.
func order(id string) gateway.InvoiceRequest {
	return gateway.InvoiceRequest{
		OrderID: id, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
		BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}
}

// invoiceResult is the result with which the gateways here answer an order.
func invoiceResult(order string) string {
	return fmt.Sprintf(`{"id":"inv-%s","orderId":%q,"status":"NEW"}`, order, order)
}

const (
	withdrawalID     = "6d0c1b5e-2f83-4f6e-9a51-0c7f3a9be210"
	withdrawalResult = `{"status":"COMPLETED","destination":"TVx","amount":"12.5","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"` + withdrawalID + `"}`
)

func enveloped(result string) string {
	return `{"message":"Operation was successful.","result":` + result + `,"meta":{}}`
}

// orderIn returns the order that a posted body is for, or "" if it is none.
func orderIn(body []byte) string {
	var posted struct {
		OrderID string `json:"orderId"`
		APIKey  string `json:"apiKey"`
	}
	if json.Unmarshal(body, &posted) != nil || posted.APIKey != canary {
		return ""
	}
	return posted.OrderID
}

// journalOrder returns the order in a body whose key was taken out, or "".
func journalOrder(body []byte) string {
	var posted struct {
		OrderID string `json:"orderId"`
	}
	_ = json.Unmarshal(body, &posted)
	return posted.OrderID
}

// A sight is what a gateway saw of one create-invoice call.
type sight struct {
	mu      sync.Mutex
	sends   int      // requests of which a byte of the body arrived
	body    int      // bytes of bodies that arrived
	commits int      // invoices created
	odd     []string // what should not have happened
}

// arrive enters a request of whose body so many bytes arrived.
func (s *sight) arrive(body int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body += body
	if body > 0 {
		s.sends++
	}
}

func (s *sight) commit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
}

func (s *sight) remark(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = append(s.odd, fmt.Sprintf(format, args...))
}

// An end is how one create-invoice call ended, on both sides.
type end struct {
	order    string
	invoice  *gateway.Invoice
	err      error
	response *gateway.Response // nil when it was not asked for
	saw      *sight
}

func (e end) outcome() gateway.Outcome { return gateway.OutcomeOf(e.err) }

// create makes the call that all of this is about.
func create(ctx context.Context, client *gateway.Client, id string, saw *sight, opts ...gateway.CallOption) end {
	e := end{order: id, response: &gateway.Response{}, saw: saw}
	e.invoice, e.err = client.CreateInvoice(ctx, order(id), append(opts, gateway.WithResponse(e.response))...)
	return e
}

// broken lists the invariants that e breaks. Those of what is left behind and
// of the hosts contacted are looked at by leftovers and by each gateway.
func (e end) broken() []string {
	e.saw.mu.Lock()
	defer e.saw.mu.Unlock()
	outcome, wrong := e.outcome(), e.saw.odd
	for _, invariant := range []struct {
		holds bool
		text  string
	}{
		{e.saw.commits <= 1, "I1: at most one commit"},
		{e.saw.sends <= 1, "I1: at most one invoice on the wire"},
		{e.err != nil || e.saw.commits == 1, "I2: success means a commit"},
		{e.err != nil || e.equal(), "I2: success means equal data"},
		{!errors.Is(e.err, gateway.ErrNotSent) || e.saw.body == 0, "I3: not sent means that no byte of the body arrived"},
		{e.err == nil || e.saw.commits == 0 || outcome == gateway.OutcomeUnknown, "I4: a commit with an error is unknown"},
		{e.err == nil || e.invoice == nil, "I5: no result with an error"},
		{!strings.Contains(e.everyText(), canary), "I6: the key is shown nowhere"},
		{e.err == nil || e.typed(), "I8: the error is one of the documented types"},
	} {
		if !invariant.holds {
			wrong = append(wrong, invariant.text)
		}
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("sends %d, bytes %d, commits %d, outcome %v, error %v", e.saw.sends, e.saw.body, e.saw.commits, outcome, e.err))
	}
	return wrong
}

func (e end) equal() bool {
	return e.invoice != nil && e.invoice.OrderID == e.order && string(e.invoice.Raw) == invoiceResult(e.order)
}

func (e end) typed() bool {
	switch e.err.(type) {
	case *gateway.ArgumentError, *gateway.APIError, *gateway.TransportError, *gateway.OutcomeUnknownError:
		return true
	default: // a *DecodeError of a create-invoice stands in an *OutcomeUnknownError
		return false
	}
}

// everyText is all that a program could print of e.
func (e end) everyText() string {
	var b strings.Builder
	show := func(v any) { fmt.Fprintf(&b, "%v %+v %#v %q\n", v, v, v, v) }
	show(e.invoice)
	if e.invoice != nil {
		b.Write(e.invoice.Raw)
	}
	if e.response != nil {
		show(*e.response)
		b.Write(e.response.Result)
	}
	for err := e.err; err != nil; {
		show(err)
		text, _ := json.Marshal(err)
		b.Write(text)
		var refusal *gateway.APIError
		if errors.As(err, &refusal) {
			b.Write(refusal.Body)
		}
		if unknown, ok := err.(*gateway.OutcomeUnknownError); ok {
			b.Write(unknown.Body)
			err = unknown.Cause
			continue
		}
		err = errors.Unwrap(err)
	}
	return b.String()
}

// A tally counts how calls ended. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts map[gateway.Outcome]int
	wrong  []string
}

// add counts e, and keeps what is wrong with it.
func (t *tally) add(name string, e end, more ...string) {
	wrong := append(e.broken(), more...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[gateway.Outcome]int{}
	}
	t.counts[e.outcome()]++
	if len(wrong) > 0 {
		t.wrong = append(t.wrong, name+": "+strings.Join(wrong, "; "))
	}
}

// join adds what another tally has counted.
func (t *tally) join(o *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[gateway.Outcome]int{}
	}
	for outcome, n := range o.counts {
		t.counts[outcome] += n
	}
}

func (t *tally) total() (n int) {
	for _, count := range t.counts {
		n += count
	}
	return n
}

func (t *tally) String() string {
	return fmt.Sprintf("%d calls: %d succeeded, %d not sent, %d rejected, %d unknown", t.total(),
		t.counts[gateway.OutcomeSucceeded], t.counts[gateway.OutcomeNotSent],
		t.counts[gateway.OutcomeRejected], t.counts[gateway.OutcomeUnknown])
}

// verify fails the test with the first few of what was wrong.
func (t *tally) verify(test *testing.T) {
	test.Helper()
	const most = 10
	for _, wrong := range t.wrong[:min(len(t.wrong), most)] {
		assert.Fail(test, wrong)
	}
	assert.Empty(test, t.wrong[min(len(t.wrong), most):], "and more")
}

// leftovers counts goroutines and descriptors, and returns the check that there
// are no more of them later. It is for tests that nothing runs beside.
func leftovers(t *testing.T) (check func()) {
	runtime.GC()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	return func() {
		t.Helper()
		until(t, "I7: no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
		until(t, "I7: no descriptor is left", func() bool { return descriptors() <= files })
	}
}

// descriptors is how many files this process has open, where that can be told.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// until waits for something that must come true, and fails if it does not.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			stacks := make([]byte, 1<<16)
			require.Fail(t, what, "%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// inParallel runs every job, so many at a time.
func inParallel(workers int, jobs []func()) {
	queue := make(chan func())
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for job := range queue {
				job()
			}
		})
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	group.Wait()
}
