package gateway_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// withoutNetwork returns a stand-in without a network and a client for it. The test
// closes the stand-in in its bubble.
func withoutNetwork(t *testing.T, opts ...gateway.Option) (*gatewaytest.Server, *gateway.Client) {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	client, err := gateway.New(gw.URL, gw.APIKey, append(opts, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))...)
	require.NoError(t, err)
	return gw, client
}

// statusCounts counts the requests by the status of their responses.
func statusCounts(gw *gatewaytest.Server) map[int]int {
	counts := map[int]int{}
	for _, r := range gw.Requests() {
		counts[r.Status]++
	}
	return counts
}

// The wait is as long as necessary, and a refusal by the rate limit does not end it.
func TestStandIn_week(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const week, hour = 7 * 24 * time.Hour, time.Hour
		gw, client := withoutNetwork(t)
		id := gw.Withdrawals()[0].WithdrawRequestID
		require.NoError(t, gw.SetStatusAfter(id, 3*24*hour, "PROCESSING"))
		require.NoError(t, gw.SetStatusAfter(id, week, "COMPLETED"))
		gw.SetRateLimit(100, 24*hour)
		begun := gw.Now()

		seen := []gateway.WithdrawalStatus{}
		_, err := client.WaitWithdrawal(t.Context(), id, gateway.WaitOptions{Changed: func(w *gateway.Withdrawal) { seen = append(seen, w.Status) }})
		require.NoError(t, err)
		assert.Equal(t, []gateway.WithdrawalStatus{"PENDING", "PROCESSING", "COMPLETED"}, seen)
		assert.GreaterOrEqual(t, gw.Now().Sub(begun), week)
		assert.Less(t, gw.Now().Sub(begun), week+hour)
		counts := statusCounts(gw)
		assert.Equal(t, 701, counts[201], "all that a week allows, and the first of the next day")
		assert.Less(t, counts[429], 8*24, "one in an hour at most")
		assert.Greater(t, counts[429], 7*12)
	})
}
