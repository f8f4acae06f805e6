package pricing_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// paid is a pair with an identifier of its names, a precision and a least amount.
func paid(symbol, network string, precision int, least string) gateway.CoinNetwork {
	p := pairOf(symbol+"-"+network, symbol, network)
	p.Coin.Precision, p.Coin.MinAmount = precision, dec(least)
	return p
}

// with returns a pair with some members changed, as JSON.
func with(p gateway.CoinNetwork, change string) gateway.CoinNetwork {
	if err := json.Unmarshal([]byte(change), &p); err != nil {
		panic(err)
	}
	return p
}

func offersOf(t *testing.T, pairs ...gateway.CoinNetwork) *pricing.Offers {
	t.Helper()
	offers, err := pricing.NewOffers(pricing.NewCatalog(pairs), &gateway.ExchangeRates{Rates: []gateway.Rate{
		rate("BTC", "64000", "59000"), rate("USDT", "1", "0.9"), rate("USDT", "2", "2"), rate("ODD", "0", "3"), rate("low", "2", "2"),
	}, Skipped: []gateway.Skipped{{Pointer: "/result/5", CoinSymbol: "GONE", Reason: "is null"}}}, dec("10.50"), "USD")
	require.NoError(t, err)
	return offers
}

// The offers for 10.50 USD: some can be paid, and each other one says why not.
// I-48, I-92, I-100
func TestNewOffers(t *testing.T) {
	t.Parallel()
	const (
		lower, upper = `{"coin":{"id":"8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"}}`, `{"coin":{"id":"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"}}`
		several      = `0.00016407 new_offers: coinSymbol: "BTC" is the symbol of several coins in the listing: ` +
			`the rate, and the invoice, may be for another one`
		twice    = "0.00016407 new_offers: networkName: is listed twice for this coin"
		twiceID  = " new_offers: id: is listed twice"
		nameless = " new_offers: networkName: is empty in the listing: an invoice could not name it"
	)
	type pairs []gateway.CoinNetwork
	btc, usdt, none := paid("BTC", "N", 8, "0.00001000"), paid("USDT", "N", 6, "1.00000000"), paid("NONE", "N", 6, "1")
	second, third, mixed := paid("BTC", "M", 8, "0"), paid("BTC", "O", 8, "0"), with(paid("Btc", "M", 8, "0"), `{"coin":{"id":"other"}}`)
	for _, tt := range []struct {
		name  string
		pairs pairs
		want  string
	}{
		{"no pairs", nil, ""},
		{"the amount is rounded up to the precision of the coin", pairs{btc}, "0.00016407"},
		{"also to whole units", pairs{paid("USDT", "N", 0, "1")}, "11"},
		{"an amount without a rest stays, by the first of two rates", pairs{usdt}, "10.5"},
		{"a rate in lower case", pairs{paid("LOW", "N", 8, "1")}, "5.25"},
		{"an amount below the least", pairs{paid("USDT", "N", 6, "20.00")}, "10.5 coin.minAmount: 10.5 is below 20"},
		{"a pair without deposits", pairs{with(usdt, `{"depositable":false}`)}, "0 depositable: is false"},
		{"a pair that is off and has no rate", pairs{with(none, `{"network":{"isActive":false}}`)}, "0 network.isActive: is false"},
		{"a coin without a rate", pairs{none}, `0 new_offers: coinSymbol: "NONE" has no exchange rate; write it as the rates do`},
		{"a skipped rate", pairs{paid("GONE", "N", 6, "1")}, `0 new_offers: coinSymbol: "GONE" was left out: /result/5: is null`},
		{"a rate of zero", pairs{paid("ODD", "N", 6, "1")}, `0 new_offers: rate: of "ODD" in USD is not an amount above zero`},
		{"an absurd precision", pairs{paid("BTC", "N", 31, "1")}, "0 new_offers: precision: must be from 0 to 30"},

		{"a pair listed twice, beside another", pairs{btc, usdt, with(btc, `{"id":"other"}`)}, twice + " | 10.5 | " + twice},
		{"an identifier listed twice", pairs{btc, with(usdt, `{"id":"BTC-N"}`)}, "0.00016407" + twiceID + " | 10.5" + twiceID},
		{"no symbol", pairs{with(btc, `{"coin":{"symbol":""}}`)}, "0 new_offers: coinSymbol: is empty in the listing"},
		{"no network name", pairs{with(btc, `{"network":{"name":""}}`)}, "0.00016407" + nameless},

		{"one coin on two networks", pairs{btc, second}, "0.00016407 | 0.00016407"},
		{"one coin whose id is in both cases", pairs{with(btc, lower), with(second, upper)}, "0.00016407 | 0.00016407"},
		{"two coins of one symbol", pairs{with(btc, lower), second, usdt}, several + " | " + several + " | 10.5"},
		{"three coins of one symbol, two the same", pairs{btc, with(second, lower), third}, several + " | " + several + " | " + several},
		{"two coins of one symbol in another case", pairs{btc, mixed}, several + " | " + strings.Replace(several, "BTC", "Btc", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offers := offersOf(t, tt.pairs...)
			payable := []pricing.Offer{}
			var got []string
			for _, offer := range offers.All() {
				text := offer.Amount.String()
				if offer.Err == nil {
					payable = append(payable, offer)
				} else {
					text += strings.TrimPrefix(offer.Err.Error(), "gateway:")
					assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(offer.Err))
				}
				got = append(got, text)
				found, ok := offers.FindID(offer.Pair.ID)
				assert.True(t, ok)
				assert.Equal(t, offer.Err, found.Err, "an identifier that a form sends back may be ruled out, too")
			}
			assert.Equal(t, tt.want, strings.Join(got, " | "))
			assert.Equal(t, payable, offers.Payable())
			_, ok := offers.FindID("btc-n")
			assert.False(t, ok, "an identifier that is no UUID has one case")
		})
	}
	for _, refused := range []struct{ price, fiat, want string }{
		{"10", "gbp", "fiat: must be usd or eur; convert another currency with PriceIn"},
		{"0", "usd", "price: is required and must be greater than zero"},
		{"0.30000000000000004", "usd", "price: has more than 8 decimal places, as a float has: round it, or make it from a text"},
	} {
		offers, err := pricing.NewOffers(&pricing.Catalog{}, &gateway.ExchangeRates{}, dec(refused.price), refused.fiat)
		assertRefused(t, err, "new_offers", refused.want)
		assert.Nil(t, offers)
	}
}

