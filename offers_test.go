package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// offersOf returns the offers of a gateway with the given listing and rates.
func offersOf(t testing.TB, listing, rates, price, fiat string) *gateway.Offers {
	t.Helper()
	catalogs, err := gateway.NewCatalog(cannedClient(t, 200, enveloped(listing)), gateway.CacheOptions{TTL: 1})
	require.NoError(t, err)
	catalog, err := catalogs.Get(t.Context())
	require.NoError(t, err)
	of, err := cannedClient(t, 200, enveloped(rates)).ExchangeRates(t.Context())
	require.NoError(t, err)
	offers, err := gateway.NewOffers(catalog, of, decimal.RequireFromString(price), fiat)
	require.NoError(t, err)
	return offers
}

// listed is a record of the listing, in which one of the flags is off, or none.
func listed(t testing.TB, symbol, network string, precision int, minAmount, flags string) string {
	t.Helper()
	const at = `"created_at":"2023-05-14T09:21:43.000Z","updated_at":"2023-05-14T09:21:43.000Z"`
	depositable, coin, on := "true", "true", "true"
	switch flags {
	case "depositable":
		depositable = "false"
	case "coin":
		coin = "false"
	case "network":
		on = "false"
	}
	return fmt.Sprintf(`{"id":"%[1]s-%[2]s","withdrawalFee":"1","swapFee":"1","minWithdraw":"1","maxWithdraw":"9","depositable":%[5]s,"withdrawable":true,
		"confirmation":1,"arrivalTime":1,"expirationTime":1,"networkId":"%[2]s","coinId":"%[1]s",`+at+`,
		"network":{"id":"%[2]s","name":"%[2]s","isActive":%[7]s,`+at+`},
		"coin":{"id":"%[1]s","name":"%[1]s","symbol":"%[1]s","precision":%[3]d,"minAmount":"%[4]s","isActive":%[6]s,`+at+`}}`,
		symbol, network, precision, minAmount, depositable, coin, on)
}

const offeredRates = `[{"symbol":"BTC","usd":"64000","eur":"59000"},{"symbol":"USDT","usd":"1","eur":"0.9"},{"symbol":"ODD","usd":"0","eur":"3"}]`

// What can be paid, and why the rest cannot.
// I-92, I-100
func TestNewOffers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		record string
		amount string // in USD 10.50
		err    string
	}{
		{"the amount is rounded up to the precision of the coin", listed(t, "BTC", "N", 8, "0.00001000", ""), "0.00016407", ""},
		{"also to whole units", listed(t, "USDT", "N", 0, "1.00000000", ""), "11", ""},
		{"an amount without a rest stays", listed(t, "USDT", "N", 6, "1.00000000", ""), "10.5", ""},
		{"an amount below the minimum", listed(t, "USDT", "N", 6, "20.00000000", ""), "10.5", "gateway: coin.minAmount: 10.5 is below 20; the nearest amount that passes is 20"},
		{"a pair without deposits", listed(t, "USDT", "N", 6, "1.00000000", "depositable"), "0", "depositable"},
		{"a coin that is not active", listed(t, "USDT", "N", 6, "1.00000000", "coin"), "0", "coin.isActive"},
		{"a network that is not active", listed(t, "NONE", "N", 6, "1.00000000", "network"), "0", "network.isActive"},
		{"a coin without a rate", listed(t, "NONE", "N", 6, "1.00000000", ""), "0", "gateway: new_offers: coinSymbol: \"NONE\" has no exchange rate; write it as the rates do"},
		{"a rate of zero", listed(t, "ODD", "N", 6, "1.00000000", ""), "0", "gateway: new_offers: rate: of \"ODD\" in USD is not an amount above zero"},
		{"a precision that is absurd", listed(t, "BTC", "N", 31, "0.00001000", ""), "0", "gateway: new_offers: precision: must be from 0 to 30"},
		{"a precision that is negative", listed(t, "BTC", "N", -1, "0.00001000", ""), "0", "gateway: new_offers: precision: must be from 0 to 30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offers := offersOf(t, "["+tt.record+"]", offeredRates, "10.50", "USD")
			all := offers.All()
			require.Len(t, all, 1)
			offer, found := offers.Find(all[0].Pair.Coin.Symbol, "N")
			require.True(t, found)
			assert.Equal(t, all[0], offer)
			assert.Equal(t, tt.amount, offer.Amount.String())
			if tt.err == "" {
				require.NoError(t, offer.Err)
				assert.Equal(t, all, offers.Payable())
				return
			}
			require.ErrorContains(t, offer.Err, tt.err)
			assert.Empty(t, offers.Payable())
		})
	}
}

// A pair that is listed twice is not offered, for nobody knows which of the two is right.
// I-48
func TestNewOffers_listedTwice(t *testing.T) {
	t.Parallel()
	offers := offersOf(t, "["+listed(t, "BTC", "N", 8, "0.00001000", "")+","+listed(t, "USDT", "N", 6, "1.00000000", "")+","+
		listed(t, "BTC", "N", 4, "0.00001000", "")+"]", offeredRates, "10.50", "eur")
	require.Len(t, offers.All(), 3)
	payable := offers.Payable()
	require.Len(t, payable, 1)
	assert.Equal(t, "USDT", payable[0].Pair.Coin.Symbol)
	assert.Equal(t, "11.666667", payable[0].Amount.String())
	twice, found := offers.Find("BTC", "N")
	assert.True(t, found)
	assert.EqualError(t, twice.Err, "gateway: new_offers: networkName: is listed twice for this coin")
	_, found = offers.Find("btc", "N")
	assert.False(t, found)
}

