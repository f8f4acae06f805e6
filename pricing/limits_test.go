package pricing_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// plainPair can be withdrawn from 10 to 1000 and paid from 5, with two places.
func plainPair() *gateway.CoinNetwork {
	return &gateway.CoinNetwork{
		WithdrawalFee: decimal.RequireFromString("1.50"),
		MinWithdraw:   decimal.RequireFromString("10.00"),
		MaxWithdraw:   decimal.RequireFromString("1000"),
		Depositable:   true,
		Withdrawable:  true,
		Network:       gateway.Network{IsActive: true},
		Coin:          gateway.Coin{Precision: 2, MinAmount: decimal.RequireFromString("5.00000000"), IsActive: true},
	}
}

// limitedPair returns a plainPair of other limits. A text that is empty changes
// nothing.
func limitedPair(precision int, least, most, fee string) *gateway.CoinNetwork {
	p := plainPair()
	p.Coin.Precision = precision
	for into, text := range map[*decimal.Decimal]string{&p.MinWithdraw: least, &p.MaxWithdraw: most, &p.WithdrawalFee: fee} {
		if text != "" {
			*into = decimal.RequireFromString(text)
		}
	}
	return p
}

// assertLimit asserts that err names a limit with its bound, and the amount.
func assertLimit(t *testing.T, err error, limit, bound string, amount decimal.Decimal) {
	t.Helper()
	var refusal *pricing.LimitError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, pricing.Limit(limit), refusal.Limit)
	assert.True(t, refusal.Bound.Equal(decimal.RequireFromString(bound)), "the bound is %s, not %s", refusal.Bound, bound)
	assert.Equal(t, amount, refusal.Amount)
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err))
}

// A check is one of the three, by its name.
func check(name string, p *gateway.CoinNetwork, amount decimal.Decimal) error {
	switch name {
	case "check_withdrawal":
		return pricing.CheckWithdrawal(p, amount)
	case "check_payment":
		return pricing.CheckPayment(p, amount)
	default:
		net, err := pricing.NetWithdrawal(p, amount)
		if err != nil && !net.IsZero() {
			return errors.New("an error comes with zero")
		}
		return err
	}
}

// A limitCase is an amount, and the limit that it does not meet; without a limit it passes.
type limitCase struct {
	name         string
	pair         *gateway.CoinNetwork
	amount       string
	limit, bound string
}

func (tt limitCase) run(t *testing.T, method string) {
	t.Run(tt.name, func(t *testing.T) {
		t.Parallel()
		amount := decimal.RequireFromString(tt.amount)
		err := check(method, tt.pair, amount)
		if tt.limit == "" {
			require.NoError(t, err)
			return
		}
		assertLimit(t, err, tt.limit, tt.bound, amount)
	})
}

