package main

import (
	"context"
	"encoding/json"
	"fmt"
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

// Results are JSON or a table. Where the disk is full the command fails.
func TestReads(t *testing.T) {
	gw := standIn(t)
	gw.SetCatalog(gw.Catalog()[:1])
	gw.SetBalance("B\x1b[2J\tC\u009b\u202e\u007f", "Tron", "1")
	for line, want := range map[string]string{
		"coins":                              "COIN  NETWORK  MIN AMOUNT  FEE",
		"coins -o json":                      `"minAmount": "`,
		"rates":                              "COIN  USD",
		"rates -o json":                      `"coinSymbol": "BTC"`,
		"balance":                            "USDT        BNB Smart Chain (BEP20)  0\n",
		"balance --coin USDT -o json":        `"networkName": "Tron"`,
		"balance --coin USDT --network Tron": "COIN  NETWORK  AMOUNT\nUSDT  Tron     ",
		"balance --network Tron":             "B�[2J C���  Tron     1\n", // text of the service cannot control the terminal
		"balance --network Tron -o json":     `"B\u001b[2J\tC\u009b\u202e\u007f"`,
	} {
		got := call(t, gw, line)
		assert.Equal(t, exitDone, got.code, line+got.err)
		assert.Contains(t, got.stdout, want, line)
		assert.NotRegexp(t, `[^\n[:print:]\x{fffd}…]`, got.stdout, line)
		assert.Empty(t, got.err, line)
		var stderr strings.Builder
		assert.Equal(t, exitFailed, run(t.Context(), strings.Fields(line), console{out: fullDisk{}, err: &stderr}), line)
		assert.Contains(t, stderr.String(), "no space left on device", line)
	}
}

// A record that cannot be read is reported; of a balance it is an error after the rest.
func TestReads_skipped(t *testing.T) {
	gw := standIn(t)
	pair, err := json.Marshal(gw.Catalog()[0])
	require.NoError(t, err)
	lacking := strings.Replace(string(pair), `"withdrawalFee":`, `"withdrawalFee":null,"was":`, 1)
	gw.SetResult(gatewaytest.OpCoinNetworks, `[`+string(pair)+`,{"id":"1"},`+lacking+`]`)
	gw.SetResult(gatewaytest.OpBalance, `{"USDT":"1","BTC":"much"}`)
	gw.SetResult(gatewaytest.OpExchangeRates, `[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"X","usd":"?","eur":"1"}]`)
	for line, want := range map[string]outcome{
		"coins":   {exitDone, "  -  ", "skipped: "},
		"rates":   {exitDone, "BTC   1", "skipped: X"},
		"balance": {exitFailed, "USDT", "the balance is incomplete"},
	} {
		got := call(t, gw, line)
		assert.Equal(t, want.code, got.code, line)
		assert.Contains(t, got.stdout, want.stdout, line)
		assert.Contains(t, got.err, want.err, line)
	}
}

// A withdrawal is printed, also at the end of a wait, with an exit code.
func TestWithdrawal(t *testing.T) {
	for name, test := range map[string]struct {
		status string // after two inquiries
		args   string
		code   int
		stdout string
		err    string
	}{
		"now":             {"COMPLETED", "", exitDone, "status             PENDING\ndestination        TXYZ\namount             25.5\n", ""},
		"as JSON":         {"COMPLETED", "-o json", exitDone, `"amount": "25.5",`, ""},
		"it is COMPLETED": {"COMPLETED", "--wait --every 1ms", exitDone, "COMPLETED", "w-1: COMPLETED\n"},
		"it FAILED":       {"FAILED", "--wait --every 1ms", exitLeft, "FAILED", "the service reports FAILED"},
		"no time":         {"COMPLETED", "--wait --timeout 1us", exitFailed, "", "never seen"},
		"the time is up":  {"HELD", "--wait --every 1ms --timeout 100ms -o json", exitFailed, `"status": "HELD"`, `last seen "HELD"`},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: "w-1"})
			require.NoError(t, gw.SetStatusAfterRequests("w-1", 2, test.status))
			got := call(t, gw, "withdrawal w-1 "+test.args)
			assert.Equal(t, test.code, got.code, got.err)
			assert.Contains(t, got.stdout, test.stdout)
			assert.Equal(t, test.stdout == "", got.stdout == "")
			assert.Contains(t, got.err, test.err)
		})
	}
}

