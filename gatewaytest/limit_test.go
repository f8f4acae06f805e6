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

// A refusal says when the window ends, in seconds, rounded up.
func TestServer_SetRateLimit_refusal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		per, late time.Duration // how long the window is, and how far into it the refusal is
		want      string
	}{
		{time.Minute, 0, "60"},
		{time.Minute, 1, "60"},
		{time.Minute, time.Second, "59"},
		{time.Minute, time.Minute - 1, "1"},
		{math.MaxInt64, 0, "9223372037"},
	} {
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
			assert.Equal(t, 429, entry.Status)
			assert.Equal(t, "rate-limit", entry.Fault)
			assert.Empty(t, s.Requests()[0].Fault)
		})
	}
}

// Requests of every kind count, and only those that are admitted meet a fault.
func TestServer_SetRateLimit_counts(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.SetRateLimit(3, time.Hour)
	s.InjectFault(gatewaytest.OpBalance, 2, gatewaytest.FaultRefuse(418, ""))
	assert.Equal(t, 404, get(t, s, "/elsewhere").status)
	assert.Equal(t, 405, mustTry(t, s, "DELETE", "/api/exchange-rate", "").status)
	assert.Equal(t, 418, get(t, s, "/api/balance/").status)
	assert.Equal(t, 429, get(t, s, "/api/balance/").status)
	s.Advance(time.Hour)
	assert.Equal(t, 418, get(t, s, "/api/balance/").status, "it stayed queued")
	assert.Equal(t, 200, get(t, s, "/api/balance/").status)
}
