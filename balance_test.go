package gateway_test

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// I-105
func TestClient_Balance_forms(t *testing.T) {
	t.Parallel()
	none := gateway.BalanceQuery{}
	coin := gateway.BalanceQuery{CoinSymbol: "USDT"}
	both := gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: "Tron"}
	amount := decimal.New(25075, -2)
	usdt := []gateway.BalanceAmount{{CoinSymbol: "USDT", Amount: amount}}
	onTron := []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "Tron", Amount: amount}}
	onEthereum := []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "Ethereum", Amount: amount}}
	for _, tt := range []struct {
		name   string
		query  gateway.BalanceQuery
		result string
		want   []gateway.BalanceAmount
	}{
		{"an empty array", none, `[]`, []gateway.BalanceAmount{}},
		{
			"an array of records", none,
			`[{"coin":"USDT","network":"Tron","balance":"250.75"},{"coin":"USDT","network":"Ethereum","balance":"1"},{"coin":"BTC","balance":0}]`,
			[]gateway.BalanceAmount{
				{CoinSymbol: "USDT", NetworkName: "Tron", Amount: amount},
				{CoinSymbol: "USDT", NetworkName: "Ethereum", Amount: decimal.New(1, 0)},
				{CoinSymbol: "BTC", Amount: decimal.New(0, 0)},
			},
		},
		{
			"accounts with a record of the currency, as CoinGate has them", none,
			`[{"id":1,"balance":"250.75","currency":{"id":8,"title":"Tether","symbol":"USDT"}},{"id":2,"balance":"4.5","currency":{"id":8,"title":"Tether","symbol":"USDT"}}]`,
			[]gateway.BalanceAmount{{CoinSymbol: "USDT", Amount: amount}, {CoinSymbol: "USDT", Amount: decimal.New(45, -1)}},
		},
		{
			"amounts by symbol", none, `{"USDT":"250.75","BTC":0.5}`,
			[]gateway.BalanceAmount{{CoinSymbol: "USDT", Amount: amount}, {CoinSymbol: "BTC", Amount: decimal.New(5, -1)}},
		},
		{"by symbol, in the lower case of the query", gateway.BalanceQuery{CoinSymbol: "usdt"}, `{"usdt":"250.75"}`, []gateway.BalanceAmount{{CoinSymbol: "usdt", Amount: amount}}},
		{"by symbol, on the queried network", both, `{"USDT":"250.75"}`, onTron},
		{"an empty object", none, `{}`, []gateway.BalanceAmount{}},
		{"a record", coin, `{"coinSymbol":"USDT","networkName":"Tron","balance":"250.75"}`, onTron},
		{"a record with a negative amount", coin, `{"balance":"-250.75"}`, []gateway.BalanceAmount{{CoinSymbol: "USDT", Amount: amount.Neg()}}},
		// I-106
		{"amount", coin, `{"symbol":"USDT","amount":"250.75"}`, usdt},
		{"available", coin, `{"symbol":"USDT","available":250.75}`, usdt},
		{"currency", coin, `{"currency":"USDT","balance":"250.75"}`, usdt},
		{"coin and network as records", coin, `{"coin":{"symbol":"USDT"},"network":{"name":"Tron"},"balance":"250.75"}`, onTron},
		{"members that are no amounts", coin, `{"id":7,"accountId":"8","user_id":9,"walletID":10,"coin":"USDT","network":"1","at":"2024-01-02","locked":null,"frozen":"","balance":"250.75"}`, []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "1", Amount: amount}}},
		// I-107
		{"a record with nothing but an amount", both, `{"balance":"250.75"}`, onTron},
		{"a record with nothing but an amount and a network", both, `{"network":"Ethereum","balance":"250.75"}`, onEthereum},
		{"an array of such records", coin, `[{"networkName":"Tron","balance":"250.75"}]`, onTron},
		{"a record of another coin than the query's", coin, `{"symbol":"BTC","balance":"250.75"}`, []gateway.BalanceAmount{{CoinSymbol: "BTC", Amount: amount}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := cannedClient(t, 200, enveloped(tt.result)).Balance(t.Context(), tt.query)
			require.NoError(t, err)
			assertAmounts(t, tt.want, got.Amounts)
			assert.Equal(t, tt.result, string(got.Raw))
		})
	}
}

