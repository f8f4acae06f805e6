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
	return check("check_payment", pair, offForPayment(pair), amount, bound{LimitMinAmount, pair.Coin.MinAmount}) // I-92
}

// CheckWithdrawal does what [CheckPayment] does, for withdrawable and from minWithdraw to
// maxWithdraw. A maxWithdraw of zero allows nothing.
func CheckWithdrawal(pair *gateway.CoinNetwork, amount decimal.Decimal) error {
	return checkWithdrawal("check_withdrawal", pair, amount)
}

// NetWithdrawal returns what arrives of a withdrawn amount: the amount less withdrawalFee,
// exactly. That the fee is taken from the amount is assumed. It checks the amount as
// [CheckWithdrawal] does, and that it is above the fee.
func NetWithdrawal(pair *gateway.CoinNetwork, amount decimal.Decimal) (decimal.Decimal, error) {
	fee := bound{LimitWithdrawalFee, pair.WithdrawalFee}
	if err := checkWithdrawal("net_withdrawal", pair, amount, fee); err != nil {
		return decimal.Decimal{}, err
	}
	return amount.Sub(pair.WithdrawalFee), nil // I-76
}

// A bound is a limit with its value.
type bound struct {
	limit Limit
	value decimal.Decimal
}

func checkWithdrawal(op string, p *gateway.CoinNetwork, amount decimal.Decimal, more ...bound) error {
	bounds := append([]bound{{LimitMinWithdraw, p.MinWithdraw}, {LimitMaxWithdraw, p.MaxWithdraw}}, more...) // I-75
	return check(op, p, off(p, LimitWithdrawable, p.Withdrawable), amount, bounds...)
}

func offForPayment(p *gateway.CoinNetwork) Limit { return off(p, LimitDepositable, p.Depositable) }

// off returns the first flag of a pair that is off, or "".
func off(p *gateway.CoinNetwork, flag Limit, on bool) Limit {
	switch {
	case !on:
		return flag
	case !p.Coin.IsActive:
		return LimitCoinActive
	case !p.Network.IsActive:
		return LimitNetworkActive
	}
	return ""
}

// check checks an amount: whether it and the limits can be used, then the flags, the places, and the bounds.
func check(op string, p *gateway.CoinNetwork, off Limit, amount decimal.Decimal, bounds ...bound) error {
	if reason := money.Check(amount); reason != "" {
		return refused(op, "amount", reason)
	}
	if p.Coin.Precision < 0 {
		return refused(op, string(LimitPrecision), "must not be negative")
	}
	for _, b := range bounds {
		switch {
		case !money.Representable(b.value):
			return refused(op, string(b.limit), "is not an amount of money")
		case b.limit == LimitWithdrawalFee && b.value.Sign() < 0:
			return refused(op, string(b.limit), "must not be negative")
		}
	}
	if off != "" {
		return &LimitError{Limit: off, Amount: amount}
	}
	places := int32(min(p.Coin.Precision, money.MaxScale))                       // #nosec G115 -- from 0 to 30
	if -amount.Exponent() > places && !amount.RoundFloor(places).Equal(amount) { // zeros at the end are no places
		return &LimitError{LimitPrecision, decimal.NewFromInt32(places), amount}
	}
	for _, b := range bounds {
		if !b.allows(amount) {
			return &LimitError{b.limit, b.value, amount}
		}
	}
	return nil
}

func (b bound) allows(amount decimal.Decimal) bool {
	switch b.limit {
	case LimitMaxWithdraw:
		return !amount.GreaterThan(b.value)
	case LimitWithdrawalFee:
		return amount.GreaterThan(b.value)
	default:
		return !amount.LessThan(b.value)
	}
}
