package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// The forms in which real gateways have their rates, in the envelope of ours: each is read right, or is an
// error that says what reads it. None is read wrong.
// I-95, I-96
func TestClient_ExchangeRates_ofRealGateways(t *testing.T) {
	t.Parallel()
	const remedy = "WithRatesDecoder reads another form"
	for _, tt := range []struct {
		name, result string
		refused      string // without a decoder: why; empty for read right
		decode       func(json.RawMessage) ([]gateway.Rate, error)
		want         string // symbol, USD and EUR of each coin
	}{
		{
			"CoinGate: by coin and currency", `{"BTC":{"EUR":"59000.01","GBP":"50000.1","USD":"64123.55"},"USDT":{"EUR":"0.92","USD":"1.0001"}}`,
			"",
			nil, "BTC 64123.55 59000.01, USDT 1.0001 0.92",
		},
		{
			"Cryptomus: a record for each pair", `[{"from":"BTC","to":"USD","course":"64123.55"},{"from":"BTC","to":"RUB","course":"5012345.6"},{"from":"BTC","to":"EUR","course":"59000.01"},{"from":"USDT","to":"USD","course":"1.0001"}]`,
			"/result/0: is no record with usd and eur", decodePairs, "BTC 64123.55 59000.01, USDT 1.0001 -",
		},
		{
			"NOWPayments: the estimate of one pair", `{"currency_from":"BTC","amount_from":1,"currency_to":"usd","estimated_amount":"64123.55"}`,
			"/result: has no coin with a price in usd or eur",
			decodeEstimate, "BTC 64123.55 -",
		},
		{
			"OxaPay: a price by coin, in a currency that is not named", `{"BTC":64123.55,"USDT":1.0001}`,
			"/result/BTC: is no record with usd and eur",
			decodePrices, "BTC 64123.55 -, USDT 1.0001 -",
		},
		{
			"Plisio: another name of the price", `[{"cid":"BTC","currency":"BTC","price_usd":"64123.55"},{"cid":"USDT_TRX","currency":"USDT","price_usd":"1.0001"},{"cid":"USDT","currency":"USDT","price_usd":"1.0001"}]`,
			"/result/0: is no record with usd and eur",
			decodeUSD, "BTC 64123.55 -, USDT 1.0001 -",
		},
		{
			"Coinbase: one coin in many currencies", `{"currency":"BTC","rates":{"EUR":"59000.01","USD":"64123.55"}}`,
			"/result: has no coin with a price in usd or eur",
			decodeOneCoin, "BTC 64123.55 59000.01",
		},
		{
			"BitPay: one coin that is not named", `[{"code":"USD","name":"US Dollar","rate":64123.55},{"code":"EUR","name":"Euro","rate":59000.01}]`,
			"/result/0: is no record with usd and eur",
			decodeCodes, "BTC 64123.55 59000.01",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := cannedClient(t, 200, enveloped(tt.result)).ExchangeRates(t.Context())
			if tt.refused == "" {
				require.NoError(t, err)
				assert.Equal(t, tt.want, ratesText(got))
				return
			}
			wrong := &gateway.DecodeError{}
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, tt.refused+"; "+remedy, wrong.Pointer+": "+wrong.Err.Error())
			decode := func(result json.RawMessage) ([]gateway.Rate, error) {
				defer clear(result) // the caller still gets what came
				return tt.decode(result)
			}
			got, err = cannedClient(t, 200, enveloped(tt.result), gateway.WithRatesDecoder(decode)).ExchangeRates(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tt.want, ratesText(got))
			assert.Nil(t, got.Skipped)
			assert.Equal(t, tt.result, string(got.Raw))
		})
	}
}

func ratesText(r *gateway.ExchangeRates) string {
	var all []string
	price := func(p decimal.NullDecimal) string {
		if !p.Valid {
			return "-"
		}
		return p.Decimal.String()
	}
	for _, rate := range r.Rates {
		all = append(all, rate.CoinSymbol+" "+price(rate.USD)+" "+price(rate.EUR))
	}
	return strings.Join(all, ", ")
}

func decodePairs(result json.RawMessage) (all []gateway.Rate, err error) {
	var pairs []struct {
		From, To string
		Course   decimal.NullDecimal
	}
	err = json.Unmarshal(result, &pairs)
	prices := map[string]decimal.NullDecimal{}
	for _, p := range pairs {
		prices[p.From+p.To] = p.Course
	}
	for _, coin := range []string{"BTC", "USDT"} {
		all = append(all, gateway.Rate{CoinSymbol: coin, USD: prices[coin+"USD"], EUR: prices[coin+"EUR"]})
	}
	return all, err
}

