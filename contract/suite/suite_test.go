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
	"github.com/cryptogw/gateway/internal/documented/everycall"
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

// The stand-in conforms in all shapes of the bodies that are not shown, and the cases
// make every call of the client.
func TestRun_against_gatewaytest(t *testing.T) {
	for _, shapes := range [][]gatewaytest.Shape{
		nil,
		{gatewaytest.PairInArray, gatewaytest.SymbolAsRecord, gatewaytest.RatesAsNumbers, gatewaytest.BalanceAsRecord, gatewaytest.InvoiceNested},
		{gatewaytest.RatesUpperCase, gatewaytest.BalanceBare, gatewaytest.InvoicePayable},
		{gatewaytest.RatesWithCoin, gatewaytest.BalanceBySymbol},
		{gatewaytest.RatesBySymbol},
		{gatewaytest.RatesByFiat},
	} {
		gw, target := standIn(t)
		for _, shape := range shapes {
			gw.SetShape(shape)
		}
		suite.Run(t, target)
		assert.Len(t, gw.Invoices(), 6, "as the documentation of AllowWrites states")
		sent := map[gatewaytest.Operation]bool{}
		for _, r := range gw.Requests() {
			sent[r.Operation] = true
		}
		for _, c := range everycall.All() {
			assert.True(t, sent[gatewaytest.Operation(c.Operation)], "no case calls %s", c.Name)
		}
	}
}

// With LIVE_GATEWAY=1 the same table runs against the gateway that the environment
// names, and fails when it names none. It writes only when GATEWAY_ALLOW_WRITES is 1.
func TestRun_against_the_service(t *testing.T) {
	target := suite.Target{
		BaseURL: os.Getenv("GATEWAY_BASE_URL"), APIKey: os.Getenv("GATEWAY_API_KEY"),
		WithdrawalID: os.Getenv("GATEWAY_WITHDRAWAL_ID"), AllowWrites: os.Getenv("GATEWAY_ALLOW_WRITES") == "1", Readable: true,
	}
	if os.Getenv("LIVE_GATEWAY") != "1" {
		t.Log("LIVE_GATEWAY is not 1: using a stand-in")
		_, standIn := standIn(t)
		target.BaseURL, target.APIKey, target.Transport = standIn.BaseURL, standIn.APIKey, standIn.Transport
	} else {
		require.NotEmpty(t, target.BaseURL, "GATEWAY_BASE_URL")
		require.NotEmpty(t, target.APIKey, "GATEWAY_API_KEY")
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
		defer transport.CloseIdleConnections()
		target.Transport = transport
	}
	suite.Run(t, target)
}

// A target that allows nothing gets reads only, and no inquiry that needs a withdrawal.
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

// Every case has a name of its own and a source.
func TestCases(t *testing.T) {
	var names []string
	for _, c := range suite.Cases() {
		names = append(names, c.Name)
		assert.NotEmpty(t, c.Where, c.Name)
	}
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names))
}

// A case ends with its context, and fails for a target with an invalid URL.
func TestCase_Check_context(t *testing.T) {
	gw, target := standIn(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range suite.Cases() {
		require.Error(t, c.Check(ended, target), c.Name)
		require.Error(t, c.Check(t.Context(), suite.Target{BaseURL: "://", APIKey: gw.APIKey}), c.Name)
	}
	assert.Empty(t, gw.Requests())
}
