package gatewaytest

import (
	"fmt"
	"slices"
	"strings"
)

// A Shape is one way to write a result that the service does not describe. Every
// one of them is an invention of this package: the real service may use any of
// them, or none. [Server.SetShape] switches between the shapes of one result.
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
	// that is no JSON number stays a string.
	RatesAsNumbers Shape = "rates/numbers"
	// RatesUpperCase is an invention: [{"currency":"BTC","USD":"1.5","EUR":"1.4"}].
	RatesUpperCase Shape = "rates/upper"
	// RatesWithCoin is an invention: [{"coin":{...},"usd":"1.5","eur":"1.4"}] with
	// the coin record of the catalogue.
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
	// BalanceAsRecord is an invention: the record without the array, when the lookup
	// finds one; otherwise as BalanceAsRecords.
	BalanceAsRecord Shape = "balance/record"
	// BalanceBare is an invention: the amount alone, "0.5", when the lookup finds
	// one; otherwise as BalanceAsRecords.
	BalanceBare Shape = "balance/bare"
	// BalanceBySymbol is an invention: {"BTC":"0.5"}, a coin's networks added up.
	BalanceBySymbol Shape = "balance/symbol"
)

// Invented results of a created invoice.
const (
	// InvoiceFlat is an invention: the invoice as the result. It is the default.
	InvoiceFlat Shape = "invoice/flat"
	// InvoiceNested is an invention: {"invoice":{...}}.
	InvoiceNested Shape = "invoice/nested"
)

// SetShape switches the result that the shape is for, from the next request on.
// It panics when the shape is not one of this package.
func (s *Server) SetShape(shape Shape) {
	if !slices.Contains(shapes(), shape) {
		panic(fmt.Sprintf("gatewaytest: no shape %q", string(shape)))
	}
	group, _, _ := strings.Cut(string(shape), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shapes[group] = shape
}

// shapes returns all there are.
func shapes() []Shape {
	return []Shape{
		PairAsRecord, PairInArray,
		SymbolAsArray, SymbolAsRecord,
		RatesAsRecords, RatesAsNumbers, RatesUpperCase, RatesWithCoin, RatesBySymbol, RatesByFiat,
		BalanceAsRecords, BalanceAsRecord, BalanceBare, BalanceBySymbol,
		InvoiceFlat, InvoiceNested,
	}
}
