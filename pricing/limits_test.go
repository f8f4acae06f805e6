package pricing_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// plainPair has two places, can be withdrawn from 10 to 1000 for a fee of 1.50, and paid from 5.
const plainPair = `{"withdrawalFee":"1.50","minWithdraw":"10.00","maxWithdraw":"1000","depositable":true,"withdrawable":true,
	"network":{"isActive":true},"coin":{"precision":2,"minAmount":"5.00000000","isActive":true}}`

// The checks of an amount, in documented order: the flags, the precision, the least, the most and the fee.
// I-58, I-60, I-61, I-74, I-75, I-77, I-87, I-88, I-92
func TestChecks(t *testing.T) {
	t.Parallel()
	const (
		same    = "" // NetWithdrawal returns the error of CheckWithdrawal
		passes  = ""
		noMoney = " is not an amount of money"
	)
	huge := strings.Repeat("9", 40) + "." + strings.Repeat("9", 30)
	for _, tt := range []struct {
		name       string
		change     string // of plainPair
		amount     string
		withdrawal string // the error of CheckWithdrawal
		net        string // what NetWithdrawal returns, an amount or an error
		payment    string // the error of CheckPayment
	}{
		{"between the limits an amount passes, and arrives less the fee", `{}`, "20", passes, "18.5", passes}, // I-76
		{"the least passes", `{}`, "10", passes, "8.5", passes},
		{"the most passes", `{}`, "1000.000", passes, "998.5", passes},
		{"the least of a payment passes", `{}`, "5", "gateway: minWithdraw: 5 is below 10", same, passes},
		{"zeros at the end are no places", `{}`, "12.50000000000", passes, "11", passes},
		{"one unit below the least", `{}`, "9.99", "gateway: minWithdraw: 9.99 is below 10", same, passes},
		{"one unit above the most; a payment has none", `{}`, "1000.01", "gateway: maxWithdraw: 1000.01 is above 1000", same, passes},
		{"one unit below the least of a payment", `{}`, "4.99", "gateway: minWithdraw: 4.99 is below 10", same, "gateway: coin.minAmount: 4.99 is below 5"},
		{"a place too many comes before the least", `{}`, "0.001", "gateway: coin.precision: 0.001 has more than 2 decimal places", same, "gateway: coin.precision: 0.001 has more than 2 decimal places"},
		{"whole units only", `{"coin":{"precision":0}}`, "20.5", "gateway: coin.precision: 20.5 has more than 0 decimal places", same, "gateway: coin.precision: 20.5 has more than 0 decimal places"},
		{"a precision above all places", `{"coin":{"precision":2147483647}}`, "20.000000000000000000000000000001", passes, "18.500000000000000000000000000001", passes},
		{"a most of zero allows nothing", `{"minWithdraw":"0","maxWithdraw":"0"}`, "7", "gateway: maxWithdraw: 7 is above 0", same, passes},
		{"a least below zero is no limit", `{"minWithdraw":"-5","withdrawalFee":"0","coin":{"minAmount":"-5"}}`, "0.01", passes, "0.01", passes},
		{"limits of 65 digits, which no amount has", `{"minWithdraw":"1e64","coin":{"minAmount":"1e64"}}`, "7", "gateway: minWithdraw: 7 is below 1" + strings.Repeat("0", 64), same, "gateway: coin.minAmount: 7 is below 1" + strings.Repeat("0", 64)},
		{"a fee whose digits no amount can carry", `{"withdrawalFee":"` + huge + `"}`, "20", passes, "gateway: withdrawalFee: 20 is not above " + huge, passes},

		{"a fee that is the amount leaves nothing", `{"withdrawalFee":"20"}`, "20", passes, "gateway: withdrawalFee: 20 is not above 20", passes},
		{"a fee with more places than the precision is taken exactly", `{"withdrawalFee":"19.999"}`, "20", passes, "0.001", passes},
		{"the most comes before the fee", `{"withdrawalFee":"2000"}`, "1001", "gateway: maxWithdraw: 1001 is above 1000", same, passes},

		{"withdrawals are off", `{"withdrawable":false}`, "20", "gateway: withdrawable: is false", same, passes}, // I-63
		{"deposits are off", `{"depositable":false}`, "20", passes, "18.5", "gateway: depositable: is false"},    // I-62
		{"the coin is off", `{"coin":{"isActive":false},"network":{"isActive":false}}`, "20", "gateway: coin.isActive: is false", same, "gateway: coin.isActive: is false"},
		{"the network is off", `{"network":{"isActive":false}}`, "20", "gateway: network.isActive: is false", same, "gateway: network.isActive: is false"}, // I-81

		{"no amount comes before a pair that is off", `{"withdrawable":false,"depositable":false}`, "0", "amount: is required and must be greater than zero", same, "amount: is required and must be greater than zero"},
		{"an amount of 65 digits", `{}`, "1e64", "amount: has more than 64 digits", same, "amount: has more than 64 digits"},
		{"a negative precision comes before a pair that is off", `{"withdrawable":false,"depositable":false,"coin":{"precision":-2147483648}}`, "20", "coin.precision: must not be negative", same, "coin.precision: must not be negative"},
		{"a most with the smallest exponent", `{"maxWithdraw":"1e-9999"}`, "20", "maxWithdraw:" + noMoney, same, passes},
		{"a least of a payment with a huge exponent", `{"coin":{"minAmount":"1e9999"}}`, "20", passes, "18.5", "coin.minAmount:" + noMoney},
		{"a fee with a huge exponent", `{"withdrawalFee":"1e9999"}`, "20", passes, "withdrawalFee:" + noMoney, passes},
		{"a fee below zero", `{"withdrawalFee":"-0.01"}`, "20", passes, "withdrawalFee: must not be negative", passes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var pair gateway.CoinNetwork
			require.NoError(t, json.Unmarshal([]byte(plainPair), &pair))
			require.NoError(t, json.Unmarshal([]byte(tt.change), &pair))
			amount := dec(tt.amount)
			assertChecked(t, "check_withdrawal", pricing.CheckWithdrawal(&pair, amount), tt.withdrawal, amount)
			assertChecked(t, "check_payment", pricing.CheckPayment(&pair, amount), tt.payment, amount)
			net, err := pricing.NetWithdrawal(&pair, amount)
			if tt.withdrawal == passes && err == nil {
				assert.Equal(t, tt.net, net.String())
				return
			}
			assert.Zero(t, net)
			assertChecked(t, "net_withdrawal", err, tt.withdrawal+tt.net, amount)
		})
	}
}

// assertChecked asserts the error of a check: a LimitError, whose text has no operation, a refusal, or none.
func assertChecked(t *testing.T, op string, err error, want string, amount decimal.Decimal) {
	t.Helper()
	switch limit, ok := errors.AsType[*pricing.LimitError](err); {
	case want == "":
		assert.NoError(t, err)
	case ok:
		assert.EqualError(t, err, want)
		assert.Equal(t, amount, limit.Amount)
		assertRefused(t, errors.Unwrap(err), "check_amount", strings.TrimPrefix(want, "gateway: "))
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	default:
		assertRefused(t, err, op, want)
	}
}
