package mock

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

const key = "key-of-the-mock"

// start serves a mock until the test ends, and returns its address.
func start(t *testing.T, faults ...Injection) (*Mock, string) {
	t.Helper()
	m := New(Config{Key: key, Scenario: Scenario{
		State:  gatewaytest.Seed{Withdrawals: []gatewaytest.Withdrawal{{WithdrawRequestID: "w-1", Amount: "1", Fee: "0"}}},
		Faults: faults,
	}})
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	t.Cleanup(m.Close)
	return m, server.URL
}

// ask sends a request, whose body is JSON if it has one, and returns status and body. It
// has a connection of its own, because net/http repeats some requests on another.
func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("X-Api-Key", key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// want asserts a response of the control API, with the body as JSON unless it is empty.
func want(t *testing.T, url, request, body string, status int, result string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	gotStatus, got := ask(t, method, url+path, body)
	assert.Equal(t, status, gotStatus, "%s: %s", request, got)
	if result == "" {
		assert.Empty(t, got, request)
	} else {
		assert.JSONEq(t, result, got, request)
	}
}

const invoiceBody = `{"apiKey":"` + key + `","price":"10.50","orderId":"A-17","amount":"10.50"}`

// A response that is lost after the commit: the control API has exactly one invoice.
func TestMock_lostResponse(t *testing.T) {
	t.Parallel()
	_, url := start(t)
	want(t, url, "POST /_mock/faults", `{"operation":"create_invoice","times":1,"fault":"commit-then-drop"}`, 204, "")
	status, _ := ask(t, "POST", url+"/gateway/api/invoice/create", invoiceBody)
	assert.Zero(t, status)
	_, text := ask(t, "GET", url+"/_mock/invoices?orderId=A-17", "")
	var invoices []gatewaytest.Invoice
	require.NoError(t, json.Unmarshal([]byte(text), &invoices))
	require.Len(t, invoices, 1)
	assert.Equal(t, "10.50", invoices[0].Price)
	want(t, url, "GET /_mock/invoices?orderId=A-18", "", 200, "[]")

	_, text = ask(t, "GET", url+"/_mock/requests", "")
	var journal []journalEntry
	require.NoError(t, json.Unmarshal([]byte(text), &journal))
	require.Len(t, journal, 1)
	assert.Equal(t, "commit-then-drop", journal[0].Fault)
	assert.Equal(t, "body", journal[0].KeyIn)
	assert.True(t, journal[0].KeyOK)
	assert.NotContains(t, text, key)
}

// The journal has no credentials that a client sends beside the key.
func TestMock_requests_credentials(t *testing.T) {
	t.Parallel()
	m, url := start(t)
	request := httptest.NewRequest(http.MethodGet, "http://localhost/gateway/api/exchange-rate", nil)
	request.Header.Set("Cookie", "session=9b2f6c1e")
	request.Header.Set("Proxy-Authorization", "Basic cHJveHk6czNjcmV0")
	m.ServeHTTP(httptest.NewRecorder(), request)
	_, text := ask(t, "GET", url+"/_mock/requests", "")
	var journal []journalEntry
	require.NoError(t, json.Unmarshal([]byte(text), &journal))
	require.Len(t, journal, 1)
	assert.Equal(t, http.Header{"Cookie": {"[REDACTED]"}, "Proxy-Authorization": {"[REDACTED]"}}, journal[0].Header)
}

func TestMock_withdrawals(t *testing.T) {
	t.Parallel()
	m, url := start(t)
	statusOf := func(id string) string {
		for _, w := range m.Server().Withdrawals() {
			if w.WithdrawRequestID == id {
				return w.Status
			}
		}
		return ""
	}
	want(t, url, "POST /_mock/withdrawals", `{"withdrawRequestId":"w-2","amount":"3","fee":"1"}`, 200, `{"withdrawRequestId":"w-2"}`)
	want(t, url, "POST /_mock/withdrawals", `{"withdrawRequestId":"w-2","status":"FAILED"}`, 400,
		`{"error":"amount and fee are required; the status of a withdrawal is changed with POST /_mock/withdrawals/{id}/status"}`)
	want(t, url, "GET /_mock/withdrawals", "", 200, `[
		{"status":"PENDING","destination":"","amount":"1","fee":"0","coin":"","network":"","withdrawRequestId":"w-1"},
		{"status":"PENDING","destination":"","amount":"3","fee":"1","coin":"","network":"","withdrawRequestId":"w-2"}]`)
	want(t, url, "POST /_mock/withdrawals/w-2/status", `{"status":"FAILED"}`, 204, "")
	assert.Equal(t, "FAILED", statusOf("w-2"))
	want(t, url, "POST /_mock/withdrawals/w-1/status", `{"status":"ON_HOLD","afterRequests":1}`, 204, "")
	want(t, url, "POST /_mock/withdrawals/w-1/status", `{"status":"COMPLETED","after":"36h"}`, 204, "")
	for _, status := range []string{"PENDING", "ON_HOLD"} {
		_, text := ask(t, "GET", url+"/gateway/api/withdrawal/inquiry/w-1", "")
		assert.Contains(t, text, status)
	}
	_, text := ask(t, "POST", url+"/_mock/clock", `{"advance":"36h"}`)
	var clock struct{ Now time.Time }
	require.NoError(t, json.Unmarshal([]byte(text), &clock))
	assert.Greater(t, time.Until(clock.Now), 35*time.Hour)
	assert.Equal(t, "COMPLETED", statusOf("w-1"))
	_, text = ask(t, "GET", url+"/_mock/clock", "")
	assert.Contains(t, text, `"now"`)
}

// A reset restores the state of the start, with the same key, and ends what waits.
func TestMock_reset(t *testing.T) {
	t.Parallel()
	m, url := start(t, Injection{Operation: gatewaytest.OpBalance, Times: 1, Fault: "refuse=503"})
	for range 2 {
		status, _ := ask(t, "GET", url+"/gateway/api/balance/", "")
		assert.Equal(t, 503, status)
		status, _ = ask(t, "POST", url+"/gateway/api/invoice/create", invoiceBody)
		assert.Equal(t, 201, status)
		want(t, url, "POST /_mock/faults", `{"operation":"exchange_rates","times":-1,"fault":"stall"}`, 204, "")
		stalled := make(chan int, 1)
		old := m.Server()
		go func() {
			status, _ := ask(t, "GET", url+"/gateway/api/exchange-rate", "")
			stalled <- status
		}()
		require.Eventually(t, func() bool { return len(old.Requests()) == 3 }, 10*time.Second, time.Millisecond, "the request has not arrived")
		want(t, url, "POST /_mock/reset", "", 204, "")
		assert.Zero(t, <-stalled)
		assert.Empty(t, m.Server().Requests())
		assert.Empty(t, m.Server().Invoices())
		assert.Len(t, m.Server().Withdrawals(), 1)
	}
	want(t, url, "DELETE /_mock/faults", "", 204, "")
	status, _ := ask(t, "GET", url+"/gateway/api/balance/", "")
	assert.Equal(t, 200, status)
}

// A page of another site, open in a browser of the developer, changes nothing.
func TestMock_otherSite(t *testing.T) {
	t.Parallel()
	m, _ := start(t)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://other.example"} {
		response := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, "http://localhost/_mock/reset", nil)
		request.Header.Set(name, value)
		m.ServeHTTP(response, request)
		assert.Equal(t, http.StatusForbidden, response.Code, name)
	}
}