// An offer is found by its names, also in another case, if they mean only one.
func TestOffers_Find(t *testing.T) {
	t.Parallel()
	offers := offersOf(t, paid("BTC", "Main", 8, "1"), paid("BTC", "L2", 8, "1"), paid("USDT", "Main", 6, "1"), paid("USDT", "MAIN", 6, "1"),
		paid("NONE", "N", 6, "1"), paid("DUP", "N", 6, "1"), with(paid("DUP", "N", 6, "1"), `{"id":"other"}`))
	for _, tt := range []struct {
		coin, network string
		want          string // the identifier; empty for none
		payable       bool
	}{
		{"BTC", "Main", "BTC-Main", false},
		{"btc", "l2", "BTC-L2", false},
		{"USDT", "MAIN", "USDT-MAIN", true},
		{"usdt", "Main", "", false},
		{"NONE", "N", "NONE-N", false},
		{"DUP", "N", "DUP-N", false},
		{"BTC", "", "", false},
		{"", "Main", "", false},
	} {
		offer, ok := offers.Find(tt.coin, tt.network)
		assert.Equal(t, tt.want != "", ok, tt)
		if ok {
			assert.Equal(t, tt.want, offer.Pair.ID)
			assert.Equal(t, tt.payable, offer.Err == nil, tt)
		}
	}
}

// JSON has names and amounts as text, and the limit that rules an offer out. It cannot be read back: a browser sends no amount.
func TestOffers_json(t *testing.T) {
	t.Parallel()
	offers := offersOf(t, paid("BTC", "N", 8, "0.00001"), paid("USDT", "N", 6, "20.00000000"),
		with(paid("USDT", "Off", 6, "1"), `{"depositable":false}`), paid("NONE", "N", 6, "1"))
	const payable = `{"id":"BTC-N","coinSymbol":"BTC","networkName":"N","amount":"0.00016407","payable":true}`
	for _, tt := range []struct {
		value any
		want  string
	}{
		{offers, `[` + payable + `,` +
			`{"id":"USDT-N","coinSymbol":"USDT","networkName":"N","amount":"10.5","payable":false,"limit":"coin.minAmount","bound":"20"},` +
			`{"id":"USDT-Off","coinSymbol":"USDT","networkName":"Off","payable":false,"limit":"depositable"},` +
			`{"id":"NONE-N","coinSymbol":"NONE","networkName":"N","payable":false}]`},
		{map[string]pricing.Offers{"offers": *offersOf(t)}, `{"offers":[]}`},
		{offers.Payable(), `[` + payable + `]`},
		{&offers.Payable()[0], payable},
		{pricing.Offer{}, `null`},
	} {
		text, err := json.Marshal(tt.value)
		require.NoError(t, err)
		assert.Equal(t, tt.want, string(text))
	}
	for _, into := range []any{new(pricing.Offer), new(pricing.Offers)} {
		assert.ErrorContains(t, json.Unmarshal([]byte(payable), into), "let the browser return the identifier, never an amount, and look the offer up with FindID")
	}
}