// I-60, I-61, I-74
func TestCheckWithdrawal(t *testing.T) {
	t.Parallel()
	for _, tt := range []limitCase{
		{"an amount between the limits passes", plainPair(), "12.34", "", ""},
		{"the least passes", plainPair(), "10", "", ""},  // I-75
		{"the most passes", plainPair(), "1000", "", ""}, // I-75
		{"the most with other zeros passes", plainPair(), "1000.000", "", ""},
		{"zeros at the end are no places", plainPair(), "12.50000000000", "", ""},
		{"one unit below the least does not pass", plainPair(), "9.99", "minWithdraw", "10"},
		{"one unit above the most does not pass", plainPair(), "1000.01", "maxWithdraw", "1000"},
		{"a place too many does not pass", plainPair(), "12.344", "coin.precision", "2"}, // I-87
		{"precision comes before the least", plainPair(), "0.001", "coin.precision", "2"},
		{"precision comes before the most", plainPair(), "5000.001", "coin.precision", "2"},
		{"a least with more places than the precision", limitedPair(2, "10.001", "", ""), "10", "minWithdraw", "10.001"},
		{"a most with more places than the precision", limitedPair(2, "", "999.999", ""), "1000", "maxWithdraw", "999.999"},
		{"a most of zero allows nothing", limitedPair(2, "0", "0", ""), "1", "maxWithdraw", "0"},
		{"a most below zero allows nothing", limitedPair(2, "0", "-1", ""), "1", "maxWithdraw", "-1"},
		{"a least below zero is no limit", limitedPair(2, "-5", "", ""), "0.01", "", ""},
		{"a most below the smallest unit allows nothing", limitedPair(2, "0", "0.009", ""), "0.001", "coin.precision", "2"},
		{"whole units only", limitedPair(0, "0.5", "", ""), "2.5", "coin.precision", "0"},
		{"a least below one whole unit", limitedPair(0, "0.5", "", ""), "0.4", "coin.precision", "0"},
		{"a precision above all places", limitedPair(math.MaxInt, "0", "", ""), "0.000000000000000000000000000001", "", ""},
		{"a precision of the most places", limitedPair(30, "", "", ""), "9.999999999999999999999999999999", "minWithdraw", "10"},
		{"a limit that is finer than any amount", limitedPair(99, "10.0000000000000000000000000000000001", "", ""), "10", "minWithdraw", "10.0000000000000000000000000000000001"},
		{"an amount with an exponent", plainPair(), "1e2", "", ""},
		{"an amount with an exponent above the most", plainPair(), "1e63", "maxWithdraw", "1000"},
		{"a least of 64 digits", limitedPair(2, "1e63", "1e64", ""), "1", "minWithdraw", "1e63"},
		{"a least of 65 digits, which no amount has", limitedPair(2, "1e64", "1e65", ""), "1", "minWithdraw", "1e64"},
		{"a most of 65 digits", limitedPair(2, "", "1e64", ""), strings.Repeat("9", 61) + ".999", "coin.precision", "2"},
		{
			"a least whose digits no amount can carry",
			limitedPair(30, "1"+strings.Repeat("0", 40)+"."+strings.Repeat("0", 29)+"1", "1e60", ""), "1",
			"minWithdraw", "1" + strings.Repeat("0", 40) + "." + strings.Repeat("0", 29) + "1",
		},
		{
			"a most whose digits no amount can carry",
			limitedPair(30, "", strings.Repeat("9", 40)+"."+strings.Repeat("9", 30), ""), "1e50",
			"maxWithdraw", strings.Repeat("9", 40) + "." + strings.Repeat("9", 30),
		},
	} {
		tt.run(t, "check_withdrawal")
	}
}

// I-88, I-92
func TestCheckPayment(t *testing.T) {
	t.Parallel()
	withMinimum := func(precision int, least string) *gateway.CoinNetwork {
		p := plainPair()
		p.Coin.Precision, p.Coin.MinAmount = precision, decimal.RequireFromString(least)
		return p
	}
	for _, tt := range []limitCase{
		{"the least passes", plainPair(), "5", "", ""},
		{"zeros at the end are no places", plainPair(), "5.00000000", "", ""},
		{"there is no most", plainPair(), strings.Repeat("9", 64), "", ""},
		{"the limits of a withdrawal do not count", limitedPair(2, "100", "1", "500"), "5", "", ""},
		{"one unit below the least does not pass", plainPair(), "4.99", "coin.minAmount", "5"},
		{"precision comes first", plainPair(), "4.999", "coin.precision", "2"},
		{"precision comes before a least with more places", withMinimum(2, "0.00100000"), "0.001", "coin.precision", "2"},
		{"a least that no amount has lets nothing pass", withMinimum(2, "1e64"), "7", "coin.minAmount", "1e64"},
	} {
		tt.run(t, "check_payment")
	}
}