// A page of another site whose name is made to resolve to this machine reads nothing.
func TestMock_host(t *testing.T) {
	t.Parallel()
	m := New(Config{Key: key, Hosts: []string{"mock", "Test.example"}})
	t.Cleanup(m.Close)
	for host, status := range map[string]int{
		"127.0.0.1:8090": 200, "192.0.2.7": 200, "[::1]:8090": 200, "[::1]": 200,
		"localhost:8090": 200, "LOCALHOST": 200, "mock:8090": 200, "mock": 200, "test.EXAMPLE:1": 200,
		"other.example:8090": 421, "localhost.other.example": 421, "127.0.0.1.other.example": 421, "mock.other.example": 421, "mocks": 421, "": 421,
	} {
		for _, path := range []string{"/_mock/requests", "/gateway/api/exchange-rate"} {
			response := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Host = host
			m.ServeHTTP(response, request)
			assert.Equal(t, status, response.Code, "%s%s", host, path)
			if status == 421 {
				assert.Contains(t, response.Body.String(), "and the names of the flags --addr and --host", host)
			}
		}
	}
	assert.Len(t, m.Server().Requests(), 9, "the journal has only requests that were served")
}

// A random key stays the same after a reset.
func TestMock_randomKey(t *testing.T) {
	t.Parallel()
	m := New(Config{})
	t.Cleanup(m.Close)
	random := m.Server().APIKey
	m.reset()
	assert.Equal(t, random, m.Server().APIKey)
}

