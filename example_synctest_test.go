package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// This is the recipe of the documentation of package gatewaytest, word for word.
func TestSynctestRecipe_Payout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		client, err := gateway.New(gw.URL, gw.APIKey,
			gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
		if err != nil {
			t.Fatal(err)
		}

		// The withdrawal completes in a week, and the limit is 100 requests a day.
		const week = 7 * 24 * time.Hour
		id := gw.Withdrawals()[0].WithdrawRequestID
		if err := gw.SetStatusAfter(id, week, "COMPLETED"); err != nil {
			t.Fatal(err)
		}
		gw.SetRateLimit(100, 24*time.Hour)

		begun := time.Now()
		paid, err := client.WaitWithdrawal(t.Context(), id, gateway.WaitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); paid.Status != gateway.WithdrawalCompleted || waited < week {
			t.Errorf("%s after %v", paid.Status, waited)
		}
	})
}

// recipe is the source text of the test above.
func recipe(t *testing.T) string {
	t.Helper()
	source := fileText(t, "example_synctest_test.go")
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "TestSynctestRecipe_Payout" {
			return source[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]
		}
	}
	require.Fail(t, "the recipe is gone")
	return ""
}

// What the documentation shows is what is compiled and run here.
func TestSynctestRecipe_IsInTheDocumentation(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	for line := range strings.Lines(fileText(t, "gatewaytest/doc.go")) {
		doc.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), "\t"))
	}
	assert.Contains(t, doc.String(), recipe(t))
}

// withoutNetwork returns a stand-in without a network and a client for it. The test
// closes the stand-in in its bubble.
func withoutNetwork(t *testing.T, opts ...gateway.Option) (*gatewaytest.Server, *gateway.Client) {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	client, err := gateway.New(gw.URL, gw.APIKey, append(opts, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))...)
	require.NoError(t, err)
	return gw, client
}

// answered counts the requests by the status of their answers.
func answered(gw *gatewaytest.Server) map[int]int {
	counts := map[int]int{}
	for _, r := range gw.Requests() {
		counts[r.Status]++
	}
	return counts
}

// The wait is as long as it has to be, and refusals are waited out, not repeated.
func TestSynctestRecipe_AWeekOfWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const week, hour = 7 * 24 * time.Hour, time.Hour
		gw, client := withoutNetwork(t)
		id := gw.Withdrawals()[0].WithdrawRequestID
		require.NoError(t, gw.SetStatusAfter(id, 3*24*hour, "PROCESSING"))
		require.NoError(t, gw.SetStatusAfter(id, week, "COMPLETED"))
		gw.SetRateLimit(100, 24*hour)
		begun := gw.Now()

		seen := []gateway.WithdrawalStatus{}
		for w, err := range client.WatchWithdrawal(t.Context(), id, gateway.WaitOptions{}) {
			require.NoError(t, err)
			seen = append(seen, w.Status)
		}
		assert.Equal(t, []gateway.WithdrawalStatus{"PENDING", "PROCESSING", "COMPLETED"}, seen)
		assert.GreaterOrEqual(t, gw.Now().Sub(begun), week)
		assert.Less(t, gw.Now().Sub(begun), week+hour)
		counts := answered(gw)
		assert.Equal(t, 701, counts[201], "all that a week allows, and the first of the next day")
		assert.Less(t, counts[429], 8*24, "one in an hour at most")
		assert.Greater(t, counts[429], 7*12)
	})
}

// A storm of calls meets a limit, and each of them is answered in the end.
func TestSynctestRecipe_AStormOfCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw, client := withoutNetwork(t, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 5}))
		gw.SetRateLimit(10, 9500*time.Millisecond)
		begun := time.Now()
		var calls sync.WaitGroup
		for range 30 {
			calls.Go(func() {
				_, err := client.ExchangeRates(t.Context())
				assert.NoError(t, err)
			})
		}
		calls.Wait()
		assert.Equal(t, 20*time.Second, time.Since(begun), "two windows, of which Retry-After counts whole seconds")
		assert.Equal(t, map[int]int{200: 30, 429: 20 + 10}, answered(gw))
	})
}

// An invoice that is refused for the rate is not created, and not sent again.
func TestSynctestRecipe_AnInvoiceTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw, client := withoutNetwork(t)
		gw.SetRateLimit(1, time.Minute)
		_, err := client.ExchangeRates(t.Context())
		require.NoError(t, err)
		_, err = client.CreateInvoice(t.Context(), order("A-17"))
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		require.ErrorIs(t, err, gateway.ErrRateLimited)
		assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
		assert.Equal(t, time.Minute, refusal.RetryAfter)
		assert.Empty(t, gw.Invoices())
		gw.Advance(refusal.RetryAfter)
		_, err = client.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		assert.Len(t, gw.InvoicesFor("A-17"), 1)
	})
}

// A stand-in that has drifted is understood in every shape, as one that has not.
func TestSynctestRecipe_Drift(t *testing.T) {
	t.Parallel()
	for _, shape := range []gatewaytest.Shape{
		gatewaytest.PairAsRecord, gatewaytest.PairInArray, gatewaytest.SymbolAsArray, gatewaytest.SymbolAsRecord,
		gatewaytest.RatesAsRecords, gatewaytest.RatesAsNumbers, gatewaytest.RatesUpperCase, gatewaytest.RatesWithCoin,
		gatewaytest.RatesBySymbol, gatewaytest.RatesByFiat,
		gatewaytest.BalanceAsRecords, gatewaytest.BalanceAsRecord, gatewaytest.BalanceBare, gatewaytest.BalanceBySymbol,
		gatewaytest.InvoiceFlat, gatewaytest.InvoiceNested,
	} {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw, client := withoutNetwork(t)
				gw.SetShape(shape)
				right := everything(t, gw, client)
				gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.DriftFields())
				assert.Equal(t, right, everything(t, gw, client))
				gw.ClearFaults()
				gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.Drift())
				drifted := everything(t, gw, client)
				held := drifted[len(drifted)-1].(gateway.Withdrawal)
				assert.False(t, held.Status.Known())
				held.Status = gateway.WithdrawalPending
				drifted[len(drifted)-1] = held
				assert.Equal(t, right, drifted)
			})
		})
	}
}

// everything is what all methods read, without what is kept as it came.
func everything(t *testing.T, gw *gatewaytest.Server, client *gateway.Client) []any {
	t.Helper()
	ctx := t.Context()
	pairs, err := client.CoinNetworks(ctx)
	require.NoError(t, err)
	byID, err := client.CoinNetwork(ctx, pairs[5].ID)
	require.NoError(t, err)
	pair, err := client.CoinNetworkBySymbol(ctx, "USDT", "Tron")
	require.NoError(t, err)
	bySymbol, err := client.CoinNetworksBySymbol(ctx, "USDT")
	require.NoError(t, err)
	rates, err := client.ExchangeRates(ctx)
	require.NoError(t, err)
	balance, err := client.Balance(ctx, gateway.BalanceQuery{CoinSymbol: "BTC"})
	require.NoError(t, err)
	invoice, err := client.CreateInvoice(ctx, order("A-17"))
	require.NoError(t, err)
	price, ok := invoice.Text("price")
	require.True(t, ok)
	withdrawal, err := client.Withdrawal(ctx, gw.Withdrawals()[0].WithdrawRequestID)
	require.NoError(t, err)
	return []any{pairs, *byID, *pair, bySymbol, rates.Rates, balance.Amounts, price, *withdrawal}
}
