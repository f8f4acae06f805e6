package gatewaytest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// Each edit is of this result:
const toEdit = `[{"symbol":"BTC","usd":"1"},{"symbol":"A/B~","usd":"2","eur":"3"}]`

func TestFaultEdit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, pointer, value, want string }{
		{"an amount is null", "/result/1/eur", "null", successBody(strings.Replace(toEdit, `"3"`, `null`, 1))},
		{"an amount has a comma", "/result/0/usd", `"12,5"`, successBody(strings.Replace(toEdit, `"1"`, `"12,5"`, 1))},
		{"a member is missing", "/result/1/usd", "", successBody(strings.Replace(toEdit, `"usd":"2",`, ``, 1))},
		{"the last member is missing", "/result/1/eur", "", successBody(strings.Replace(toEdit, `,"eur":"3"`, ``, 1))},
		{"a member is added", "/result/0/eur", "7", successBody(strings.Replace(toEdit, `"1"`, `"1","eur":7`, 1))},
		{"a record is no record", "/result/0", "null", successBody(`[null` + toEdit[strings.Index(toEdit, "},{")+1:])},
		{"a record is gone", "/result/0", "", successBody(`[` + toEdit[strings.Index(toEdit, "},{")+2:])},
		{"of the record of a coin", "/result/BTC/usd", "null", successBody(strings.Replace(toEdit, `"1"`, `null`, 1))},
		{"of a name with a slash and a tilde", "/result/A~1B~0/usd", "null", successBody(strings.Replace(toEdit, `"2"`, `null`, 1))},
		{"of every record", "/result/*/usd", "0", successBody(strings.NewReplacer(`"1"`, `0`, `"2"`, `0`).Replace(toEdit))},
		{"of every member", "/result/1/*", "0", successBody(strings.Replace(toEdit, `"symbol":"A/B~","usd":"2","eur":"3"`, `"symbol":0,"usd":0,"eur":0`, 1))},
		{"of no record that there is", "/result/DOGE/usd", "null", successBody(toEdit)},
		{"of no index that there is", "/result/2/usd", "null", successBody(toEdit)},
		{"in no member that there is", "/results/0/usd", "null", successBody(toEdit)},
		{"in what has no members", "/result/0/usd/0", "null", successBody(toEdit)},
		{"of every member where there is none", "/meta/*", "0", successBody(toEdit)},
		{"nothing is removed", "/result/0/eur", "", successBody(toEdit)},
		{"the message is another one", "/message", `"OK"`, `{"message":"OK","result":` + toEdit + `,"meta":{}}`},
		{"the result is missing", "/result", "", `{"message":"Operation was successful.","meta":{}}`},
		{"the body is another one", "", `{"BTC":7}`, `{"BTC":7}`},
		{"the body is not JSON", "/result", "{", `{"message":"Operation was successful.","result":{,"meta":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.SetState(gatewaytest.Seed{Rates: []gatewaytest.Rate{{Symbol: "BTC", USD: "1"}, {Symbol: "A/B~", USD: "2", EUR: "3"}}})
			fault, err := gatewaytest.ParseFault("edit=" + tt.pointer + "=" + tt.value)
			require.NoError(t, err)
			s.InjectFault(gatewaytest.OpExchangeRates, 1, fault)
			got := get(t, s, "/api/exchange-rate")
			assert.Equal(t, 200, got.status)
			assert.Equal(t, tt.want, got.body)
			assert.Equal(t, fault.String(), s.Requests()[0].Fault)
			assert.Equal(t, successBody(toEdit), get(t, s, "/api/exchange-rate").body, "the fault has passed")
		})
	}
}

// A request meets the edits that are queued before the fault that it meets.
func TestFaultEdit_together(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.AddWithdrawal(gatewaytest.Withdrawal{})
	require.NoError(t, s.SetStatusAfterRequests(id, 2, "CANCELED"))
	path := "/api/withdrawal/inquiry/" + id
	inject := func(times int, f gatewaytest.Fault) { s.InjectFault(gatewaytest.OpWithdrawal, times, f) }
	inject(3, gatewaytest.FaultEdit("/result/fee", "null"))
	inject(3, gatewaytest.FaultEdit("/result/network", ""))
	inject(1, gatewaytest.FaultSlowBody(1).RetryAfter("7"))
	inject(1, gatewaytest.FaultDrift())
	inject(1, gatewaytest.FaultPage(403))
	pending := successBody(strings.NewReplacer(`"fee":""`, `"fee":null`, `"network":"",`, ``).Replace(`{"status":"PENDING` + strings.TrimSuffix(after(id), `,"meta":{}}`)))

	slow := get(t, s, path)
	assert.Equal(t, pending, slow.body)
	assert.Equal(t, "7", slow.header.Get("Retry-After"))
	assert.Equal(t, 403, get(t, s, path).status, "a page is not edited, and is no inquiry")
	assert.Equal(t, pending, get(t, s, path).body)
	assert.Equal(t, "CANCELED", statusOf(t, s, id))
	const edits = "edit=/result/fee=null, edit=/result/network="
	for i, want := range []string{edits + ", slow-body=1ns", edits + ", drift, page=403", edits, ""} {
		assert.Equal(t, want, s.Requests()[i].Fault)
	}
	assert.Empty(t, s.Faults())

	inject(1, gatewaytest.FaultEdit("/message", `"OK"`))
	assert.Equal(t, errorBody("x-api-key header is required"), mustTry(t, s, "GET", path, "").body, "a refusal is not edited")
	for _, fault := range []gatewaytest.Fault{gatewaytest.FaultDrift(), gatewaytest.FaultEdit("/result/fee", "7"), gatewaytest.FaultHugeBody(5000)} {
		inject(1, fault)
	}
	huge := get(t, s, path)
	assert.Len(t, huge.body, 5000)
	assert.Contains(t, huge.body, `"fee":7`)
	assert.Equal(t, 2, strings.Count(huge.body, unknown))
	inject(1, gatewaytest.FaultEdit("/result", "{"))
	inject(1, gatewaytest.FaultEdit("/message", "7"))
	assert.Equal(t, successBody("{"), get(t, s, path).body, "a body that is no longer JSON is not edited")
	s.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultEdit("/result/orderId", `"GW-1"`))
	got := post(s, invoice(s, "mock-edit=/message=7-1", ""))
	assert.Contains(t, got.body, `{"message":7,"result":{"id":"`+s.Invoices()[0].ID+`","orderId":"GW-1",`, "the order asks for one, too")
	assert.Equal(t, `edit=/result/orderId="GW-1", edit=/message=7`, s.Requests()[7].Fault)
}

// Identifiers come in the other case, and are found in either.
func TestFaultOtherCase(t *testing.T) {
	t.Parallel()
	const lower, upper = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"
	s := start(t)
	s.AddWithdrawal(gatewaytest.Withdrawal{WithdrawRequestID: lower})
	s.AddWithdrawal(gatewaytest.Withdrawal{WithdrawRequestID: "w-a"})
	pairID := s.Catalog()[0].ID
	for _, tt := range []struct{ name, path, id, other string }{
		{"an inquiry", "/api/withdrawal/inquiry/" + lower, lower, upper},
		{"an inquiry in the other case", "/api/withdrawal/inquiry/" + upper, lower, upper},
		{"an inquiry of what is no UUID", "/api/withdrawal/inquiry/w-a", "w-a", "w-a"},
		{"the listing", "/api/networks-coins", pairID, strings.ToUpper(pairID)},
		{"a lookup", "/api/networks-coins/" + strings.ToUpper(pairID), pairID, strings.ToUpper(pairID)},
	} {
		assert.Contains(t, get(t, s, tt.path).body, `"`+tt.id+`"`, tt.name)
		s.InjectFault(gatewaytest.AnyOperation, 1, gatewaytest.FaultOtherCase())
		assert.Contains(t, get(t, s, tt.path).body, `"`+tt.other+`"`, tt.name)
	}
	assert.Equal(t, 404, get(t, s, "/api/withdrawal/inquiry/W-A").status)
	for sent, want := range map[string]string{lower: upper, upper: lower, "order-a": "order-a"} {
		s.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultOtherCase())
		assert.Contains(t, post(s, invoice(s, sent, "")).body, `"orderId":"`+want+`"`)
		assert.Len(t, s.InvoicesFor(sent), 1, "the invoice itself is not changed")
	}
}

