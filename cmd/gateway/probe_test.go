package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/probe"
	"github.com/cryptogw/gateway/gatewaytest"
)

// The report names the URL that was asked, and ends with the verdict.
func TestProbe(t *testing.T) {
	gw := standIn(t)
	got := call(t.Context(), t, gw, "probe", "--withdrawal", gw.Withdrawals()[0].WithdrawRequestID)
	assert.Zero(t, got.code, got.err)
	assert.True(t, strings.HasPrefix(got.stdout, "Asking "+gw.URL+"; nothing is changed there.\n\nCoinNetworks, GET /api/networks-coins\n  200 in "))
	for _, text := range []string{
		"\nDocumented and so: 8\n", "\nNot stated, and found to be: ", "\nCould not be asked: 0\n", "\nDocumented and not so: 0\n",
	} {
		assert.Contains(t, got.stdout, text)
	}
	for _, r := range gw.Requests() {
		assert.Equal(t, "GET", r.Method)
	}
}

// 0 as documented, 1 a call failed, 7 differs.
func TestProbe_exitCodes(t *testing.T) {
	for fault, want := range map[string]struct {
		inject func(*gatewaytest.Server)
		code   int
		text   string
	}{
		"none": {func(*gatewaytest.Server) {}, exitDone, ""},
		"refused": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.OpBalance, -1, gatewaytest.FaultRefuse(403, "no"))
		}, exitFailed, "2 responses could not be read"},
		"differs": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.OpCoinNetworks, 1, gatewaytest.FaultEdit("/result", "{"))
		}, exitDiffers, "the gateway differs from the interface: 1 difference"},
		"unknown": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDrift())
		}, exitDone, ""},
	} {
		t.Run(fault, func(t *testing.T) {
			gw := standIn(t)
			want.inject(gw)
			got := call(t.Context(), t, gw, "probe", "-o", "json")
			assert.Equal(t, want.code, got.code, got.err)
			r := decode[probe.Report](t, got.stdout)
			assert.Equal(t, gw.URL, r.URL)
			if want.text != "" {
				assert.Equal(t, want.text, decode[failure](t, got.err).Error)
			}
		})
	}
}

// An identifier that the client refuses is no difference of the gateway.
func TestProbe_invalidIdentifier(t *testing.T) {
	got := call(t.Context(), t, standIn(t), "probe", "--withdrawal", "w/1")
	assert.Equal(t, exitFailed, got.code)
	assert.Equal(t, "1 response could not be read\n", got.err)
	assert.Contains(t, got.stdout, "\nCould not be asked: 1\n  GET /api/withdrawal/inquiry/{withdrawRequestId}: gateway: withdrawal: withdrawRequestId: must not contain")
	assert.Contains(t, got.stdout, "\nDocumented and not so: 0\n")
}

func TestProbe_keyOnPublic(t *testing.T) {
	gw := standIn(t)
	assert.Zero(t, call(t.Context(), t, gw, "probe", "--key-on-public").code)
	assert.Equal(t, "header", gw.Requests()[0].KeyIn)
}

func TestProbe_interrupted(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	got := call(ended, t, standIn(t), "probe")
	assert.Equal(t, exitInterrupted, got.code)
	require.Contains(t, got.stdout, "Documented and so: 0\n")
}
