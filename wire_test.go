package gateway_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Bodies of an invoice as they are documented, in the sample request and in the field
// table.
const (
	sampleBody = `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17","amount":"10.4895"}`
	tableBody  = `{"apikey":"` + canary + `","price":10.50,"orderId":"A-17","amount":10.4895}`
	fullBody   = `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17",` +
		`"baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron (TRC20)","amount":"10.4895"}`
	fullTable = `{"apikey":"` + canary + `","price":10.50,"orderId":"A-17",` +
		`"baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron (TRC20)","amount":10.4895}`
)

// only returns the one request that has arrived.
func only(t testing.TB, w *wire) received {
	t.Helper()
	requests := w.Requests()
	require.Len(t, requests, 1)
	return requests[0]
}

// The header fields that are the same in every request.
func plainHeader() http.Header {
	return http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {"cryptogw-gateway-go/" + gateway.Version},
	}
}

func headerWith(pairs ...string) http.Header {
	h := plainHeader()
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// Each method sends this one request and nothing else, and reads the response.
// I-4, I-5, I-27
func TestClient_Wire(t *testing.T) {
	t.Parallel()
	public := plainHeader()
	keyed := headerWith("X-Api-Key", canary)
	inquiry := headerWith("X-Api-Key", canary, "Content-Type", "application/json")
	post := headerWith("Content-Type", "application/json", "Content-Length", strconv.Itoa(len(sampleBody)))
	want := map[string]received{
		"CoinNetworks":        {"GET", "/api/networks-coins", public, ""},                         // I-13, I-47
		"CoinNetwork":         {"GET", "/api/networks-coins/" + pairID, public, ""},               // I-14
		"CoinNetworkBySymbol": {"GET", "/api/networks-coins/USDT/Tron%20%28TRC20%29", public, ""}, // I-15
		"CoinNetworksOf":      {"GET", "/api/networks-coins/USDT", public, ""},                    // I-16
		"ExchangeRates":       {"GET", "/api/exchange-rate", public, ""},                          // I-18
		"Balance":             {"GET", "/api/balance/?coinSymbol=USDT", keyed, ""},                // I-19, I-30, I-101
		"CreateInvoice":       {"POST", "/api/invoice/create", post, sampleBody},                  // I-20, I-78, I-100
		"Withdrawal":          {"GET", "/api/withdrawal/inquiry/" + requestID, inquiry, ""},       // I-21, I-22, I-31, I-130
	}
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			got, err := s.call(t.Context(), newClient(t, w.URL))
			require.NoError(t, err)
			assertInvariants(t, got, err)
			expected := want[s.name]
			expected.Target = prefix + expected.Target
			assert.Equal(t, expected, only(t, w))
		})
	}
}

// A public call has the key only with WithAPIKeyOnPublicCalls, and only if there is
// one; a call with the key in its body never has it in a header.
// I-32, I-34
func TestClient_Wire_keyOnPublicCalls(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			_, err := s.call(t.Context(), newClient(t, w.URL, gateway.WithAPIKeyOnPublicCalls()))
			require.NoError(t, err)
			got := only(t, w)
			if s.write {
				assert.NotContains(t, got.Header, "X-Api-Key")
				assert.Equal(t, 1, strings.Count(got.Body, canary))
				return
			}
			assert.Equal(t, []string{canary}, got.Header["X-Api-Key"])
		})
	}
	t.Run("an empty key is not sent as an empty header", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(200, enveloped(ratesJSON)))
		c, err := gateway.New(w.URL, "", gateway.WithAPIKeyOnPublicCalls())
		require.NoError(t, err)
		_, err = c.ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, only(t, w).Header, "X-Api-Key")
	})
}

// The key is never in a request target.
func TestClient_Wire_keyNotInTarget(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			_, err := s.call(t.Context(), newClient(t, w.URL, gateway.WithAPIKeyOnPublicCalls()))
			require.NoError(t, err)
			assert.NotContains(t, only(t, w).Target, canary)
		})
	}
}