// assertAmounts compares amounts by their digits: 1.50 is not 1.5.
func assertAmounts(t *testing.T, want, got []gateway.BalanceAmount) {
	t.Helper()
	require.NotNil(t, got)
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i].CoinSymbol, got[i].CoinSymbol)
		assert.Equal(t, want[i].NetworkName, got[i].NetworkName)
		assertDecimal(t, want[i].Amount.CoefficientInt64(), want[i].Amount.Exponent(), got[i].Amount)
	}
}

// I-105
func TestClient_Balance_nearMisses(t *testing.T) {
	t.Parallel()
	const other, noCoin, noAmount = "has no known form of a balance", "names no coin", "has no balance, amount or available"
	none := gateway.BalanceQuery{NetworkName: "Tron"}
	coin := gateway.BalanceQuery{CoinSymbol: "USDT"}
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name            string
		query           gateway.BalanceQuery
		result          string
		pointer, reason string
	}{
		{"null", none, `null`, "/result", "is null"},
		{"a boolean", coin, `true`, "/result", other},
		{"an amount alone", coin, `"250.75"`, "/result", other},
		{"an amount in an array", coin, `["250.75"]`, "/result/0", noCoin},
		{"a record for a query without a coin", none, `{"coinSymbol":"USDT","balance":"250.75"}`, "/result/coinSymbol", other},
		{"a record whose balance is null", coin, `{"coin":"USDT","balance":null}`, "/result/balance", "is null, not an amount"},
		{"a record whose balance is a record", coin, `{"coinSymbol":"USDT","balance":{"free":"1"}}`, "/result/balance", "is an object, not an amount"},
		{"accounts in a list of their own, as Cryptomus has them", none, `[{"balance":{"merchant":[{"uuid":"m","balance":"250.5","currency_code":"USDT"}],"user":[]}}]`, "/result/0", noCoin},
		{"a coin and its network in one name, as NOWPayments has them", none, `{"usdttrc20":{"amount":250.5,"pendingAmount":1},"btc":{"amount":"0.25","pendingAmount":"0"}}`, "/result/usdttrc20", other},
		{"another name of the amount, as CryptoCloud has it", none, `[{"currency":{"code":"USDT","network":{"code":"TRC20"}},"balance_crypto":"250.5","balance_usd":"250.4"}]`, "/result/0", noCoin},
		{"a page of a list", none, `{"items":[{"coin":"USDT","balance":"250.5"}],"total":1,"page":1}`, "/result/items", other},
		{"amounts by symbol in another object", none, `{"data":{"USDT":"5"}}`, "/result/data", other},
		{"records by symbol", none, `{"USDT":{"available":"250.75"},"BTC":{"balance":"0.5"}}`, "/result/USDT", other},
		{"amounts by symbol in lower case, which can be anything", none, `{"btc":"0.5","usdt":"1"}`, "/result/btc", other},
		{"amounts by number", none, `{"7":"5"}`, "/result/7", other},
		{"a time beside amounts by symbol", none, `{"BTC":1,"updatedAt":1700000000}`, "/result/updatedAt", other},
		{"an amount beside amounts by symbol", none, `{"BTC":"1","USDT":"2","balance":"3"}`, "/result/balance", other},
		{"an amount beside amounts by symbol, for a coin", coin, `{"BTC":"1","USDT":"2","balance":"3"}`, "/result", noCoin},
		{"a record of other names", coin, `{"coinSymbol":"USDT","total":"1"}`, "/result/coinSymbol", other},
		{"an array of records of other names", none, `[{"coinSymbol":"USDT","total":"1"}]`, "/result/0", noAmount},
		{"both of an array", none, `[{"coin":"USDT","balance":"-"},{"coin":"BTC"}]`, "/result/0/balance", "is not a decimal number"},
		{"a huge exponent", none, `{"USDT":"1e1000000000"}`, "/result/USDT", "is not an amount of money"},
		{"a symbol and a coinSymbol that differ", coin, `{"symbol":"BTC","coinSymbol":"ETH","balance":"1"}`, "/result", `is of the coin "BTC" and of "ETH"`},
		{"a coinSymbol and a coin that differ", none, `[{"coinSymbol":"BTC","coin":"ETH","balance":"1"},1]`, "/result/0", `is of the coin "BTC" and of "ETH"`},
		{"a huge name", none, `{"` + long + `":null}`, "/result/" + long[:1024-len("/result/")], other},
		// I-107
		{"a record without a coin", none, `[{"balance":"250.75"}]`, "/result/0", noCoin},
		{"a coin under another name", coin, `[{"asset":"BTC","balance":"5"}]`, "/result/0", noCoin},
		{"a coin under another name, and a network", coin, `{"ticker":"BTC","network":"TRON","balance":"5"}`, "/result", noCoin},
		{"a coin in a record of other names", coin, `[{"currency":{"code":"1INCH"},"balance":"5"}]`, "/result/0", noCoin},
		{"two networks", coin, `{"network":"Tron","networkName":"Ethereum","balance":"5"}`, "/result", noCoin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := subject{name: "Balance", op: "balance", status: 200, call: func(ctx context.Context, c *gateway.Client, opts ...gateway.CallOption) (any, error) {
				return c.Balance(ctx, tt.query, opts...)
			}}
			assertNotUnderstood(t, s, enveloped(tt.result), tt.pointer, tt.reason, "; WithBalanceDecoder reads another form")
		})
	}
}

