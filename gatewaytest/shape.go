package gatewaytest

import (
	"fmt"
	"slices"
)

// A Shape is a JSON form of a result whose form is not documented. All shapes are
// inventions of this package: the real service may use any of them, or none. They are
// the constants of [PairShape], [SymbolShape], [RatesShape], [BalanceShape] and
// [InvoiceShape]; [Server.SetShape] switches between those of one type, and [Shapes]
// lists all.
type Shape interface {
	// String returns the name of the shape, as [InventedHeader] has it.
	String() string

	set(*shapes) // is implemented by this package only
}

// shapes are the current shapes of a server.
type shapes struct {
	pair    PairShape
	symbol  SymbolShape
	rates   RatesShape
	balance BalanceShape
	invoice InvoiceShape
}

func defaultShapes() shapes {
	return shapes{PairAsRecord, SymbolAsArray, RatesAsRecords, BalanceAsRecords, InvoiceFlat}
}

// A PairShape is the form of the result of a lookup by identifier, or by symbol and
// network ([OpCoinNetwork], [OpCoinNetworkBySymbol]).
type PairShape string

// Invented results of a lookup by identifier, or by symbol and network.
const (
	// PairAsRecord is an invention: the coin-network record itself. It is the default.
	PairAsRecord PairShape = "pair/record"
	// PairInArray is an invention: an array of that one record.
	PairInArray PairShape = "pair/array"
)

// String implements [Shape].
func (s PairShape) String() string { return string(s) }

func (s PairShape) set(all *shapes) { all.pair = s }

// A SymbolShape is the form of the result of a lookup by symbol alone ([OpCoinNetworksOf]).
type SymbolShape string

// Invented results of a lookup by symbol alone.
const (
	// SymbolAsArray is an invention: an array of the coin's records, one for each
	// network. It is the default.
	SymbolAsArray SymbolShape = "symbol/array"
	// SymbolAsRecord is an invention: the first of these records alone.
	SymbolAsRecord SymbolShape = "symbol/record"
)

// String implements [Shape].
func (s SymbolShape) String() string { return string(s) }

func (s SymbolShape) set(all *shapes) { all.symbol = s }

// A RatesShape is the form of the exchange rates ([OpExchangeRates]).
type RatesShape string

// Invented results of the exchange rates.
const (
	// RatesAsRecords is an invention: [{"symbol":"BTC","usd":"1.5","eur":"1.4"}].
	// It is the default.
	RatesAsRecords RatesShape = "rates/records"
	// RatesAsNumbers is an invention: [{"symbol":"BTC","usd":1.5,"eur":1.4}]. A rate
	// that is not a JSON number stays a string.
	RatesAsNumbers RatesShape = "rates/numbers"
	// RatesUpperCase is an invention: [{"currency":"BTC","USD":"1.5","EUR":"1.4"}].
	RatesUpperCase RatesShape = "rates/upper"
	// RatesWithCoin is an invention: [{"coin":{...},"usd":"1.5","eur":"1.4"}] with
	// the coin record of the catalog.
	RatesWithCoin RatesShape = "rates/coin"
	// RatesBySymbol is an invention: {"BTC":{"usd":"1.5","eur":"1.4"}}.
	RatesBySymbol RatesShape = "rates/symbol"
	// RatesByFiat is an invention: {"usd":{"BTC":"1.5"},"eur":{"BTC":"1.4"}}.
	RatesByFiat RatesShape = "rates/fiat"
)

// String implements [Shape].
func (s RatesShape) String() string { return string(s) }

func (s RatesShape) set(all *shapes) { all.rates = s }

// A BalanceShape is the form of the result of a balance lookup ([OpBalance]).
type BalanceShape string

// Invented results of a balance lookup.
const (
	// BalanceAsRecords is an invention:
	// [{"coinSymbol":"BTC","networkName":"Bitcoin","balance":"0.5"}]. It is the default.
	BalanceAsRecords BalanceShape = "balance/records"
	// BalanceAsRecord is an invention: the record without the array if the lookup
	// finds exactly one, otherwise as BalanceAsRecords.
	BalanceAsRecord BalanceShape = "balance/record"
	// BalanceBare is an invention: the amount alone, "0.5", if the lookup finds
	// exactly one record, otherwise as BalanceAsRecords.
	BalanceBare BalanceShape = "balance/bare"
	// BalanceBySymbol is an invention: {"BTC":"0.5"}, the sum over a coin's networks.
	BalanceBySymbol BalanceShape = "balance/symbol"
)

// String implements [Shape].
func (s BalanceShape) String() string { return string(s) }

func (s BalanceShape) set(all *shapes) { all.balance = s }

// An InvoiceShape is the form of the result of a created invoice ([OpCreateInvoice]).
type InvoiceShape string

// Invented results of a created invoice.
const (
	// InvoiceFlat is an invention: the invoice as the result. It is the default.
	InvoiceFlat InvoiceShape = "invoice/flat"
	// InvoiceNested is an invention: {"invoice":{...}}.
	InvoiceNested InvoiceShape = "invoice/nested"
	// InvoicePayable is an invention: the invoice as the result, with further members that
	// tell a buyer how to pay: {...,"address":"invented-btc-bitcoin-0f3a","tag":"","expiresAt":"2026-01-02T15:04:05Z"}.
	// The address is of no blockchain. The tag is empty except on the network XRP Ledger. The
	// deadline is 30 minutes after the creation.
	InvoicePayable InvoiceShape = "invoice/payable"
	// InvoiceOdd is an invention: as InvoicePayable, but with a fee of 1 % on top of the
	// amount, with a tag only where a buyer needs one, the network in another spelling, and a
	// deadline without a zone, which is in UTC:
	// {...,"amount":"10.6050","networkName":"XRP-LEDGER","address":"invented-...","tag":"1234567890","expiresAt":"2026-01-02 15:04:05"}.
	InvoiceOdd InvoiceShape = "invoice/odd"
)

// String implements [Shape].
func (s InvoiceShape) String() string { return string(s) }

func (s InvoiceShape) set(all *shapes) { all.invoice = s }

// Shapes returns all shapes, type by type. The first of each type is its default.
func Shapes() []Shape {
	return []Shape{
		PairAsRecord, PairInArray,
		SymbolAsArray, SymbolAsRecord,
		RatesAsRecords, RatesAsNumbers, RatesUpperCase, RatesWithCoin, RatesBySymbol, RatesByFiat,
		BalanceAsRecords, BalanceAsRecord, BalanceBare, BalanceBySymbol,
		InvoiceFlat, InvoiceNested, InvoicePayable, InvoiceOdd,
	}
}

// SetShape sets the shape of the results that its type is about, from the next request
// on. It panics if the shape is none of [Shapes].
func (s *Server) SetShape(shape Shape) {
	if !slices.Contains(Shapes(), shape) {
		panic(fmt.Sprintf("gatewaytest: SetShape with %T(%v), want one of its constants", shape, shape))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shape.set(&s.shapes)
}

// inShape is the response that carries a result whose form is invented.
func inShape(shape Shape, status int, result any) response {
	resp := success(status, result)
	resp.invented = []string{shape.String()}
	return resp
}
