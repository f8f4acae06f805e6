package pricing_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// offersOf returns the offers of a listing and of the rates of the tests.
func offersOf(t testing.TB, price, fiat string, pairs ...gateway.CoinNetwork) *pricing.Offers {
	t.Helper()
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{
		{CoinSymbol: "BTC", USD: rateOf("64000"), EUR: rateOf("59000")},
		{CoinSymbol: "USDT", USD: rateOf("1"), EUR: rateOf("0.9")},
		{CoinSymbol: "ODD", USD: rateOf("0"), EUR: rateOf("3")},
	}}
	offers, err := pricing.NewOffers(pricing.NewCatalog(pairs), rates, decimal.RequireFromString(price), fiat)
	require.NoError(t, err)
	return offers
}

// listed is a pair of the listing, in which one of the flags is off, or none.
func listed(symbol, network string, precision int, minAmount string, off pricing.Limit) gateway.CoinNetwork {
	p := pairOf(symbol+"-"+network, symbol, network)
	p.Coin.Precision, p.Coin.MinAmount = precision, decimal.RequireFromString(minAmount)
	p.Depositable, p.Coin.IsActive, p.Network.IsActive = off != pricing.LimitDepositable, off != pricing.LimitCoinActive, off != pricing.LimitNetworkActive
	return p
}

// What can be paid, and why the rest cannot.
// I-92, I-100
func TestNewOffers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		pair   gateway.CoinNetwork
		amount string // in USD 10.50
		err    string
	}{
		{"the amount is rounded up to the precision of the coin", listed("BTC", "N", 8, "0.00001000", ""), "0.00016407", ""},
		{"also to whole units", listed("USDT", "N", 0, "1.00000000", ""), "11", ""},
		{"an amount without a rest stays", listed("USDT", "N", 6, "1.00000000", ""), "10.5", ""},
		{"an amount below the minimum", listed("USDT", "N", 6, "20.00000000", ""), "10.5", "gateway: coin.minAmount: 10.5 is below 20"},
		{"a pair without deposits", listed("USDT", "N", 6, "1.00000000", pricing.LimitDepositable), "0", "depositable"},
		{"a coin that is not active", listed("USDT", "N", 6, "1.00000000", pricing.LimitCoinActive), "0", "coin.isActive"},
		{"a network that is not active", listed("NONE", "N", 6, "1.00000000", pricing.LimitNetworkActive), "0", "network.isActive"},
		{"a coin without a rate", listed("NONE", "N", 6, "1.00000000", ""), "0", "gateway: new_offers: coinSymbol: \"NONE\" has no exchange rate; write it as the rates do"},
		{"a rate of zero", listed("ODD", "N", 6, "1.00000000", ""), "0", "gateway: new_offers: rate: of \"ODD\" in USD is not an amount above zero"},
		{"a precision that is absurd", listed("BTC", "N", 31, "0.00001000", ""), "0", "gateway: new_offers: precision: must be from 0 to 30"},
		{"a precision that is negative", listed("BTC", "N", -1, "0.00001000", ""), "0", "gateway: new_offers: precision: must be from 0 to 30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offers := offersOf(t, "10.50", "USD", tt.pair)
			all := offers.All()
			require.Len(t, all, 1)
			offer, found := offers.FindID(all[0].Pair.ID)
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
	offers := offersOf(t, "10.50", "eur", listed("BTC", "N", 8, "0.00001000", ""), listed("USDT", "N", 6, "1.00000000", ""),
		listed("BTC", "N", 4, "0.00001000", ""))
	require.Len(t, offers.All(), 3)
	payable := offers.Payable()
	require.Len(t, payable, 1)
	assert.Equal(t, "USDT", payable[0].Pair.Coin.Symbol)
	assert.Equal(t, "11.666667", payable[0].Amount.String())
	twice, found := offers.FindID("BTC-N")
	assert.True(t, found)
	assert.EqualError(t, twice.Err, "gateway: new_offers: networkName: is listed twice for this coin")
	_, found = offers.FindID("btc-N")
	assert.False(t, found)
}

// A pair that an invoice could not name, or that a form could not tell from another.
func TestNewOffers_ambiguous(t *testing.T) {
	t.Parallel()
	named := func(id, symbol, network string) gateway.CoinNetwork {
		p := pairOf(id, "BTC", network)
		p.Coin.Symbol = symbol
		return p
	}
	for name, tt := range map[string]struct {
		pairs []gateway.CoinNetwork
		err   string
	}{
		"no symbol":       {[]gateway.CoinNetwork{named("a", "", "N")}, "coinSymbol: is empty in the listing"},
		"no network name": {[]gateway.CoinNetwork{named("a", "BTC", "")}, "networkName: is empty in the listing: an invoice could not name it"},
		"the same id":     {[]gateway.CoinNetwork{named("a", "BTC", "N"), named("a", "USDT", "N")}, "id: is listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offers := offersOf(t, "10.50", "usd", tt.pairs...)
			assert.Empty(t, offers.Payable())
			for _, offer := range offers.All() {
				assert.EqualError(t, offer.Err, "gateway: new_offers: "+tt.err)
			}
			offer, found := offers.FindID("a")
			assert.True(t, found)
			assert.Error(t, offer.Err)
		})
	}
}