func TestMock_refusals(t *testing.T) {
	t.Parallel()
	m, url := start(t)
	for _, test := range []struct {
		request, body string
		status        int
		text          string
	}{
		{"GET /_mock/fault", "", 404, "there is no GET /_mock/fault, but DELETE /_mock/faults, GET /_mock/, GET /_mock/clock,"},
		{"PUT /_mock/faults", "", 404, "there is no PUT /_mock/faults, but "},
		{"POST /_mock/faults", "", 415, "curl -H 'Content-Type: application/json'"},
		{"POST /_mock/faults", "{", 400, "the body cannot be read"},
		{"POST /_mock/faults", `{"kind":"stall"}`, 400, `unknown field "kind"; it is an object with the members operation, times, share, for, fault`},
		{"POST /_mock/faults", `{} {}`, 400, "there is more after the end"},
		{"POST /_mock/faults", `{"fault":"` + strings.Repeat("x", maxControlBody) + `"}`, 400, "too large"},
		{"POST /_mock/faults", `{"operation":"pay","times":1,"fault":"stall"}`, 400, "there is no such operation"},
		{"POST /_mock/faults", `{"operation":"any","times":1,"share":"5%","fault":"stall"}`, 400, "times, share and for exclude each other"},
		{"POST /_mock/faults", `{"operation":"any","times":1,"for":"5s","fault":"stall"}`, 400, "times, share and for exclude each other"},
		{"POST /_mock/faults", `{"operation":"any","share":"1%","for":"5s","fault":"stall"}`, 400, "times, share and for exclude each other"},
		{"POST /_mock/faults", `{"operation":"any","for":"soon","fault":"stall"}`, 400, `for: "soon" is not a duration such as 36h`},
		{"POST /_mock/faults", `{"operation":"any","fault":"drop"}`, 400, "times is 0"},
		{"POST /_mock/faults", `{"operation":"any","times":1,"fault":"drop"}`, 400, "there is no such fault, but commit-then-drop, "},
		{"PATCH /_mock/settings", `{"shapes":["rates/symbols"]}`, 400, `there is no such shape, but pair/record, `},
		{"PATCH /_mock/settings", `{"repeatedOrders":"never"}`, 400, `a repeated order gets one of again, same, refused`},
		{"PATCH /_mock/settings", `{"rateLimit":"10"}`, 400, "write a limit like 10/1s, or off"},
		{"PATCH /_mock/settings", `{"latency":"slow","rateLimit":"1/1h"}`, 400, "write a latency like 50ms, 20ms-80ms or 20ms-80ms,1%:2s"},
		{"PATCH /_mock/state", `{"prices":[]}`, 400, `unknown field "prices"; it is an object with the members coins, rates, balances, withdrawals, invoices`},
		{"POST /_mock/withdrawals", `[]`, 400, "cannot unmarshal"},
		{"POST /_mock/withdrawals/w-9/status", `{"status":"FAILED"}`, 404, "no withdrawal"},
		{"POST /_mock/withdrawals/w-1/status", `{}`, 400, "status is missing"},
		{"POST /_mock/withdrawals/w-1/status", `"FAILED"`, 400, "cannot unmarshal"},
		{"POST /_mock/withdrawals/w-1/status", `{"status":"FAILED","afterRequests":-1}`, 400, "afterRequests is negative"},
		{"POST /_mock/withdrawals/w-1/status", `{"status":"FAILED","afterRequests":1,"after":"1s"}`, 400, "exclude each other"},
		{"POST /_mock/withdrawals/w-1/status", `{"status":"FAILED","after":"soon"}`, 400, "not a duration"},
		{"POST /_mock/clock", `{"advance":"-1s"}`, 400, "not a duration"},
		{"POST /_mock/clock", `7`, 400, "cannot unmarshal"},
	} {
		method, path, _ := strings.Cut(test.request, " ")
		status, text := ask(t, method, url+path, test.body)
		assert.Equal(t, test.status, status, test)
		var refusal struct{ Error string }
		require.NoError(t, json.Unmarshal([]byte(text), &refusal))
		assert.Contains(t, refusal.Error, test.text)
	}
	assert.Equal(t, defaults(), m.currentSettings(), "a request that is refused sets nothing")
	assert.Empty(t, m.Server().Requests(), "the journal has only requests to the service")
	assert.Equal(t, "PENDING", m.Server().Withdrawals()[0].Status)
}

