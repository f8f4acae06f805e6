package gateway_test

import (
	"math"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// I-105
func TestClient_Balance_shapes(t *testing.T) {
	t.Parallel()
	none := gateway.BalanceQuery{}
	coin := gateway.BalanceQuery{CoinSymbol: "USDT"}
	both := gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: "Tron"}
	amount := decimal.New(25075, -2)
	usdt := []gateway.BalanceAmount{{CoinSymbol: "USDT", Amount: amount}}
	onTron := []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "Tron", Amount: amount}}
	unnamed := []gateway.BalanceAmount{{Amount: amount}}
	for _, tt := range []struct {
		name   string
		query  gateway.BalanceQuery
		result string
		want   []gateway.BalanceAmount
	}{
		{"an amount of the queried coin and network", both, `"250.75"`, onTron}, // I-107
		{"an amount as a number", both, `250.75`, onTron},
		{"an amount, of a coin", coin, `"250.75"`, usdt},
		{"an amount without any name", none, `"250.75"`, unnamed},
		{"a negative amount", none, `"-250.75"`, []gateway.BalanceAmount{{Amount: amount.Neg()}}},
		{"a record, balance", none, `{"coinSymbol":"USDT","networkName":"Tron","balance":"250.75"}`, onTron},
		{"a record, amount", none, `{"coinSymbol":"USDT","networkName":"Tron","amount":"250.75"}`, onTron},
		{"a record, available", none, `{"coinSymbol":"USDT","networkName":"Tron","available":"250.75"}`, onTron},
		{"a record, a number", none, `{"coinSymbol":"USDT","balance":250.75}`, usdt},
		// I-106
		{"a record, balance before amount", none, `{"coinSymbol":"USDT","amount":"1","available":"2","balance":"250.75"}`, usdt},
		{"a record, symbol", none, `{"symbol":"USDT","balance":"250.75"}`, usdt},
		{"a record, coin", none, `{"coin":"USDT","network":"Tron","balance":"250.75"}`, onTron},
		{"a record, currency", none, `{"currency":"USDT","balance":"250.75"}`, usdt},
		{"a record, coin and network as records", none, `{"coin":{"symbol":"USDT"},"network":{"name":"Tron"},"balance":"250.75"}`, onTron},
		{"a record, coin before currency, which is a fiat one", none, `{"coin":"USDT","currency":"EUR","balance":"250.75"}`, usdt},
		{"records that repeat their names", none, `{"USDT":{"symbol":"USDT","coin":{"symbol":"USDT"},"balance":"250.75"}}`, usdt},
		{"a record of a coin, with amounts by other names", none, `{"coin":"USDT","balance":"250.75","LOCKED":"1"}`, usdt},
		{"a record without a coin, with other members", none, `{"ID":"x","balance":"250.75","total":"9"}`, unnamed},
		{"members that are no coins", none, `{"updatedAt":"today","USDT":"250.75","total":null,"pages":[1],"meta":{"page":1}}`, usdt},
		// I-107
		{"a record without names belongs to the queried coin and network", both, `{"balance":"250.75"}`, onTron},
		{"a record without any name", none, `{"balance":"250.75"}`, unnamed},
		{"the names in a record take precedence over the query", coin, `{"symbol":"BTC","balance":"250.75"}`, []gateway.BalanceAmount{{CoinSymbol: "BTC", Amount: amount}}},
		{"an array of a record", none, `[{"coinSymbol":"USDT","networkName":"Tron","balance":"250.75"}]`, onTron},
		{"an array of a record without names belongs to the queried coin and network", both, `[{"balance":"250.75"}]`, onTron},
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
			"amounts by symbol", none, `{"USDT":"250.75","BTC":0.5}`,
			[]gateway.BalanceAmount{{CoinSymbol: "USDT", Amount: amount}, {CoinSymbol: "BTC", Amount: decimal.New(5, -1)}},
		},
		{
			"records by symbol", none, `{"USDT":{"available":"250.75","network":"Tron"},"BTC":{"balance":"0.5"}}`,
			[]gateway.BalanceAmount{
				{CoinSymbol: "USDT", NetworkName: "Tron", Amount: amount}, {CoinSymbol: "BTC", Amount: decimal.New(5, -1)},
			},
		},
		{"by symbol, on the queried network", both, `{"USDT":"250.75"}`, onTron},
		{"an empty map", none, `{}`, []gateway.BalanceAmount{}},
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
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct{ name, result, pointer, reason string }{
		{"null", `null`, "/result", "is null"},
		{"a boolean", `true`, "/result", "is a boolean, not an amount"},
		{"a text that is no amount", `"n/a"`, "/result", "is not a decimal number"},
		{"an empty text", `""`, "/result", "is empty"},
		{"a record whose balance is null", `{"coinSymbol":"USDT","balance":null}`, "/result/balance", "is null, not an amount"},
		{"a record with a balance that is null, though there is an amount", `{"balance":null,"amount":"1"}`, "/result/balance", "is null, not an amount"},
		{"a record whose balance is a boolean", `{"balance":true}`, "/result/balance", "is a boolean, not an amount"},
		{"a record whose balance is empty", `{"balance":""}`, "/result/balance", "is empty"},
		{"a record whose balance is a record", `{"coinSymbol":"USDT","balance":{"free":"1"}}`, "/result", "has no balance, amount or available"},
		{"a record under balance", `{"balance":{"USDT":"1"}}`, "/result/balance", "has no balance, amount or available"},
		{"a list under balances", `{"balances":[{"coin":"USDT","balance":"1"}]}`, "/result/balances", "is an array, not an amount"},
		{"a record of other names", `{"coinSymbol":"USDT","total":"1"}`, "/result", "has no balance, amount or available"},
		{"an array of records of other names", `[{"coinSymbol":"USDT","total":"1"}]`, "/result/0", "has no balance, amount or available"},
		{"the second of an array", `[{"coin":"USDT","balance":"1"},{"coin":"BTC","balance":"-"}]`, "/result/1/balance", "is not a decimal number"},
		{"an array of null", `[null]`, "/result/0", "is null, not a record"},
		{"an array of arrays", `[["USDT","1"]]`, "/result/0", "is an array, not a record"},
		{"an array of amounts", `["250.75"]`, "/result/0", "is text, not a record"},
		{"names in another case", `{"coinSymbol":"USDT","Balance":"1"}`, "/result", "has no balance, amount or available"},
		{"a coin that is null in a map", `{"USDT":"1","BTC":null}`, "/result/BTC", "is null, not an amount"},
		{"a coin without an amount in a map", `{"USDT":{"locked":"1"}}`, "/result/USDT", "has no balance, amount or available"},
		{"a coin of a name that must be escaped", `{"a/b~c":null}`, "/result/a~1b~0c", "is null, not an amount"},
		{"a huge exponent", `{"USDT":"1e1000000000"}`, "/result/USDT", "is not an amount of money"},
		{"a coin of another symbol than the member's name", `{"BTC":{"symbol":"ETH","balance":"1"}}`, "/result/BTC", `is of the coin "BTC" and of "ETH"`},
		{"a symbol and a coinSymbol that differ", `{"symbol":"BTC","coinSymbol":"ETH","balance":"1"}`, "/result", `is of the coin "BTC" and of "ETH"`},
		{"a coinSymbol and a coin that differ", `[{"coinSymbol":"BTC","coin":"ETH","balance":"1"}]`, "/result/0", `is of the coin "BTC" and of "ETH"`},
		{"an amount beside amounts by symbol", `{"BTC":"1","USDT":"2","balance":"3"}`, "/result", "is a record and amounts by symbol"},
		{"an amount in euros beside amounts by symbol", `{"balance":"3","currency":"EUR","BTC":{"balance":"1"}}`, "/result", "is a record and amounts by symbol"},
		{"nothing but members that are no coins", `{"updatedAt":"today","ok":true}`, "/result/updatedAt", "is not a decimal number"},
		{"a coin twice", `{"USDT":"1","USDT":"2"}`, "/result/USDT", "duplicate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("Balance"), enveloped(tt.result), tt.pointer, tt.reason)
		})
	}
	t.Run("a huge name does not become a huge text", func(t *testing.T) {
		t.Parallel()
		_, err := cannedClient(t, 200, enveloped(`{"`+long+`":null}`)).Balance(t.Context(), gateway.BalanceQuery{})
		require.Error(t, err)
		assert.LessOrEqual(t, len(err.Error()), 4<<10)
	})
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
	for symbol, want := range map[string]string{
		"USDT": "200.750000000000000001", "BTC": "1", "usdt": "0", "XRP": "0", "": "7",
	} {
		got, err := b.Total(symbol)
		require.NoError(t, err)
		assert.True(t, got.Equal(decimal.RequireFromString(want)), "%q: %s", symbol, got)
	}
	got, err := (&gateway.Balance{}).Total("USDT")
	require.NoError(t, err)
	assert.True(t, got.IsZero())
}

