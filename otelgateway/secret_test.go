package otelgateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

// canary is in everything that must not be recorded: keys, orders, arguments of URLs,
// amounts as amount, and whatever the service or a transport reports.
const (
	canary = "canary"
	amount = "7351.62"
)

func canaries() everycall.Values {
	price := decimal.RequireFromString(amount)
	return everycall.Values{
		PairID: canary + "-pair", CoinSymbol: canary + "-COIN", NetworkName: canary + " network",
		Balance: gateway.BalanceQuery{CoinSymbol: canary + "-COIN", NetworkName: canary + " network"},
		Invoice: gateway.InvoiceRequest{
			OrderID: canary + "-order", Price: price, Amount: price,
			BaseCurrency: canary, CoinSymbol: canary + "-COIN", NetworkName: canary + " network",
		},
		WithdrawalID: canary + "-withdrawal",
	}
}

// respond makes a response with the canary in every part that the service chooses.
func respond(status int, contentType, body string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		return &http.Response{
			StatusCode: status, Status: canary, Body: io.NopCloser(strings.NewReader(body)), Request: req,
			Header: http.Header{"Content-Type": {contentType}, "X-Request-Id": {canary}, "Location": {"https://" + canary + ".example"}},
		}, nil
	}
}

// No attribute, event, name or status has a key, an order, an argument of a URL, an amount or a text of the service, whether a
// call is sent or refused before.
func TestNew_recordsNothingSecret(t *testing.T) {
	const json, key = "application/json", canary + "-key-0123456789"
	const strange = `{"canary":"canary","canary-order":{"canary":[1]},"status":"canary","withdrawRequestId":"canary-withdrawal",` +
		`"destination":"canary","amount":"7351.62","fee":"1","coin":"canary","network":"canary"}`
	everywhere := gateway.WithAPIKeyOnPublicCalls()
	for name, tt := range map[string]struct {
		key       string
		transport roundTrip
		option    gateway.Option
	}{
		"a source of keys that fails": {"", nil, gateway.WithAPIKeySource(func(context.Context) (string, error) { return "", errors.New(canary) })},
		"a guard that refuses":        {key, nil, gateway.WithOrderGuard(brokenGuard{begin: errors.New(canary)})},
		"a refusal":                   {key, respond(404, json, `{"message":"no canary-order","result":[],"meta":{"canary":1}}`), everywhere},
		"HTML":                        {key, respond(502, "text/canary", "<html>canary</html>"), everywhere},
		"a redirect":                  {key, respond(307, json, ""), everywhere},
		"strange members":             {key, respond(200, json, `{"message":"canary","result":`+strange+`,"meta":{"canary":1},"canary":1}`), everywhere},
		"malformed JSON":              {key, respond(200, json, `{"canary":canary}`), everywhere},
		"no response":                 {key, fails(fmt.Errorf("%s: %w", canary, syscall.ECONNRESET)), everywhere},
		"a panic":                     {key, func(*http.Request) (*http.Response, error) { panic(canary) }, everywhere},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry("https://canary:canary@gateway.example/canary?canary#canary")
				client, err := gateway.New("https://gateway.example/canary", tt.key, tt.option, otelgateway.New(o.Options),
					gateway.WithHTTPClient(&http.Client{Transport: tt.transport}), gateway.WithUserAgent(canary))
				require.NoError(t, err)
				refused := canaries()
				refused.WithdrawalID, refused.Invoice.OrderID, refused.Balance.CoinSymbol = "canary/../", "canary\x00", "canary\x00"
				for _, c := range everycall.All() {
					for _, more := range [][]gateway.CallOption{
						nil, {gateway.WithAPIKey(canary + "-other-key-0123456789"), gateway.WithMerchant(canary), gateway.WithHeader("X-Canary", canary)},
					} {
						func() {
							defer func() { _ = recover() }()
							_, _ = c.Do(t.Context(), client, refused, more...)
							_, _ = c.Do(t.Context(), client, canaries(), more...)
						}()
					}
				}
				spans, metrics := o.exporter.GetSpans(), o.metrics(t)
				require.NotEmpty(t, spans)
				text := strings.ToLower(fmt.Sprintf("%+v %q %+v %v", spans, o.spans(), metrics, o.series(t)))
				assert.Contains(t, text, "gateway.outcome")
				for _, secret := range []string{canary, amount, "http://", "https://gateway"} {
					assert.NotContains(t, text, secret)
				}
			})
		})
	}
}
