package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cryptogw/gateway"
)

// Over the loopback the server's share of the time is in both. Each caller has
// a connection, as long as nobody waits for a lock.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(answer(http.StatusCreated, enveloped(withdrawalJSON)))
	b.Cleanup(server.Close)
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d/client", callers), func(b *testing.B) {
			c := newClient(b, server.URL, gateway.WithHTTPClient(&http.Client{Transport: newPool(b)}))
			measureTogether(b, callers, func() error {
				_, err := c.Withdrawal(b.Context(), requestID)
				return err
			})
		})
		b.Run(fmt.Sprintf("callers=%d/floor", callers), func(b *testing.B) {
			c := &http.Client{Transport: newPool(b)}
			measureTogether(b, callers, func() error {
				var w handWithdrawal
				return byHand(b.Context(), c, server.URL, "/api/withdrawal/inquiry/"+requestID, &w)
			})
		})
	}
}

// newPool returns a transport that keeps a connection for each of 256 callers.
func newPool(b *testing.B) *http.Transport {
	b.Helper()
	pool := &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256}
	b.Cleanup(pool.CloseIdleConnections)
	return pool
}

// measureTogether measures a call that so many callers make at the same time,
// once they all have a connection.
func measureTogether(b *testing.B, callers int, call func() error) {
	b.Helper()
	callTogether(b, callers, 2*callers, call)
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime()
	callTogether(b, callers, b.N, call)
	b.StopTimer()
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}

func callTogether(b *testing.B, callers, calls int, call func() error) {
	var left atomic.Int64
	left.Store(int64(calls))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}
