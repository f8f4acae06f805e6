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

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
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
	Skipped []Skipped       `json:"skipped,omitzero"` // the first 64 records that were left out; nil for none
	Raw     json.RawMessage `json:"raw,omitzero"`     // the result as it came
}

// A BalanceAmount is an amount of one coin.
type BalanceAmount struct {
	CoinSymbol  string          `json:"coinSymbol"`  // as it came, or of the query; never empty
	NetworkName string          `json:"networkName"` // empty when neither the response nor the query names the network
	Amount      decimal.Decimal `json:"amount"`      // taken to be in units of the coin
}

var (
	balanceRecord       = strictjson.RecordOf[Balance]()
	balanceAmountRecord = strictjson.RecordOf[BalanceAmount]()
)

// MarshalJSON implements [json.Marshaler]. Amounts are text with all their digits; one that a
// response cannot hold is an error. White space in Raw is lost.
func (b Balance) MarshalJSON() ([]byte, error) { return balanceRecord.Marshal(b) }

// UnmarshalJSON implements [json.Unmarshaler] for what MarshalJSON writes: a member that is
// missing, null or malformed is an error, but for Raw. Unknown members are skipped.
func (b *Balance) UnmarshalJSON(text []byte) error { return balanceRecord.Unmarshal(text, b) }

// MarshalJSON is as that of [Balance].
func (a BalanceAmount) MarshalJSON() ([]byte, error) { return balanceAmountRecord.Marshal(a) }

// UnmarshalJSON is as that of [Balance].
func (a *BalanceAmount) UnmarshalJSON(text []byte) error {
	return balanceAmountRecord.Unmarshal(text, a)
}

// Total returns the sum of the amounts of a coin over all networks; it is zero when the
// balance does not list the coin. The symbol must match exactly. An [*ArgumentError] means that the sum
// is not known: Skipped has a record of the coin, one that names no coin, or 64 records; or an amount is
// beyond what a response can hold, which only a caller can have made.
func (b *Balance) Total(coinSymbol string) (decimal.Decimal, error) {
	name := redact.Truncate(coinSymbol, maxQuotedName)
	for i, s := range b.Skipped {
		if s.CoinSymbol == "" || s.CoinSymbol == redact.Truncate(coinSymbol, strictjson.MaxName) || i == maxSkipped-1 {
			reason := fmt.Sprintf("of %q is not known, a record was left out: %s: %s", name, s.Pointer, s.Reason)
			return decimal.Decimal{}, &ArgumentError{Operation: "total", Name: "balance", Reason: printable(reason)}
		}
	}
	var total decimal.Decimal
	for _, a := range b.Amounts {
		if a.CoinSymbol != coinSymbol {
			continue
		}
		if !money.Representable(a.Amount) {
			return decimal.Decimal{}, &ArgumentError{Operation: "total", Name: "amount", Reason: fmt.Sprintf("of %q is not an amount of money", name)}
		}
		total = total.Add(a.Amount)
	}
	return total, nil
}

// Balance returns the account's balances. The response is not documented. These shapes are accepted:
// an amount, or a record, which are of the coin and network of the query if they name none; an array of
// records, with an amount under balance, amount or available; amounts or records by symbol. Another form
// is a [*DecodeError], unless [WithBalanceDecoder] reads it; so is a list beside which the response tells of
// more than came, unless it is read with WithBalanceDecoder. A record of several that
// cannot be read, or names no coin, is left out: see [Skipped].
//
// GET /api/balance/
func (c *Client) Balance(ctx context.Context, q BalanceQuery, opts ...CallOption) (*Balance, error) {
	return do(ctx, c, operation{
		name:  OpBalance,
		route: "/api/balance/",
		query: []endpoint.Param{{Name: "coinSymbol", Value: q.CoinSymbol}, {Name: "networkName", Value: q.NetworkName}},
		key:   keyInHeader,
	}, func(d *strictjson.Decoder) *Balance { return q.read(d, c.cfg) }, opts)
}

// read reads a balance with the decoder of [WithBalanceDecoder], or in one of the likely forms.
func (q BalanceQuery) read(d *strictjson.Decoder, cfg *config) *Balance {
	raw := strictjson.Raw(d)
	b := &Balance{Amounts: []BalanceAmount{}, Raw: json.RawMessage(raw)}
	if d.Err() != nil {
		return b
	}
	result := strictjson.NodeOf(d, raw)
	list := amountList{query: q, all: b.Amounts}
	var wrong *strictjson.Error
	help := ""
	switch {
	case holdsNothing(result):
	case cfg.decodeBalance != nil:
		list.all = decoded(d, "WithBalanceDecoder", cfg.decodeBalance, b.Raw, checkAmounts)
	default:
		wrong, help = list.add(result), "another form is read with WithBalanceDecoder"
	}
	wrong = explained(cmp.Or(wrong, firstLeftOut(d, len(list.all))), help)
	d.SetErr(wrong)
	if kind := result.Kind(); cfg.decodeBalance == nil && (kind == '[' || kind == '{') {
		came := len(list.all) + len(d.LeftOut())
		d.FailPage("", came, fmt.Errorf("tells of more than the %d records that came, a page of a balance; ask for one coin, or read it with WithBalanceDecoder", came))
	}
	b.Amounts, b.Skipped = list.all, skippedIn(d)
	return b
}

// checkAmounts returns what is wrong with the amounts of a caller's decoder, or nil.
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

