package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The probe finds everything that the client reports as drift.
func TestRun_drift(t *testing.T) {
	gw := standIn(t)
	id := gw.Withdrawals()[0].WithdrawRequestID
	gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDrift())
	gw.InjectFault(gatewaytest.OpWithdrawal, -1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
	r := report(t, gw, id)
	assert.Zero(t, r.Unread)
	const field = "undocumented"
	var got [][]string
	for _, call := range r.Calls {
		var found []string
		for _, f := range call.Findings {
			found = append(found, f.String())
		}
		got = append(got, found)
	}
	inAll := []string{
		"unknown field /" + field, "unknown field /result/0/network/" + field + ": object, 25 times",
		"unknown field /result/0/coin/" + field + ": object, 25 times", "unknown field /result/0/" + field + ": object, 25 times",
	}
	inOne := []string{
		"unknown field /" + field, "unknown field /result/network/" + field + ": object",
		"unknown field /result/coin/" + field + ": object", "unknown field /result/" + field + ": object",
	}
	assert.Equal(t, inAll, got[0])
	assert.Equal(t, inOne, got[1])
	assert.Equal(t, inOne, got[2])
	assert.Equal(t, "unknown field /result/0/coin/"+field+": object, 2 times", got[3][2])
	assert.Equal(t, []string{"unknown field /" + field, "unknown field /result/0/" + field + ": object, 14 times"}, got[4])
	assert.Equal(t, []string{"unknown field /" + field, "unknown field /result/0/" + field + ": object, 6 times"}, got[5])
	assert.Equal(t, []string{"unknown field /" + field, `unknown status /result/status: "ON_HOLD"`, "unknown field /result/" + field + ": object"}, got[7])
}

// Drift in each of the shapes can be read.
func TestRun_driftInEveryShape(t *testing.T) {
	gw := standIn(t)
	gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDrift())
	for _, shape := range gatewaytest.Shapes() {
		gw.SetShape(shape)
		r := report(t, gw)
		require.NoError(t, r.Err(), shape)
		assert.Positive(t, r.Findings)
	}
}
