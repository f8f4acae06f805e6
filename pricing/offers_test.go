package pricing_test

import (
	"encoding/json"
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

func offersOf(pairs ...gateway.CoinNetwork) (*pricing.Offers, error) {
	rates := &gateway.ExchangeRates{Rates: []gateway.Rate{
		rate("BTC", "64000", "59000"), rate("USDT", "1", "0.9"), rate("USDT", "2", "2"), rate("ODD", "0", "3"), rate("low", "2", "2"),
	}}
	return pricing.NewOffers(pricing.NewCatalog(pairs), rates, dec("10.50"), "USD")
}

// What can be paid, and why the rest cannot.
// I-48, I-92, I-100
func TestNewOffers(t *testing.T) {
	t.Parallel()
	const (
		lower, upper = `{"coin":{"id":"8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"}}`, `{"coin":{"id":"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"}}`
		several      = "gateway: new_offers: coinSymbol: \"BTC\" is the symbol of several coins in the listing: the rate, and the invoice, may be for another one"
	)
	type pairs []gateway.CoinNetwork
	btc, usdt := paid("BTC", "N", 8, "0.00001000"), paid("USDT", "N", 6, "1.00000000")
	for _, tt := range []struct {
		name  string
		pairs pairs
		want  [][2]string // the amount for 10.50 USD, and the error
	}{
		{"no pairs", nil, [][2]string{}},
		{"the amount is rounded up to the precision of the coin", pairs{btc}, [][2]string{{"0.00016407", ""}}},
		{"also to whole units", pairs{paid("USDT", "N", 0, "1")}, [][2]string{{"11", ""}}},
		{"an amount without a rest stays, by the first of two rates", pairs{usdt}, [][2]string{{"10.5", ""}}},
		{"a rate in lower case", pairs{paid("LOW", "N", 8, "1")}, [][2]string{{"5.25", ""}}},
		{"an amount below the least", pairs{paid("USDT", "N", 6, "20.00")}, [][2]string{{"10.5", "gateway: coin.minAmount: 10.5 is below 20"}}},
		{"a pair without deposits", pairs{with(usdt, `{"depositable":false}`)}, [][2]string{{"0", "gateway: depositable: is false"}}},
		{"a coin that is off", pairs{with(usdt, `{"coin":{"isActive":false}}`)}, [][2]string{{"0", "gateway: coin.isActive: is false"}}},
		{"a pair that is off comes before the rate", pairs{with(paid("NONE", "N", 6, "1"), `{"network":{"isActive":false}}`)}, [][2]string{{"0", "gateway: network.isActive: is false"}}},
		{"a coin without a rate", pairs{paid("NONE", "N", 6, "1")}, [][2]string{{"0", `gateway: new_offers: coinSymbol: "NONE" has no exchange rate; write it as the rates do`}}},
		{"a rate of zero", pairs{paid("ODD", "N", 6, "1")}, [][2]string{{"0", `gateway: new_offers: rate: of "ODD" in USD is not an amount above zero`}}},
		{"an absurd precision", pairs{paid("BTC", "N", 31, "1")}, [][2]string{{"0", "gateway: new_offers: precision: must be from 0 to 30"}}},

		{"a pair listed twice, beside another", pairs{btc, usdt, with(btc, `{"id":"other"}`)}, [][2]string{{"0.00016407", "gateway: new_offers: networkName: is listed twice for this coin"}, {"10.5", ""}, {"0.00016407", "gateway: new_offers: networkName: is listed twice for this coin"}}},
		{"an identifier listed twice", pairs{btc, with(usdt, `{"id":"BTC-N"}`)}, [][2]string{{"0.00016407", "gateway: new_offers: id: is listed twice"}, {"10.5", "gateway: new_offers: id: is listed twice"}}},
		{"no symbol", pairs{with(btc, `{"coin":{"symbol":""}}`)}, [][2]string{{"0", "gateway: new_offers: coinSymbol: is empty in the listing"}}},
		{"no network name", pairs{with(btc, `{"network":{"name":""}}`)}, [][2]string{{"0.00016407", "gateway: new_offers: networkName: is empty in the listing: an invoice could not name it"}}},

		{"one coin on two networks", pairs{btc, paid("BTC", "M", 8, "0")}, [][2]string{{"0.00016407", ""}, {"0.00016407", ""}}},
		{"one coin whose id is in both cases", pairs{with(btc, lower), with(paid("BTC", "M", 8, "0"), upper)}, [][2]string{{"0.00016407", ""}, {"0.00016407", ""}}},
		{"two coins of one symbol", pairs{with(btc, lower), paid("BTC", "M", 8, "0"), usdt}, [][2]string{{"0.00016407", several}, {"0.00016407", several}, {"10.5", ""}}},
		{"two of three coins of one symbol are the same", pairs{btc, with(paid("BTC", "M", 8, "0"), lower), paid("BTC", "O", 8, "0")}, [][2]string{{"0.00016407", several}, {"0.00016407", several}, {"0.00016407", several}}},
		{"two coins of one symbol in another case", pairs{with(btc, lower), with(paid("Btc", "M", 8, "0"), `{"coin":{"id":"other"}}`)}, [][2]string{
			{"0.00016407", several}, {"0.00016407", "gateway: new_offers: coinSymbol: \"Btc\"" + several[len("gateway: new_offers: coinSymbol: \"BTC\""):]},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offers, err := offersOf(tt.pairs...)
			require.NoError(t, err)
			payable, got := []pricing.Offer{}, [][2]string{}
			for _, offer := range offers.All() {
				reason := ""
				if offer.Err == nil {
					payable = append(payable, offer)
				} else {
					reason = offer.Err.Error()
					assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(offer.Err))
				}
				got = append(got, [2]string{offer.Amount.String(), reason})
				found, ok := offers.FindID(offer.Pair.ID)
				assert.True(t, ok)
				assert.Equal(t, offer.Err, found.Err, "what a form sends back may be ruled out, too")
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, payable, offers.Payable())
			_, ok := offers.FindID("btc-n")
			assert.False(t, ok, "an identifier that is no UUID has one case")
		})
	}
}

