package gateway

import (
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
)

// A Limit is a field of a [CoinNetwork] that limits an amount, as docs/interface.md names it.
type Limit string

const (
	LimitDepositable   Limit = "depositable"      // deposits are possible
	LimitWithdrawable  Limit = "withdrawable"     // withdrawals are possible
	LimitCoinActive    Limit = "coin.isActive"    // the coin is active
	LimitNetworkActive Limit = "network.isActive" // the network is active
	LimitPrecision     Limit = "coin.precision"   // the most decimal places
	LimitMinAmount     Limit = "coin.minAmount"   // the least amount of a payment
	LimitMinWithdraw   Limit = "minWithdraw"      // the least amount of a withdrawal
	LimitMaxWithdraw   Limit = "maxWithdraw"      // the greatest amount of a withdrawal
	LimitWithdrawalFee Limit = "withdrawalFee"    // what the amount of a withdrawal must be above
)

// A LimitError is an amount that a [CoinNetwork] does not allow. Nothing was
// sent.
type LimitError struct {
	Limit   Limit               // the field that is not met
	Bound   decimal.Decimal     // the value of that field; zero when it is a flag
	Amount  decimal.Decimal     // the amount that was checked
	Nearest decimal.NullDecimal // the nearest amount that passes the same method, the greater of two; not Valid when none does
}

// Error returns one line: the limit, the amount and the nearest one that
// passes.
func (e *LimitError) Error() string {
	amount, bound := amountText(e.Amount), amountText(e.Bound)
	reason := amount + " is below " + bound
	switch e.Limit {
	case LimitDepositable, LimitWithdrawable, LimitCoinActive, LimitNetworkActive:
		reason = "is false"
	case LimitPrecision:
		reason = amount + " has more than " + bound + " decimal places"
	case LimitMaxWithdraw:
		reason = amount + " is above " + bound
	case LimitWithdrawalFee:
		reason = amount + " is not above " + bound
	}
	next := "no amount passes"
	if e.Nearest.Valid {
		next = "the nearest amount that passes is " + amountText(e.Nearest.Decimal)
	}
	return "gateway: " + printable(string(e.Limit)) + ": " + reason + "; " + next
}

func (e *LimitError) decided() decision {
	return decision{outcome: OutcomeNotSent}
}

// amountText writes an amount without trailing zeros. An error that a caller makes can
// hold one that is too large to write.
func amountText(amount decimal.Decimal) string {
	if !money.Representable(amount) {
		return "an amount of absurd size"
	}
	return money.Format(amount.Normalize())
}

// CheckWithdrawal returns nil when the record allows an amount, in units of the coin, to
// be withdrawn. Otherwise it returns a [*LimitError] for the first of these that is not
// met: withdrawable, coin.isActive and network.isActive are true; the amount has no more
// decimal places than coin.precision, not counting zeros at the end; it is at least
// minWithdraw; it is at most maxWithdraw. The bounds are used as they are: a maxWithdraw
// of zero allows nothing.
//
// An amount that is not above zero or has more than 64 digits or 30 decimal
// places is an [*ArgumentError], and so are a nil record, a negative precision
// and a bound beyond what a response can hold.
//
// The service may apply more limits than the record has. It is safe for concurrent use
// while nobody changes the record.
func (p *CoinNetwork) CheckWithdrawal(amount decimal.Decimal) error {
	const op = "check_withdrawal"
	if p == nil {
		return noRecord(op)
	}
	l := p.withdrawalLimits()
	return l.check(op, amount)
}

// CheckPayment returns nil when the record allows an amount, in units of the coin, to
// be paid. Otherwise it returns an error as [CoinNetwork.CheckWithdrawal] does, for
// depositable in the place of withdrawable and coin.minAmount in that of the two bounds.
//
// Of what coin.minAmount is the minimum is not stated (docs/interface.md, I-92): this
// method assumes that of a payment.
func (p *CoinNetwork) CheckPayment(amount decimal.Decimal) error {
	const op = "check_payment"
	if p == nil {
		return noRecord(op)
	}
	l := p.paymentLimits()
	return l.check(op, amount)
}

func (p *CoinNetwork) paymentLimits() limits {
	return limits{
		flags:  [3]flag{{LimitDepositable, p.Depositable}, {LimitCoinActive, p.Coin.IsActive}, {LimitNetworkActive, p.Network.IsActive}},
		places: p.Coin.places(),
		bounds: [3]bound{{LimitMinAmount, p.Coin.MinAmount, atLeast}},
	}
}

// NetWithdrawal returns what arrives of a withdrawn amount, in units of the
// coin: the amount less withdrawalFee, exactly, and so with more decimal places
// than coin.precision where the fee has more.
//
// Whether the fee is taken from the amount or comes on top is not stated
// (docs/interface.md, I-76): this method assumes that it is taken from the amount.
//
// It checks the amount as [CoinNetwork.CheckWithdrawal] does, and then that it
// is above the fee; if it is not, the error is a [*LimitError] of withdrawalFee,
// and its Nearest is the least amount that passes this method. A negative fee is
// an [*ArgumentError]. On error the result is zero.
func (p *CoinNetwork) NetWithdrawal(amount decimal.Decimal) (decimal.Decimal, error) {
	const op = "net_withdrawal"
	if p == nil {
		return decimal.Decimal{}, noRecord(op)
	}
	l := p.withdrawalLimits()
	l.bounds[2] = bound{LimitWithdrawalFee, p.WithdrawalFee, above}
	if err := l.check(op, amount); err != nil {
		return decimal.Decimal{}, err
	}
	return amount.Sub(p.WithdrawalFee), nil
}

