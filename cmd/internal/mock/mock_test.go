package mock

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const invoice = `{"apiKey":"` + Key + `","price":"10.50","orderId":"A-17","amount":"10.50"}`

// start serves a mock until the test ends, and returns its address.
func start(t *testing.T) (*Mock, string) {
	t.Helper()
	m := New()
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	t.Cleanup(m.Close)
	return m, server.URL
}

// ask sends a request such as "GET /_mock/requests" over a connection of its own. It returns the status, or 0 if there
// is no response, and the body.
func ask(t *testing.T, url, request, body string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("X-Api-Key", Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	text, _ := io.ReadAll(resp.Body) // a fault can cut it
	return resp.StatusCode, string(text)
}

// Each step is sent to one mock; the text is a part of the body.
func TestMock(t *testing.T) {
	t.Parallel()
	m, url := start(t)
	id := m.current().Withdrawals()[0].WithdrawRequestID
	for _, step := range []struct {
		request, body string
		status        int
		text          string
	}{
		{"GET /_mock/requests", "", 200, "[]\n"},
		{"GET /_mock/invoices", "", 200, "[]\n"},
		{"POST /_mock/faults", `{"operation":"create_invoice","fault":"commit-then-drop"}`, 204, ""},
		{"POST /gateway/api/invoice/create", invoice, 0, ""},
		{"GET /_mock/invoices", "", 200, `"orderId":"A-17","price":"10.50"`},
		{"GET /_mock/invoices?orderId=A-18", "", 200, "[]\n"},
		{"GET /_mock/requests", "", 200, `"keyIn":"body","keyOk":true,"status":0,"fault":"commit-then-drop"`},
		{"GET /_mock/requests", "", 200, `\"apiKey\":\"[REDACTED]\",\"price\":\"10.50\"`},

		{"POST /_mock/faults", `{"operation":"balance","times":-1,"fault":"page","status":530}`, 204, ""},
		{"GET /gateway/api/balance/", "", 530, "<html>"},
		{"GET /gateway/api/balance/", "", 530, "<html>"},
		{"DELETE /_mock/faults", "", 204, ""},
		{"GET /gateway/api/balance/", "", 200, "USDT"},

		{"PUT /_mock/results/balance", `{"accounts":[{"code":"USDT"}]}`, 204, ""},
		{"GET /gateway/api/balance/", "", 200, `"result":{"accounts":[{"code":"USDT"}]}`},
		{"PUT /_mock/results/create_invoice", `{"order":"{{orderId}}","pay":{{amount}}}`, 204, ""},
		{"POST /gateway/api/invoice/create", invoice, 201, `"result":{"order":"A-17","pay":10.50}`},
		{"PUT /_mock/withdrawals/" + id, `{"status":"COMPLETED"}`, 204, ""},
		{"GET /gateway/api/withdrawal/inquiry/" + id, "", 201, `"status":"COMPLETED"`},
		{"GET /_mock/withdrawals", "", 200, `[{"status":"COMPLETED"`},

		{"PUT /_mock/rates/BTC", `{"usd":"90","eur":"80"}`, 204, ""},
		{"GET /gateway/api/exchange-rate", "", 200, `{"symbol":"BTC","usd":"90","eur":"80"}`},
		{"PUT /_mock/repeated-orders", `{"kind":"refused"}`, 204, ""},
		{"POST /gateway/api/invoice/create", invoice, 409, "the order has an invoice"},
		{"PUT /_mock/rate-limit", `{"requests":1,"seconds":60}`, 204, ""},
		{"GET /gateway/api/balance/", "", 200, "USDT"},
		{"GET /gateway/api/balance/", "", 429, "too many requests"},
		{"POST /_mock/clock", `{"seconds":60}`, 200, `{"now":"2`},
		{"GET /gateway/api/balance/", "", 200, "USDT"},

		{"POST /_mock/reset", "", 204, ""},
		{"GET /_mock/requests", "", 200, "[]\n"},
		{"GET /_mock/invoices", "", 200, "[]\n"},
		{"GET /_mock/withdrawals", "", 200, `[{"status":"PENDING"`},
		{"GET /gateway/api/balance/", "", 200, `"result":[{`},
		{"POST /gateway/api/invoice/create", invoice, 201, "A-17"},

		{"PUT /_mock/repeated-orders", `{"kind":"first"}`, 400, `SetRepeatedOrders with "first"`},
		{"PUT /_mock/rate-limit", `{"requests":1}`, 400, "SetRateLimit with 1 requests in 0s"},
		{"PUT /_mock/rates/BTC", `{"gbp":"1"}`, 400, `unknown field "gbp"`},
		{"POST /_mock/clock", `{"seconds":-1}`, 400, "Advance with -1s"},
		{"POST /_mock/clock", `{"seconds":9223372036854775807}`, 200, `{"now":"2`},
		{"PUT /_mock/results/any", `{}`, 400, `SetResult for operation "any"`},
		{"PUT /_mock/results/balance", `{"a":`, 400, "SetResult for balance, want JSON"},
		{"PUT /_mock/withdrawals/w-2", `{"status":"COMPLETED"}`, 400, "w-2"},
		{"PUT /_mock/withdrawals/" + id, `{"state":"COMPLETED"}`, 400, `unknown field "state"`},
		{"POST /_mock/faults", `stall`, 400, "invalid character"},
		{"POST /_mock/faults", `{"operation":"balance","fault":"stal"}`, 400, `there is no fault "stal", but commit-then-drop; reset; stall;`},
		{"POST /_mock/faults", `{"operation":"pay","fault":"stall"}`, 400, `InjectFault for operation "pay"`},
		{"POST /_mock/faults", `{"operation":"balance","fault":"refuse"}`, 400, "FaultRefuse with status 0, want 200 to 999"},
		{"GET /_mock/reset", "", 405, ""},
		{"GET /_mock/state", "", 404, ""},
	} {
		status, text := ask(t, url, step.request, step.body)
		assert.Equal(t, step.status, status, "%s: %.200s", step.request, text)
		assert.Contains(t, text, step.text, step.request)
		assert.NotContains(t, text, Key, step.request)
	}
}

// Every fault can be injected, and the journal names it.
func TestMock_faults(t *testing.T) {
	t.Parallel()
	for fault, name := range map[string]string{
		`"commit-then-drop"`: "commit-then-drop",
		`"reset"`:            "reset",
		`"refuse","status":503,"message":"later"`:                            "refuse=503",
		`"refuse-as","status":422,"form":"{\"error\":MESSAGE}","message":""`: "refuse-as=422",
		`"page","status":502`:                             "page=502",
		`"empty","status":200`:                            "empty=200",
		`"redirect","status":307,"location":"/elsewhere"`: "redirect=307",
		`"truncate","bytes":9`:                            "truncate=9",
		`"huge-body","bytes":100000`:                      "huge-body=100000",
		`"slow-body","interval":0`:                        "slow-body=0s",
	} {
		m, url := start(t)
		status, text := ask(t, url, "POST /_mock/faults", `{"operation":"any","fault":`+fault+`}`)
		require.Equal(t, http.StatusNoContent, status, text)
		ask(t, url, "GET /gateway/api/exchange-rate", "")
		assert.Equal(t, name, m.current().Requests()[0].Fault)
	}
	m, url := start(t)
	ask(t, url, "POST /_mock/faults", `{"operation":"any","fault":"refuse","status":503,"retryAfter":"2"}`)
	response := httptest.NewRecorder()
	m.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/gateway/api/exchange-rate", nil))
	assert.Equal(t, "2", response.Header().Get("Retry-After"))
}
