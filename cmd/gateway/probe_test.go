package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/probe"
	"github.com/cryptogw/gateway/gatewaytest"
)

// The report names the URL that was asked, and ends with the verdict.
func TestProbe(t *testing.T) {
	gw := standIn(t)
	got := call(t.Context(), t, gw, "probe", "--withdrawal", gw.Withdrawals()[0].WithdrawRequestID)
	assert.Zero(t, got.code, got.err)
	assert.True(t, strings.HasPrefix(got.stdout, "Asking "+gw.URL+"; nothing is changed there.\n\nCoinNetworks, GET /api/networks-coins\n  200 in "))
	for _, text := range []string{
		"\nDocumented and so: 8\n", "\nNot stated, and found to be: ", "\nCould not be asked: 0\n", "\nDocumented and not so: 0\n",
	} {
		assert.Contains(t, got.stdout, text)
	}
	for _, r := range gw.Requests() {
		assert.Equal(t, "GET", r.Method)
	}
}

// 0 as documented, 1 a call failed, 7 differs.
func TestProbe_exitCodes(t *testing.T) {
	for fault, want := range map[string]struct {
		inject func(*gatewaytest.Server)
		code   int
		text   string
	}{
		"none": {func(*gatewaytest.Server) {}, cli.ExitDone, ""},
		"refused": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.OpBalance, -1, gatewaytest.FaultRefuse(403, "no"))
		}, cli.ExitFailed, "2 responses could not be read"},
		"differs": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.OpCoinNetworks, 1, gatewaytest.FaultEdit("/result", "{"))
		}, exitDiffers, "the gateway differs from the interface: 1 difference"},
		"unknown": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDrift())
		}, cli.ExitDone, ""},
	} {
		t.Run(fault, func(t *testing.T) {
			gw := standIn(t)
			want.inject(gw)
			got := call(t.Context(), t, gw, "probe", "-o", "json")
			assert.Equal(t, want.code, got.code, got.err)
			r := decode[probe.Report](t, got.stdout)
			assert.Equal(t, gw.URL, r.URL)
			if want.text != "" {
				assert.Equal(t, want.text, decode[failure](t, got.err).Error)
			}
		})
	}
}

// An identifier that the client refuses is no difference of the gateway.
func TestProbe_invalidIdentifier(t *testing.T) {
	got := call(t.Context(), t, standIn(t), "probe", "--withdrawal", "w/1")
	assert.Equal(t, cli.ExitFailed, got.code)
	assert.Equal(t, "1 response could not be read\n", got.err)
	assert.Contains(t, got.stdout, "\nCould not be asked: 1\n  GET /api/withdrawal/inquiry/{withdrawRequestId}: gateway: withdrawal: withdrawRequestId: must not contain")
	assert.Contains(t, got.stdout, "\nDocumented and not so: 0\n")
}

func TestProbe_keyOnPublic(t *testing.T) {
	gw := standIn(t)
	assert.Zero(t, call(t.Context(), t, gw, "probe", "--key-on-public").code)
	assert.Equal(t, "header", gw.Requests()[0].KeyIn)
}

func TestProbe_interrupted(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	got := call(ended, t, standIn(t), "probe")
	assert.Equal(t, exitInterrupted, got.code)
	require.Contains(t, got.stdout, "Documented and so: 0\n")
}

// An error of a file in the environment has no part of it: it can be another one, with a secret.
func TestProbe_otherFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(file, []byte(`{"version":1,"a-secret":1}`), 0o600))
	t.Setenv("GATEWAY_PROFILE", file)
	got := call(t.Context(), t, standIn(t), "probe", "--record", file)
	assert.NotZero(t, got.code)
	assert.Contains(t, got.err, "the file of GATEWAY_PROFILE cannot be read as a profile")
	assert.NotContains(t, got.err, "secret")
}

// The stand-in of a recorded profile gives the verdict of the gateway.
func TestProbe_record(t *testing.T) {
	gw := standIn(t)
	gw.SetShape(gatewaytest.RatesByFiat)
	gw.SetShape(gatewaytest.BalanceBySymbol)
	file := filepath.Join(t.TempDir(), "profile.json")
	verdict := func(gw *gatewaytest.Server, args ...string) string {
		got := call(t.Context(), t, gw, append([]string{"probe"}, args...)...)
		assert.Zero(t, got.code, got.err)
		_, verdict, _ := strings.Cut(got.stdout, "\nDocumented and so")
		return verdict
	}
	recorded := verdict(gw, "--record", file)
	profile, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(profile), gw.APIKey)

	m := startMock(t, "--profile", file, "--key", gw.APIKey)
	assert.Equal(t, recorded, verdict(&gatewaytest.Server{URL: m.url, APIKey: gw.APIKey}))
	code, _ := m.stop()
	assert.Zero(t, code)

	got := call(t.Context(), t, gw, "probe", "--record", filepath.Join(file, "absent"))
	assert.Equal(t, cli.ExitFailed, got.code)
	assert.Contains(t, got.err, "the file of --record cannot be written: not a directory")
}