// What is no coin is reported, and so is what cannot be told from one.
func TestClient_Balance_drift(t *testing.T) {
	t.Parallel()
	var got *gateway.Balance
	drift := drifted(t, enveloped(`{"BTC":1,"updatedAt":1700000000,"updated_at":"2024-01-02T03:04:05Z"}`), func(c *gateway.Client) (err error) {
		got, err = c.Balance(t.Context(), gateway.BalanceQuery{})
		return err
	})
	assert.Equal(t, []gateway.Drift{
		{Operation: "balance", Pointer: "/result/updatedAt", Kind: gateway.DriftUnexpectedValue},
		{Operation: "balance", Pointer: "/result/updated_at", Kind: gateway.DriftUnknownField},
	}, drift)
	assertAmounts(t, []gateway.BalanceAmount{
		{CoinSymbol: "BTC", Amount: decimal.New(1, 0)}, {CoinSymbol: "updatedAt", Amount: decimal.New(1_700_000_000, 0)},
	}, got.Amounts)
}

// An amount that is made by hand can be of any size. One that would take for ever to add
// is refused by its exponent.
func TestBalance_Total_madeByHand(t *testing.T) {
	t.Parallel()
	for name, amount := range map[string]decimal.Decimal{
		"a huge exponent":             decimal.New(1, 100_000_000),
		"a huge scale":                decimal.New(1, -100_000_000),
		"the largest exponent":        decimal.New(-1, math.MaxInt32),
		"zero of the largest scale":   decimal.New(0, math.MinInt32),
		"more digits than a response": decimal.NewFromBigInt(new(big.Int).Lsh(big.NewInt(1), 1<<20), 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &gateway.Balance{Amounts: []gateway.BalanceAmount{
				{CoinSymbol: "BTC", Amount: decimal.New(1, 0)}, {CoinSymbol: "BTC", Amount: amount}, {CoinSymbol: "ETH", Amount: decimal.New(7, 0)},
			}}
			got, err := b.Total("BTC")
			assertRefused(t, err, "total", "amount", `of "BTC" is not an amount of money`)
			assert.True(t, got.Equal(decimal.Decimal{}))
			got, err = b.Total("ETH")
			require.NoError(t, err)
			assert.Equal(t, "7", got.String())
		})
	}
}