// I-58, I-74, I-77
func TestNetWithdrawal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fee  string
		net  string // of 20
	}{
		{"the fee is taken from the amount", "1.5", "18.5"}, // I-76
		{"a fee of zero takes nothing", "0", "20"},
		{"a fee with more places than the precision is taken exactly", "0.00015", "19.99985"},
		{"the smallest unit can arrive", "19.99", "0.01"},
		{"less than the smallest unit can arrive", "19.999", "0.001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			net, err := pricing.NetWithdrawal(limitedPair(2, "", "", tt.fee), decimal.NewFromInt(20))
			require.NoError(t, err)
			assert.True(t, net.Equal(decimal.RequireFromString(tt.net)), "%s arrives, not %s", net, tt.net)
		})
	}
	for _, tt := range []limitCase{
		{"a fee that is the amount leaves nothing", limitedPair(2, "", "", "20"), "20", "withdrawalFee", "20"},
		{"a fee above the amount leaves nothing", limitedPair(2, "", "", "50.001"), "20", "withdrawalFee", "50.001"},
		{"a fee above the most leaves nothing of any amount", limitedPair(2, "", "", "1000"), "20", "withdrawalFee", "1000"},
		{"a fee without a limit below it", limitedPair(0, "0", "", "1.5"), "1", "withdrawalFee", "1.5"},
		{"a fee that no amount exceeds", limitedPair(2, "", "1e70", "1e64"), "20", "withdrawalFee", "1e64"},
		{
			"a fee whose digits no amount can carry",
			limitedPair(30, "", "1e60", strings.Repeat("9", 40)+"."+strings.Repeat("9", 30)), "20",
			"withdrawalFee", strings.Repeat("9", 40) + "." + strings.Repeat("9", 30),
		},
		{"the least comes before the fee", limitedPair(2, "", "", "15"), "5", "minWithdraw", "10"},
		{"precision comes before the fee", limitedPair(2, "", "", "15"), "12.001", "coin.precision", "2"},
		{"the most comes before the fee", limitedPair(2, "", "", "15"), "1001", "maxWithdraw", "1000"},
	} {
		tt.run(t, "net_withdrawal")
	}
}

// Flags come first, in the order of their documentation.
// I-93
func TestChecks_flags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                    string
		change                  func(*gateway.CoinNetwork)
		ofWithdrawal, ofDeposit string // the limit; "": it passes
	}{
		{"nothing is off", func(*gateway.CoinNetwork) {}, "", ""},
		{"withdrawals are off", func(p *gateway.CoinNetwork) { p.Withdrawable = false }, "withdrawable", ""}, // I-63
		{"deposits are off", func(p *gateway.CoinNetwork) { p.Depositable = false }, "", "depositable"},      // I-62
		// I-89
		{"the coin is off", func(p *gateway.CoinNetwork) { p.Coin.IsActive = false }, "coin.isActive", "coin.isActive"},
		// I-81
		{"the network is off", func(p *gateway.CoinNetwork) { p.Network.IsActive = false }, "network.isActive", "network.isActive"},
		{
			"coin and network are off",
			func(p *gateway.CoinNetwork) { p.Coin.IsActive, p.Network.IsActive = false, false },
			"coin.isActive", "coin.isActive",
		},
		{
			"everything is off",
			func(p *gateway.CoinNetwork) { *p = gateway.CoinNetwork{} },
			"withdrawable", "depositable",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := plainPair()
			tt.change(p)
			amount := decimal.RequireFromString("12.34")
			outside := decimal.RequireFromString("0.001") // also breaks every limit
			for method, limit := range map[string]string{"check_withdrawal": tt.ofWithdrawal, "net_withdrawal": tt.ofWithdrawal, "check_payment": tt.ofDeposit} {
				if limit == "" {
					require.NoError(t, check(method, p, amount))
					continue
				}
				assertLimit(t, check(method, p, amount), limit, "0", amount)
				assertLimit(t, check(method, p, outside), limit, "0", outside)
				assert.EqualError(t, check(method, p, amount), "gateway: "+limit+": is false")
			}
		})
	}
}

