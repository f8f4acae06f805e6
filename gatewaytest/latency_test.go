package gatewaytest_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestServer_SetLatency(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, latency string
		ok            func(took []time.Duration) bool // of 200 requests, sorted
	}{
		{"none", "0s", func(took []time.Duration) bool { return took[199] == 0 }},
		{"fixed", "20ms", func(took []time.Duration) bool { return took[0] == 20*time.Millisecond && took[199] == took[0] }},
		{"uniform", "20ms-80ms", func(took []time.Duration) bool {
			return took[0] >= 20*time.Millisecond && took[50] < 60*time.Millisecond && took[150] > 40*time.Millisecond && took[199] < 80*time.Millisecond
		}},
		{"a tail", "20ms,10%:2s", func(took []time.Duration) bool {
			return took[0] == 20*time.Millisecond && took[100] == took[0] && took[199] == 2*time.Second
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, err := gatewaytest.ParseLatency(tt.latency)
				require.NoError(t, err)
				assert.Equal(t, tt.latency, l.String())
				s := gatewaytest.NewMemoryServer(gatewaytest.WithRandomSeed(1))
				defer s.Close()
				s.SetLatency(l)
				transport := s.Transport()
				var took []time.Duration
				for range 200 {
					begun := time.Now()
					require.Equal(t, 200, tryBy(transport, s, "GET", "/api/exchange-rate", "").status)
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				assert.True(t, tt.ok(took), "%v", took)
			})
		})
	}
}

// The operation is carried out before the wait: a client that gives up does not know.
func TestServer_SetLatency_after_the_operation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gatewaytest.NewMemoryServer()
		s.SetLatency(gatewaytest.Latency{Min: time.Hour, Max: time.Hour})
		go tryBy(s.Transport(), s, "POST", "/api/invoice/create", invoice(s, "o-1", ""), "Content-Type", "application/json")
		synctest.Wait()
		assert.Len(t, s.Invoices(), 1)
		s.Close() // ends the wait
	})
}

func TestParseLatency_refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "20", "-1ms", "80ms-20ms", "20ms-", "20ms,", "20ms,1:2s", "20ms,101%:2s", "20ms,-1%:2s", "20ms,NaN%:2s", "20ms,1%", "20ms,1%:-2s",
	} {
		_, err := gatewaytest.ParseLatency(text)
		assert.EqualError(t, err, "write a latency like 50ms, 20ms-80ms or 20ms-80ms,1%:2s", text)
	}
	s := start(t)
	for _, l := range []gatewaytest.Latency{
		{Min: -1, Max: 1}, {Min: 2, Max: 1}, {Tail: -0.1}, {Tail: 1.1}, {Tail: math.NaN()}, {TailWait: -1},
	} {
		assert.Panics(t, func() { s.SetLatency(l) }, "%+v", l)
	}
}
