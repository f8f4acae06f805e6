package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	const pending = "PENDING: 25.5 USDT on Tron to TXYZ\n"
	for name, test := range map[string]struct {
		plan   func(gw *gatewaytest.Server, id string) error
		stdout string
		err    string
	}{
		"completed": {
			func(gw *gatewaytest.Server, id string) error { return gw.SetStatusAfter(id, time.Minute, "COMPLETED") },
			pending + "COMPLETED: 25.5 USDT on Tron to TXYZ\n", "",
		},
		"failed": {
			func(gw *gatewaytest.Server, id string) error { return gw.SetStatusAfter(id, time.Minute, "FAILED") },
			pending + "FAILED: 25.5 USDT on Tron to TXYZ\n", "the service reports FAILED",
		},
		"neither": {
			func(*gatewaytest.Server, string) error { return nil },
			pending, `last seen "PENDING"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw := gatewaytest.NewMemoryServer()
				defer gw.Close()
				id := gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron"})
				require.NoError(t, test.plan(gw, id))
				client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
				require.NoError(t, err)
				var stdout strings.Builder
				err = watch(t.Context(), client, id, &stdout)
				assert.Equal(t, test.stdout, stdout.String())
				if test.err == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, test.err)
				}
			})
		})
	}
}

func TestWatch_interrupted(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	assert.ErrorIs(t, watch(ended, client, "w-1", &strings.Builder{}), context.Canceled)
}