// What is no amount, or no limit, is named.
func TestChecks_refuse(t *testing.T) {
	t.Parallel()
	huge := decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 1<<22), 0) // over a million digits
	const withdrawal, payment, net = "check_withdrawal", "check_payment", "net_withdrawal"
	all := []string{withdrawal, payment, net}
	for _, tt := range []struct {
		name   string
		amount decimal.Decimal
		reason string
	}{
		{"no amount", decimal.Decimal{}, "is required and must be greater than zero"},
		{"a zero with a huge exponent", decimal.New(0, 1<<30), "must be greater than zero"},
		{"an amount below zero", decimal.New(-1, 0), "must be greater than zero"},
		{"an amount of 65 digits", decimal.New(1, 64), "has more than 64 digits"},
		{"an amount of 31 places", decimal.New(1, -31), "has more than 30 decimal places"},
		{"an amount with the largest exponent", decimal.New(1, math.MaxInt32), "has more than 64 digits"},
		{"an amount with the smallest exponent", decimal.New(1, math.MinInt32), "has more than 30 decimal places"},
		{"an amount of a million digits", huge, "has more than 64 digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, method := range all {
				assertRefused(t, check(method, plainPair(), tt.amount), method, "amount", tt.reason)
			}
		})
	}
	const noMoney = "is not an amount of money"
	for _, tt := range []struct {
		name             string
		change           func(*gateway.CoinNetwork)
		methods          []string // the others let it pass
		argument, reason string
	}{
		{"a negative precision", func(p *gateway.CoinNetwork) { p.Coin.Precision = -1 }, all, "coin.precision", "must not be negative"},
		{"a record that is off too", func(p *gateway.CoinNetwork) { *p = gateway.CoinNetwork{Coin: gateway.Coin{Precision: math.MinInt}} }, all, "coin.precision", "must not be negative"},
		{"a least with a huge exponent", func(p *gateway.CoinNetwork) { p.MinWithdraw = decimal.New(1, 1<<30) }, []string{withdrawal, net}, "minWithdraw", noMoney},
		{"a least of zero with a huge exponent", func(p *gateway.CoinNetwork) { p.MinWithdraw = decimal.New(0, 1<<30) }, []string{withdrawal, net}, "minWithdraw", noMoney},
		{"a most with the smallest exponent", func(p *gateway.CoinNetwork) { p.MaxWithdraw = decimal.New(1, math.MinInt32) }, []string{withdrawal, net}, "maxWithdraw", noMoney},
		{"a most of a million digits", func(p *gateway.CoinNetwork) { p.MaxWithdraw = huge }, []string{withdrawal, net}, "maxWithdraw", noMoney},
		{"a minimum with a huge exponent", func(p *gateway.CoinNetwork) { p.Coin.MinAmount = decimal.New(1, 1<<30) }, []string{payment}, "coin.minAmount", noMoney},
		{"a fee with a huge exponent", func(p *gateway.CoinNetwork) { p.WithdrawalFee = decimal.New(1, 1<<30) }, []string{net}, "withdrawalFee", noMoney},
		{"a fee below zero", func(p *gateway.CoinNetwork) { p.WithdrawalFee = decimal.New(-1, -2) }, []string{net}, "withdrawalFee", "must not be negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := plainPair()
			tt.change(p)
			for _, method := range all {
				err := check(method, p, decimal.NewFromInt(20))
				if slices.Contains(tt.methods, method) {
					assertRefused(t, err, method, tt.argument, tt.reason)
				} else {
					assert.NoError(t, err)
				}
			}
		})
	}
}

