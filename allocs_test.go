package gateway_test

import (
	"context"
	"flag"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
	"github.com/cryptogw/gateway/pricing"
)

// What a call takes of memory does not depend on the machine, so that it can be
// guarded where time cannot. That a lookup allocates nothing is tested with the
// cache and the catalog. The tests are not parallel: what is counted is what
// the whole program allocates.

// Of what is counted, 6 allocations and 550 bytes are the transport's, and 2 and 350 more
// net/http's for a body. Each invoice is for another order, since the guard refuses a
// second one.
func TestAllocations_call(t *testing.T) {
	ctx, invoice, known, orders := context.Background(), order("A-17"), order("A-18"), 0
	for _, tt := range []struct {
		name, result  string
		call          func(*gateway.Client) error
		allocs, bytes float64 // at most
	}{
		{"a read", withdrawalJSON, func(c *gateway.Client) error {
			_, err := c.Withdrawal(ctx, requestID)
			return err
		}, 48, 5000},
		{"a read with a deadline", withdrawalJSON, func(c *gateway.Client) error {
			ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
			defer cancel()
			_, err := c.Withdrawal(ctx, requestID)
			return err
		}, 53, 5500},
		{"an invoice", invoiceJSON, func(c *gateway.Client) error {
			orders++
			invoice.OrderID = strconv.Itoa(orders)
			_, err := c.CreateInvoice(ctx, invoice)
			return err
		}, 62, 7000},
		{"an invoice that the guard has", invoiceJSON, func(c *gateway.Client) error {
			_, err := c.CreateInvoice(ctx, known)
			return err
		}, 9, 2100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := inMemory(t, enveloped(tt.result))
			call := func() { require.NoError(t, tt.call(c)) }
			assert.LessOrEqual(t, least(func() float64 { return testing.AllocsPerRun(200, call) }), tt.allocs*measure.Slack(), "allocations")
			assert.LessOrEqual(t, least(func() float64 { return bytesPerRun(t, 200, call) }), tt.bytes*measure.Slack(), "bytes")
		})
	}
}

// A record takes the same in a listing of any length: its identifier, and no memory but for the text of the response, the
// tree of its values, and what is in the result. What is allocated besides, all of it together, is more than is in use at any one
// time.
func TestAllocations_record(t *testing.T) {
	const (
		toBegin = 750       // allocations, most of which read a coin or a network for the first time
		besides = 256 << 10 // bytes
		first   = 32 << 10  // bytes of what is in the result once
		most    = 480       // bytes of a record
	)
	for _, n := range []int{100, 1000, 5000, 10_000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			c := inMemory(t, listingOf(n))
			tree := 24 * (strings.Count(listingOf(n), ",") + 3*n) // 24 bytes a value
			besides := int(measure.Slack()) * (besides + len(listingOf(n)) + tree)
			cost := costOfListing(t, c, n)
			for tries := 1; tries < 3 && cost.beside > besides; tries++ { // another test may have left something running
				cost = costOfListing(t, c, n)
			}
			assert.LessOrEqual(t, cost.allocs, toBegin+n)
			// With the race detector slices.Grow allocates a second time.
			assert.LessOrEqual(t, cost.beside, besides+cost.result*int(measure.Slack()-1))
			assert.LessOrEqual(t, cost.result, first+most*n)
		})
	}
}

// A declared length that does not arrive costs no more than the response may have.
func TestAllocations_announced(t *testing.T) {
	cut := announcing{strings.TrimSuffix(listingOf(100), `],"meta":{}}`), math.MaxInt64}
	require.NotContains(t, cut.body, "meta")
	c := newClient(t, inMemoryURL, once(), gateway.WithHTTPClient(&http.Client{Transport: cut}))
	bytes := measure.Allocated(func() {
		_, err := c.CoinNetworks(context.Background())
		require.Error(t, err)
	})
	assert.LessOrEqual(t, bytes, uint64(measure.Slack())*(12<<20))
}

// announcing responds with a body whose declared length is not its length.
type announcing struct {
	body   string
	length int64
}

func (a announcing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := memory{a.body}.RoundTrip(req)
	resp.ContentLength = a.length
	return resp, err
}

// A listingCost is what a listing has allocated: bytes in the result, and beside
// it.
type listingCost struct{ allocs, result, beside int }