// The file of a probe makes a client read what it could not read, from the gateway and from the
// mock of that file.
func TestProbe_record_isReadByTheClient(t *testing.T) {
	for name, tt := range map[string]struct {
		rates, balance, byHand string
		names                  string // of rates and balance in the end
	}{
		"a record for each pair of currencies, and balances in two wrappers": {
			`[{"from":"BTC","to":"USD","course":"64250.18"},{"from":"BTC","to":"EUR","course":"59310.5"},{"from":"BTC","to":"USDT","course":"64240.1"},{"from":"USDT","to":"USD","course":"1.0001"}]`,
			`[{"balance":{"merchant":[{"uuid":"8b03432e-385b-4670-8d06-064591096795","balance":"250.50000000","currency_code":"USDT"},{"uuid":"9c03432e-385b-4670-8d06-064591096795","balance":"0.25000000","currency_code":"BTC"}],"user":[]}}]`, ``,
			`[{"coin":"/from","currency":"/to","price":"/course"},{"list":"/0/balance/merchant","coin":"/currency_code","amount":"/balance"}]`,
		},
		"two lists, of which the merchant names one": {
			`[{"code":"BTC","price_usd":"64250.18","price_eur":"59310.5"},{"code":"USDT","price_usd":"1.0001","price_eur":"0.92"}]`,
			`[{"balance":{"merchant":[{"balance":"250.50000000","currency_code":"USDT"}],"user":[{"balance":"9.00000000","currency_code":"USDT"}]}}]`,
			`"rates":{"coin":"/code","usd":"/price_usd","eur":"/price_eur"},"balance":{"list":"/0/balance/merchant","coin":"/currency_code","amount":"/balance"},`,
			`[{"coin":"/code","usd":"/price_usd","eur":"/price_eur"},{"list":"/0/balance/merchant","coin":"/currency_code","amount":"/balance"}]`,
		},
		"lists in a page": {
			`{"data":[{"asset":{"code":"BTC"},"fiat":"usd","value":64250.18},{"asset":{"code":"BTC"},"fiat":"eur","value":59310.5},{"asset":{"code":"USDT"},"fiat":"usd","value":1.0001}],"total":3}`,
			`{"items":[{"code":"USDT","network":"Tron","free":"250.5","note":null},{"code":"BTC","network":"Bitcoin","free":"0.25","note":null}],"total":2,"page":1}`,
			`"rates":{"list":"/data","coin":"/asset/code","currency":"/fiat","price":"/value"},"balance":{"list":"/items","coin":"/code","network":"/network","amount":"/free"},`,
			`[{"list":"/data","coin":"/asset/code","currency":"/fiat","price":"/value"},{"list":"/items","coin":"/code","network":"/network","amount":"/free"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "profile.json")
			gw := realGateway(t, tt.rates, tt.balance)
			assert.NotZero(t, call(t.Context(), t, gw, "rates").code)
			assert.NotZero(t, call(t.Context(), t, gw, "balance").code)

			got := call(t.Context(), t, gw, "probe", "--record", file)
			assert.NotZero(t, got.code)
			named, notNamed := strings.Count(got.stdout, "\n  the profile names the members: "), strings.Count(got.stdout, "\n  the profile does not name the members; ")
			assert.Equal(t, map[bool][2]int{true: {2, 0}, false: {0, 2}}[tt.byHand == ""], [2]int{named, notNamed})
			written, err := os.ReadFile(file)
			require.NoError(t, err)
			written = bytes.Replace(written, []byte(`"routes":`), []byte(tt.byHand+`"routes":`), 1)
			require.NoError(t, os.WriteFile(file, written, 0o600))
			var profile struct {
				SuccessMessage string
				Rates, Balance json.RawMessage
			}
			require.NoError(t, json.Unmarshal(written, &profile))
			assert.Equal(t, "OK", profile.SuccessMessage)
			assert.JSONEq(t, tt.names, fmt.Sprintf("[%s,%s]", profile.Rates, profile.Balance))

			mock := startMock(t, "--profile", file, "--key", gw.APIKey)
			standIn := &gatewaytest.Server{URL: mock.url, APIKey: gw.APIKey}
			assert.NotZero(t, call(t.Context(), t, standIn, "rates").code, "the mock is read as the gateway is")
			assert.NotZero(t, call(t.Context(), t, standIn, "balance").code)

			t.Setenv("GATEWAY_PROFILE", file)
			for _, of := range []*gatewaytest.Server{gw, standIn} {
				rates := call(t.Context(), t, of, "rates")
				assert.Zero(t, rates.code, rates.err)
				assert.Regexp(t, `(?m)^BTC +64250.18 +59310`, rates.stdout)
				balance := call(t.Context(), t, of, "balance")
				assert.Zero(t, balance.code, balance.err)
				assert.Regexp(t, `(?m)^USDT .* [1-9]`, balance.stdout)
			}
			created := call(t.Context(), t, standIn, order()...)
			assert.Zero(t, created.code, created.err)

			got = call(t.Context(), t, gw, "probe", "--record", file)
			assert.NotContains(t, got.stdout, "could not be read")
			again, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.JSONEq(t, string(written), string(again), "what is named stays")
		})
	}
}

// realGateway responds with these results, in the envelope, and with a listing of USDT and BTC.
func realGateway(t *testing.T, rates, balance string) *gatewaytest.Server {
	t.Helper()
	gw := standIn(t)
	listing := slices.DeleteFunc(gw.Catalog(), func(pair gatewaytest.CoinNetwork) bool {
		return pair.Coin.Symbol != "USDT" && pair.Coin.Symbol != "BTC"
	})
	text, err := json.Marshal(listing)
	require.NoError(t, err)
	first, err := json.Marshal(listing[0])
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := map[string]string{"/api/networks-coins": string(text), "/api/exchange-rate": rates, "/api/balance/": balance}[r.URL.Path]
		if result == "" {
			result = string(first)
		}
		_, _ = fmt.Fprintf(w, `{"message":"OK","result":%s,"meta":{}}`, result)
	}))
	t.Cleanup(server.Close)
	return &gatewaytest.Server{URL: server.URL, APIKey: gw.APIKey}
}