// A refusal has the body of each form, and its name is that of the form.
func TestFaultRefuseAs(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"refuse-nest=400":      `{"statusCode":400,"message":"no \"DOGE\"","error":"Bad Request"}`,
		"refuse-nest-list=400": `{"statusCode":400,"message":["no \"DOGE\"","amount must be positive"],"error":"Bad Request"}`,
		"refuse-problem=400":   `{"type":"about:blank","title":"Bad Request","status":400,"detail":"no \"DOGE\""}`,
		"refuse-fastapi=400":   `{"detail":[{"type":"value_error","loc":["body","coinSymbol"],"msg":"no \"DOGE\""}]}`,
		"refuse-rails=400":     `{"status":400,"error":"no \"DOGE\""}`,
		"refuse-laravel=400":   `{"message":"no \"DOGE\"","errors":{"coinSymbol":["no \"DOGE\""]}}`,
		"refuse-no-result=400": `{"message":"no \"DOGE\"","meta":{}}`,
		"refuse-null=400":      `{"message":"no \"DOGE\"","result":null,"meta":{}}`,
		"refuse-other=400":     `{"fault":{"text":"no \"DOGE\""}}`,
	}
	s := start(t)
	for _, form := range append(gatewaytest.ErrorForms(), `{"fault":{"text":MESSAGE}}`) {
		fault := gatewaytest.FaultRefuseAs(form, 400, `no "DOGE"`)
		s.InjectFault(gatewaytest.OpCreateInvoice, 1, fault)
		got := post(s, invoice(s, "o-1", ""))
		assert.Equal(t, 400, got.status)
		assert.Equal(t, want[fault.String()], got.body, fault)
		mediaType := "application/json; charset=utf-8"
		if form == gatewaytest.ErrorProblem {
			mediaType = "application/problem+json"
		}
		assert.Equal(t, mediaType, got.header.Get("Content-Type"))
		delete(want, fault.String())
	}
	assert.Empty(t, want, "there is a form for each name")
	assert.Empty(t, s.Invoices())
	assert.Equal(t, `{"message":"refused as injected","result":null,"meta":{}}`, post(s, invoice(s, "mock-refuse-null=200-1", "")).body)
	assert.Panics(t, func() { gatewaytest.FaultRefuseAs(gatewaytest.ErrorNest, 199, "") })
}