// A pair that an invoice could not name, or that a form could not tell from another.
func TestNewOffers_ambiguous(t *testing.T) {
	t.Parallel()
	one, other := listed(t, "BTC", "N", 8, "0.00001000", ""), listed(t, "USDT", "N", 6, "1.00000000", "")
	for name, tt := range map[string][2]string{
		"no network name": {strings.ReplaceAll(one, `"name":"N"`, `"name":""`), "networkName: is empty in the listing: an invoice could not name it"},
		"the same id":     {strings.Replace(one, `"id":"BTC-N"`, `"id":"USDT-N"`, 1) + "," + other, "id: is listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offers := offersOf(t, "["+tt[0]+"]", offeredRates, "10.50", "usd")
			assert.Empty(t, offers.Payable())
			for _, offer := range offers.All() {
				assert.EqualError(t, offer.Err, "gateway: new_offers: "+tt[1])
			}
		})
	}
}

func TestNewOffers_refuses(t *testing.T) {
	t.Parallel()
	ten := decimal.NewFromInt(10)
	for want, try := range map[string]func() (*gateway.Offers, error){
		"catalog: must not be nil": func() (*gateway.Offers, error) { return gateway.NewOffers(nil, &gateway.ExchangeRates{}, ten, "usd") },
		"rates: must not be nil":   func() (*gateway.Offers, error) { return gateway.NewOffers(&gateway.Catalog{}, nil, ten, "usd") },
		"fiat: must be usd or eur": func() (*gateway.Offers, error) {
			return gateway.NewOffers(&gateway.Catalog{}, &gateway.ExchangeRates{}, ten, "gbp")
		},
		"price: is required and must be greater than zero": func() (*gateway.Offers, error) {
			return gateway.NewOffers(&gateway.Catalog{}, &gateway.ExchangeRates{}, decimal.Zero, "usd")
		},
		"price: has more than 64 digits": func() (*gateway.Offers, error) {
			return gateway.NewOffers(&gateway.Catalog{}, &gateway.ExchangeRates{}, decimal.New(1, 2_000_000_000), "usd")
		},
	} {
		_, err := try()
		assert.ErrorContains(t, err, "gateway: new_offers: "+want)
		assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	}
	offers, err := gateway.NewOffers(&gateway.Catalog{}, &gateway.ExchangeRates{}, ten, "usd")
	require.NoError(t, err)
	assert.Empty(t, offers.All())
}

// An amount is never worth less than the price, and one unit of precision less is.
func TestNewOffers_isEnough(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		price := decimal.New(1+random.Int64N(10_000_000), -int32(random.IntN(5)))
		rate := decimal.New(1+random.Int64N(1_000_000_000), -int32(random.IntN(12)))
		precision := random.IntN(19)
		offers := offersOf(t, "["+listed(t, "BTC", "N", precision, "0.00000000", "")+"]", `[{"symbol":"BTC","usd":"`+rate.String()+`"}]`, price.String(), "usd")
		offer := offers.All()[0]
		require.NoError(t, offer.Err)
		assert.False(t, offer.Amount.Mul(rate).LessThan(price), "%s at %s of %d places is %s", price, rate, precision, offer.Amount)
		less := offer.Amount.Sub(decimal.New(1, -int32(precision)))
		assert.True(t, less.Mul(rate).LessThan(price), "%s at %s of %d places is %s", price, rate, precision, offer.Amount)
	}
}

func TestPriceIn(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"10.00", "1.27", "12.7"},
		{"9.99", "1.2651", "12.64"},
		{"0.01", "0.0001", "0.01"},
		{"1500000", "0.0000415", "62.25"},
	} {
		got, err := gateway.PriceIn(decimal.RequireFromString(tt[0]), decimal.RequireFromString(tt[1]))
		require.NoError(t, err)
		assert.Equal(t, tt[2], got.String())
	}
	one := decimal.NewFromInt(1)
	_, err := gateway.PriceIn(decimal.Zero, one)
	require.EqualError(t, err, "gateway: price_in: price: is required and must be greater than zero")
	_, err = gateway.PriceIn(decimal.New(1, 40), decimal.New(1, 40))
	require.EqualError(t, err, "gateway: price_in: price: after conversion has more than 64 digits")
	_, err = gateway.PriceIn(one, decimal.New(1, -31))
	require.EqualError(t, err, "gateway: price_in: rate: has more than 30 decimal places")
}

// The offers of a listing of 2,000 pairs.
func BenchmarkNewOffers(b *testing.B) {
	records, rates := "", ""
	for i := range 2000 {
		if i > 0 {
			records, rates = records+",", rates+","
		}
		records += listed(b, fmt.Sprintf("C%d", i), "N", 8, "0.00001000", "")
		rates += fmt.Sprintf(`{"symbol":"C%d","usd":"%d.5"}`, i, i+1)
	}
	catalogs, err := gateway.NewCatalog(cannedClient(b, 200, enveloped("["+records+"]")), gateway.CacheOptions{TTL: 1})
	require.NoError(b, err)
	catalog, err := catalogs.Get(b.Context())
	require.NoError(b, err)
	of, err := cannedClient(b, 200, enveloped("["+rates+"]")).ExchangeRates(b.Context())
	require.NoError(b, err)
	price := decimal.RequireFromString("10.50")
	b.ReportAllocs()
	for b.Loop() {
		offers, err := gateway.NewOffers(catalog, of, price, "usd")
		if err != nil || len(offers.Payable()) != 2000 {
			b.Fatal(err)
		}
	}
}
