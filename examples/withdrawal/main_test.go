package main

import (
	"context"
	"io"
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
	gw.AddWithdrawal(gatewaytest.Withdrawal{
		Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: id,
	})
	return gw
}

func TestRun_completed(t *testing.T) {
	t.Parallel()
	gw := withdrawing(t)
	require.NoError(t, gw.AdvanceAfter(id, 2, "AWAITING APPROVAL"))
	require.NoError(t, gw.AdvanceAfter(id, 3, "COMPLETED"))
	stdout, err := clitest.Call(t.Context(), t, run, gw, "-every", "1ms", id)
	require.NoError(t, err)
	assert.Equal(t, pending+
		"AWAITING APPROVAL: 25.5 USDT, fee 1, on Tron to TXYZ\n"+
		"COMPLETED: 25.5 USDT, fee 1, on Tron to TXYZ\n", stdout)
	assert.Len(t, gw.Requests(), 4)
}

func TestRun_failed(t *testing.T) {
	t.Parallel()
	gw := withdrawing(t)
	require.NoError(t, gw.AdvanceAfter(id, 1, "FAILED"))
	stdout, err := clitest.Call(t.Context(), t, run, gw, "-every", "1ms", id)
	var failed *gateway.WithdrawalFailedError
	require.ErrorAs(t, err, &failed)
	require.EqualError(t, err, `gateway: withdrawal "w-1": the service reports FAILED`)
	assert.Equal(t, 1, cli.Code(err))
	assert.Equal(t, pending+"FAILED: 25.5 USDT, fee 1, on Tron to TXYZ\n", stdout)
}

func TestRun_unknownWithdrawal(t *testing.T) {
	t.Parallel()
	stdout, err := clitest.Call(t.Context(), t, run, clitest.Gateway(t), id)
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.Equal(t, 1, cli.Code(err))
	assert.Empty(t, stdout)
}

func TestRun_timeout(t *testing.T) {
	t.Parallel()
	_, err := clitest.Call(t.Context(), t, run, withdrawing(t), "-timeout", "1ns", id)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 1, cli.Code(err))
}

// Ctrl-C while the withdrawal is pending: the message says how it was seen last.
func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	gw := withdrawing(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	program := func(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
		return run(ctx, args, getenv, writer(func(p []byte) (int, error) {
			interrupt() // as soon as there is a first line
			return stdout.Write(p)
		}))
	}
	stdout, err := clitest.Call(ctx, t, program, gw, id)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `waiting for withdrawal "w-1": last seen "PENDING"`)
	assert.Equal(t, 130, cli.Code(err))
	assert.Equal(t, pending, stdout)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestRun_arguments(t *testing.T) {
	t.Parallel()
	clitest.NeedsGateway(t, run, id)
	clitest.RefusesArguments(t, run, map[string][]string{
		"an argument is missing\nusage: withdrawal [flags] ID": {"-every", "1s"},
		`"w-2" is one argument too many`:                       {id, "w-2"},
		`invalid value "soon" for flag -timeout`:               {"-timeout", "soon", id},
		"intervals must not be negative":                       {"-every", "-1s", id},
		"withdrawRequestId: must not be a dot segment":         {".."},
	})
}