// I-2
func TestClient_Wire_baseURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, suffix, balance, listing string }{
		{"row A5: no path", "", "/api/balance/", "/api/networks-coins"},
		{"row A5: a final slash is dropped", "/", "/api/balance/", "/api/networks-coins"},
		{"row A5: a prefix is kept", "/a/b", "/a/b/api/balance/", "/a/b/api/networks-coins"},
		{"row A5: a prefix loses its final slash", "/a/b/", "/a/b/api/balance/", "/a/b/api/networks-coins"},
		{"row A5: a prefix loses all its final slashes", "/a/b///", "/a/b/api/balance/", "/a/b/api/networks-coins"},
		{"row A5: slashes within a prefix are kept", "/a//b", "/a//b/api/balance/", "/a//b/api/networks-coins"},
		{"row A5: escapes in a prefix are kept", "/a%20b%3F", "/a%20b%3F/api/balance/", "/a%20b%3F/api/networks-coins"},
		{"row A5: letters beyond ASCII are escaped", "/é", "/%C3%A9/api/balance/", "/%C3%A9/api/networks-coins"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped("[]")))
			c := newClient(t, strings.TrimSuffix(w.URL, prefix)+tt.suffix)
			_, err := c.Balance(t.Context(), gateway.BalanceQuery{})
			require.NoError(t, err)
			_, err = c.CoinNetworks(t.Context())
			require.NoError(t, err)
			got := w.Requests()
			require.Len(t, got, 2)
			assert.Equal(t, tt.balance, got[0].Target)
			assert.Equal(t, tt.listing, got[1].Target)
		})
	}
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
			"row A15: a network without a coin is sent as given", // I-104
			gateway.BalanceQuery{NetworkName: "Tron"},
			"?networkName=Tron",
		},
		{
			"both, in the order of the interface",
			gateway.BalanceQuery{CoinSymbol: "USDT", NetworkName: "Tron (TRC20)"},
			"?coinSymbol=USDT&networkName=Tron%20%28TRC20%29",
		},
		{
			"row A16: an ampersand does not begin another value",
			gateway.BalanceQuery{CoinSymbol: "a&apiKey=x"},
			"?coinSymbol=a%26apiKey%3Dx",
		},
		{"row A16: a plus is no space", gateway.BalanceQuery{CoinSymbol: "a+b"}, "?coinSymbol=a%2Bb"},
		{"row A16: a percent sign is data", gateway.BalanceQuery{CoinSymbol: "100%"}, "?coinSymbol=100%25"},
		{"row A16: an equals sign is data", gateway.BalanceQuery{CoinSymbol: "a=b"}, "?coinSymbol=a%3Db"},
		{"row A16: a hash does not end the query", gateway.BalanceQuery{CoinSymbol: "a#b;c"}, "?coinSymbol=a%23b%3Bc"},
		{"row A16: a slash and a question mark are data", gateway.BalanceQuery{CoinSymbol: "a/?b"}, "?coinSymbol=a%2F%3Fb"},
		{"row A17: a lower-case symbol stays so", gateway.BalanceQuery{CoinSymbol: "usdt"}, "?coinSymbol=usdt"}, // I-25
		{"letters beyond ASCII", gateway.BalanceQuery{NetworkName: "é"}, "?networkName=%C3%A9"},
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