func decodeUSD(result json.RawMessage) (all []gateway.Rate, err error) {
	var coins []struct {
		CID, Currency string
		Price         decimal.NullDecimal `json:"price_usd"`
	}
	err = json.Unmarshal(result, &coins)
	for _, c := range coins {
		if c.CID == c.Currency { // the others are its networks
			all = append(all, gateway.Rate{CoinSymbol: c.Currency, USD: c.Price})
		}
	}
	return all, err
}

func decodeEstimate(result json.RawMessage) ([]gateway.Rate, error) {
	var of struct {
		Coin  string              `json:"currency_from"`
		Price decimal.NullDecimal `json:"estimated_amount"`
	}
	err := json.Unmarshal(result, &of)
	return []gateway.Rate{{CoinSymbol: of.Coin, USD: of.Price}}, err
}

func decodePrices(result json.RawMessage) (all []gateway.Rate, err error) {
	var prices map[string]decimal.NullDecimal
	err = json.Unmarshal(result, &prices)
	for _, symbol := range []string{"BTC", "USDT"} {
		all = append(all, gateway.Rate{CoinSymbol: symbol, USD: prices[symbol]})
	}
	return all, err
}

func decodeOneCoin(result json.RawMessage) ([]gateway.Rate, error) {
	var of struct {
		Currency string
		Rates    map[string]decimal.NullDecimal
	}
	err := json.Unmarshal(result, &of)
	return []gateway.Rate{{CoinSymbol: of.Currency, USD: of.Rates["USD"], EUR: of.Rates["EUR"]}}, err
}

func decodeCodes(result json.RawMessage) ([]gateway.Rate, error) {
	var all []struct {
		Code string
		Rate decimal.NullDecimal
	}
	err := json.Unmarshal(result, &all)
	prices := map[string]decimal.NullDecimal{}
	for _, p := range all {
		prices[p.Code] = p.Rate
	}
	return []gateway.Rate{{CoinSymbol: "BTC", USD: prices["USD"], EUR: prices["EUR"]}}, err
}

// The same of balances.
// I-105, I-106
func TestClient_Balance_ofRealGateways(t *testing.T) {
	t.Parallel()
	const remedy = "WithBalanceDecoder reads another form"
	for _, tt := range []struct {
		name, result string
		refused      string
		decode       func(json.RawMessage) ([]gateway.BalanceAmount, error)
		want         string // coin, network and amount of each
	}{
		{
			"CoinGate: accounts with a record of the currency", `[{"id":1,"balance":"250.5","currency":{"id":8,"title":"Tether","symbol":"USDT"}},{"id":2,"balance":"4.5","currency":{"id":8,"title":"Tether","symbol":"USDT"}}]`,
			"",
			nil,
			"USDT  250.5, USDT  4.5",
		},
		{
			"Cryptomus: accounts in a list of their own", `[{"balance":{"merchant":[{"uuid":"m","balance":"250.5","currency_code":"USDT"},{"uuid":"n","balance":"0.25","currency_code":"BTC"}],"user":[]}}]`,
			"/result/0: is no balance in a form that is known",
			decodeWallets,
			"USDT  250.5, BTC  0.25",
		},
		{
			"Heleket: accounts under balances", `{"balances":[{"uuid":"m","balance":"250.5","currency_code":"USDT"}]}`,
			"/result/balances: is no balance in a form that is known",
			decodeBalances,
			"USDT  250.5",
		},
		{
			"the accounts alone, of which a name is another", `[{"uuid":"m","balance":"250.5","currency_code":"USDT"},{"uuid":"n","balance":"0.25","currency_code":"BTC"}]`,
			"/result/0: names no coin",
			decodeAccounts,
			"USDT  250.5, BTC  0.25",
		},
		{
			"NOWPayments: by coin and network in one name", `{"usdttrc20":{"amount":250.5,"pendingAmount":1},"btc":{"amount":"0.25","pendingAmount":"0"}}`,
			"/result/usdttrc20: is no balance in a form that is known",
			decodeAmounts,
			"BTC  0.25, USDTTRC20  250.5",
		},
		{
			"OxaPay: numbers by coin", `{"USDT":250.5,"BTC":0.25}`,
			"",
			nil,
			"USDT  250.5, BTC  0.25",
		},
		{
			"numbers by coin in a page", `{"data":{"USDT":250.5,"BTC":0.25},"page":1}`,
			"/result/data: is no balance in a form that is known",
			decodePage,
			"BTC  0.25, USDT  250.5",
		},
		{
			"CryptoCloud: other names, and a network", `[{"currency":{"code":"USDT","network":{"code":"TRC20"}},"balance_crypto":"250.5","balance_usd":"250.4"}]`,
			"/result/0: is no balance in a form that is known",
			decodeNetworks,
			"USDT TRC20 250.5",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := cannedClient(t, 200, enveloped(tt.result)).Balance(t.Context(), gateway.BalanceQuery{})
			if tt.refused != "" {
				wrong := &gateway.DecodeError{}
				require.ErrorAs(t, err, &wrong)
				assert.Equal(t, tt.refused+"; "+remedy, wrong.Pointer+": "+wrong.Err.Error())
				got, err = cannedClient(t, 200, enveloped(tt.result), gateway.WithBalanceDecoder(tt.decode)).Balance(t.Context(), gateway.BalanceQuery{})
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, amountsText(got.Amounts))
			assert.Nil(t, got.Skipped)
			assert.Equal(t, tt.result, string(got.Raw))
		})
	}
}

