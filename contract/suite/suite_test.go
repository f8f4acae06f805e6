package suite_test

import (
	"context"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standIn starts a gateway of gatewaytest, as a target that allows everything.
func standIn(t *testing.T) (*gatewaytest.Server, suite.Target) {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	return gw, suite.Target{
		BaseURL: gw.URL, APIKey: gw.APIKey, Transport: gw.Transport(),
		WithdrawalID: gw.Withdrawals()[0].WithdrawRequestID, AllowWrites: true, Readable: true,
	}
}

// The stand-in does what a gateway must do, whatever shapes it gives to the
// bodies that are not shown.
func TestRun_against_gatewaytest(t *testing.T) {
	for _, shapes := range [][]gatewaytest.Shape{
		nil,
		{gatewaytest.PairInArray, gatewaytest.SymbolAsRecord, gatewaytest.RatesAsNumbers, gatewaytest.BalanceAsRecord, gatewaytest.InvoiceNested},
		{gatewaytest.RatesUpperCase, gatewaytest.BalanceBare},
		{gatewaytest.RatesWithCoin, gatewaytest.BalanceBySymbol},
		{gatewaytest.RatesBySymbol},
		{gatewaytest.RatesByFiat},
	} {
		gw, target := standIn(t)
		for _, shape := range shapes {
			gw.SetShape(shape)
		}
		suite.Run(t, target)
		assert.Len(t, gw.Invoices(), 6, "as the documentation of AllowWrites says")
	}
}

// The same table asks the service itself, when the environment names one. It
// writes only when GATEWAY_ALLOW_WRITES is 1.
func TestRun_against_the_service(t *testing.T) {
	target := suite.Target{
		BaseURL: os.Getenv("GATEWAY_BASE_URL"), APIKey: os.Getenv("GATEWAY_API_KEY"),
		WithdrawalID: os.Getenv("GATEWAY_WITHDRAWAL_ID"), AllowWrites: os.Getenv("GATEWAY_ALLOW_WRITES") == "1", Readable: true,
	}
	if target.BaseURL == "" || target.APIKey == "" {
		t.Log("GATEWAY_BASE_URL and GATEWAY_API_KEY name no gateway: only stand-ins are asked")
		_, standIn := standIn(t)
		target.BaseURL, target.APIKey, target.Transport = standIn.BaseURL, standIn.APIKey, standIn.Transport
	} else {
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
		defer transport.CloseIdleConnections()
		target.Transport = transport
	}
	suite.Run(t, target)
}

// A target that allows nothing is only read from, and asked for no withdrawal
// that it would have to know.
func TestCase_Applies(t *testing.T) {
	gw, target := standIn(t)
	target.AllowWrites, target.WithdrawalID = false, ""
	suite.Run(t, target)
	for _, r := range gw.Requests() {
		assert.Equal(t, http.MethodGet, r.Method)
		assert.False(t, r.Operation == gatewaytest.OpWithdrawal && r.KeyOK, "an inquiry that could succeed")
	}
	var left []string
	for _, c := range suite.Cases() {
		if !c.Applies(target) {
			left = append(left, c.Name)
			assert.True(t, c.Writes || c.Withdrawal, c.Name)
		}
	}
	assert.Len(t, left, 6)
}

// Every case has a name of its own and says what it is from.
func TestCases(t *testing.T) {
	var names []string
	for _, c := range suite.Cases() {
		names = append(names, c.Name)
		assert.NotEmpty(t, c.Where, c.Name)
	}
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names))
}

// A case ends with its context, and a target nobody could call is an error.
func TestCase_Check_ends(t *testing.T) {
	gw, target := standIn(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range suite.Cases() {
		require.Error(t, c.Check(ended, target), c.Name)
		require.Error(t, c.Check(t.Context(), suite.Target{BaseURL: "://", APIKey: gw.APIKey}), c.Name)
	}
	assert.Empty(t, gw.Requests())
}