// What is legal in an argument arrives as one segment of the path, unchanged.
// I-23, I-149
func TestClient_Wire_pathArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, argument, segment string }{
		{"row A12: three dots are a name", "...", "..."},
		{"row A12: an ampersand is escaped", "a&b", "a%26b"},
		{"row A12: a semicolon is escaped", "a;v=1", "a%3Bv%3D1"},
		{"row A13: spaces and parentheses", "Binance Smart Chain (BEP20)", "Binance%20Smart%20Chain%20%28BEP20%29"},
		{"row A17: a lower-case symbol stays so", "usdt", "usdt"}, // I-25
		{"a plus", "a+b", "a%2Bb"},
		{"a colon and an at sign", "a:b@c", "a%3Ab%40c"},
		{"unreserved characters", "aZ0-_.~", "aZ0-_.~"},
		{"letters beyond ASCII", "é世", "%C3%A9%E4%B8%96"},
		{"256 bytes", strings.Repeat("a", 256), strings.Repeat("a", 256)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := strings.ReplaceAll(enveloped(pairJSON), pairID, tt.argument)
			w := serve(t, respond(200, body))
			c, ctx := newClient(t, w.URL), t.Context()
			_, err := c.CoinNetwork(ctx, tt.argument)
			require.NoError(t, err)
			_, err = c.CoinNetworksOf(ctx, tt.argument)
			require.NoError(t, err)
			_, err = c.CoinNetworkBySymbol(ctx, tt.argument, "n")
			require.NoError(t, err)
			_, err = c.CoinNetworkBySymbol(ctx, "s", tt.argument)
			require.NoError(t, err)
			_, _ = c.Withdrawal(ctx, tt.argument) // the response is no withdrawal
			var targets []string
			for _, r := range w.Requests() {
				targets = append(targets, strings.TrimPrefix(r.Target, prefix+"/api/"))
			}
			assert.Equal(t, []string{
				"networks-coins/" + tt.segment, "networks-coins/" + tt.segment, "networks-coins/" + tt.segment + "/n",
				"networks-coins/s/" + tt.segment, "withdrawal/inquiry/" + tt.segment,
			}, targets)
		})
	}
}

// I-7, I-33, I-111, I-112, I-113, I-118
func TestClient_CreateInvoice_body(t *testing.T) {
	t.Parallel()
	full := order("A-17")
	full.BaseCurrency, full.CoinSymbol, full.NetworkName = "usd", "USDT", "Tron (TRC20)"
	for _, tt := range []struct {
		name    string
		format  gateway.InvoiceFormat
		request gateway.InvoiceRequest
		want    string
	}{
		{"row A23: empty optional fields are left out", gateway.InvoiceFormatSample, order("A-17"), sampleBody}, // I-119
		{"every field", gateway.InvoiceFormatSample, full, fullBody},
		{"row A23: empty optional fields are left out of the table's spelling", gateway.InvoiceFormatTable, order("A-17"), tableBody},
		{"every field in the table's spelling", gateway.InvoiceFormatTable, full, fullTable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped(invoiceJSON)))
			c := newClient(t, w.URL, gateway.WithInvoiceFormat(tt.format))
			_, err := c.CreateInvoice(t.Context(), tt.request)
			require.NoError(t, err)
			assert.Equal(t, tt.want, only(t, w).Body)
		})
	}
}

// Each optional field is sent when it is set, alone.
func TestClient_CreateInvoice_optionalFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(*gateway.InvoiceRequest)
		want string
	}{
		{"the currency", func(r *gateway.InvoiceRequest) { r.BaseCurrency = "usd" }, `"baseCurrency":"usd",`}, // I-114
		{
			"row A23: an unknown currency is sent as given", // I-117
			func(r *gateway.InvoiceRequest) { r.BaseCurrency = "XYZ" }, `"baseCurrency":"XYZ",`,
		},
		{"the coin", func(r *gateway.InvoiceRequest) { r.CoinSymbol = "usdt" }, `"coinSymbol":"usdt",`},      // I-115
		{"the network", func(r *gateway.InvoiceRequest) { r.NetworkName = "Tron" }, `"networkName":"Tron",`}, // I-116
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			tt.set(&request)
			want := `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17",` + tt.want + `"amount":"10.4895"}`
			assert.Equal(t, want, postedBody(t, request))
		})
	}
}