func amountsText(amounts []gateway.BalanceAmount) string {
	var all []string
	for _, a := range amounts {
		all = append(all, a.CoinSymbol+" "+a.NetworkName+" "+a.Amount.String())
	}
	return strings.Join(all, ", ")
}

// An account is a record of several gateways.
type account struct {
	Coin    string          `json:"currency_code"`
	Balance decimal.Decimal `json:"balance"`
}

func amountsOf(accounts []account) (all []gateway.BalanceAmount) {
	for _, a := range accounts {
		all = append(all, gateway.BalanceAmount{CoinSymbol: a.Coin, Amount: a.Balance})
	}
	return all
}

func decodeAccounts(result json.RawMessage) ([]gateway.BalanceAmount, error) {
	var accounts []account
	err := json.Unmarshal(result, &accounts)
	return amountsOf(accounts), err
}

func decodeWallets(result json.RawMessage) ([]gateway.BalanceAmount, error) {
	var wallets [1]struct{ Balance struct{ Merchant []account } }
	err := json.Unmarshal(result, &wallets)
	return amountsOf(wallets[0].Balance.Merchant), err
}

func decodeBalances(result json.RawMessage) ([]gateway.BalanceAmount, error) {
	var of struct{ Balances []account }
	err := json.Unmarshal(result, &of)
	return amountsOf(of.Balances), err
}

func decodeAmounts(result json.RawMessage) (all []gateway.BalanceAmount, err error) {
	var coins map[string]struct{ Amount decimal.Decimal }
	err = json.Unmarshal(result, &coins)
	for _, name := range slices.Sorted(maps.Keys(coins)) {
		all = append(all, gateway.BalanceAmount{CoinSymbol: strings.ToUpper(name), Amount: coins[name].Amount})
	}
	return all, err
}

func decodePage(result json.RawMessage) (all []gateway.BalanceAmount, err error) {
	var page struct{ Data map[string]decimal.Decimal }
	err = json.Unmarshal(result, &page)
	for _, symbol := range slices.Sorted(maps.Keys(page.Data)) {
		all = append(all, gateway.BalanceAmount{CoinSymbol: symbol, Amount: page.Data[symbol]})
	}
	return all, err
}

func decodeNetworks(result json.RawMessage) (all []gateway.BalanceAmount, err error) {
	var accounts []struct {
		Currency struct {
			Code    string
			Network struct{ Code string }
		}
		Amount decimal.Decimal `json:"balance_crypto"`
	}
	err = json.Unmarshal(result, &accounts)
	for _, a := range accounts {
		all = append(all, gateway.BalanceAmount{CoinSymbol: a.Currency.Code, NetworkName: a.Currency.Network.Code, Amount: a.Amount})
	}
	return all, err
}