func noRecord(op string) error {
	return &ArgumentError{Operation: op, Name: "coinNetwork", Reason: "must not be nil"}
}

// limits are what an amount is checked against.
type limits struct {
	flags  [3]flag
	places int32
	bounds [3]bound // in the order of their checks; unused ones are zero
}

type flag struct {
	limit Limit
	on    bool
}

type bound struct {
	limit Limit
	value decimal.Decimal
	rule  rule
}

// A rule is how an amount must compare to a bound.
type rule int

const (
	unbounded rule = iota
	atLeast
	atMost
	above
)

func (p *CoinNetwork) withdrawalLimits() limits {
	return limits{
		flags:  [3]flag{{LimitWithdrawable, p.Withdrawable}, {LimitCoinActive, p.Coin.IsActive}, {LimitNetworkActive, p.Network.IsActive}},
		places: p.Coin.places(),
		bounds: [3]bound{{LimitMinWithdraw, p.MinWithdraw, atLeast}, {LimitMaxWithdraw, p.MaxWithdraw, atMost}},
	}
}

// places returns the precision, at most that of an amount in a request, or -1.
func (c *Coin) places() int32 {
	return int32(max(-1, min(c.Precision, money.MaxScale))) // #nosec G115 -- from -1 to 30
}

func (l *limits) check(op string, amount decimal.Decimal) error {
	if name, reason := l.refuse(amount); reason != "" {
		return &ArgumentError{Operation: op, Name: name, Reason: reason}
	}
	if off, ok := l.off(); ok {
		return &LimitError{Limit: off, Amount: amount}
	}
	if !fits(amount, l.places) {
		return &LimitError{LimitPrecision, decimal.NewFromInt32(l.places), amount, l.nearest(amount)}
	}
	for _, b := range &l.bounds {
		if !b.allows(amount) {
			return &LimitError{b.limit, b.value, amount, l.nearest(amount)}
		}
	}
	return nil
}

// off returns the first flag that is off, whatever the amount.
func (l *limits) off() (Limit, bool) {
	for _, f := range &l.flags {
		if !f.on {
			return f.limit, true
		}
	}
	return "", false
}

// refuse returns the argument or field that cannot be used, and why.
func (l *limits) refuse(amount decimal.Decimal) (name, reason string) {
	if amount.Sign() <= 0 || !money.IsSmall(amount) {
		if reason := money.Check(amount); reason != "" {
			return "amount", reason
		}
	}
	if l.places < 0 {
		return string(LimitPrecision), "must not be negative"
	}
	for _, b := range &l.bounds {
		if !money.IsSmall(b.value) && !money.Representable(b.value) {
			return string(b.limit), "is not an amount of money"
		}
		if b.rule == above && b.value.Sign() < 0 {
			return string(b.limit), "must not be negative"
		}
	}
	return "", ""
}

// fits reports whether an amount has at most so many places, trailing zeros apart.
func fits(amount decimal.Decimal, places int32) bool {
	return -amount.Exponent() <= places || amount.RoundFloor(places).Equal(amount)
}

func (b *bound) allows(amount decimal.Decimal) bool {
	switch b.rule {
	case atLeast:
		return !amount.LessThan(b.value)
	case atMost:
		return !amount.GreaterThan(b.value)
	case above:
		return amount.GreaterThan(b.value)
	default:
		return true
	}
}

// nearest returns the amount nearest to the given one that passes check, if there is
// one. What passes is a range of the amounts that a request can hold.
func (l *limits) nearest(amount decimal.Decimal) decimal.NullDecimal {
	low, high := decimal.New(1, -l.places), decimal.New(1, money.MaxDigits).Sub(decimal.NewFromInt(1))
	for _, b := range &l.bounds {
		switch b.rule {
		case atLeast:
			low = decimal.Max(low, rounded(b.value, l.places, decimal.Decimal.RoundCeil))
		case atMost:
			high = decimal.Min(high, rounded(b.value, l.places, decimal.Decimal.RoundFloor))
		case above:
			low = decimal.Max(low, rounded(b.value, l.places, roundAbove))
		case unbounded:
		}
	}
	if low.GreaterThan(high) {
		return decimal.NullDecimal{}
	}
	within := decimal.Max(low, decimal.Min(high, amount.Round(l.places)))
	return decimal.NewNullDecimal(within.Normalize())
}

// rounded rounds a bound to so many places, or to fewer if a request cannot hold its
// digits. One that is too large for any is rounded to a whole number.
func rounded(value decimal.Decimal, places int32, round func(decimal.Decimal, int32) decimal.Decimal) decimal.Decimal {
	for ; places > 0; places-- {
		if bound := round(value, places); money.CheckSize(bound) == "" {
			return bound
		}
	}
	return round(value, 0)
}

// roundAbove returns the least amount of so many places that is above value.
func roundAbove(value decimal.Decimal, places int32) decimal.Decimal {
	return value.RoundFloor(places).Add(decimal.New(1, -places))
}
