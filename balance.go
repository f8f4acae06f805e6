package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
)

// A BalanceQuery narrows a balance. The zero value asks for everything; an
// empty field is not sent.
type BalanceQuery struct {
	CoinSymbol  string // ticker symbol, sent as given; at most 256 bytes
	NetworkName string // name of the network, sent as given; at most 256 bytes
}

// A Balance is the balances of the account that an API key belongs to.
type Balance struct {
	Amounts []BalanceAmount `json:"amounts"`          // in the order of the response
	Skipped []Skipped       `json:"skipped,omitzero"` // the first 64 records that were skipped; nil for none
	Raw     json.RawMessage `json:"raw,omitzero"`     // the result as it came
}

// A BalanceAmount is an amount of one coin.
type BalanceAmount struct {
	CoinSymbol  string          `json:"coinSymbol"`      // as it came, or of the query; never empty
	NetworkName string          `json:"networkName"`     // empty when neither the response nor the query names the network
	Amount      decimal.Decimal `json:"amount"`          // assumed to be in units of the coin
	CoinID      string          `json:"coinId,omitzero"` // of the coin, as it came; empty when the response has none
}

// Total returns the sum of the amounts of a coin over all networks. It ignores the case of the symbol. If the
// balance does not list the coin, the error matches [ErrNotFound]: the sum is never a silent zero.
//
// Any other [*ArgumentError] means that the sum is not known, for one of these reasons:
//   - the amounts may belong to several coins: two symbols differ in case, two CoinIDs differ, or two amounts are on
//     one network;
//   - an amount may be missing: Skipped has a record of the coin, a record without a coin, or 64 records;
//   - a caller has set an amount that no response can hold.
func (b *Balance) Total(coinSymbol string) (decimal.Decimal, error) {
	refused := func(argument, format string, args ...any) (decimal.Decimal, error) {
		reason := fmt.Sprintf("of %q ", redact.Truncate(coinSymbol, maxQuotedName)) + fmt.Sprintf(format, args...)
		return decimal.Decimal{}, &ArgumentError{Operation: "total", Name: argument, Reason: printable(reason)}
	}
	for i, s := range b.Skipped {
		if s.CoinSymbol == "" || strings.EqualFold(s.CoinSymbol, redact.Truncate(coinSymbol, maxName)) || i == maxSkipped-1 {
			return refused("balance", "is not known, a record was skipped: %s: %s", s.Pointer, s.Reason)
		}
	}
	var total decimal.Decimal
	var added []BalanceAmount
	for _, a := range b.Amounts {
		if !strings.EqualFold(a.CoinSymbol, coinSymbol) {
			continue
		}
		if !money.Representable(a.Amount) {
			return refused("amount", "is not an amount of money")
		}
		for _, other := range added {
			switch {
			case a.CoinSymbol != other.CoinSymbol || !endpoint.SameID(a.CoinID, other.CoinID):
				return refused("balance", "is not known, the amounts may be of several coins: add up those of Amounts that you mean")
			case strings.EqualFold(a.NetworkName, other.NetworkName):
				return refused("balance", "is not known, there are two amounts on the network %q: add up those of Amounts that you mean",
					redact.Truncate(a.NetworkName, maxQuotedName))
			}
		}
		total, added = total.Add(a.Amount), append(added, a)
	}
	if len(added) == 0 {
		reason := fmt.Sprintf("%q is not in the balance", redact.Truncate(coinSymbol, maxQuotedName))
		return decimal.Decimal{}, &ArgumentError{Operation: "total", Name: "coinSymbol", Reason: printable(reason), err: ErrNotFound}
	}
	return total, nil
}

// Balance returns the balances of the account. The response is not documented. The client reads three forms: an
// array of records with an amount under balance, amount or available; an object of amounts by symbol; and, for a
// query that names a coin, one such record or amount. Any other form is a [*DecodeError], unless
// [WithBalanceDecoder] reads it, and so is a paginated response, which has a meta or counts pages. In a list, a
// record that cannot be read, or names no coin, is skipped: see [Skipped].
//
// GET /api/balance/
func (c *Client) Balance(ctx context.Context, q BalanceQuery, opts ...CallOption) (*Balance, error) {
	b := &Balance{}
	call := &call{client: c, operation: operation{
		name:  OpBalance,
		route: "/api/balance/",
		query: []endpoint.Param{{Name: "coinSymbol", Value: q.CoinSymbol}, {Name: "networkName", Value: q.NetworkName}},
		key:   keyInHeader,

		undocumented: true,
	}}
	call.decode = func(e envelope) *doc.Error { return b.read(e, q, c.cfg.decodeBalance) }
	if err := call.get(ctx, opts); err != nil {
		return nil, err
	}
	return b, nil
}

// read reads a balance with the decoder of [WithBalanceDecoder], or in one of the three forms.
func (b *Balance) read(e envelope, q BalanceQuery, decode func(json.RawMessage) ([]BalanceAmount, error)) *doc.Error {
	*b = Balance{Amounts: []BalanceAmount{}}
	result, wrong := e.undocumented(decode != nil)
	if wrong == nil {
		b.Raw = json.RawMessage(result.JSON())
		switch page := e.page(); {
		case decode != nil && holdsNothing(result):
		case decode != nil:
			b.Amounts, wrong = decoded(result, "WithBalanceDecoder", b.Raw, decode, checkAmounts)
			return wrong
		case !page.IsZero():
			wrong = page.Errorf("says that the balance may be one page of several")
		case !holdsNothing(result):
			b.Amounts, wrong = q.amountsIn(result)
		}
	}
	b.Skipped = skippedIn(e.body.Doc())
	return withAdvice(wrong, "WithBalanceDecoder reads another form")
}