// What a caller's function returns is checked, and its error is that of the call.
func TestWithDecoder(t *testing.T) {
	t.Parallel()
	huge, errMine := decimal.New(1, 1_000_000), errors.New("no accounts for "+canary)
	one := decimal.New(1, 0)
	for _, tt := range []struct {
		name    string
		rates   []gateway.Rate
		amounts []gateway.BalanceAmount
		err     error
		reason  string
	}{
		{"an error", nil, nil, errMine, "no accounts for [REDACTED]"},
		{"no symbol", []gateway.Rate{{USD: rateOf("1")}}, []gateway.BalanceAmount{{Amount: one}}, nil, "0 names no coin"},
		{"a price that no response can hold", []gateway.Rate{{CoinSymbol: "BTC", EUR: decimal.NewNullDecimal(huge)}}, []gateway.BalanceAmount{{CoinSymbol: "BTC", Amount: huge}}, nil, `of "BTC" is not an amount of money`},
		{"a symbol twice, which rates must not have", []gateway.Rate{{CoinSymbol: "BTC"}, {CoinSymbol: "BTC"}}, []gateway.BalanceAmount{{CoinSymbol: "BTC", Amount: huge}}, nil, `"BTC" is`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := cannedClient(t, 200, enveloped(`{"x":"a `+canary+`"}`),
				gateway.WithRatesDecoder(func(result json.RawMessage) ([]gateway.Rate, error) {
					assert.Equal(t, `{"x":"a [REDACTED]"}`, string(result), "it is without keys")
					return tt.rates, tt.err
				}),
				gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { return tt.amounts, tt.err }))
			_, ofRates := c.ExchangeRates(t.Context())
			_, ofBalance := c.Balance(t.Context(), gateway.BalanceQuery{})
			for option, err := range map[string]error{"WithRatesDecoder": ofRates, "WithBalanceDecoder": ofBalance} {
				wrong := &gateway.DecodeError{}
				require.ErrorAs(t, err, &wrong)
				assert.Equal(t, "/result", wrong.Pointer)
				assert.ErrorContains(t, wrong.Err, "the function of "+option+": ")
				assert.ErrorContains(t, wrong.Err, tt.reason)
				assert.False(t, errors.Is(err, errMine), "an error with the key in its text is not wrapped")
				assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), canary)
			}
		})
	}
	t.Run("a coin can have several amounts", func(t *testing.T) {
		t.Parallel()
		c := cannedClient(t, 200, enveloped(`7`), gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) {
			return []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "Tron", Amount: one}, {CoinSymbol: "USDT", Amount: one}}, nil
		}))
		got, err := c.Balance(t.Context(), gateway.BalanceQuery{})
		require.NoError(t, err)
		total, err := got.Total("USDT")
		require.NoError(t, err)
		assert.Equal(t, "2", total.String())
	})
	t.Run("it is not asked about nothing", func(t *testing.T) {
		t.Parallel()
		for result, fails := range map[string]bool{`[]`: false, `{}`: false, `null`: true} {
			c := cannedClient(t, 200, enveloped(result), gateway.WithRatesDecoder(func(json.RawMessage) ([]gateway.Rate, error) {
				t.Error("it is called")
				return nil, nil
			}))
			_, err := c.ExchangeRates(t.Context())
			assert.Equal(t, fails, err != nil, result)
		}
	})
	t.Run("it gets the whole body where there is no envelope", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			body string
			want string // what the function gets; empty for an error
		}{
			{`[{"symbol":"BTC"}]`, `[{"symbol":"BTC"}]`},
			{` {"BTC":{"USD":1}} `, `{"BTC":{"USD":1}}`},
			{`{"status":"success","data":[]}`, `{"status":"success","data":[]}`},
			{`{"message":"Operation was successful.","data":[1]}`, `{"message":"Operation was successful.","data":[1]}`},
			{`{"result":[1]}`, `[1]`},
			{`{"result":[1],"data":[2]}`, `[1]`},
			{`{"message":"no such account","data":[1]}`, ``},
			{`{"message":"no such account","result":null,"data":[1]}`, ``},
			{`{"result":null,"data":[1]}`, ``},
			{`{}`, ``},
			{`null`, ``},
			{`"soon"`, ``},
			{`[`, ``},
		} {
			got := ""
			c := cannedClient(t, 200, tt.body, once(), gateway.WithBalanceDecoder(func(body json.RawMessage) ([]gateway.BalanceAmount, error) {
				got = string(body)
				return []gateway.BalanceAmount{{CoinSymbol: "BTC"}}, nil
			}))
			balance, err := c.Balance(t.Context(), gateway.BalanceQuery{})
			assert.Equal(t, tt.want, got, tt.body)
			assert.Equal(t, tt.want == "", err != nil, tt.body)
			if err == nil {
				assert.Equal(t, tt.want, string(balance.Raw))
			}
		}
	})
	t.Run("without it, a body without an envelope is an error that names the option", func(t *testing.T) {
		t.Parallel()
		for body, reason := range map[string]string{
			`[{"symbol":"BTC","usd":1,"eur":1}]`: ": is an array, not an object; WithRatesDecoder reads another form",
			`{"BTC":{"usd":1,"eur":1}}`:          "/result: is missing; WithRatesDecoder reads another form",
		} {
			_, err := cannedClient(t, 200, body).ExchangeRates(t.Context())
			wrong := &gateway.DecodeError{}
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, reason, wrong.Pointer+": "+wrong.Err.Error())
		}
	})
	t.Run("it can find none", func(t *testing.T) {
		t.Parallel()
		c := cannedClient(t, 200, enveloped(`{"x":1}`), gateway.WithRatesDecoder(func(json.RawMessage) ([]gateway.Rate, error) { return nil, nil }))
		got, err := c.ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []gateway.Rate{}, got.Rates)
	})
	for name, opt := range map[string]gateway.Option{"WithRatesDecoder": gateway.WithRatesDecoder(nil), "WithBalanceDecoder": gateway.WithBalanceDecoder(nil)} {
		_, err := gateway.New("https://gateway.example", canary, opt)
		assertRefused(t, err, "new", name, "must not be nil")
	}
}