// A fault of some time ends by the server's clock, which Advance moves, too.
func TestServer_InjectFaultFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gatewaytest.NewMemoryServer()
		defer s.Close()
		status := func() int { return tryBy(s.Transport(), s, "GET", "/api/exchange-rate", "").status }
		s.InjectFaultFor(gatewaytest.AnyOperation, time.Minute, gatewaytest.FaultPage(530))
		s.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultPage(403))
		begun := s.Now()
		assert.Equal(t, begun.Add(time.Minute), s.Faults()[0].Until)
		assert.Equal(t, 530, status())
		time.Sleep(time.Minute - 1)
		assert.Equal(t, 530, status())
		time.Sleep(time.Nanosecond)
		assert.Equal(t, 403, status(), "the next fault in the queue")
		assert.Empty(t, s.Faults())
		s.InjectFaultFor(gatewaytest.OpExchangeRates, time.Hour, gatewaytest.FaultEmpty(200))
		s.Advance(time.Hour - 1)
		assert.Equal(t, []any{200, 1}, []any{status(), len(s.Faults())})
		s.Advance(1)
		assert.Empty(t, s.Faults())
		assert.NotEmpty(t, tryBy(s.Transport(), s, "GET", "/api/exchange-rate", "").body)
		assert.PanicsWithValue(t, `gatewaytest: InjectFaultFor for operation "x", want one of its constants`,
			func() { s.InjectFaultFor("x", time.Second, gatewaytest.Fault{}) })
	})
}
