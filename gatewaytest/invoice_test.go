package gatewaytest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// I-33, I-113
func TestServer_creates_an_invoice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, contentType, want string }{ // KEY is replaced by the server's key
		{"strings and apiKey", `{"apiKey":"KEY","price":"10.50","orderId":"o-1","amount":"0.5"}`, "application/json", "o-1|10.50|0.5|||"},
		{
			"numbers and apikey", `{"apikey":"KEY","price":10.50,"orderId":"o-1","amount":-1e-7}`, "application/json; charset=utf-8",
			"o-1|10.50|-1e-7|||",
		},
		{
			"all fields, spaced", ` { "networkName" : "Tron" , "coinSymbol" : "USDT" , "baseCurrency" : "usd" ,
				"amount" : "3" , "orderId" : "000123" , "price" : 1000000000000000000000000000001 , "apiKey" : "KEY" } `, "Application/JSON",
			"000123|1000000000000000000000000000001|3|usd|USDT|Tron",
		},
		{
			"fields that are not known, and escapes", `{"\u0061piKey":"KEY","price":"1\u0030","orderId":"é\n","amount":"1","note":{"a":[1]},"ORDERID":2}`,
			"application/json", "é\n|10|1|||",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			got := mustTry(t, s, "POST", "/api/invoice/create", strings.ReplaceAll(tt.body, "KEY", s.APIKey), "Content-Type", tt.contentType)
			assert.Equal(t, 201, got.status, got.body)
			require.Len(t, s.Invoices(), 1)
			made := s.Invoices()[0]
			assert.Regexp(t, `^[0-9a-f-]{36}$`, made.ID)
			assert.Equal(t, tt.want, strings.Join([]string{made.OrderID, made.Price, made.Amount, made.BaseCurrency, made.CoinSymbol, made.NetworkName}, "|"))
		})
	}
}

