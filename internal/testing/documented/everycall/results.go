package everycall

import (
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Identifiers in the results below.
const (
	PairID       = "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11"
	WithdrawalID = "c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"
)

// Results as docs/interface.md describes them. They are written by hand, so that a
// test cannot agree with the client by sharing its structs.
const (
	NetworkJSON = `{"id":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33","name":"Tron (TRC20)","isActive":true,` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z"}`
	CoinJSON = `{"id":"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44","name":"Tether","symbol":"USDT","precision":6,` +
		`"minAmount":"0.00000100","isActive":true,` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z"}`
	PairJSON = `{"id":"` + PairID + `","withdrawalFee":"1.5","swapFee":"0.000000010000000001",` +
		`"minWithdraw":"10","maxWithdraw":"123456789012345678901234.12345678",` +
		`"depositable":true,"withdrawable":false,"confirmation":20,"arrivalTime":5,"expirationTime":60,` +
		`"networkId":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33","coinId":"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44",` +
		`"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-06-01T00:00:00.000Z",` +
		`"network":` + NetworkJSON + `,"coin":` + CoinJSON + `}`
	WithdrawalJSON = `{"status":"PENDING","destination":"TXYZ","amount":"25.000001","fee":"1.5",` +
		`"coin":"USDT","network":"Tron (TRC20)","withdrawRequestId":"` + WithdrawalID + `"}`
	RatesJSON   = `[{"symbol":"BTC","usd":"64123.55","eur":"59000.01"},{"symbol":"USDT","usd":"1.0001","eur":"0.92"}]`
	BalanceJSON = `[{"coinSymbol":"USDT","networkName":"Tron (TRC20)","balance":"250.75"}]`
	InvoiceJSON = `{"invoiceId":"inv-1","address":"TXYZ"}`
)

// Enveloped puts the documented envelope of a success around a result.
func Enveloped(result string) string {
	return `{"message":"Operation was successful.","result":` + result + `,"meta":{}}`
}

// Documented returns the values that [Call.Result] belongs to.
func Documented() Values {
	return Values{
		PairID: PairID, CoinSymbol: "USDT", NetworkName: "Tron (TRC20)", Balance: gateway.BalanceQuery{CoinSymbol: "USDT"},
		Invoice: Order("A-17"), WithdrawalID: WithdrawalID,
	}
}

// KnownTo returns values for which a stand-in has records.
func KnownTo(gw *gatewaytest.Server) Values {
	pairs := gw.Catalog()
	pair := pairs[max(0, slices.IndexFunc(pairs, hasSpace))] // its network is escaped in a path
	return Values{
		PairID: pair.ID, CoinSymbol: pair.Coin.Symbol, NetworkName: pair.Network.Name,
		Invoice: Order("A-17"), WithdrawalID: gw.Withdrawals()[0].WithdrawRequestID,
	}
}

func hasSpace(p gatewaytest.CoinNetwork) bool { return strings.Contains(p.Network.Name, " ") }

// Order returns a valid invoice request for an order, without optional fields.
func Order(id string) gateway.InvoiceRequest {
	return gateway.InvoiceRequest{
		OrderID: id, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.4895"),
	}
}