// The stand-in is as documented, and every read is made.
func TestProbe(t *testing.T) {
	gw := standIn(t)
	got := call(t, gw, "probe --withdrawal", gw.Withdrawals()[0].WithdrawRequestID)
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
		want       string // the first response that differs, without null and empty members
		result     string
	}{
		"a result that the client cannot read": {
			"/api/balance/", `{"result":{"accounts":[{"code":"USDT","sum":"250.5"}]},` + ok + `}`, 200,
			"balance 200 false", `{"accounts":[{"code":"USDT","sum":"250.5"}]}`,
		},
		"no envelope": {
			"/api/exchange-rate", `{"data":{"BTC":{"usd":"1","eur":"1"}}}`, 200,
			"exchange_rates 200 false /data: unknown field", `{"data":{"BTC":{"usd":"1","eur":"1"}}}`,
		},
		"a page":    {"/api/exchange-rate", "<html>", 200, "exchange_rates 200 false", "null"},
		"a refusal": {"/api/exchange-rate", `{"message":"no","result":[],"meta":{}}`, 403, "exchange_rates 403 false", "null"},
		"another message and the key": {
			"/api/exchange-rate", `{"result":[{"symbol":"BTC","usd":"1","eur":"1","note":"KEY"}],"message":"OK","meta":{"page":1}}`, 200,
			"exchange_rates 200 true /message: unexpected value /meta: unexpected value", `[{"symbol":"BTC","usd":"1","eur":"1","note":"[REDACTED]"}]`,
		},
		"a record that is skipped": {
			"/api/exchange-rate", `{"result":[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"X","usd":"1,5","eur":"1"}],` + ok + `}`, 200,
			`exchange_rates 200 true /result/1/usd: "1,5" is not a decimal number`,
			`[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"X","usd":"1,5","eur":"1"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			changed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/gateway"+test.path {
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, strings.ReplaceAll(test.body, "KEY", gw.APIKey))
					return
				}
				gw.Handler().ServeHTTP(w, r)
			}))
			defer changed.Close()
			got := call(t, &gatewaytest.Server{URL: changed.URL + "/gateway", APIKey: gw.APIKey}, "probe -o json")
			assert.Equal(t, exitDiffers, got.code, got.err)
			assert.Contains(t, got.err, "a response differs from the documentation, or cannot be read")
			for _, c := range decode[[]probe.Call](t, got.stdout) {
				if c.Differs() {
					text := fmt.Sprint(c.Operation, " ", c.Status, " ", c.Readable, " ", strings.Join(append(c.Unexpected, c.Skipped...), " "))
					assert.Equal(t, test.want, strings.TrimSpace(text))
					assert.Equal(t, c.Readable, c.Error == "")
					assert.JSONEq(t, test.result, string(c.Result))
					return
				}
			}
			assert.Fail(t, "nothing differs")
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
		"Ctrl-C":               {ended, nil, "", exitInterrupted, ""},
		"no response":          {nil, func(gw *gatewaytest.Server) { gw.Close() }, "", exitNotSent, ""},
		"no key":               {nil, func(gw *gatewaytest.Server) { gw.APIKey = "" }, "", exitUsage, "exchange_rates: 200, readable\n"},
		"a wrong identifier":   {nil, nil, "--withdrawal ..", exitUsage, "balance: 200, readable\n"},
		"an empty listing":     {nil, func(gw *gatewaytest.Server) { gw.SetCatalog(nil) }, "", exitDone, "coin_networks_of: not asked: the listing has no pair that can be read\n"},
		"no withdrawal":        {nil, nil, "", exitDone, "withdrawal: not asked: no withdrawal is named\n"},
		"an unread withdrawal": {nil, nil, "--withdrawal w-1", exitDiffers, "withdrawal w-1: 404, not readable: gateway: withdrawal: 404"},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			if test.inject != nil {
				test.inject(gw)
			}
			if test.ctx == nil {
				test.ctx = t.Context()
			}
			got := callIn(test.ctx, t, gw, "probe "+test.args)
			assert.Equal(t, test.code, got.code, got.err)
			assert.Contains(t, got.stdout, test.stdout)
		})
	}
}
