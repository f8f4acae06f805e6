package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// assertSilent asserts that nothing that prints, encodes, logs or dumps v shows a key.
func assertSilent(t *testing.T, v any, key string) {
	t.Helper()
	assert.Empty(t, invariant.Shows(v, key), "a key is shown")
}

// A client shows its key in no way, also after its connections have carried it, nor do its
// options.
func TestSecret_client(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(ratesBody))
	}))
	t.Cleanup(server.Close)
	for name, opts := range map[string][]gateway.Option{
		"the default transport": nil,
		"a shared transport":    {gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}})},
		"the key everywhere":    {gateway.WithAPIKeyOnPublicCalls(), gateway.WithInvoiceFormat(gateway.InvoiceFormat{LowerCaseKeyName: true, Numbers: true})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(server.URL, canary, opts...)
			require.NoError(t, err)
			for _, one := range everycall.All() {
				_, _ = one.Do(t.Context(), c, everycall.Documented())
			}
			assertSilent(t, c, canary)
			assertSilent(t, *c, canary) // a careless caller prints a copy
			assertSilent(t, struct{ C any }{c}, canary)
			assertSilent(t, []any{c, map[string]any{"c": c}}, canary)
			for _, opt := range opts {
				assertSilent(t, opt, canary)
			}
		})
	}
}

// ratesBody is a body that some of the calls can read.
var ratesBody = everycall.Enveloped(everycall.RatesJSON)

// echoes are responses in which a service repeats the key. How a key may be spelled is
// tested in package redact; here is every place that it may be in.
func echoes() map[string]string {
	all := map[string]string{}
	for _, status := range []int{200, 400, 302} {
		for name, body := range echoingBodies() {
			all[fmt.Sprintf("%s, %d", name, status)] = faultserver.Response(status, body, "Content-Type: application/json")
		}
		all[fmt.Sprintf("in headers, %d", status)] = faultserver.Response(
			status, "<html>", // in headers also across the lengths at which they are cut
			"X-Request-Id: req-"+canary, "X-Correlation-Id: "+strings.Repeat("p", 1<<10-20)+canary,
			"Content-Type: "+strings.Repeat("p", 256-20)+canary, "Location: /?apiKey="+canary, "Server: "+canary, "X-Echo-"+canary+": 1",
		)
	}
	return all
}

func echoingBodies() map[string]string {
	escaped := strings.NewReplacer("C", `\u0043`, "-", `\u002D`, "5", `\u0035`).Replace(canary)
	pad := func(n int) string { return strings.Repeat("p", n) }
	pair := func(member string) string { return written(everycall.PairJSON, member, canary) }
	withdrawal := func(member, value string) string {
		return everycall.Enveloped(written(everycall.WithdrawalJSON, member, value))
	}
	return map[string]string{
		"in the message":               refused("bad key " + canary),
		"in JSON in a text":            everycall.Enveloped(`{"request":` + quoted(`{"apiKey":`+quoted(canary)+`}`) + `}`),
		"across the cut of a message":  refused(pad(1<<10-10) + canary),
		"in meta":                      `{"message":"m","result":[],"meta":{"key":"` + canary + `"}}`,
		"as a name in meta":            `{"message":"m","result":[],"meta":{"` + canary + `":1}}`,
		"as a name of the envelope":    `{"` + canary + `":1,"result":` + everycall.PairJSON + `}`,
		"as a coin, escaped":           everycall.Enveloped(`[{"symbol":"` + escaped + `","usd":"1","eur":"1","balance":"1"}]`),
		"in a framework's message":     `{"error":"bad key ` + canary + `"}`,
		"as a status of half a record": everycall.Enveloped(`{"status":"` + escaped + `","fee":null}`),
		"as a coin that is good":       everycall.Enveloped(`[{"symbol":"` + canary + `","usd":"1","eur":"1","balance":"1"}]`),
		"as a rate":                    everycall.Enveloped(`{"BTC":{"usd":"` + canary + `","eur":"1"}}`),
		"as an identifier":             everycall.Enveloped(pair("id")),
		"as an amount":                 withdrawal("amount", canary),
		"as a destination, escaped":    withdrawal("destination", escaped),
		"across the 8 KiB cut":         "<html>" + pad(8<<10-16) + canary + pad(9000),
		"across the 8 KiB cut, result": everycall.Enveloped(`"` + pad(8<<10-60) + canary + `"`),
		"across the sample's cut":      "<html>" + pad(105) + canary,
		"at the end of what came":      "<html>" + canary[:len(canary)-1],
	}
}

// written is a record in which the first member of a name has another text.
func written(record, member, text string) string {
	name := `"` + member + `":"`
	begin := strings.Index(record, name) + len(name)
	return record[:begin] + text + record[begin+strings.Index(record[begin:], `"`):]
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// echoed returns a client whose calls get these bytes in response.
func echoed(t *testing.T, response string) *gateway.Client {
	t.Helper()
	server := faultserver.New(faultserver.Respond(response))
	c, err := gateway.New("http://localhost", canary, gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: server.DialContext}}),
		gateway.WithOrderGuard(nil), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.CloseIdleConnections()
		server.Close()
	})
	return c
}

// Whatever a service repeats, the key is in nothing that the client hands out, not even
// most of it.
func TestSecret_echoed(t *testing.T) {
	t.Parallel()
	for name, response := range echoes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := echoed(t, response)
			for _, one := range everycall.All() {
				var response gateway.Response
				got, err := one.Do(t.Context(), c, everycall.Documented(), gateway.WithResponse(&response))
				assert.Empty(t, invariant.Broken(got, err))
				for _, v := range []any{got, err, response, &response} {
					assertSilent(t, v, canary[:16])
				}
				_, err = one.Do(t.Context(), c, everycall.Documented())
				assertSilent(t, err, canary[:16])
			}
		})
	}
}

// With another key for a call both keys are removed from the response.
func TestSecret_bothKeys(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{
		"two keys that share nothing": "MERCHANT-A-7c1d8e0b7a64", "a key that begins with the client's": canary + "-and-more",
		"a key that the client's begins with": canary[:12], "a key that ends with the client's": "and-" + canary,
	} {
		both := quoted(canary + " and " + other)
		c := echoed(t, faultserver.Response(400, `{"message":`+both+`,"result":[`+both+`],"meta":{"a":`+both+`}}`, "X-Request-Id: "+canary+" "+other))
		for _, one := range everycall.All() {
			var response gateway.Response
			got, err := one.Do(t.Context(), c, everycall.Documented(), gateway.WithAPIKey(other), gateway.WithResponse(&response))
			assert.Empty(t, invariant.Broken(got, err))
			for _, v := range []any{got, err, response} {
				assertSilent(t, v, canary)
				assertSilent(t, v, other)
			}
			assert.Equal(t, "[REDACTED] and [REDACTED]", response.Message, name)
			assert.Equal(t, "[REDACTED] [REDACTED]", response.Header.Get("X-Request-Id"), name)
		}
	}
}
