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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// canary is the key of every client here. No text may show it.
const canary = invariant.Key

// TestMain sets how many schedules the property test draws, unless -rapid.checks
// does, and fails when the tests leave a goroutine behind.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "10000")
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
	log.SetOutput(io.Discard) // what net/http logs; TestHostile_LogOfNetHTTP checks it
	forget := trustCertificates()
	goleak.VerifyTestMain(m,
		goleak.Cleanup(func(code int) { forget(); os.Exit(code) }),
	)
}

// trustCertificates makes the client's own transport, which has no option for it, trust
// the certificates of the tests. It returns what removes them.
func trustCertificates() (forget func()) {
	file, err := os.CreateTemp("", "*.pem")
	if err == nil {
		_, err = file.Write(certificates().PEM)
		err = errors.Join(err, file.Close(), os.Setenv("SSL_CERT_FILE", file.Name()))
	}
	if err != nil {
		panic(err)
	}
	return func() { _ = os.Remove(file.Name()) }
}

// order is a request for an invoice with every field.
func order(id string) gateway.InvoiceRequest {
	return gateway.InvoiceRequest{
		OrderID: id, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
		BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}
}

// invoiceResult is the result of the servers here for an order.
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

// A result is how one create-invoice call ended, on both sides.
type result struct {
	order    string
	invoice  *gateway.Invoice
	err      error
	response *gateway.Response // nil when it was not asked for
	record   *faultserver.Record
}

func (r result) outcome() gateway.Outcome { return gateway.OutcomeOf(r.err) }

// create makes the call that all of this is about.
func create(ctx context.Context, client *gateway.Client, id string, record *faultserver.Record, opts ...gateway.CallOption) result {
	r := result{order: id, response: &gateway.Response{}, record: record}
	if !returns(func() {
		r.invoice, r.err = client.CreateInvoice(ctx, order(id), append(opts, gateway.WithResponse(r.response))...)
	}) {
		record.Violation("the call does not return")
		return result{order: id, record: record}
	}
	return r
}

// returns reports whether a call returns, long after every timeout of the tests. A call
// that does not goes on.
func returns(call func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	timer := time.NewTimer(5 * time.Minute)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// maxConns is how many connections an attempt may use, of which it may be opening the
// last when it ends.
const maxConns = 4

// replayed reports whether the invoice is that of an earlier call.
func (r result) replayed() bool { return r.invoice != nil && r.invoice.Replayed }

// attempts is how many attempts the call made, at least one.
func (r result) attempts() int {
	if r.response == nil {
		return 1
	}
	return max(r.response.Attempts, 1)
}

// violations lists what is not true of r: the invariants of package invariant, and what
// can be told because each order has a response of its own. What is left behind, the hosts
// contacted and the time are checked by leftovers, by each server and by create; TestRapid
// measures the time of its bubble.
func (r result) violations() []string {
	seen, outcome := r.record.Seen(), r.outcome()
	if r.replayed() {
		seen.Commits++ // by an earlier call
	}
	wrong := slices.Concat(seen.Violations, invariant.Broken(r.invoice, r.err), invariant.BrokenInvoice(seen, r.err))
	for _, rule := range []struct {
		holds bool
		text  string
	}{
		{r.err != nil || r.equal(), "a success is not the response to this request, with equal data"},
		{outcome != gateway.OutcomeRejected || seen.Refusals > 0, "the response of another request is taken for a refusal of this one"},
		{r.response == nil || !invariant.ShowsKey(*r.response), "the key is in the Response"},
		{seen.Conns <= maxConns*r.attempts(), "more than 4 connections an attempt"},
	} {
		if !rule.holds {
			wrong = append(wrong, rule.text)
		}
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("%+v, outcome %v, error %v", seen, outcome, r.err))
	}
	return wrong
}

func (r result) equal() bool {
	return r.invoice != nil && r.invoice.OrderID == r.order && string(r.invoice.Raw) == invoiceResult(r.order)
}

// forEachRepeat runs a test for each thing that a gateway may do with a repeated order.
func forEachRepeat(t *testing.T, test func(t *testing.T, kind gatewaytest.RepeatedOrders)) {
	t.Helper()
	for _, kind := range gatewaytest.AllRepeatedOrders() {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

// A summary counts how calls ended. It is safe for concurrent use.
type summary struct {
	mu     sync.Mutex
	counts map[gateway.Outcome]int
	wrong  []string
}

// add counts r, and keeps what is wrong with it.
func (s *summary) add(name string, r result, more ...string) {
	wrong := append(r.violations(), more...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[gateway.Outcome]int{}
	}
	s.counts[r.outcome()]++
	if len(wrong) > 0 {
		s.wrong = append(s.wrong, name+": "+strings.Join(wrong, "; "))
	}
}

// join adds the counts of another summary.
func (s *summary) join(o *summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[gateway.Outcome]int{}
	}
	for outcome, n := range o.counts {
		s.counts[outcome] += n
	}
}

func (s *summary) total() (n int) {
	for _, count := range s.counts {
		n += count
	}
	return n
}

func (s *summary) String() string {
	return fmt.Sprintf("%d calls: %d succeeded, %d not sent, %d rejected, %d unknown", s.total(),
		s.counts[gateway.OutcomeSucceeded], s.counts[gateway.OutcomeNotSent],
		s.counts[gateway.OutcomeRejected], s.counts[gateway.OutcomeUnknown])
}

// verify fails the test with the first few of what was wrong.
func (s *summary) verify(t *testing.T) {
	t.Helper()
	const most = 10
	for _, wrong := range s.wrong[:min(len(s.wrong), most)] {
		assert.Fail(t, wrong)
	}
	assert.Empty(t, s.wrong[min(len(s.wrong), most):], "and more")
}

// recordHosts records a violation for each connection to another host.
func recordHosts(server *faultserver.Server) {
	for _, addr := range server.Dialed() {
		if addr != host {
			server.Record.Violation("another host was contacted: %s", addr)
		}
	}
}

// host is the one of the clients' base URL; the transport leads to where a
// server really listens. Its length is the same in every run.
const host = "127.0.0.1:8470"

// target is the order of the call that a fault is for.
const target = "A-17"

const (
	short   = 60 * time.Millisecond // the timeouts that end stalls
	patient = 30 * time.Second      // those that must not be reached
)

// certificates are made once: keys take a while.
var certificates = sync.OnceValue(func() *faultserver.Certificates {
	all, err := faultserver.NewCertificates()
	if err != nil {
		panic(err)
	}
	return all
})

// listening returns a server on TCP. A client that never closes a connection is
// found by its timeout.
func listening(t require.TestingT, handler faultserver.Handler) *faultserver.Server {
	server := faultserver.New(handler)
	server.Timeout = patient
	require.NoError(t, server.Listen(context.Background()))
	return server
}

// leftovers counts goroutines and descriptors, and returns the check that there
// are no more of them later. It is for tests beside which nothing runs.
func leftovers(t *testing.T) (check func()) {
	runtime.GC()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	return func() {
		t.Helper()
		until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
		until(t, "no descriptor is left", func() bool { return descriptors() <= files })
	}
}

// descriptors is how many files this process has open, where the system shows it.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// until waits for a condition, and fails the test if it never holds.
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