// I-24
func TestClient_Balance_refuses(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(balanceJSON)))
	c := newClient(t, w.URL)
	for _, tt := range []struct{ name, text, reason string }{
		{"a NUL", "a\x00b", "control characters"},
		{"an encoded surrogate", "\xed\xa0\x80", "not valid UTF-8"},
		{"a space at the end", "a ", "a space"},
		{"257 bytes", strings.Repeat("a", 257), "is longer than 256 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: tt.text})
			assertRefused(t, err, "balance", "coinSymbol", tt.reason)
			assertInvariants(t, got, err)
			got, err = c.Balance(t.Context(), gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: tt.text})
			assertRefused(t, err, "balance", "networkName", tt.reason)
			assertInvariants(t, got, err)
		})
	}
	assert.Empty(t, w.Requests())
}

// I-23, I-102, I-103
func TestClient_Balance_query(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		query gateway.BalanceQuery
		want  string
	}{
		{"no query: no question mark", gateway.BalanceQuery{}, ""},
		{"a coin", gateway.BalanceQuery{CoinSymbol: "USDT"}, "?coinSymbol=USDT"},
		{
			"a network without a coin is sent as given", // I-104
			gateway.BalanceQuery{NetworkName: "Tron"},
			"?networkName=Tron",
		},
		{
			"both, in the order of the interface",
			gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: "Tron (TRC20)"},
			"?coinSymbol=USDT&networkName=Tron%20%28TRC20%29",
		},
		{
			"an ampersand does not begin another value",
			gateway.BalanceQuery{CoinSymbol: "a&apiKey=x"},
			"?coinSymbol=a%26apiKey%3Dx",
		},
		{"a lower-case symbol stays so", gateway.BalanceQuery{CoinSymbol: "usdt"}, "?coinSymbol=usdt"}, // I-25
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
				assert.Equal(t, tt.query.CoinSymbol, r.URL.Query().Get("coinSymbol"))
				assert.Equal(t, tt.query.NetworkName, r.URL.Query().Get("networkName"))
				respond(200, enveloped(`"1"`))(rw, r)
			})
			_, err := newClient(t, w.URL).Balance(t.Context(), tt.query)
			require.NoError(t, err)
			assert.Equal(t, prefix+"/api/balance/"+tt.want, only(t, w).Target)
		})
	}
}
