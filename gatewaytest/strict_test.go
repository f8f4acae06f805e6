package gatewaytest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestWithStrict(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewServer(gatewaytest.WithStrict())
	t.Cleanup(s.Close)
	assert.Equal(t, 201, post(s, invoice(s, "o-1", `,"baseCurrency":"USD","coinSymbol":"BTC","networkName":"Bitcoin"`)).status)
	assert.Equal(t, 200, get(t, s, "/api/balance/?coinSymbol=BTC&networkName=Bitcoin").status)

	misspelled := post(s, invoice(s, "o-2", `,"coinsymbol":"BTC"`))
	assert.Equal(t, 400, misspelled.status)
	assert.Contains(t, misspelled.body, `member \"coinsymbol\" is not documented`)
	assert.Empty(t, s.InvoicesFor("o-2"))
	for _, path := range []string{"/api/balance/?coin=BTC", "/api/exchange-rate?coinSymbol=BTC"} {
		got := get(t, s, path)
		assert.Equal(t, 400, got.status)
		assert.Contains(t, got.body, "is not documented")
	}
}