// postedBody is what the client posts for a request.
func postedBody(t testing.TB, request gateway.InvoiceRequest, opts ...gateway.Option) string {
	t.Helper()
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	_, err := newClient(t, w.URL, opts...).CreateInvoice(t.Context(), request)
	require.NoError(t, err)
	return only(t, w).Body
}

// An order's identifier is a JSON string, whatever it contains.
// I-110
func TestClient_CreateInvoice_orderID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, id, want string }{
		{"row A22: leading zeros", "000123", `"000123"`},
		{"row A22: a number with an exponent", "0e5", `"0e5"`},
		{"row A22: the word null", "null", `"null"`},
		{"row A22: the word true", "true", `"true"`},
		{"row A22: a JSON document", `{"a":1}`, `"{\"a\":1}"`},
		{"a quote and a backslash", `a"b\c`, `"a\"b\\c"`},
		{"markup is not escaped", "<a&b>", `"<a&b>"`},
		{"an order that tries to be two members", `x","price":"1`, `"x\",\"price\":\"1"`},
		{"letters beyond ASCII", "é世🙂", `"é世🙂"`},
		{"spaces within", "a  b", `"a  b"`},
		{"1,024 bytes", strings.Repeat("o", 1024), `"` + strings.Repeat("o", 1024) + `"`}, // I-121
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := `{"apiKey":"` + canary + `","price":"10.50","orderId":` + tt.want + `,"amount":"10.4895"}`
			assert.Equal(t, want, postedBody(t, order(tt.id)))
		})
	}
}

// A key is a JSON string in the body, whatever is in it.
func TestClient_CreateInvoice_keyIsQuoted(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(invoiceJSON)))
	c, err := gateway.New(w.URL, `k"e\y,"price":"0`)
	require.NoError(t, err)
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	assert.Equal(t, `{"apiKey":"k\"e\\y,\"price\":\"0","price":"10.50","orderId":"A-17","amount":"10.4895"}`, only(t, w).Body)
}

// moneyOnTheWire are decimals and the digits they are sent as.
var moneyOnTheWire = []struct {
	name   string
	amount decimal.Decimal
	want   string
}{
	{"row A21: zeros at the end stay", decimal.RequireFromString("10.50"), "10.50"},
	{"row A21: all of them", decimal.RequireFromString("1.000000000000000000"), "1.000000000000000000"},
	{"row A20: an exponent is written out", decimal.New(1, 5), "100000"},
	{"row A20: a large exponent is written out", decimal.New(1, 63), "1" + strings.Repeat("0", 63)},
	{"row A20: a small amount has no exponent", decimal.New(1, -8), "0.00000001"},
	{"row A19: the most decimal places", decimal.New(1, -30), "0." + strings.Repeat("0", 29) + "1"},
	{"row A19: the most digits", decimal.RequireFromString(strings.Repeat("9", 64)), strings.Repeat("9", 64)},
	{
		"row A19: the most of both",
		decimal.RequireFromString(strings.Repeat("9", 34) + "." + strings.Repeat("9", 30)),
		strings.Repeat("9", 34) + "." + strings.Repeat("9", 30),
	},
	{"more digits than an int64", decimal.RequireFromString("18446744073709551616.5"), "18446744073709551616.5"},
	{"a whole number", decimal.NewFromInt(7), "7"},
	{"as many places as digits", decimal.New(1234, -4), "0.1234"},
	{"what float64 cannot represent", decimal.RequireFromString("0.1000000000000000055511151231257827"[:32]), "0.100000000000000005551115123125"},
}

// I-113, I-120
func TestClient_CreateInvoice_amounts(t *testing.T) {
	t.Parallel()
	for _, tt := range moneyOnTheWire {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			request := order("A-17")
			request.Price, request.Amount = tt.amount, tt.amount
			assert.Equal(t,
				`{"apiKey":"`+canary+`","price":"`+tt.want+`","orderId":"A-17","amount":"`+tt.want+`"}`,
				postedBody(t, request))
			assert.Equal(t,
				`{"apikey":"`+canary+`","price":`+tt.want+`,"orderId":"A-17","amount":`+tt.want+`}`,
				postedBody(t, request, gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)))
		})
	}
}

