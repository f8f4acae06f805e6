package order

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/proof/internal/call"
)

var (
	soakFor  = flag.Duration("soak", 5*time.Second, "how long TestSoak goes on")
	soakSeed = flag.Uint64("soak.seed", 1, "what the faults of TestSoak are drawn from")
)

const callers = 1000

// A soak is many callers of one client.
type soak struct {
	gw       *gatewaytest.Server
	guard    *gateway.MemoryGuard
	client   *gateway.Client
	requests atomic.Int64
	reads    atomic.Int64
	mu       sync.Mutex
	outcomes map[string]gateway.Outcome // of every order
	forced   map[string]bool            // orders that were sent again although they may have an invoice
	known    int                        // orders that were not sent again because of it
	wrong    []string
}

// fault draws a fault for a request to come, and now and then none.
func fault(r *rand.Rand) gatewaytest.Fault {
	faults := []gatewaytest.Fault{
		{},
		gatewaytest.FaultRefuse(429, "slow down"), gatewaytest.FaultRefuse(500, "oh"), gatewaytest.FaultRefuse(503, "later"), gatewaytest.FaultRefuse(404, "no"),
		gatewaytest.FaultPage(502), gatewaytest.FaultTruncate(r.IntN(60)), gatewaytest.FaultStall(), gatewaytest.FaultReset(),
		gatewaytest.FaultRedirect(307, "http://127.0.0.1:1/"), gatewaytest.FaultHugeBody(1 << 16), gatewaytest.FaultCommitThenDrop(),
		gatewaytest.FaultRefuseAs(gatewaytest.ErrorNest, 400, "no such coin"), gatewaytest.FaultPage(200), gatewaytest.FaultEmpty(200),
	}
	return faults[r.IntN(len(faults))]
}

// TestSoak has a thousand callers call a gateway with faults, for as long as
// -soak sets.
func TestSoak(t *testing.T) {
	check := call.Leftovers(t)
	before := heap()
	gw := gatewaytest.NewServer(gatewaytest.WithAPIKey(canary))
	transport := &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 256}
	policy := gateway.WithRetry(gateway.RetryPolicy{
		AttemptTimeout: time.Second, InvoiceTimeout: time.Second, BaseDelay: time.Millisecond, MaxDelay: 10 * time.Millisecond, MaxRetryAfter: time.Millisecond,
	})
	guard := &gateway.MemoryGuard{}
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithOrderGuard(guard), policy)
	require.NoError(t, err)
	s := &soak{gw: gw, guard: guard, client: client, outcomes: map[string]gateway.Outcome{}, forced: map[string]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), *soakFor)
	defer cancel()
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() { s.call(ctx, n) })
	}
	group.Wait()
	gw.ClearFaults()
	n := 0
	call.Until(t, "an order succeeds when the faults have ended", func() bool {
		n++
		id := fmt.Sprintf("order-after-%d", n)
		s.order(t.Context(), id)
		return s.outcomes[id] == gateway.OutcomeSucceeded
	})
	client.CloseIdleConnections()
	gw.Close()
	s.verify(t)
	s.outcomes, s.forced, s.gw, s.guard, s.client, gw, guard, client = nil, nil, nil, nil, nil, nil, nil, nil
	check()
	call.Until(t, "the heap is flat", func() bool { return heap() <= before+8<<20 })
}

// heap is how much is in use once the garbage is gone.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// call makes reads and orders in random order until ctx ends, and causes faults. It also changes
// what the gateway does with a repeated order.
func (s *soak) call(ctx context.Context, caller int) {
	r, kinds := rand.New(rand.NewPCG(*soakSeed, uint64(caller))), gatewaytest.AllRepeatedOrders()
	for n := 0; ctx.Err() == nil; n++ {
		if r.IntN(4) == 0 {
			s.gw.InjectFault(gatewaytest.AnyOperation, 1, fault(r))
			s.gw.SetRepeatedOrders(kinds[r.IntN(len(kinds))])
		}
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(20+r.IntN(3000))*time.Millisecond)
		if r.IntN(2) == 0 {
			_, err := s.client.ExchangeRates(one)
			s.reads.Add(1)
			s.note(err == nil || one.Err() != nil || gateway.OutcomeOf(err) == gateway.OutcomeNotSent, "a read with an unexpected error: %v", err)
		} else {
			id := fmt.Sprintf("order-%d-%d", caller, n)
			first := s.order(one, id)
			switch {
			case first.Outcome() != gateway.OutcomeSucceeded && first.Outcome() != gateway.OutcomeUnknown:
			case r.IntN(8) == 0:
				s.again(one, id, first)
			case r.IntN(4) == 0 && first.Err != nil:
				s.force(one, id)
			}
		}
		s.requests.Add(1)
		cancel()
	}
}

