package gatewaytest

import (
	"fmt"
	"slices"
	"strings"
)

// A Shape is a JSON form of a result whose form is not documented. All shapes are
// inventions of this package: the real service may use any of them, or none.
// [Server.SetShape] switches between the shapes of one result.
type Shape string

// Invented results of a lookup by identifier, or by symbol and network.
const (
	// PairAsRecord is an invention: the coin-network record itself. It is the default.
	PairAsRecord Shape = "pair/record"
	// PairInArray is an invention: an array of that one record.
	PairInArray Shape = "pair/array"
)

// Invented results of a lookup by symbol alone.
const (
	// SymbolAsArray is an invention: an array of the coin's records, one for each
	// network. It is the default.
	SymbolAsArray Shape = "symbol/array"
	// SymbolAsRecord is an invention: the first of these records alone.
	SymbolAsRecord Shape = "symbol/record"
)

// Invented results of the exchange rates.
const (
	// RatesAsRecords is an invention: [{"symbol":"BTC","usd":"1.5","eur":"1.4"}].
	// It is the default.
	RatesAsRecords Shape = "rates/records"
	// RatesAsNumbers is an invention: [{"symbol":"BTC","usd":1.5,"eur":1.4}]. A rate
	// that is not a JSON number stays a string.
	RatesAsNumbers Shape = "rates/numbers"
	// RatesUpperCase is an invention: [{"currency":"BTC","USD":"1.5","EUR":"1.4"}].
	RatesUpperCase Shape = "rates/upper"
	// RatesWithCoin is an invention: [{"coin":{...},"usd":"1.5","eur":"1.4"}] with
	// the coin record of the catalog.
	RatesWithCoin Shape = "rates/coin"
	// RatesBySymbol is an invention: {"BTC":{"usd":"1.5","eur":"1.4"}}.
	RatesBySymbol Shape = "rates/symbol"
	// RatesByFiat is an invention: {"usd":{"BTC":"1.5"},"eur":{"BTC":"1.4"}}.
	RatesByFiat Shape = "rates/fiat"
)

// Invented results of a balance lookup.
const (
	// BalanceAsRecords is an invention:
	// [{"coinSymbol":"BTC","networkName":"Bitcoin","balance":"0.5"}]. It is the default.
	BalanceAsRecords Shape = "balance/records"
	// BalanceAsRecord is an invention: the record without the array if the lookup
	// finds exactly one, otherwise as BalanceAsRecords.
	BalanceAsRecord Shape = "balance/record"
	// BalanceBare is an invention: the amount alone, "0.5", if the lookup finds
	// exactly one record, otherwise as BalanceAsRecords.
	BalanceBare Shape = "balance/bare"
	// BalanceBySymbol is an invention: {"BTC":"0.5"}, the sum over a coin's networks.
	BalanceBySymbol Shape = "balance/symbol"
)

// Invented results of a created invoice.
const (
	// InvoiceFlat is an invention: the invoice as the result. It is the default.
	InvoiceFlat Shape = "invoice/flat"
	// InvoiceNested is an invention: {"invoice":{...}}.
	InvoiceNested Shape = "invoice/nested"
	// InvoicePayable is an invention: the invoice as the result, with further members that
	// tell a buyer how to pay: {...,"address":"invented-btc-bitcoin-0f3a","tag":"","expiresAt":"2026-01-02T15:04:05Z"}.
	// The address is of no blockchain. The tag is empty except on the network XRP Ledger. The
	// deadline is 30 minutes after the creation.
	InvoicePayable Shape = "invoice/payable"
)

// SetShape sets the shape of the result that the shape belongs to, from the next
// request on. It panics if the shape is not one of this package's constants.
func (s *Server) SetShape(shape Shape) {
	if !slices.Contains(shapes(), shape) {
		panic(fmt.Sprintf("gatewaytest: no shape %q", string(shape)))
	}
	group, _, _ := strings.Cut(string(shape), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shapes[group] = shape
}

// shapes returns all shapes.
func shapes() []Shape {
	return []Shape{
		PairAsRecord, PairInArray,
		SymbolAsArray, SymbolAsRecord,
		RatesAsRecords, RatesAsNumbers, RatesUpperCase, RatesWithCoin, RatesBySymbol, RatesByFiat,
		BalanceAsRecords, BalanceAsRecord, BalanceBare, BalanceBySymbol,
		InvoiceFlat, InvoiceNested, InvoicePayable,
	}
}