// The switches of the decimal package are the whole program's. None of them
// changes what is sent or read. This test is not parallel, nor is any of its
// subtests: nothing else may run while the switches are changed.
func TestDecimalSwitches(t *testing.T) {
	request := order("A-17")
	rates := gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: decimal.NewNullDecimal(decimal.NewFromInt(3))}}}
	defer restoreDecimal()()
	decimal.UseScientificNotation = true
	decimal.MarshalJSONWithoutQuotes = true
	decimal.MaxDecodeExponent = 1
	decimal.DivisionPrecision = 0
	for _, trim := range []bool{true, false} {
		decimal.TrimTrailingZeros = trim
		for _, tt := range moneyOnTheWire {
			request.Price, request.Amount = tt.amount, tt.amount
			assert.Equal(t,
				`{"apiKey":"`+canary+`","price":"`+tt.want+`","orderId":"A-17","amount":"`+tt.want+`"}`,
				postedBody(t, request), "row A20: %s", tt.name)
			assert.Equal(t,
				`{"apikey":"`+canary+`","price":`+tt.want+`,"orderId":"A-17","amount":`+tt.want+`}`,
				postedBody(t, request, gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)), "row A20: %s", tt.name)
		}
		assertReadsExactly(t, &rates)
	}
}

// assertReadsExactly asserts that what is read and what is converted has the
// digits that it should.
func assertReadsExactly(t *testing.T, rates *gateway.ExchangeRates) {
	t.Helper()
	w := serve(t, respond(200, enveloped(`[{"coin":"USDT","balance":"1.50"},{"coin":"USDT","balance":1e-7}]`)))
	balance, err := newClient(t, w.URL).Balance(t.Context(), gateway.BalanceQuery{})
	require.NoError(t, err)
	assertDecimal(t, 150, -2, balance.Amounts[0].Amount)
	assertDecimal(t, 1, -7, balance.Amounts[1].Amount)
	coins, err := rates.ToCoin(decimal.NewFromInt(1), "usd", "BTC", 4)
	require.NoError(t, err)
	assertDecimal(t, 3334, -4, coins)
}

// restoreDecimal notes the switches of the decimal package and returns what
// puts them back.
func restoreDecimal() func() {
	scientific, unquoted, trimmed := decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros
	exponent, precision := decimal.MaxDecodeExponent, decimal.DivisionPrecision
	return func() {
		decimal.UseScientificNotation, decimal.MarshalJSONWithoutQuotes, decimal.TrimTrailingZeros = scientific, unquoted, trimmed
		decimal.MaxDecodeExponent, decimal.DivisionPrecision = exponent, precision
	}
}

// assertDecimal compares a coefficient and an exponent, so that 1.50 is not
// 1.5, without the methods that the switches of the package change.
func assertDecimal(t testing.TB, value int64, exponent int32, got decimal.Decimal) {
	t.Helper()
	assert.Equal(t, value, got.CoefficientInt64(), "the coefficient")
	assert.Equal(t, exponent, got.Exponent(), "the exponent")
}

// A call sends nothing of an earlier call.
func TestClient_Wire_callsShareNothing(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(ratesJSON)))
	c := newClient(t, w.URL)
	_, err := c.ExchangeRates(t.Context(), gateway.WithHeader("X-Trace", "1"))
	require.NoError(t, err)
	_, err = c.ExchangeRates(context.Background())
	require.NoError(t, err)
	got := w.Requests()
	require.Len(t, got, 2)
	assert.Equal(t, headerWith("X-Trace", "1"), got[0].Header)
	assert.Equal(t, plainHeader(), got[1].Header)
}