// The path of a request to the service arrives as it is.
func TestMock_path(t *testing.T) {
	t.Parallel()
	m, url := start(t)
	status, _ := ask(t, "GET", url+"/gateway/api/balance//", "")
	assert.Equal(t, 404, status)
	assert.Equal(t, "/gateway/api/balance//", m.Server().Requests()[0].Target)
}

func TestParseInjection(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Injection{
		"create_invoice:1:commit-then-drop": {Operation: gatewaytest.OpCreateInvoice, Times: 1, Fault: "commit-then-drop"},
		"any:all:slow-body=1m30s":           {Operation: gatewaytest.AnyOperation, Times: -1, Fault: "slow-body=1m30s"},
		"any:30s:page=530":                  {Operation: gatewaytest.AnyOperation, For: "30s", Fault: "page=530"},
		"withdrawal:2:edit=/result/fee=":    {Operation: gatewaytest.OpWithdrawal, Times: 2, Fault: "edit=/result/fee="},
		"balance:0.5%:reset":                {Operation: gatewaytest.OpBalance, Share: "0.5%", Fault: "reset"},
	} {
		got, err := ParseInjection(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for text, want := range map[string]string{
		"stall":                  "write it like create_invoice:1:commit-then-drop",
		"pay:1:stall":            `there is no such operation, but coin_networks, `,
		"any:0:stall":            "times is 0",
		"any:-2:stall":           "times is -2",
		"any:often:stall":        `TIMES is not a number of requests, all, a share such as 5% or a duration such as 30s`,
		"any:101%:stall":         "share: write a share of the requests like 5%",
		"any:1:explode":          `there is no such fault, but commit-then-drop, `,
		"any:1:stall=1":          "write stall",
		"any:1:refuse":           "write refuse=STATUS",
		"any:1:refuse=199":       `refuse: it takes a number from 200 to 999`,
		"any:1:redirect=x":       `redirect: it takes a number from 300 to 399`,
		"any:1:truncate=-1":      "truncate: ",
		"any:1:slow-body=1 hour": `slow-body: it takes a duration`,
		"any:1:slow-body=-1s":    "slow-body: ",
	} {
		_, err := ParseInjection(text)
		require.ErrorContains(t, err, want)
	}
	assert.Panics(t, func() { New(Config{Scenario: Scenario{Faults: []Injection{{}}}}) })
}

// The settings are those of the start, and change while the mock runs.
func TestMock_settings(t *testing.T) {
	t.Parallel()
	m := New(Config{Key: key, Scenario: Scenario{Settings: Settings{Shapes: []string{"rates/symbol"}, RepeatedOrders: "refused"}}})
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	t.Cleanup(m.Close)
	url := server.URL
	const shapes = `"shapes":["pair/record","symbol/array","rates/%s","balance/records","invoice/flat"]`
	initial := `{` + fmt.Sprintf(shapes, "symbol") + `,"repeatedOrders":"refused","rateLimit":"off","latency":"0s"}`
	want(t, url, "GET /_mock/settings", "", 200, initial)
	invoices := func() (statuses []int) {
		for range 2 {
			status, _ := ask(t, "POST", url+"/gateway/api/invoice/create", invoiceBody)
			statuses = append(statuses, status)
		}
		return statuses
	}
	assert.Equal(t, []int{201, 409}, invoices())

	want(t, url, "PATCH /_mock/settings", `{"shapes":["rates/fiat"],"repeatedOrders":"same"}`, 200,
		`{`+fmt.Sprintf(shapes, "fiat")+`,"repeatedOrders":"same","rateLimit":"off","latency":"0s"}`)
	assert.Equal(t, []int{200, 200}, invoices())
	_, rates := ask(t, "GET", url+"/gateway/api/exchange-rate", "")
	assert.Contains(t, rates, `"result":{"eur":{`)
	status, _ := ask(t, "PATCH", url+"/_mock/settings", `{"rateLimit":"1/1h","latency":"1ms-2ms,1%:3ms"}`)
	assert.Equal(t, 200, status)
	assert.Equal(t, []int{200, 429}, invoices())
	want(t, url, "POST /_mock/reset", "", 204, "")
	want(t, url, "GET /_mock/settings", "", 200, initial)
	assert.Equal(t, []int{201, 409}, invoices())
}

// What the state has is what a mock can start with.
func TestMock_state(t *testing.T) {
	t.Parallel()
	m, url := start(t)
	_, _ = ask(t, "POST", url+"/gateway/api/invoice/create", invoiceBody)
	_, before := ask(t, "GET", url+"/_mock/state", "")
	want(t, url, "PATCH /_mock/state", `{"rates":[{"symbol":"ABC","usd":"2"}],"invoices":[]}`, 204, "")
	assert.Equal(t, []gatewaytest.Rate{{Symbol: "ABC", USD: "2"}}, m.Server().Rates())
	assert.Empty(t, m.Server().Invoices())
	assert.NotEmpty(t, m.Server().Catalog())
	want(t, url, "PATCH /_mock/state", before, 204, "")
	want(t, url, "GET /_mock/state", "", 200, before)
	assert.Len(t, m.Server().InvoicesFor("A-17"), 1)
}

// The queue shows what an earlier test has left in it, and has a bound.
func TestMock_faults(t *testing.T) {
	t.Parallel()
	_, url := start(t)
	want(t, url, "GET /_mock/faults", "", 200, `[]`)
	want(t, url, "POST /_mock/faults", `{"operation":"balance","times":2,"fault":"refuse=503"}`, 204, "")
	want(t, url, "POST /_mock/faults", `{"operation":"create_invoice","share":"2.5%","fault":"commit-then-drop"}`, 204, "")
	_, _ = ask(t, "GET", url+"/gateway/api/balance/", "")
	want(t, url, "GET /_mock/faults", "", 200,
		`[{"operation":"balance","times":1,"fault":"refuse=503"},{"operation":"create_invoice","share":"2.5%","fault":"commit-then-drop"}]`)
	want(t, url, "POST /_mock/faults", `{"operation":"withdrawal","for":"1000h","fault":"page=403"}`, 204, "")
	_, queue := ask(t, "GET", url+"/_mock/faults", "")
	assert.Regexp(t, `,{"operation":"withdrawal","for":"999h59m.*s","fault":"page=403"}]\n$`, queue)
	status, page := ask(t, "GET", url+"/gateway/api/withdrawal/inquiry/x", "")
	assert.Equal(t, 403, status)
	assert.Contains(t, page, "<html>")
	_, _ = ask(t, "POST", url+"/_mock/clock", `{"advance":"1000h"}`)
	_, queue = ask(t, "GET", url+"/_mock/faults", "")
	assert.NotContains(t, queue, "page=403", "it has ended")
	for range maxFaults - 2 {
		status, _ := ask(t, "POST", url+"/_mock/faults", `{"operation":"balance","times":1,"fault":"reset"}`)
		require.Equal(t, 204, status)
	}
	want(t, url, "POST /_mock/faults", `{"operation":"balance","times":1,"fault":"reset"}`, 409, `{"error":"1000 faults are queued: DELETE /_mock/faults first"}`)
}

func TestMock_index(t *testing.T) {
	t.Parallel()
	_, url := start(t)
	want(t, url, "GET /_mock/health", "", 200, `{"status":"ok","droppedRequests":0,"droppedInvoices":0}`)
	_, index := ask(t, "GET", url+"/_mock/", "")
	assert.Contains(t, index, `"PATCH /_mock/settings"`)
}

// curl -d sends JSON under the type of a form.
func TestMock_curl(t *testing.T) {
	t.Parallel()
	m, _ := start(t)
	request := httptest.NewRequest(http.MethodPost, "http://localhost/_mock/faults", strings.NewReader(`{"operation":"any","times":1,"fault":"reset"}`))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response := httptest.NewRecorder()
	m.ServeHTTP(response, request)
	assert.Equal(t, 204, response.Code)
}