// Rates in lower case are rates.
func TestNewOffers_case(t *testing.T) {
	t.Parallel()
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "btc", USD: rateOf("64000")}, {CoinSymbol: "usdt", USD: rateOf("1")}}}
	catalog := pricing.NewCatalog([]gateway.CoinNetwork{listed("BTC", "N", 8, "0", ""), listed("USDT", "N", 6, "0", "")})
	offers, err := pricing.NewOffers(catalog, rates, decimal.NewFromInt(64), "usd")
	require.NoError(t, err)
	payable := offers.Payable()
	require.Len(t, payable, 2)
	assert.Equal(t, "0.001", payable[0].Amount.String())
}

// The rate of a symbol says nothing about two coins of that symbol.
func TestNewOffers_severalCoins(t *testing.T) {
	t.Parallel()
	coin := func(id, symbol, network string) gateway.CoinNetwork {
		p := pairOf(id+network, symbol, network)
		p.Coin.ID, p.CoinID = id, id
		return p
	}
	const several = " is the symbol of several coins"
	for name, tt := range map[string]struct {
		pairs   []gateway.CoinNetwork
		payable int
	}{
		"one coin on two networks":                        {[]gateway.CoinNetwork{coin("1", "BTC", "a"), coin("1", "BTC", "b")}, 2},
		"one coin whose id is in both cases":              {[]gateway.CoinNetwork{coin("8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "BTC", "a"), coin("8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B", "BTC", "b")}, 2},
		"two coins of one symbol":                         {[]gateway.CoinNetwork{coin("1", "BTC", "a"), coin("2", "BTC", "b"), coin("3", "USDT", "a")}, 1},
		"two coins of one symbol, in another case":        {[]gateway.CoinNetwork{coin("1", "BTC", "a"), coin("2", "Btc", "b")}, 0},
		"three coins of one symbol, two of them the same": {[]gateway.CoinNetwork{coin("1", "BTC", "a"), coin("2", "BTC", "b"), coin("1", "BTC", "c")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offers := offersOf(t, "10.50", "usd", tt.pairs...)
			assert.Len(t, offers.Payable(), tt.payable)
			for _, offer := range offers.All() {
				if offer.Err != nil {
					assertRefused(t, offer.Err, "new_offers", "coinSymbol", several)
				}
			}
		})
	}
}

func TestNewOffers_refuses(t *testing.T) {
	t.Parallel()
	ten := decimal.NewFromInt(10)
	for want, try := range map[string]func() (*pricing.Offers, error){
		"fiat: must be usd or eur": func() (*pricing.Offers, error) {
			return pricing.NewOffers(&pricing.Catalog{}, &gateway.ExchangeRates{}, ten, "gbp")
		},
		"price: is required and must be greater than zero": func() (*pricing.Offers, error) {
			return pricing.NewOffers(&pricing.Catalog{}, &gateway.ExchangeRates{}, decimal.Zero, "usd")
		},
		"price: has more than 64 digits": func() (*pricing.Offers, error) {
			return pricing.NewOffers(&pricing.Catalog{}, &gateway.ExchangeRates{}, decimal.New(1, 2_000_000_000), "usd")
		},
	} {
		_, err := try()
		assert.ErrorContains(t, err, "gateway: new_offers: "+want)
		assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	}
	offers, err := pricing.NewOffers(&pricing.Catalog{}, &gateway.ExchangeRates{}, ten, "usd")
	require.NoError(t, err)
	assert.Empty(t, offers.All())
}

// A page gets names and amounts as text, and what is wrong with the others.
func TestOffers_json(t *testing.T) {
	t.Parallel()
	offers := offersOf(t, "10.50", "usd", listed("BTC", "N", 8, "0.00001000", ""), listed("USDT", "N", 6, "20.00000000", ""),
		listed("USDT", "Off", 6, "1", pricing.LimitDepositable), listed("NONE", "N", 6, "1", ""))
	const payable = `{"id":"BTC-N","coinSymbol":"BTC","networkName":"N","amount":"0.00016407","payable":true}`
	for want, v := range map[string]any{
		`[` + payable + `,` +
			`{"id":"USDT-N","coinSymbol":"USDT","networkName":"N","amount":"10.5","payable":false,"limit":"coin.minAmount","bound":"20"},` +
			`{"id":"USDT-Off","coinSymbol":"USDT","networkName":"Off","payable":false,"limit":"depositable"},` +
			`{"id":"NONE-N","coinSymbol":"NONE","networkName":"N","payable":false}]`: offers,
		`[` + payable + `]`:         offers.Payable(),
		`{"offers":[]}`:             map[string]pricing.Offers{"offers": *offersOf(t, "10.50", "usd")},
		payable:                     offers.Payable()[0],
		`{"offer":` + payable + `}`: map[string]*pricing.Offer{"offer": &offers.Payable()[0]},
		`null`:                      pricing.Offer{},
	} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

// What a browser returns is never an amount.
func TestOffers_json_isOneWay(t *testing.T) {
	t.Parallel()
	for _, into := range []any{new(pricing.Offer), new(pricing.Offers), &[]pricing.Offer{{}}, &map[string]pricing.Offers{}} {
		for _, text := range []string{`{"amount":"1"}`, `[{"amount":"1"}]`, `{"a":{"amount":"1"}}`} {
			if err := json.Unmarshal([]byte(text), into); !errors.As(err, new(*json.UnmarshalTypeError)) {
				assert.ErrorContains(t, err, "an identifier, never an amount; look the offer up with FindID", "%T %s", into, text)
			}
		}
	}
}

// Beside the offer of a coin whose rate was left out is why.
// I-98
func TestNewOffers_leftOut(t *testing.T) {
	t.Parallel()
	price := decimal.RequireFromString("10.50")
	nameless := gateway.Skipped{Pointer: "/result/9", Reason: "names no coin"}
	twice := gateway.Skipped{Pointer: "/result/3/usd", CoinSymbol: "USDT", Reason: `"0.9999" is another USD rate than 1.0001 before it`}
	for _, tt := range []struct {
		name  string
		rates gateway.ExchangeRates
		want  string
	}{
		{"two rates of one coin", gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "USDT"}}, Skipped: []gateway.Skipped{nameless, twice}}, `rate: of "USDT" in usd was left out: /result/3/usd: "0.9999" is another USD rate than 1.0001 before it`},
		{"the whole record", gateway.ExchangeRates{Skipped: []gateway.Skipped{{Pointer: "/result/USDT", CoinSymbol: "USDT", Reason: "is null, not a record of rates"}}}, `coinSymbol: "USDT" was left out: /result/USDT: is null, not a record of rates`},
		{"a record that names no coin", gateway.ExchangeRates{Skipped: []gateway.Skipped{nameless}}, `coinSymbol: "USDT" has no exchange rate; write it as the rates do; a record that names no coin was left out: /result/9: names no coin`},
		{"another coin", gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "USDT"}}, Skipped: []gateway.Skipped{{CoinSymbol: "BTC"}}}, `rate: of "USDT" in usd is missing in the response`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offers, err := pricing.NewOffers(pricing.NewCatalog([]gateway.CoinNetwork{pairOf("a", "USDT", "Tron")}), &tt.rates, price, "usd")
			require.NoError(t, err)
			assert.EqualError(t, offers.All()[0].Err, "gateway: new_offers: "+tt.want)
			_, err = pricing.ToCoin(&tt.rates, price, "usd", "USDT", 6)
			assert.EqualError(t, err, "gateway: to_coin: "+tt.want)
			_, err = pricing.ToFiat(&tt.rates, price, "usd", "USDT")
			assert.EqualError(t, err, "gateway: to_fiat: "+tt.want)
		})
	}
}