func (s *soak) order(ctx context.Context, id string) call.Result {
	e := call.Create(ctx, s.client, id, &faultserver.Record{})
	s.note(e.Err == nil || e.Invoice == nil, "a result with an error: %v", e.Err)
	s.note(e.Err != nil || e.Invoice != nil && e.Invoice.OrderID == id, "the invoice of another order than %s", id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[id] = e.Outcome()
	return e
}

// again makes an equal call for an order that has an invoice, or may have one. It sends nothing.
func (s *soak) again(ctx context.Context, id string, first call.Result) {
	e := s.order(context.WithoutCancel(ctx), id)
	s.note(e.Outcome() == first.Outcome(), "%s was %v, and is %v in an equal call", id, first.Outcome(), e.Outcome())
	s.note(e.Err != nil || first.Err != nil || e.Replayed() && bytes.Equal(e.Invoice.Raw, first.Invoice.Raw), "%s has another invoice in an equal call", id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known++
}

// force sends an unknown order again after a merchant has wrongly found no invoice of it.
func (s *soak) force(ctx context.Context, id string) {
	s.mu.Lock()
	s.forced[id] = true
	s.mu.Unlock()
	order, _ := s.guard.Order(ctx, "", id) // it never fails
	err := s.guard.Resolve(ctx, order, gateway.Finding{By: "anna", Margin: time.Nanosecond})
	s.note(err == nil, "a finding about %s is refused: %v", id, err)
	s.order(ctx, id)
}

func (s *soak) note(holds bool, format string, args ...any) {
	if holds {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// verify compares the outcomes of the calls with what the gateway committed.
func (s *soak) verify(t *testing.T) {
	commits, sends := map[string]int{}, map[string]int{}
	for _, i := range s.gw.Invoices() {
		commits[i.OrderID]++
	}
	for _, r := range s.gw.Requests() {
		if order := orderOf(r.Body); order != "" {
			sends[order]++
		}
	}
	counts, forced := map[gateway.Outcome]int{}, map[int]int{}
	for id, outcome := range s.outcomes {
		counts[outcome]++
		most := 1
		if s.forced[id] {
			most = 2
			forced[commits[id]]++
		}
		s.note(commits[id] <= most && sends[id] <= most, "%s was doubled: %d commits, %d sends", id, commits[id], sends[id])
		s.note(outcome != gateway.OutcomeSucceeded || commits[id] >= 1, "%s was lost", id)
		if s.forced[id] { // the guard believes the finding
			delete(commits, id)
			continue
		}
		s.note(outcome != gateway.OutcomeNotSent || sends[id] == 0, "%s was sent, and is reported as not sent", id)
		s.note(commits[id] == 0 || outcome == gateway.OutcomeSucceeded || outcome == gateway.OutcomeUnknown, "%s was committed, and is reported as %v", id, outcome)
		delete(commits, id)
	}
	s.note(len(commits) == 0, "invoices that nobody asked for: %v", commits)
	assert.Empty(t, s.wrong[:min(len(s.wrong), 10)])
	t.Logf("soak: %d calls in %v, %d reads, orders: %v; %d were not sent again by an equal call; forced, by invoices: %v; the gateway saw %d requests",
		s.requests.Load(), *soakFor, s.reads.Load(), counts, s.known, forced, len(s.gw.Requests()))
	assert.NotZero(t, counts[gateway.OutcomeUnknown])
	assert.NotZero(t, s.known)
}
