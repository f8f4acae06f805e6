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

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
	"github.com/cryptogw/gateway/pricing"
)

func measureCalls(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
}

// Each benchmark has a floor: the call as an engineer writes it with net/http and encoding/json, into
// the same types, without any check.

// byHand sends a request and decodes the result of the response.
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

func BenchmarkWithdrawal(b *testing.B) {
	body := enveloped(withdrawalJSON)
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		measureCalls(b, func() error { return withdrawal(b.Context(), c) })
	})
	b.Run("floor", func(b *testing.B) {
		c := memory{body}.client()
		measureCalls(b, func() error {
			return byHand[gateway.Withdrawal](b.Context(), c, http.MethodGet, "/api/withdrawal/inquiry/"+requestID, nil)
		})
	})
}

// Each invoice of the client is for another order: the guard has the invoice of an equal call.
func BenchmarkCreateInvoice(b *testing.B) {
	body := enveloped(invoiceJSON)
	for name, step := range map[string]int{"client": 1, "replay": 0} {
		b.Run(name, func(b *testing.B) {
			c, orders := inMemory(b, body), 0
			measureCalls(b, func() error {
				orders += step
				_, err := c.CreateInvoice(b.Context(), order(strconv.Itoa(orders)))
				return err
			})
		})
	}
	b.Run("floor", func(b *testing.B) {
		c, orders := memory{body}.client(), 0
		measureCalls(b, func() error {
			orders++
			return byHand[json.RawMessage](b.Context(), c, http.MethodPost, "/api/invoice/create", struct {
				APIKey string `json:"apiKey"`
				gateway.InvoiceRequest
			}{canary, order(strconv.Itoa(orders))})
		})
	})
}

// A listing has a second floor: validating the same bytes, and no more.
func BenchmarkCoinNetworks(b *testing.B) {
	for _, n := range []int{1, 25, 100, 1000, 5000} {
		body := enveloped(recordsJSON(n, 40, 12, 7))
		for name, makeCall := range map[string]func() func() error{
			"client": func() func() error {
				c := inMemory(b, body)
				return func() error {
					_, err := c.CoinNetworks(b.Context())
					return err
				}
			},
			"floor": func() func() error {
				c := memory{body}.client()
				return func() error {
					return byHand[[]gateway.CoinNetwork](b.Context(), c, http.MethodGet, "/api/networks-coins", nil)
				}
			},
			"validated": func() func() error {
				return func() error {
					_, err := jsontext.NewDecoder(strings.NewReader(body)).ReadValue()
					return err
				}
			},
		} {
			b.Run(fmt.Sprintf("pairs=%d/%s", n, name), func(b *testing.B) { measureCalls(b, makeCall()) })
		}
	}
}

// What a call takes of memory does not depend on the machine, so that it can be
// guarded where time cannot. That a lookup allocates nothing is tested with the
// cache and the catalog. The tests are not parallel: they count
// the allocations of the whole program.

// The transport makes 6 of the allocations, with 550 bytes, and net/http 2 more for a body,
// with 350 bytes. Each invoice is for another order, since the guard refuses a
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
		}, 51, 5000},
		{"a read with a deadline", withdrawalJSON, func(c *gateway.Client) error {
			ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
			defer cancel()
			_, err := c.Withdrawal(ctx, requestID)
			return err
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
		}, 9, 2100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := inMemory(t, enveloped(tt.result))
			call := func() { require.NoError(t, tt.call(c)) }
			assert.LessOrEqual(t, least(func() float64 { return testing.AllocsPerRun(200, call) }), tt.allocs*measure.Slack(), "allocations")
			bytes := func() float64 {
				return float64(measure.Allocated(func() {
					for range 200 {
						call()
					}
				})) / 200
			}
			assert.LessOrEqual(t, least(bytes), tt.bytes*measure.Slack(), "bytes")
		})
	}
}

// A record takes the same in a listing of any length: its identifier, and no memory but for the text of the response, the
// tree of its values, and the result. All other allocations together are more than is in use at any one
// time.
func TestAllocations_record(t *testing.T) {
	const (
		toBegin = 750       // allocations, most of them to read a coin or a network for the first time
		besides = 256 << 10 // bytes
		first   = 32 << 10  // bytes that the result has once
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
		{"a catalog of 10,000 pairs", 10 << 20, func(t *testing.T) any {
			pairs, err := inMemory(t, enveloped(recordsJSON(10_000, 200, 20, 10_000))).CoinNetworks(t.Context())
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

// memoryInUse returns the bytes of the heap that live, and of stacks.
func memoryInUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // pools give up what they hold in the second
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
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

// listingOf is a response with n pairs, 1,000 of them different.
func listingOf(n int) string {
	some := strings.Trim(recordsJSON(min(n, 1000), 40, 12, 7), "[]")
	return enveloped("[" + strings.Repeat(some+",", max(n/1000, 1)-1) + some + "]")
}

// least returns the least of three counts: what runs besides can only add.
func least(count func() float64) float64 { return min(count(), count(), count()) }