// An amountList collects the amounts of a balance.
type amountList struct {
	query BalanceQuery
	all   []BalanceAmount
}

// add recognizes the shape of a balance: docs/interface.md, I-105.
func (l *amountList) add(result strictjson.Node) *strictjson.Error {
	r := recordOf(result)
	coin, _ := r.coinOf(result)
	switch {
	case result.Kind() == '[':
		size := result.Len()
		l.all = slices.Grow(l.all, size)
		for n := range result.Elements() {
			if kind := n.Kind(); kind != '{' {
				n.LeaveOut(fmt.Errorf("is %s, not a record", strictjson.KindName(kind)), "", "", "")
				continue
			}
			l.addRecord(n, size == 1)
		}
	case result.Kind() == '{' && r.amount().IsZero() && coin == "" && r.networkOf() == "":
		return l.addBySymbol(result)
	case (coin == "" || isFiat(coin)) && isBySymbol(result):
		return result.Errorf("is a record and amounts by symbol")
	default:
		l.addRecord(result, true)
	}
	return nil
}

// coinOfQuery returns the coin of the query for a record that names none where the client looks, or ""
// if it has text that can be the symbol of another one.
func (l *amountList) coinOfQuery(record strictjson.Node) string {
	const letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	for m := range record.Members() {
		if m.Name() == "networkName" || m.Name() == "network" {
			continue
		}
		for s := range m.Scalars() {
			text := s.Text()
			looksLikeSymbol := len(text) >= 2 && len(text) <= 10 && strings.Trim(text, letters+digits) == "" && strings.ContainsAny(text, letters)
			if looksLikeSymbol && !strings.EqualFold(text, l.query.CoinSymbol) {
				return ""
			}
		}
	}
	return l.query.CoinSymbol
}

// isBySymbol reports whether a result has amounts by symbol. Beside the amount of a record
// that names no coin they would be lost.
func isBySymbol(result strictjson.Node) bool {
	for m := range result.Members() {
		if isSymbol(m.Name()) && hasAmount(m) {
			return true
		}
	}
	return false
}

// addRecord adds an amount or a record, or leaves it out. Of the only one, the coin can be that of the
// query.
func (l *amountList) addRecord(n strictjson.Node, only bool) {
	amount, at, err := amountIn(n)
	if only {
		amount.CoinSymbol = cmp.Or(amount.CoinSymbol, l.coinOfQuery(n))
	}
	l.addOrLeaveOut(amount, at, err)
}

// addOrLeaveOut adds an amount, unless it could not be read at a place, or names no coin.
func (l *amountList) addOrLeaveOut(amount BalanceAmount, at strictjson.Node, err error) {
	if err == nil && amount.CoinSymbol == "" {
		err = errNoCoin
	}
	if err != nil {
		at.LeaveOut(err, amount.CoinSymbol, amount.NetworkName, "")
		return
	}
	amount.NetworkName = cmp.Or(amount.NetworkName, l.query.NetworkName)
	l.all = append(l.all, amount)
}

// addBySymbol adds amounts or records by symbol. The page of a list is an error. A member that cannot be
// read, and may hold other coins, is left out without the name of a coin.
func (l *amountList) addBySymbol(result strictjson.Node) *strictjson.Error {
	bySymbol := isBySymbol(result) || !result.Member(l.query.CoinSymbol).IsZero()
	for n := range result.Members() {
		isCoin := bySymbol || n.Kind() == '{' || isSymbol(n.Name()) // without, an amount can be anything, such as an id
		if isOfPage(n) || !isCoin && hasAmount(n) {
			return n.Errorf("does not belong to amounts by symbol")
		}
	}
	l.all = slices.Grow(l.all, result.Len())
	for n := range result.Members() {
		amount, at, err := amountIn(n)
		switch {
		case err == nil && !isSymbol(n.Name()):
			n.Note(strictjson.UnexpectedValue)
		case err != nil && isBySymbol(n):
			amount.CoinSymbol = ""
		}
		l.addOrLeaveOut(amount, at, err)
	}
	return nil
}

// isOfPage reports whether a member shows a result to be no amounts by symbol, but the page of a list or
// an account: a counter, a kind of amount, a list, or an object without an amount under another name than
// that of a coin.
func isOfPage(n strictjson.Node) bool {
	if name := n.Name(); strictjson.IsOfPage(name) || name == "free" || name == "locked" {
		return true
	}
	return !hasAmount(n) && n.Len() > 0 && (n.Kind() == '[' || !isSymbol(n.Name()))
}

// amountIn reads one amount, or one record that holds it, as far as it can. The error is about the value at.
func amountIn(n strictjson.Node) (a BalanceAmount, at strictjson.Node, err error) {
	r := recordOf(n)
	a.NetworkName = r.networkOf()
	if a.CoinSymbol, err = r.coinOf(n); err != nil {
		return a, n, err
	}
	at = n
	if n.Kind() == '{' {
		if at = r.amount(); at.IsZero() {
			return a, n, errNoneOfThree
		}
	}
	a.Amount, err = at.Amount()
	return a, at, err
}

var errNoneOfThree = errors.New("has no balance, amount or available")

// hasAmount reports whether n is an amount, or a record with a member that could be one.
func hasAmount(n strictjson.Node) bool {
	if n.Kind() != '{' {
		_, err := n.Amount()
		return err == nil
	}
	r := recordOf(n)
	return !r.amount().IsZero()
}