func TestServer_refuses_an_invoice(t *testing.T) {
	t.Parallel()
	const good = `{"apiKey":"KEY","price":"10","orderId":"o","amount":"1"}`
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	const notJSON, notObject = "the body is not JSON", "the body is not a JSON object"
	tests := []struct {
		name, body string
		status     int
		message    string
	}{
		{"empty", ``, 400, notJSON},
		{"cut", good[:20], 400, notJSON}, // I-7
		{"trailing text", good + "x", 400, notJSON},
		{"not UTF-8", with(`"o"`, "\"\xff\""), 400, notJSON},
		{"null", "null", 400, notObject},
		{"twice", with(`"price"`, `"amount":"2","price"`), 400, `"amount" is there twice`},
		{"both spellings", with(`{`, `{"apikey":"KEY",`), 400, "apiKey and apikey are both there"},
		{"no key", with(`"apiKey":"KEY",`, ``), 401, "apiKey is required"},
		{"key in another case", with(`apiKey`, `APIKEY`), 401, "apiKey is required"},
		{"wrong key", with(`KEY`, `wrong`), 401, "apiKey is not valid"}, // I-32
		{"key is a number", with(`"KEY"`, `1`), 401, "apiKey is not valid"},
		{"field in another case", with(`orderId`, `orderid`), 400, "orderId is required"},
		{"no price", with(`"price":"10",`, ``), 400, "price is required"},    // I-111
		{"no amount", with(`,"amount":"1"`, ``), 400, "amount is required"},  // I-112
		{"no order", with(`"orderId":"o",`, ``), 400, "orderId is required"}, // I-110
		{"order is a number", with(`"o"`, `1`), 400, "orderId is not valid"},
		{"price is a word", with(`"10"`, `"ten"`), 400, "price is not valid"},
		{"price has an exponent in a string", with(`"10"`, `"1e1"`), 400, "price is not valid"},
		{"price has leading zeros", with(`"10"`, `"007"`), 400, "price is not valid"},
		{"amount is true", with(`"1"`, `true`), 400, "amount is not valid"},
		{"coin is null", with(`{`, `{"coinSymbol":null,`), 400, "coinSymbol is not valid"},         // I-115
		{"network is an object", with(`{`, `{"networkName":{},`), 400, "networkName is not valid"}, // I-116
		{"64 KiB and a byte", good + strings.Repeat(" ", 64<<10+1-len(good)-len("test-key-")-26+len("KEY")), 413, "the body is too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			got := post(s, strings.ReplaceAll(tt.body, "KEY", s.APIKey))
			require.NoError(t, got.err)
			assert.Equal(t, tt.status, got.status)
			assert.JSONEq(t, `{"message":`+quote(tt.message)+`,"result":[],"meta":{}}`, got.body)
			assert.Empty(t, s.Invoices())
		})
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// I-20
func TestServer_accepts_64_KiB_of_JSON(t *testing.T) {
	t.Parallel()
	s := start(t)
	body := invoice(s, "o", "")
	body += strings.Repeat(" ", 64<<10-len(body))
	for _, contentType := range []string{"", "text/json", "application/json; charset", "application/x-www-form-urlencoded"} {
		got := mustTry(t, s, "POST", "/api/invoice/create", body, "Content-Type", contentType)
		assert.Equal(t, 415, got.status)
		assert.JSONEq(t, errorBody("Content-Type must be application/json"), got.body)
	}
	assert.Empty(t, s.Invoices())
	assert.Equal(t, 201, post(s, body).status)
	assert.Len(t, s.Requests()[0].Body, 64<<10-len(s.APIKey)+len("[REDACTED]"))
}

// A body shorter than its Content-Length creates no invoice. The journal has the request before the body arrives.
func TestServer_refuses_half_a_body(t *testing.T) {
	t.Parallel()
	s := start(t)
	conn := dial(t, s, "POST /gateway/api/invoice/create HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
	require.Eventually(t, func() bool { return len(s.Requests()) > 0 }, 10*time.Second, time.Millisecond)
	early := s.Requests()[0]
	assert.Equal(t, gatewaytest.OpCreateInvoice, early.Operation)
	assert.Equal(t, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"1000"}}, early.Header)
	assert.Zero(t, early.Status)
	_, err := io.WriteString(conn, invoice(s, "o", ""))
	require.NoError(t, err)
	require.NoError(t, conn.CloseWrite())
	text := readAll(t, conn)
	assert.Contains(t, text, "HTTP/1.1 400 ")
	assert.Contains(t, text, errorBody("the body ended early"))
	assert.Empty(t, s.Invoices())
	assert.Equal(t, "body", s.Requests()[0].KeyIn)
}

func TestServer_SetRepeatedOrders(t *testing.T) {
	t.Parallel()
	tests := map[gatewaytest.RepeatedOrders]struct {
		status   int
		invoices int
	}{
		gatewaytest.RepeatAgain:   {201, 2},
		gatewaytest.RepeatSame:    {200, 1},
		gatewaytest.RepeatRefused: {409, 1},
	}
	require.Len(t, tests, len(gatewaytest.AllRepeatedOrders()))
	for kind, tt := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetRepeatedOrders(kind)
			first := post(s, invoice(s, "o-1", ""))
			require.Equal(t, 201, first.status)
			require.Contains(t, first.body, `"address":"invented-`)
			require.Equal(t, 201, post(s, invoice(s, "o-2", "")).status, "of another order")

			second := post(s, invoice(s, "o-1", `,"coinSymbol":"BTC"`))
			assert.Equal(t, tt.status, second.status)
			assert.Len(t, s.InvoicesFor("o-1"), tt.invoices)
			assert.Equal(t, kind == gatewaytest.RepeatSame, first.body == second.body, "an invoice has an identifier of its own")
			assert.Equal(t, 400, post(s, invoice(s, "o-1", `,"price":1`)).status, "a request that is not valid is refused for that")
		})
	}
}
