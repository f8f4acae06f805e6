package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/examples/internal/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

const (
	pending = "PENDING: 25.5 USDT, fee 1, on Tron to TXYZ\n"
	id      = "w-1"
)

func withdrawing(t *testing.T) *gatewaytest.Server {
	t.Helper()
	gw := clitest.Gateway(t)
	add(gw)
	return gw
}

func add(gw *gatewaytest.Server) {
	gw.AddWithdrawal(gatewaytest.Withdrawal{
		Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: id,
	})
}

func TestRun_completed(t *testing.T) {
	gw := withdrawing(t)
	require.NoError(t, gw.SetStatusAfterRequests(id, 2, "AWAITING APPROVAL"))
	require.NoError(t, gw.SetStatusAfterRequests(id, 3, "COMPLETED"))
	stdout, err := clitest.Call(t.Context(), t, run, gw, "-every", "1ms", id)
	require.NoError(t, err)
	assert.Equal(t, pending+
		"AWAITING APPROVAL: 25.5 USDT, fee 1, on Tron to TXYZ\n"+
		"COMPLETED: 25.5 USDT, fee 1, on Tron to TXYZ\n", stdout)
	assert.Len(t, gw.Requests(), 4)
}

func TestRun_failed(t *testing.T) {
	gw := withdrawing(t)
	require.NoError(t, gw.SetStatusAfterRequests(id, 1, "FAILED"))
	stdout, err := clitest.Call(t.Context(), t, run, gw, "-every", "1ms", id)
	var failed *gateway.WithdrawalFailedError
	require.ErrorAs(t, err, &failed)
	require.EqualError(t, err, `gateway: withdrawal "w-1": the service reports FAILED`)
	assert.Equal(t, 1, cli.Code(err))
	assert.Equal(t, pending+"FAILED: 25.5 USDT, fee 1, on Tron to TXYZ\n", stdout)
}

func TestRun_unknownWithdrawal(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), id)
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.Equal(t, 1, cli.Code(err))
	assert.Empty(t, stdout)
}

func TestRun_timeout(t *testing.T) {
	_, err := clitest.Call(t.Context(), t, run, withdrawing(t), "-timeout", "1ns", id)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 1, cli.Code(err))
}

func TestRun_arguments(t *testing.T) {
	clitest.NeedsGateway(t, run, id)
	clitest.RefusesArguments(t, run, map[string][]string{
		"an argument is missing\nusage: withdrawal [flags] ID": {"-every", "1s"},
		`"w-2" is one argument too many`:                       {id, "w-2"},
		`invalid value "soon" for flag -timeout`:               {"-timeout", "soon", id},
		"intervals must not be negative":                       {"-every", "-1s", id},
		"withdrawRequestId: must not be a dot segment":         {".."},
	})
}