func TestNewOffers_refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, price, fiat, want string }{
		{"an unknown currency", "10", "gbp", "fiat: must be usd or eur; convert another currency with PriceIn"},
		{"no price", "0", "usd", "price: is required and must be greater than zero"},
		{"a price that is too large", "1e9999", "usd", "price: has more than 64 digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offers, err := pricing.NewOffers(&pricing.Catalog{}, &gateway.ExchangeRates{}, dec(tt.price), tt.fiat)
			assertRefused(t, err, "new_offers", tt.want)
			assert.Nil(t, offers)
		})
	}
}

// JSON has names and amounts as text, and the limit that rules an offer out. It cannot be read back: a browser sends no amount.
func TestOffers_json(t *testing.T) {
	t.Parallel()
	offers, err := offersOf(paid("BTC", "N", 8, "0.00001"), paid("USDT", "N", 6, "20.00000000"),
		with(paid("USDT", "Off", 6, "1"), `{"depositable":false}`), paid("NONE", "N", 6, "1"))
	require.NoError(t, err)
	none, err := offersOf()
	require.NoError(t, err)
	const payable = `{"id":"BTC-N","coinSymbol":"BTC","networkName":"N","amount":"0.00016407","payable":true}`
	for _, tt := range []struct {
		name  string
		value any
		want  string
	}{
		{"all offers", offers, `[` + payable + `,` +
			`{"id":"USDT-N","coinSymbol":"USDT","networkName":"N","amount":"10.5","payable":false,"limit":"coin.minAmount","bound":"20"},` +
			`{"id":"USDT-Off","coinSymbol":"USDT","networkName":"Off","payable":false,"limit":"depositable"},` +
			`{"id":"NONE-N","coinSymbol":"NONE","networkName":"N","payable":false}]`},
		{"a field", map[string]pricing.Offers{"offers": *none}, `{"offers":[]}`},
		{"the payable", offers.Payable(), `[` + payable + `]`},
		{"a pointer", &offers.Payable()[0], payable},
		{"an offer of nothing", pricing.Offer{}, `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tt.value)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(text))
		})
	}
	for _, into := range []any{new(pricing.Offer), new(pricing.Offers)} {
		assert.ErrorContains(t, json.Unmarshal([]byte(payable), into), "let the browser return the identifier, never an amount, and look the offer up with FindID")
	}
}
