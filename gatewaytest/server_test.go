package gatewaytest_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// Concurrent use, for the race detector; no request is lost.
func TestServer_concurrent_use(t *testing.T) {
	t.Parallel()
	s := start(t)
	const workers, rounds = 8, 10
	s.SetRepeatedOrders(gatewaytest.RepeatSame)
	s.InjectFault(gatewaytest.OpCreateInvoice, workers*rounds/2, gatewaytest.FaultCommitThenDrop())
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				post(s, invoice(s, fmt.Sprintf("o-%d", (w+i)%rounds), ""))
				try(s, "GET", "/api/networks-coins/USDT", "")
				try(s, "GET", "/api/balance/", "", "x-api-key", s.APIKey)
				try(s, "GET", "/api/exchange-rate", "")
				id := s.AddWithdrawal(gatewaytest.Withdrawal{})
				_ = s.SetStatusAfterRequests(id, 1, "FAILED")
				try(s, "GET", "/api/withdrawal/inquiry/"+id, "", "x-api-key", s.APIKey)
				_ = s.SetWithdrawalStatus(id, "COMPLETED")
				s.SetRate("BTC", "1", "1")
				s.SetBalance("BTC", "Bitcoin", "1")
				s.SetCatalog(s.Catalog())
				s.SetResult(gatewaytest.OpExchangeRates, `[]`)
				s.InjectFault(gatewaytest.OpCoinNetworks, 1, gatewaytest.FaultStall())
				_, _, _ = s.Requests(), s.Invoices(), s.Withdrawals()
				_, _, _ = s.Rates(), s.Balances(), s.String()
			}
		})
	}
	group.Wait()
	require.Len(t, s.Requests(), 5*workers*rounds)
	assert.Len(t, s.Invoices(), rounds, "one for each order, whoever asks first")
	lost := 0
	for _, r := range s.Requests() {
		if r.Status == 0 {
			lost++
		}
	}
	assert.Equal(t, workers*rounds/2, lost)
}

// The package implements the interface independently: it imports neither the
// client nor a third-party package, nor a package for tests only.
func TestPackage_imports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range parsed.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			assert.NotEqual(t, "github.com/cryptogw/gateway", path, file)
			if !strings.HasSuffix(file, "_test.go") {
				assert.NotContains(t, path, ".", file)
				assert.NotContains(t, []string{"testing", "net/http/httptest"}, path, file)
			}
		}
	}
}
