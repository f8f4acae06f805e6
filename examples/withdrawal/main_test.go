package main

import (
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
	for status, want := range map[string]struct{ stdout, err string }{ // the status after a minute
		"COMPLETED": {pending + "COMPLETED: 25.5 USDT on Tron to TXYZ\n", ""},
		"FAILED":    {pending + "FAILED: 25.5 USDT on Tron to TXYZ\n", "the service reports FAILED"},
		"PENDING":   {pending, `last seen "PENDING"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			gw := gatewaytest.NewMemoryServer()
			defer gw.Close()
			id := gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron"})
			require.NoError(t, gw.SetStatusAfter(id, time.Minute, status))
			client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
			require.NoError(t, err)
			var stdout strings.Builder
			err = watch(t.Context(), client, id, &stdout)
			assert.Equal(t, want.stdout, stdout.String())
			assert.Equal(t, want.err == "", err == nil)
			assert.True(t, err == nil || strings.Contains(err.Error(), want.err), "%v", err)
		})
	}
}