func costOfListing(t *testing.T, c *gateway.Client, n int) listingCost {
	t.Helper()
	var before, after, end runtime.MemStats
	runtime.GC()
	runtime.GC() // pools give up what they hold in the second
	runtime.ReadMemStats(&before)
	pairs, err := c.CoinNetworks(context.Background())
	runtime.ReadMemStats(&after)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&end)
	runtime.KeepAlive(c) // and the response
	runtime.KeepAlive(pairs)
	require.NoError(t, err)
	require.Len(t, pairs, n)
	result := int(end.HeapAlloc) - int(before.HeapAlloc)
	return listingCost{int(after.Mallocs - before.Mallocs), result, int(after.TotalAlloc-before.TotalAlloc) - result}
}

// What a merchant has for long takes, on the heap and on stacks. Not parallel, because it
// measures.
func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bound int
		build func(t *testing.T) (kept any)
	}{
		{"a client at rest", 128 << 10, func(t *testing.T) any {
			c := inMemory(t, enveloped(withdrawalJSON))
			require.NoError(t, withdrawal(t.Context(), c))
			return c
		}},
		{"256 callers that wait", 12 << 20, callersThatWait},
		{"a catalog of 10,000 pairs", 10 << 20, func(t *testing.T) any {
			pairs, err := inMemory(t, enveloped(catalogJSON(10_000))).CoinNetworks(t.Context())
			require.NoError(t, err)
			return pricing.NewCatalog(pairs)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := memoryInUse()
			kept := tt.build(t)
			bytes := memoryInUse() - before
			runtime.KeepAlive(kept)
			t.Logf("%d KiB", bytes>>10)
			assert.Less(t, bytes, tt.bound)
		})
	}
}

func callersThatWait(t *testing.T) any {
	const callers = 256
	together := &barrier{missing: callers + 1, arrived: make(chan struct{}, callers), open: make(chan struct{})}
	c := newClient(t, inMemoryURL, gateway.WithHTTPClient(&http.Client{Transport: together}), once())
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			_, err := c.ExchangeRates(context.Background()) // which ends after the test
			assert.NoError(t, err)
		})
	}
	for range callers {
		<-together.arrived
	}
	t.Cleanup(func() { close(together.open); all.Wait() })
	return c
}

// memoryInUse returns the bytes of the heap that live, and of stacks.
func memoryInUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // pools give up what they hold in the second
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}

// listingOf is a response with n pairs, of which 1,000 differ.
func listingOf(n int) string {
	some := strings.Trim(recordsJSON(min(n, 1000)), "[]")
	return enveloped("[" + strings.Repeat(some+",", max(n/1000, 1)-1) + some + "]")
}

// least returns the least of three counts: what runs besides can only add.
func least(count func() float64) float64 { return min(count(), count(), count()) }

func bytesPerRun(t *testing.T, runs int, call func()) float64 {
	t.Helper()
	benchtime := flag.Lookup("test.benchtime").Value
	before := benchtime.String()
	require.NoError(t, benchtime.Set(strconv.Itoa(runs)+"x"))
	defer func() { require.NoError(t, benchtime.Set(before)) }()
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			call()
		}
	})
	require.Equal(t, runs, result.N)
	return float64(result.AllocedBytesPerOp())
}

// A barrier is a transport that holds all responses until the missing requests have
// arrived.
type barrier struct {
	mu      sync.Mutex
	missing int
	arrived chan struct{} // has one for each request, if it is not nil
	open    chan struct{}
}

func (b *barrier) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	if b.missing--; b.missing == 0 {
		close(b.open)
	}
	b.mu.Unlock()
	if b.arrived != nil {
		b.arrived <- struct{}{}
	}
	select {
	case <-b.open:
		return memory{enveloped(ratesJSON)}.RoundTrip(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// What is beside a result takes no more memory the more there is in the result. The test is not parallel:
// what is counted is what the whole program allocates.
func TestAllocations_beside(t *testing.T) {
	var members strings.Builder
	for i := range 300 {
		members.WriteString(`,"x` + strconv.Itoa(i) + `":1`)
	}
	body := `{"message":"Operation was successful.","result":[` + strings.Repeat("1,", 20_000) + `1]` + members.String() + `}`
	for _, s := range subjects() {
		c := cannedClient(t, 200, body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = s.call(t.Context(), c)
		runtime.ReadMemStats(&after)
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(32), s.name)
	}
}
