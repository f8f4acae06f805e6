package gateway_test

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// What needs no service. The floor of a conversion is a division, rounded up,
// by a rate from a map.
func BenchmarkExchangeRates_ToCoin(b *testing.B) {
	rates, err := inMemory(b, enveloped(ratesJSON)).ExchangeRates(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	price := decimal.RequireFromString("10.50")
	b.Run("client", func(b *testing.B) {
		measureCalls(b, func() error {
			_, err := rates.ToCoin(price, "usd", "BTC", 8)
			return err
		})
	})
	b.Run("floor", func(b *testing.B) {
		usd := map[string]decimal.Decimal{"BTC": decimal.RequireFromString("64123.55"), "USDT": decimal.RequireFromString("1.0001")}
		measureCalls(b, func() error {
			_ = price.DivRound(usd["BTC"], 9).RoundUp(8)
			return nil
		})
	})
}

// The floor of a check is two comparisons and the number of decimal places.
func BenchmarkCheckWithdrawal(b *testing.B) {
	var pair gateway.CoinNetwork
	pair.Withdrawable, pair.Coin.IsActive, pair.Network.IsActive, pair.Coin.Precision = true, true, true, 6
	pair.MinWithdraw, pair.MaxWithdraw = decimal.RequireFromString("10"), decimal.RequireFromString("1000.5")
	amount := decimal.RequireFromString("12.34")
	b.Run("client", func(b *testing.B) {
		measureCalls(b, func() error { return pair.CheckWithdrawal(amount) })
	})
	b.Run("floor", func(b *testing.B) {
		measureCalls(b, func() error {
			if amount.LessThan(pair.MinWithdraw) || amount.GreaterThan(pair.MaxWithdraw) || !amount.Equal(amount.Truncate(6)) {
				b.Fatal("refused")
			}
			return nil
		})
	})
}