// The error says what is wrong.
func TestLimitError_text(t *testing.T) {
	t.Parallel()
	of := func(limit pricing.Limit, amount, bound string) *pricing.LimitError {
		return &pricing.LimitError{Limit: limit, Bound: decimal.RequireFromString(bound), Amount: decimal.RequireFromString(amount)}
	}
	for want, err := range map[string]*pricing.LimitError{
		"minWithdraw: 0.5 is below 10":                          of(pricing.LimitMinWithdraw, "0.50", "10.00000000"),
		"coin.minAmount: 0.5 is below 10":                       of(pricing.LimitMinAmount, "0.5", "10"),
		"maxWithdraw: 1000 is above 10":                         of(pricing.LimitMaxWithdraw, "1e3", "10"),
		"coin.precision: 10.001 has more than 2 decimal places": of(pricing.LimitPrecision, "10.001", "2"),
		"withdrawalFee: 9.99 is not above 9.99":                 of(pricing.LimitWithdrawalFee, "9.99", "9.99"),
	} {
		assert.EqualError(t, err, "gateway: "+want)
	}
}

// A limit that a program passes on with its other errors says that nothing was sent.
func TestLimitError_outcome(t *testing.T) {
	t.Parallel()
	err := pricing.CheckWithdrawal(plainPair(), decimal.New(5, 0))
	for wrapped, want := range map[error]gateway.Outcome{
		err:                         gateway.OutcomeNotSent,
		fmt.Errorf("shop: %w", err): gateway.OutcomeNotSent,
		errors.Join(err, errSource): gateway.OutcomeUnknown,
		&pricing.LimitError{}:       gateway.OutcomeNotSent,
	} {
		assert.Equal(t, want, gateway.OutcomeOf(wrapped), "%v", wrapped)
		assert.False(t, gateway.SafeToRetry(wrapped))
		assert.ErrorIs(t, wrapped, gateway.ErrInvalidArgument)
	}
	assertRefused(t, errors.Unwrap(err), "check_amount", "minWithdraw", "5 is below 10")
}

// The checks decide as fractions do, for limits and amounts of every size that a response can contain. Half of them
// are small, so that amounts meet their limits exactly.
func TestChecks_againstFractions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	number := func(small bool, most int) decimal.Decimal {
		if small {
			return decimal.New(int64(random.IntN(40)), -int32(random.IntN(3)))
		}
		text := make([]byte, 1+random.IntN(most))
		for i := range text {
			text[i] = "0000123456789999"[random.IntN(16)]
		}
		whole, _ := new(big.Int).SetString(string(text), 10)
		return decimal.NewFromBigInt(whole, int32(random.IntN(45)-30))
	}
	passed, refused := 0, 0
	for i := range 3_000 {
		small := i%2 == 0
		p, amount := plainPair(), number(small, 64)
		p.Coin.Precision = random.IntN(33)
		if small {
			p.Coin.Precision = random.IntN(3)
		}
		p.MinWithdraw, p.MaxWithdraw = number(small, 60), number(small, 100)
		p.WithdrawalFee, p.Coin.MinAmount = number(small, 70), number(small, 70)
		unit := decimal.New(1, -int32(p.Coin.Precision)).Rat()
		asked := amount.Rat()
		fits := new(big.Rat).Quo(asked, unit).IsInt()
		withdrawable := fits && asked.Cmp(p.MinWithdraw.Rat()) >= 0 && asked.Cmp(p.MaxWithdraw.Rat()) <= 0
		for method, passes := range map[string]bool{
			"check_withdrawal": withdrawable,
			"net_withdrawal":   withdrawable && asked.Cmp(p.WithdrawalFee.Rat()) > 0,
			"check_payment":    fits && asked.Cmp(p.Coin.MinAmount.Rat()) >= 0,
		} {
			err := check(method, p, amount)
			if _, limited := errors.AsType[*pricing.LimitError](err); limited {
				refused++
				require.False(t, passes, "%s: %v", method, err)
			} else if err == nil {
				passed++
				require.True(t, passes, "%s: %s of %+v passes", method, amount, p)
			} else {
				require.ErrorIs(t, err, gateway.ErrInvalidArgument)
			}
		}
	}
	assert.Greater(t, passed, 500)
	assert.Greater(t, refused, 500)
}
