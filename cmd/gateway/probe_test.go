package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/probe"
	"github.com/cryptogw/gateway/gatewaytest"
)

// The stand-in is as documented, and every read is made.
func TestProbe(t *testing.T) {
	gw := standIn(t)
	got := call(t.Context(), t, gw, "probe", "--withdrawal", gw.Withdrawals()[0].WithdrawRequestID)
	assert.Equal(t, exitDone, got.code, got.err)
	assert.Regexp(t, `^coin_networks: 200, readable
  result: \[\{"id":"[^\n]*…
coin_network [^\n]*: 200, readable
  result: [^\n]*
coin_network_by_symbol BTC Bitcoin: 200, readable
  result: [^\n]*
coin_networks_of BTC: 200, readable
  result: [^\n]*
exchange_rates: 200, readable
  result: [^\n]*
balance: 200, readable
  result: [^\n]*
balance [A-Z]+: 200, readable
  result: [^\n]*
withdrawal [0-9a-f-]+: 201, readable
  result: \{"status":"PENDING"[^\n]*\}
$`, got.stdout)
	for _, r := range gw.Requests() {
		assert.Equal(t, http.MethodGet, r.Method)
	}
}

// The report of one response, as JSON, and the exit code.
func TestProbe_differences(t *testing.T) {
	const ok = `"message":"Operation was successful.","meta":{}`
	for name, test := range map[string]struct {
		path, body string
		status     int
		operation  string
		want       probe.Call
	}{
		"a result that the client cannot read": {
			path: "/api/balance/", body: `{"result":{"accounts":[{"code":"USDT","sum":"250.5"}]},` + ok + `}`,
			want: probe.Call{Operation: "balance", Error: "accounts", Result: []byte(`{"accounts":[{"code":"USDT","sum":"250.5"}]}`)},
		},
		"no envelope": {
			path: "/api/exchange-rate", body: `{"data":{"BTC":{"usd":"1","eur":"1"}}}`,
			want: probe.Call{Operation: "exchange_rates", Error: "result", Unexpected: []string{"/data: unknown field"}, Result: []byte(`{"data":{"BTC":{"usd":"1","eur":"1"}}}`)},
		},
		"a page": {
			path: "/api/exchange-rate", body: "<html>",
			want: probe.Call{Operation: "exchange_rates", Error: "<html>"},
		},
		"a refusal": {
			path: "/api/exchange-rate", body: `{"message":"no","result":[],"meta":{}}`, status: 403,
			want: probe.Call{Operation: "exchange_rates", Error: "no"},
		},
		"another message and the key": {
			path: "/api/exchange-rate", body: `{"result":[{"symbol":"BTC","usd":"1","eur":"1","note":"KEY"}],"message":"OK","meta":{"page":1}}`,
			want: probe.Call{
				Operation: "exchange_rates", Readable: true, Unexpected: []string{"/message: unexpected value", "/meta: unexpected value"},
				Result: []byte(`[{"symbol":"BTC","usd":"1","eur":"1","note":"[REDACTED]"}]`),
			},
		},
		"a record that is skipped": {
			path: "/api/exchange-rate", body: `{"result":[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"X","usd":"1,5","eur":"1"}],` + ok + `}`,
			want: probe.Call{
				Operation: "exchange_rates", Readable: true, Skipped: []string{`/result/1/usd: "1,5" is not a decimal number`},
				Result: []byte(`[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"X","usd":"1,5","eur":"1"}]`),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			changed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/gateway"+test.path {
					w.WriteHeader(max(test.status, http.StatusOK))
					_, _ = io.WriteString(w, strings.ReplaceAll(test.body, "KEY", gw.APIKey))
					return
				}
				gw.Handler().ServeHTTP(w, r)
			}))
			defer changed.Close()
			got := call(t.Context(), t, &gatewaytest.Server{URL: changed.URL + "/gateway", APIKey: gw.APIKey}, "probe", "-o", "json")
			assert.Equal(t, exitDiffers, got.code, got.err)
			assert.Contains(t, got.err, "a response differs from the documentation, or cannot be read")
			var differ []probe.Call
			for _, c := range decode[[]probe.Call](t, got.stdout) {
				if c.Differs() {
					differ = append(differ, c)
				}
			}
			require.NotEmpty(t, differ)
			c, want := differ[0], test.want
			assert.Equal(t, want.Operation, c.Operation)
			assert.Equal(t, max(test.status, http.StatusOK), c.Status)
			assert.Equal(t, want.Readable, c.Readable)
			assert.Contains(t, c.Error, want.Error)
			assert.ElementsMatch(t, want.Unexpected, c.Unexpected)
			assert.ElementsMatch(t, want.Skipped, c.Skipped)
			if want.Result == nil {
				assert.Equal(t, "null", string(c.Result))
				return
			}
			assert.JSONEq(t, string(want.Result), string(c.Result))
			gw.SetResult(gatewaytest.Operation(c.Operation), string(c.Result)) // which it accepts
			again := call(t.Context(), t, gw, "probe")
			assert.Equal(t, want.Readable, strings.Contains(again.stdout, "\n"+want.Operation+": 200, readable\n"))
		})
	}
}

// The probe ends when it cannot ask, with the exit code of the reason and what it has.
func TestProbe_ends(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx    context.Context
		inject func(*gatewaytest.Server)
		args   string
		code   int
		stdout string
	}{
		"Ctrl-C":               {ctx: ended, code: exitInterrupted},
		"no response":          {inject: func(gw *gatewaytest.Server) { gw.InjectFault(gatewaytest.OpCoinNetworks, -1, gatewaytest.FaultReset()) }, code: exitNotSent},
		"no key":               {inject: func(gw *gatewaytest.Server) { gw.APIKey = "" }, code: exitUsage, stdout: "exchange_rates: 200, readable\n"},
		"a wrong identifier":   {args: "--withdrawal ..", code: exitUsage, stdout: "balance: 200, readable\n"},
		"an empty listing":     {inject: func(gw *gatewaytest.Server) { gw.SetCatalog(nil) }, code: exitDone, stdout: "coin_networks_of: not asked: the listing has no pair that can be read\n"},
		"no withdrawal":        {code: exitDone, stdout: "withdrawal: not asked: no withdrawal is named\n"},
		"an unread withdrawal": {args: "--withdrawal w-1", code: exitDiffers, stdout: "withdrawal w-1: 404, not readable: gateway: withdrawal: 404"},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			if test.inject != nil {
				test.inject(gw)
			}
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			var stdout, stderr strings.Builder
			setenv(t, gw)
			assert.Equal(t, test.code, run(ctx, append([]string{"probe"}, words(test.args)...), console{out: &stdout, err: &stderr}), stderr.String())
			assert.Contains(t, stdout.String(), test.stdout)
		})
	}
}
