package pricing

import (
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/money"
)

// A Limit is a field of a [gateway.CoinNetwork], by its documented name.
type Limit string

const (
	LimitDepositable   Limit = "depositable"
	LimitWithdrawable  Limit = "withdrawable"
	LimitCoinActive    Limit = "coin.isActive"
	LimitNetworkActive Limit = "network.isActive"
	LimitPrecision     Limit = "coin.precision"
	LimitMinAmount     Limit = "coin.minAmount"
	LimitMinWithdraw   Limit = "minWithdraw"
	LimitMaxWithdraw   Limit = "maxWithdraw"
	LimitWithdrawalFee Limit = "withdrawalFee"
)

// A LimitError is an amount that a pair does not allow.
type LimitError struct {
	Limit  Limit           // the limit that the amount does not meet
	Bound  decimal.Decimal // its value; zero for a flag
	Amount decimal.Decimal // the amount that was checked
}

// Error returns one line: the limit, the amount and the bound.
func (e *LimitError) Error() string { return "gateway: " + string(e.Limit) + ": " + e.reason() }

// Unwrap returns a [*gateway.ArgumentError]: nothing was sent.
func (e *LimitError) Unwrap() error { return refused("check_amount", string(e.Limit), e.reason()) }

func (e *LimitError) reason() string {
	amount, bound := amountText(e.Amount), amountText(e.Bound)
	switch e.Limit {
	case LimitDepositable, LimitWithdrawable, LimitCoinActive, LimitNetworkActive:
		return "is false"
	case LimitPrecision:
		return amount + " has more than " + bound + " decimal places"
	case LimitMaxWithdraw:
		return amount + " is above " + bound
	case LimitWithdrawalFee:
		return amount + " is not above " + bound
	default:
		return amount + " is below " + bound
	}
}

// amountText writes an amount without trailing zeros.
func amountText(amount decimal.Decimal) string { return money.Format(amount.Normalize()) }

// CheckPayment returns a [*LimitError] for the first of these that is not met: depositable,
// coin.isActive and network.isActive; at most coin.precision decimal places, without zeros at the
// end; at least coin.minAmount, which is assumed to apply to payments. The service may have more
// limits.
func CheckPayment(pair *gateway.CoinNetwork, amount decimal.Decimal) error {
	l := paymentLimits(pair)
	return l.check("check_payment", amount)
}

// CheckWithdrawal does what [CheckPayment] does, for withdrawable and from minWithdraw to
// maxWithdraw. A maxWithdraw of zero allows nothing.
func CheckWithdrawal(pair *gateway.CoinNetwork, amount decimal.Decimal) error {
	l := withdrawalLimits(pair)
	return l.check("check_withdrawal", amount)
}

// NetWithdrawal returns what arrives of a withdrawn amount: the amount less withdrawalFee,
// exactly. That the fee is taken from the amount is assumed. It checks the amount as
// [CheckWithdrawal] does, and that it is above the fee.
func NetWithdrawal(pair *gateway.CoinNetwork, amount decimal.Decimal) (decimal.Decimal, error) {
	l := withdrawalLimits(pair)
	l.bounds[2] = bound{LimitWithdrawalFee, pair.WithdrawalFee, above}
	if err := l.check("net_withdrawal", amount); err != nil {
		return decimal.Decimal{}, err
	}
	return amount.Sub(pair.WithdrawalFee), nil // I-76
}

// limits are what an amount is checked against.
type limits struct {
	off    Limit // the first flag that is off, whatever the amount; empty for none
	places int32 // at most those of an amount in a request, or -1
	bounds [3]bound
}

// A bound is a limit with its value. The zero bound is none.
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

func paymentLimits(p *gateway.CoinNetwork) limits {
	l := limitsOf(p, LimitDepositable, p.Depositable)
	l.bounds[0] = bound{LimitMinAmount, p.Coin.MinAmount, atLeast} // I-92
	return l
}

func withdrawalLimits(p *gateway.CoinNetwork) limits {
	l := limitsOf(p, LimitWithdrawable, p.Withdrawable)
	l.bounds[0], l.bounds[1] = bound{LimitMinWithdraw, p.MinWithdraw, atLeast}, bound{LimitMaxWithdraw, p.MaxWithdraw, atMost} // I-75
	return l
}

// limitsOf returns the checks that all amounts share, with the flag of one kind.
func limitsOf(p *gateway.CoinNetwork, flag Limit, on bool) limits {
	l := limits{places: int32(max(-1, min(p.Coin.Precision, money.MaxScale)))} // #nosec G115 -- from -1 to 30
	switch {
	case !on:
		l.off = flag
	case !p.Coin.IsActive:
		l.off = LimitCoinActive
	case !p.Network.IsActive:
		l.off = LimitNetworkActive
	}
	return l
}

func (l *limits) check(op string, amount decimal.Decimal) error {
	if name, reason := l.refuse(amount); reason != "" {
		return refused(op, name, reason)
	}
	if l.off != "" {
		return &LimitError{Limit: l.off, Amount: amount}
	}
	if !fits(amount, l.places) {
		return &LimitError{LimitPrecision, decimal.NewFromInt32(l.places), amount}
	}
	for _, b := range &l.bounds {
		if !b.allows(amount) {
			return &LimitError{b.limit, b.value, amount}
		}
	}
	return nil
}

// refuse returns the argument or field that cannot be used, and why.
func (l *limits) refuse(amount decimal.Decimal) (name, reason string) {
	if reason := money.Check(amount); reason != "" {
		return "amount", reason
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
