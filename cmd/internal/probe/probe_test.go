package probe

import (
	"context"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

var milliseconds = regexp.MustCompile(`\d+ ms`)

func TestRun_text(t *testing.T) {
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(500, "try again"))
	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultRefuse(403, "not you"))
	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultDrift())
	r := report(t, gw)
	require.EqualError(t, r.Err(), "1 response could not be read")
	assert.Equal(t, 2, r.Findings)
	assert.Equal(t, `CoinNetworks, GET /api/networks-coins
  200 in N ms: array of 25 records
CoinNetwork, GET /api/networks-coins/{id}
  200 in N ms: one record
CoinNetworkBySymbol, GET /api/networks-coins/{coinSymbol}/{networkName}
  200 in N ms: one record
CoinNetworksOf, GET /api/networks-coins/{coinSymbol}
  200 in N ms: array of 2 records
ExchangeRates, GET /api/exchange-rate
  200 in N ms and 2 attempts: array of 14 records (eur string, symbol string, usd string)
Balance, GET /api/balance/
  403 in N ms
  could not be read: gateway: balance: 403: "not you"
Balance, GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}
  200 in N ms: array of 1 record (balance string, coinSymbol string, networkName string, undocumented object)
  unknown field /undocumented
  unknown field /result/0/undocumented: object
Withdrawal, GET /api/withdrawal/inquiry/{withdrawRequestId}
  skipped: name a withdrawal

Documented and so: 6
  GET /api/networks-coins: an array of records, all members as documented (I-13, I-38 to I-42, I-45, I-57 to I-91)
  GET /api/networks-coins/{id}: every member of the record is as documented (I-14, I-57 to I-91)
  GET /api/networks-coins/{coinSymbol}/{networkName}: every member of the record is as documented (I-15, I-57 to I-91)
  GET /api/networks-coins/{coinSymbol}: every member of the record is as documented (I-57 to I-91)
  GET /api/exchange-rate: there are rates (I-18)
  GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}: there is a balance, for the key in the header (I-19, I-30)

Not stated, and found to be: 12
  GET /api/networks-coins: needs no key (I-34)
  GET /api/networks-coins/{id}: one record (I-50)
  GET /api/networks-coins/{id}: needs no key (I-34)
  GET /api/networks-coins/{coinSymbol}/{networkName}: one record (I-50)
  GET /api/networks-coins/{coinSymbol}/{networkName}: needs no key (I-34)
  GET /api/networks-coins/{coinSymbol}: array of 2 records (I-16, I-51)
  GET /api/networks-coins/{coinSymbol}: needs no key (I-34)
  GET /api/exchange-rate: array of 14 records (eur string, symbol string, usd string) (I-95)
  GET /api/exchange-rate: needs no key (I-34)
  GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}: unknown field /undocumented (I-6)
  GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}: unknown field /result/0/undocumented: object (I-6)
  GET /api/balance/?coinSymbol={coinSymbol}&networkName={networkName}: array of 1 record (balance string, coinSymbol string, networkName string, undocumented object) (I-105)

Could not be asked: 2
  GET /api/balance/: gateway: balance: 403: "not you"
  GET /api/withdrawal/inquiry/{withdrawRequestId}: name a withdrawal

Documented and not so: 0
`, milliseconds.ReplaceAllString(printed(r), "N ms"))
}

// What is documented and not so decides, whatever else is wrong.
func TestVerdict_notSo(t *testing.T) {
	gw := serve(t, response{pathWithdrawal, 200, enveloped(withdrawalJSON)}, response{pathRates, 500, "no"},
		response{pathListing, 200, "<html>"}, response{pathBalance, 200, enveloped(`{"total":{"sum":"1"}}`)})
	r := report(t, gw, requestID)
	require.EqualError(t, r.Err(), "the gateway differs from the interface: 2 differences")
	assert.Equal(t, 3, r.Unread)
	assert.Equal(t, "I-7, I-38", r.Verdict.NotSo[0].Statements)
	assert.Contains(t, r.Verdict.NotSo[0].Text, "response not understood")
	assert.Equal(t, Line{"I-130", "GET /api/withdrawal/inquiry/{withdrawRequestId}", "other code: 200, not 201"}, r.Verdict.NotSo[1])
	assert.Contains(t, r.Verdict.Found[0].String(), "GET /api/balance/: unknown (total object); the client cannot read it: gateway: balance: ")
	assert.Len(t, r.Verdict.NotAsked, 5, "the rates, and what only the listing could name")
}

// Without a key, fewer calls are made.
func TestRun_noKey(t *testing.T) {
	gw := standIn(t)
	r := report(t, &gatewaytest.Server{URL: gw.URL}, "w-1")
	require.NoError(t, r.Err())
	for _, call := range []Call{r.Calls[5], r.Calls[6], r.Calls[7]} {
		assert.Equal(t, "it needs a key: set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE", call.Skipped)
	}
	assert.Len(t, gw.Requests(), 5)
}

func TestRun_keyOnPublic(t *testing.T) {
	for _, always := range []bool{false, true} {
		gw := standIn(t)
		r := reportOf(t, gw, &Probe{KeyOnPublic: always})
		require.NoError(t, r.Err())
		require.Len(t, gw.Requests(), 7)
		for _, request := range gw.Requests() {
			sent := request.Operation == gatewaytest.OpBalance || always
			assert.Equal(t, sent, request.KeyIn == "header", request.Operation)
		}
		assert.Equal(t, !always, r.Verdict.Found[0].Statements == "I-34")
	}
}

// The report has the calls made before the context ended.
func TestRun_interrupted(t *testing.T) {
	gw := standIn(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	p := &Probe{Print: func(call Call) {
		if call.Method == "CoinNetworksOf" {
			interrupt()
		}
	}}
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithObserver(p.Observer()))
	require.NoError(t, err)
	r := p.Run(ctx, client, gw.URL)
	assert.Len(t, gw.Requests(), 4)
	assert.Len(t, r.Calls, 4)
	assert.Equal(t, gw.URL, r.URL)
}