// Nobody knows which of two amounts is the balance.
// I-106
func TestClient_Balance_twoAmounts(t *testing.T) {
	t.Parallel()
	for result, names := range map[string]string{
		`{"coin":"USDT","available":"1.5","total":"2"}`:                             `"available" and "total"`,
		`{"coin":"USDT","locked":1,"balance":"2"}`:                                  `"balance" and "locked"`,
		`{"coin":"USDT","amount":"1","available":"2","balance":"3"}`:                `"balance" and "amount"`,
		`{"coin":"USDT","balance":"3","amount":null}`:                               `"balance" and "amount"`,
		`{"coin":"USDT","balance":"3","paid":"1"}`:                                  `"balance" and "paid"`,
		`{"coin":"USDT","balance":"3","` + canary + `":"1"}`:                        `"balance" and "[REDACTED]"`,
		`{"coin":"USDT","balance":"3","a\nb":"1"}`:                                  `"balance" and "a\nb"`,
		`[{"coin":"BTC","balance":"1"},{"coin":"USDT","balance":"3","locked":"1"}]`: `"balance" and "locked"`,
	} {
		_, err := cannedClient(t, 200, enveloped(result)).Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT"})
		assert.EqualError(t, as[*gateway.DecodeError](t, err).Err, "has two amounts, "+names+"; WithBalanceDecoder reads another form")
	}
}

// I-108
func TestBalance_Total(t *testing.T) {
	t.Parallel()
	b := &gateway.Balance{Amounts: []gateway.BalanceAmount{
		{CoinSymbol: "USDT", NetworkName: "Tron", Amount: decimal.RequireFromString("250.75")},
		{CoinSymbol: "BTC", Amount: decimal.RequireFromString("1")},
		{CoinSymbol: "USDT", NetworkName: "Ethereum", Amount: decimal.RequireFromString("0.000000000000000001")},
		{CoinSymbol: "USDT", NetworkName: "Solana", Amount: decimal.RequireFromString("-50")},
		{CoinSymbol: "", Amount: decimal.RequireFromString("7")},
	}}
	for _, huge := range []decimal.Decimal{decimal.New(1, 100_000_000), decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 1<<20), 0)} {
		b.Amounts = append(b.Amounts, gateway.BalanceAmount{CoinSymbol: "HUGE", Amount: huge}) // made by hand: adding it would take for ever
		_, err := b.Total("HUGE")
		assertRefused(t, err, "total", "amount", `of "HUGE" is not an amount of money`)
		b.Amounts = b.Amounts[:5]
	}
	for symbol, want := range map[string]string{
		"USDT": "200.750000000000000001", "BTC": "1", "usdt": "200.750000000000000001", "": "7",
	} {
		got, err := b.Total(symbol)
		require.NoError(t, err)
		assert.True(t, got.Equal(decimal.RequireFromString(want)), "%q: %s", symbol, got)
	}
	for _, symbol := range []string{"XRP", "UDST", "USDT ", "USDTTRC20"} {
		for _, b := range []*gateway.Balance{b, {}} {
			got, err := b.Total(symbol)
			require.ErrorIs(t, err, gateway.ErrNotFound, symbol)
			require.ErrorIs(t, err, gateway.ErrInvalidArgument, symbol)
			assert.ErrorContains(t, err, "is not in the balance")
			assert.True(t, got.IsZero())
		}
	}
}

