package gatewaytest_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// rates requests the exchange rates n times and returns the statuses.
func rates(t *testing.T, s *gatewaytest.Server, n int) []int {
	t.Helper()
	statuses := []int{}
	for range n {
		statuses = append(statuses, get(t, s, "/api/exchange-rate").status)
	}
	return statuses
}

// I-160
func TestServer_SetRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t)
		s.SetRateLimit(2, time.Minute)
		<-time.After(time.Hour) // the window begins with a request
		assert.Equal(t, []int{200}, rates(t, s, 1))
		<-time.After(time.Minute - 1)
		assert.Equal(t, []int{200, 429, 429}, rates(t, s, 3))
		<-time.After(1)
		assert.Equal(t, []int{200, 200, 429}, rates(t, s, 3), "a new window")
		s.Advance(time.Minute)
		assert.Equal(t, []int{200, 200, 429}, rates(t, s, 3), "by the server's clock")

		s.SetRateLimit(1, time.Hour)
		assert.Equal(t, []int{200, 429}, rates(t, s, 2), "a new limit starts a new window")
		s.ClearFaults()
		assert.Equal(t, []int{429}, rates(t, s, 1), "the limit is not a fault")
		s.SetRateLimit(0, 0)
		assert.Equal(t, []int{200, 200, 200}, rates(t, s, 3), "off")
	})
}

func TestServer_SetRateLimit_refusal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		per  time.Duration
		late time.Duration // how far into the window the refusal is
		want string
	}{
		{"whole seconds", time.Minute, 0, "60"},
		{"rounded up", time.Minute, 1, "60"},
		{"the second before", time.Minute, time.Second, "59"},
		{"the last second", time.Minute, time.Minute - 1, "1"},
		{"a short window", time.Nanosecond, 0, "1"},
		{"a long window", math.MaxInt64, 0, "9223372037"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startInMemory(t)
				s.SetRateLimit(1, tt.per)
				require.Equal(t, []int{200}, rates(t, s, 1))
				<-time.After(tt.late)
				got := post(s, invoice(s, "o", ""))
				require.NoError(t, got.err)
				assert.Equal(t, 429, got.status)
				assert.Equal(t, errorBody("too many requests"), got.body)
				assert.Equal(t, tt.want, got.header.Get("Retry-After"))
				assert.Empty(t, s.Invoices())
				entry := s.Requests()[1]
				assert.Equal(t, gatewaytest.OpCreateInvoice, entry.Operation)
				assert.Equal(t, 429, entry.Status)
				assert.Equal(t, "rate-limit", entry.Fault)
				assert.Equal(t, "body", entry.KeyIn)
				assert.Empty(t, s.Requests()[0].Fault)
			})
		})
	}
}

// Requests of every kind count, and only those that are admitted meet a fault.
func TestServer_SetRateLimit_counts(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.SetRateLimit(3, time.Hour)
	s.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(503, "later"))
	assert.Equal(t, 404, get(t, s, "/elsewhere").status)
	assert.Equal(t, 401, mustTry(t, s, "GET", "/api/balance/", "").status)
	s.InjectFault(gatewaytest.OpBalance, 2, gatewaytest.FaultRefuse(418, ""))
	assert.Equal(t, 418, get(t, s, "/api/balance/").status)
	assert.Equal(t, 429, get(t, s, "/api/balance/").status)
	assert.Equal(t, 429, get(t, s, "/elsewhere").status)
	s.Advance(time.Hour)
	assert.Equal(t, 418, get(t, s, "/api/balance/").status, "it stayed queued")
	assert.Equal(t, 200, get(t, s, "/api/balance/").status)
}
