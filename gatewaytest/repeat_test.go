package gatewaytest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestServer_SetRepeatedOrders(t *testing.T) {
	t.Parallel()
	tests := map[gatewaytest.RepeatedOrders]struct {
		status   int
		invoices int
	}{
		gatewaytest.RepeatAgain:   {201, 2},
		gatewaytest.RepeatSame:    {200, 1},
		gatewaytest.RepeatRefused: {409, 1},
	}
	require.Len(t, tests, len(gatewaytest.AllRepeatedOrders()))
	for kind, tt := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetRepeatedOrders(kind)
			first := post(s, invoice(s, "o-1", ""))
			require.Equal(t, 201, first.status)
			require.Contains(t, first.body, `"address":"invented-`)
			require.Equal(t, 201, post(s, invoice(s, "o-2", "")).status, "of another order")

			second := post(s, invoice(s, "o-1", `,"coinSymbol":"BTC"`))
			assert.Equal(t, tt.status, second.status)
			assert.Len(t, s.InvoicesFor("o-1"), tt.invoices)
			assert.Equal(t, kind == gatewaytest.RepeatSame, first.body == second.body, "an invoice has an identifier of its own")
			assert.Equal(t, 400, post(s, invoice(s, "o-1", `,"price":1`)).status, "a request that is not valid is refused for that")
		})
	}
}