// Amounts that may belong to several coins are not added up.
// I-108
func TestBalance_Total_severalCoins(t *testing.T) {
	t.Parallel()
	const several, network = "the amounts may be of several coins", "two amounts on the network"
	for _, tt := range []struct{ name, result, want, reason string }{
		{"one symbol on two networks", `[{"symbol":"BTG","network":"a","balance":"2"},{"symbol":"BTG","network":"b","balance":"700"}]`, "702", ""},
		{"one coin on two networks", `[{"coin":{"id":"1","symbol":"BTG"},"network":"a","balance":"2"},{"coinId":"1","symbol":"BTG","network":"b","balance":"700"}]`, "702", ""},
		{"in lower case", `[{"coin":"btg","balance":"250.5"},{"coin":"BTC","balance":"1"}]`, "250.5", ""},
		{"by symbol in lower case of the query", `{"btg":"250.5"}`, "250.5", ""},
		{"two coins of one symbol", `[{"coin":{"id":"1","symbol":"BTG"},"network":"a","balance":"2"},{"coin":{"id":"2","symbol":"BTG"},"network":"b","balance":"700"}]`, "", several},
		{"two amounts without a network", `[{"symbol":"BTG","balance":"2"},{"symbol":"BTG","balance":"700"}]`, "", network},
		{"two amounts on one network", `[{"symbol":"BTG","network":"a","balance":"2"},{"symbol":"BTG","network":"A","balance":"700"}]`, "", network},
		{"two spellings", `[{"symbol":"BTG","network":"a","balance":"2"},{"symbol":"btg","network":"b","balance":"700"}]`, "", several},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := cannedClient(t, 200, enveloped(tt.result)).Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "btg"})
			require.NoError(t, err)
			total, err := b.Total("BTG")
			if tt.reason == "" {
				require.NoError(t, err)
				assert.Equal(t, tt.want, total.String())
				return
			}
			require.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.NotErrorIs(t, err, gateway.ErrNotFound)
			assert.ErrorContains(t, err, tt.reason)
			assert.True(t, total.IsZero())
		})
	}
}

// With a meta, a response may be one page of several: its total is not the total of a coin.
// I-105
func TestClient_Balance_page(t *testing.T) {
	t.Parallel()
	const result = `"result":[{"coin":"USDT","balance":"1"}]`
	own := gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { return nil, nil })
	for _, tt := range []struct {
		members string // of the envelope
		opt     gateway.Option
		wrong   bool
	}{
		{result + `,"meta":{"total":250,"page":1}`, once(), true},
		{`"meta":{"x":3},` + result, once(), true},
		{result + `,"meta":"x"`, once(), true},
		{result + `,"meta":{"of":["` + strings.Repeat("x", 70_000) + `"]}`, once(), true},
		{result + `,"meta":{"next":null,"previous":"","items":[]}`, once(), false},
		{result + `,"meta":{"total":250}`, own, false}, // the caller's function reads it
	} {
		body := `{"message":"Operation was successful.",` + tt.members + `}`
		_, err := cannedClient(t, 200, body, tt.opt).Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT"})
		if !tt.wrong {
			require.NoError(t, err, "%.99s", body)
			continue
		}
		assert.Equal(t, "/meta", as[*gateway.DecodeError](t, err).Pointer)
		assert.ErrorContains(t, err, "WithBalanceDecoder", "the remedy")
	}
}