// WithBalanceDecoder sets the function that reads the result of [Client.Balance], as [WithRatesDecoder] does
// for rates. It may return a symbol several times, such as once for each network. If it cannot read an
// amount, it must return an error: without that amount the total of the coin would be wrong. It also receives
// one page of a paginated balance, and must return an error if it needs the others.
func WithBalanceDecoder(decode func(result json.RawMessage) ([]BalanceAmount, error)) Option {
	return func(cfg *config) error {
		if decode == nil {
			return badOption("WithBalanceDecoder", "must not be nil")
		}
		cfg.decodeBalance = decode
		return nil
	}
}

// page returns what says that a result may be one page of several: a meta that is not empty, or a member
// beside the result whose name speaks of pages.
func (e envelope) page() doc.Node {
	for n := range e.body.Parts() {
		if n == e.result || !n.Holds() {
			continue
		}
		for inner := range n.All() {
			if n.IsNamed("meta") || speaksOfPages(inner.Name()) {
				return inner
			}
		}
	}
	return doc.Node{}
}

func speaksOfPages(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"count", "limit", "more", "hasmore", "has_more"}, name) ||
		slices.ContainsFunc([]string{"pag", "total", "offset", "next", "cursor"}, func(word string) bool { return strings.Contains(name, word) })
}

// checkAmounts returns why the amounts of a caller's decoder are refused, or nil.
func checkAmounts(amounts []BalanceAmount) error {
	for i, a := range amounts {
		switch {
		case a.CoinSymbol == "":
			return fmt.Errorf("amount %d %w", i, errNoCoin)
		case !money.Representable(a.Amount):
			return fmt.Errorf("the amount of %q is not an amount of money", redact.Truncate(a.CoinSymbol, maxQuotedName))
		}
	}
	return nil
}

var (
	errNotBalance  = errors.New("has no known form of a balance")
	errNoneOfThree = errors.New("has no balance, amount or available")
)

// amountsIn recognizes the form of a balance: docs/interface.md, I-105.
func (q BalanceQuery) amountsIn(result doc.Node) (all []BalanceAmount, wrong *doc.Error) {
	add := func(record doc.Node, coin string) {
		amount, at, err := q.amountIn(record, coin)
		if err != nil {
			record.Skip(at, err)
			return
		}
		all = append(all, amount)
	}
	all = make([]BalanceAmount, 0, result.Len())
	switch record := only(result); {
	case !record.IsZero() && q.isOther(record):
		return nil, record.Errorf("%w", errNotBalance)
	case !record.IsZero():
		add(record, q.CoinSymbol)
	case result.Kind() == '[':
		for n := range result.Parts() {
			add(n, "")
		}
	default:
		for n := range result.Parts() {
			kind, name := n.Kind(), n.Name()
			if kind == '{' || kind == '[' || !isSymbol(name) && !strings.EqualFold(name, q.CoinSymbol) {
				return nil, n.Errorf("%w", errNotBalance)
			}
			add(n, name)
		}
	}
	if len(all) == 0 {
		return nil, result.Doc().FirstSkipped()
	}
	return all, nil
}

// only returns the one record or amount that a result is, alone or in an array, or none.
func only(result doc.Node) (record doc.Node) {
	switch kind := result.Kind(); {
	case kind == '{' && result.Member(amountNames[:]...).IsZero(), kind == '[' && result.Len() > 1:
		return doc.Node{}
	case kind == '[':
		for record = range result.Parts() {
		}
		return record
	default:
		return result
	}
}

// amountNames are the names of the amount of a record, the most telling one first.
var amountNames = [...]string{"balance", "amount", "available"}

// amountIn reads an amount, or a record with one. If the record names no coin, it is of the given one. The error
// is about the value at.
func (q BalanceQuery) amountIn(n doc.Node, coin string) (a BalanceAmount, at doc.Node, err error) {
	named, err := coinOf(n)
	if err != nil && (coin == "" || !errors.Is(err, errNoCoin)) {
		return a, n, err
	}
	if at = n; n.Kind() == '{' {
		if at = n.Member(amountNames[:]...); at.IsZero() {
			return a, n, errNoneOfThree
		}
	}
	a = BalanceAmount{CoinSymbol: cmp.Or(named, coin), NetworkName: cmp.Or(networkOf(n), q.NetworkName), CoinID: cmp.Or(n.Member("coinId").Text(), n.Member("coin").Member("id").Text())}
	a.Amount, err = at.Amount()
	return a, at, err
}

// isOther reports whether the only record may be about other coins than it says: a member has a name that can
// be a symbol; or it names no coin where the client looks, and has a text that can be another symbol than that
// of the query.
func (q BalanceQuery) isOther(record doc.Node) bool {
	_, wrong := coinOf(record)
	nameless, network := errors.Is(wrong, errNoCoin), networkOf(record)
	for n := range record.All() {
		if text := n.Text(); nameless && isShort(text) && !strings.EqualFold(text, q.CoinSymbol) && text != network {
			return true
		}
		if n != record && isSymbol(n.Name()) && !strings.EqualFold(n.Name(), q.CoinSymbol) {
			return true
		}
	}
	return false
}

// isShort reports whether a text can be a symbol, and no date or identifier.
func isShort(text string) bool {
	return isSymbol(text) && 2 <= len(text) && len(text) <= 10 && !strings.ContainsAny(text, " -:.")
}
