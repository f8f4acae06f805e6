package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
	"github.com/cryptogw/gateway/pricing"
)

// byHand is the floor of a benchmark: the call as an engineer writes it with net/http and encoding/json, into the same
// types, without any check.
func byHand[T any](ctx context.Context, c *http.Client, method, path string, payload any) error {
	var body io.Reader
	if payload != nil {
		text, err := json.Marshal(payload)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, inMemoryURL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("x-api-key", canary)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	var envelope struct {
		Message string
		Result  T
		Meta    json.RawMessage
	}
	return json.NewDecoder(resp.Body).Decode(&envelope)
}

func respondsWith(body string) *http.Client { return &http.Client{Transport: statusTrip(200, body)} }

func bench(b *testing.B, name string, call func() error) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := call(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWithdrawal(b *testing.B) {
	body := enveloped(withdrawalJSON)
	c, floor := inMemory(b, body), respondsWith(body)
	bench(b, "client", func() error { return withdrawal(b.Context(), c) })
	bench(b, "floor", func() error {
		return byHand[gateway.Withdrawal](b.Context(), floor, http.MethodGet, "/api/withdrawal/inquiry/"+requestID, nil)
	})
}

// Each invoice is for another order: the guard has the invoice of an equal call.
func BenchmarkCreateInvoice(b *testing.B) {
	body, orders := enveloped(invoiceJSON), 0
	c, floor := inMemory(b, body), respondsWith(body)
	create := func(step int) func() error {
		return func() error {
			orders += step
			_, err := c.CreateInvoice(b.Context(), order(strconv.Itoa(orders)))
			return err
		}
	}
	bench(b, "client", create(1))
	bench(b, "replay", create(0))
	bench(b, "floor", func() error {
		orders++
		return byHand[json.RawMessage](b.Context(), floor, http.MethodPost, "/api/invoice/create", struct {
			APIKey string `json:"apiKey"`
			gateway.InvoiceRequest
		}{canary, order(strconv.Itoa(orders))})
	})
}

func BenchmarkCoinNetworks(b *testing.B) {
	for _, n := range []int{25, 1000, 5000} {
		body := listingOf(n)
		c, floor := inMemory(b, body), respondsWith(body)
		bench(b, fmt.Sprintf("pairs=%d/client", n), func() error {
			_, err := c.CoinNetworks(b.Context())
			return err
		})
		bench(b, fmt.Sprintf("pairs=%d/floor", n), func() error {
			return byHand[[]gateway.CoinNetwork](b.Context(), floor, http.MethodGet, "/api/networks-coins", nil)
		})
	}
}

// The memory of a call does not depend on the machine, so a test can guard it where it cannot guard time. These tests are
// not parallel: they count the allocations of the whole program. The transport makes 6 of the allocations, with 550
// bytes, and net/http 2 more for a body, with 350 bytes.
func TestAllocations_call(t *testing.T) {
	ctx, invoice, known, orders := context.Background(), order("A-17"), order("A-18"), 0
	for _, tt := range []struct {
		name, result  string
		call          func(*gateway.Client) error
		allocs, bytes float64 // at most
	}{
		{"a read", withdrawalJSON, func(c *gateway.Client) error { return withdrawal(ctx, c) }, 51, 5000},
		{"a read with a deadline", withdrawalJSON, func(c *gateway.Client) error {
			ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
			defer cancel()
			return withdrawal(ctx, c)
		}, 56, 5500},
		{"an invoice", invoiceJSON, func(c *gateway.Client) error {
			orders++
			invoice.OrderID = strconv.Itoa(orders)
			_, err := c.CreateInvoice(ctx, invoice)
			return err
		}, 62, 7000},
		{"an invoice that the guard has", invoiceJSON, func(c *gateway.Client) error {
			_, err := c.CreateInvoice(ctx, known)
			return err
		}, 6, 2100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := inMemory(t, enveloped(tt.result))
			call := func() { require.NoError(t, tt.call(c)) }
			calls := func() {
				for range 100 {
					call()
				}
			}
			assert.LessOrEqual(t, least(func() float64 { return testing.AllocsPerRun(100, call) }), tt.allocs*measure.Slack(), "allocations")
			assert.LessOrEqual(t, least(func() float64 { return float64(measure.Allocated(calls)) / 100 }), tt.bytes*measure.Slack(), "bytes")
		})
	}
}

// least returns the least of three counts: other work can only add to them.
func least(count func() float64) float64 { return min(count(), count(), count()) }

// A record takes the same in a listing of any length: its identifier, and no memory but for the text of the response,
// the tree of its values, and the result.
func TestAllocations_record(t *testing.T) {
	const (
		toBegin = 750       // allocations, most of them to read a coin or a network for the first time
		besides = 256 << 10 // bytes
		first   = 32 << 10  // bytes that the result has once
		most    = 480       // bytes of a record
	)
	for _, n := range []int{100, 1000} {
		body := listingOf(n)
		c, tree := inMemory(t, body), 24*(strings.Count(body, ",")+3*n) // 24 bytes a value
		var allocs, result, beside float64
		count := func() float64 {
			var before, after runtime.MemStats
			atFirst := heapInUse()
			runtime.ReadMemStats(&before)
			pairs, err := c.CoinNetworks(context.Background())
			runtime.ReadMemStats(&after)
			result = float64(heapInUse() - atFirst)
			require.NoError(t, err)
			require.Len(t, pairs, n)
			allocs = float64(after.Mallocs - before.Mallocs)
			return float64(after.TotalAlloc-before.TotalAlloc) - result
		}
		beside = least(count)
		assert.LessOrEqual(t, allocs, float64(toBegin+n))
		assert.LessOrEqual(t, result, float64(first+most*n))
		// With the race detector slices.Grow allocates a second time.
		assert.LessOrEqual(t, beside, measure.Slack()*float64(besides+len(body)+tree)+result*(measure.Slack()-1))
		runtime.KeepAlive(c)
	}
}

// Merchants keep these for long. Not parallel, because it measures.
func TestMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		bound int
		build func() (kept any)
	}{
		"a client at rest": {128 << 10, func() any {
			c := inMemory(t, enveloped(withdrawalJSON))
			require.NoError(t, withdrawal(t.Context(), c))
			return c
		}},
		"a catalog of 1,000 pairs": {1 << 20, func() any {
			c, err := gateway.New(inMemoryURL, canary, over(statusTrip(200, enveloped(recordsJSON(1000, 200, 20, 1000))))) // the test does not keep it
			require.NoError(t, err)
			pairs, err := c.CoinNetworks(t.Context())
			require.NoError(t, err)
			return pricing.NewCatalog(pairs)
		}},
	} {
		before := heapInUse()
		kept := tt.build()
		bytes := heapInUse() - before
		runtime.KeepAlive(kept)
		t.Logf("%s: %d KiB", name, bytes>>10)
		assert.Less(t, bytes, tt.bound, name)
	}
}

// heapInUse returns the bytes of the heap that live.
func heapInUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // pools give up what they hold in the second
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// recordsJSON is an array of n records as in a real listing: with identifiers of their own, of so many coins on so many
// networks, with so many fees.
func recordsJSON(n, coins, networks, fees int) string {
	records := make([]string, n)
	for i := range records {
		coin, network := fmt.Sprintf("%03d", i%coins), fmt.Sprintf("%02d", i/coins%networks)
		records[i] = strings.NewReplacer(
			pairID, fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i), `"1.5"`, fmt.Sprintf(`"%d.5"`, i%fees),
			"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d"+network,
			"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44", "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3"+coin,
			"Tron (TRC20)", "Network "+network, "USDT", "C"+coin,
		).Replace(pairJSON)
	}
	return "[" + strings.Join(records, ",") + "]"
}

// listingOf is a response with n pairs.
func listingOf(n int) string { return enveloped(recordsJSON(n, 40, 12, 7)) }