// If one record of several cannot be read, it is skipped and reported, and the total of a coin that it may belong to
// is an error.
// I-108
func TestClient_Balance_skipped(t *testing.T) {
	t.Parallel()
	usdt := gateway.BalanceAmount{CoinSymbol: "USDT", Amount: decimal.New(5, 0)}
	for _, tt := range []struct {
		name, result string
		want         gateway.Skipped
		unknown      string // the coins whose total is not known, of USDT, BTC and ETH
	}{
		{"null for one coin of two", `{"USDT":"5","BTC":null}`, gateway.Skipped{"/result/BTC", "BTC", "", "", "is null, not an amount"}, "BTC"},
		{"a decimal comma", `[{"coin":"USDT","balance":"5"},{"coin":"BTC","network":"Bitcoin","balance":"1,5"}]`, gateway.Skipped{"/result/1/balance", "BTC", "Bitcoin", "", `"1,5" is not a decimal number`}, "BTC"},
		{"another name of the amount", `[{"coin":"BTC","free":"1"},{"coin":"USDT","balance":"5"}]`, gateway.Skipped{"/result/0", "BTC", "", "", "has no balance, amount or available"}, "BTC"},
		{"a second account of the coin", `[{"coin":"USDT","balance":"5"},{"coin":"USDT","balance":""}]`, gateway.Skipped{"/result/1/balance", "USDT", "", "", `"" is empty`}, "USDT"},
		{"a record that names no coin", `[{"coin":"USDT","balance":"5"},{"balance":"1"}]`, gateway.Skipped{"/result/1", "", "", "", "names no coin"}, "USDT BTC ETH"},
		{"a record that names two", `[{"coin":"USDT","balance":"5"},{"coin":"BTC","symbol":"ETH","balance":"1"}]`, gateway.Skipped{"/result/1", "", "", "", `is of the coin "ETH" and of "BTC"`}, "USDT BTC ETH"},
		{"no record", `[{"coin":"USDT","balance":"5"},null]`, gateway.Skipped{"/result/1", "", "", "", "names no coin"}, "USDT BTC ETH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w recorder
			var response gateway.Response
			got, err := cannedClient(t, 200, enveloped(tt.result), w.option()).Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithResponse(&response))
			require.NoError(t, err)
			assertAmounts(t, []gateway.BalanceAmount{usdt}, got.Amounts)
			assert.Equal(t, []gateway.Skipped{tt.want}, got.Skipped)
			assert.Equal(t, got.Skipped, response.Skipped)
			assert.Equal(t, []gateway.Drift{{"balance", tt.want.Pointer, gateway.DriftUnknownShape, tt.want.Reason}}, w.drifts)
			text, err := json.Marshal(got)
			require.NoError(t, err)
			var back gateway.Balance
			require.NoError(t, json.Unmarshal(text, &back))
			for _, b := range []*gateway.Balance{got, &back} {
				for _, coin := range []string{"USDT", "BTC", "ETH"} {
					total, err := b.Total(coin)
					if strings.Contains(tt.unknown, coin) {
						assertRefused(t, err, "total", "balance", `of "`+coin+`" is not known, a record was skipped: `+tt.want.Pointer)
						assert.True(t, total.IsZero())
					} else if coin == "USDT" {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, gateway.ErrNotFound)
					}
				}
			}
		})
	}
	for n, known := range map[int]bool{63: true, 64: false, 65: false} { // more are not known
		body := enveloped("[" + strings.Repeat(`{"coin":"BTC"},`, n) + `{"coin":"USDT","balance":"5"}]`)
		got, err := cannedClient(t, 200, body).Balance(t.Context(), gateway.BalanceQuery{})
		require.NoError(t, err)
		assert.Len(t, got.Skipped, min(n, 64))
		_, err = got.Total("USDT")
		assert.Equal(t, known, err == nil, n)
	}
	long := strings.Repeat("A", 100_000)
	got, err := cannedClient(t, 200, enveloped(`{"USDT":"5","`+long+`":null}`)).Balance(t.Context(), gateway.BalanceQuery{})
	require.NoError(t, err)
	assert.Equal(t, long[:256], got.Skipped[0].CoinSymbol)
	_, err = got.Total(long)
	assertRefused(t, err, "total", "balance", "is not known, a record was skipped")
}

// The query has the texts of the caller, each in its place, or none. Package endpoint tests all texts.
// I-23, I-24, I-25, I-102, I-103
func TestClient_Balance_query(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query gateway.BalanceQuery
		want  string
	}{
		{gateway.BalanceQuery{}, ""},
		{gateway.BalanceQuery{CoinSymbol: "usdt"}, "?coinSymbol=usdt"},
		{gateway.BalanceQuery{NetworkName: "Tron"}, "?networkName=Tron"}, // I-104
		{gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: "Tron (TRC20)"}, "?coinSymbol=USDT&networkName=Tron%20%28TRC20%29"},
		{gateway.BalanceQuery{CoinSymbol: "a&apiKey=x"}, "?coinSymbol=a%26apiKey%3Dx"},
	} {
		w := serve(t, respond(200, enveloped(`{"USDT":"1"}`)))
		_, err := newClient(t, w.URL).Balance(t.Context(), tt.query)
		require.NoError(t, err)
		assert.Equal(t, prefix+"/api/balance/"+tt.want, only(t, w).Target)
	}
	c := newClient(t, "http://localhost", neverSends())
	for text, reason := range map[string]string{"a\x00b": "control characters", strings.Repeat("a", 257): "is longer than 256 bytes"} {
		_, err := c.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: text})
		assertRefused(t, err, "balance", "coinSymbol", reason)
		_, err = c.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: text})
		assertRefused(t, err, "balance", "networkName", reason)
	}
}
