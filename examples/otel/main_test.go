package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/examples/internal/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

// printedSpans returns the names of the spans that the program has printed.
func printedSpans(t *testing.T, stdout string) []string {
	t.Helper()
	names := []string{}
	for from := json.NewDecoder(strings.NewReader(stdout)); from.More(); {
		var span struct{ Name string }
		require.NoError(t, from.Decode(&span))
		names = append(names, span.Name)
	}
	return names
}

func TestRun_standIn(t *testing.T) {
	stdout, err := clitest.Call(t.Context(), t, run, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"gateway.exchange_rates", "gateway.exchange_rates", "gateway.create_invoice", "checkout"}, printedSpans(t, stdout))
}

// With a configured gateway it must not create an invoice.
func TestRun_configured(t *testing.T) {
	gw := clitest.Gateway(t)
	stdout, err := clitest.Call(t.Context(), t, run, gw)
	require.NoError(t, err)
	assert.Equal(t, []string{"gateway.exchange_rates", "checkout"}, printedSpans(t, stdout))
	require.Len(t, gw.Requests(), 1)
	assert.Equal(t, "GET", gw.Requests()[0].Method)
}

// The spans of a failed call are printed too.
func TestRun_refused(t *testing.T) {
	gw := clitest.Gateway(t)
	gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.Refuse(403, "not you"))
	stdout, err := clitest.Call(t.Context(), t, run, gw)
	require.ErrorIs(t, err, gateway.ErrForbidden)
	assert.Equal(t, 1, cli.Code(err))
	assert.Equal(t, []string{"gateway.exchange_rates", "checkout"}, printedSpans(t, stdout))
}

func TestRun_interrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	stdout, err := clitest.Call(ctx, t, run, nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 130, cli.Code(err))
	assert.Equal(t, []string{"checkout"}, printedSpans(t, stdout))
}

func TestRun_arguments(t *testing.T) {
	clitest.RefusesArguments(t, run, map[string][]string{
		"\"now\" is one argument too many\nusage: otel": {"now"},
	})
}
