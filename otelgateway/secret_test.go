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
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

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

// respond makes a response of which every part that the service chooses has the canary.
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

func hostileResponses() map[string]roundTrip {
	const json = "application/json"
	strange := `{"canary":"canary","canary-order":{"canary":[1]},"status":"canary","withdrawRequestId":"canary-withdrawal",` +
		`"destination":"canary","amount":"7351.62","fee":"1","coin":"canary","network":"canary"}`
	return map[string]roundTrip{
		"a refusal":       respond(404, json, `{"message":"no canary-order","result":[],"meta":{"canary":1}}`),
		"a failure":       respond(503, json, `{"message":"no canary-order","result":[],"meta":{"canary":1}}`),
		"HTML":            respond(502, "text/canary", "<html>canary</html>"),
		"a redirect":      respond(307, json, ""),
		"an envelope":     respond(200, json, `{"message":"canary","result":[],"meta":{"canary":1},"canary":1}`),
		"strange members": respond(200, json, `{"message":"canary","result":`+strange+`,"meta":{"canary":1},"canary":1}`),
		"a map": respond(200, json, `{"message":"Operation was successful.","result":{"canary":{"canary":"`+amount+
			`"},"USDT":{"usd":"1","canary":2}},"meta":{}}`),
		"malformed JSON": respond(200, json, `{"canary":canary}`),
		"no response": func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%s: %w", canary, syscall.ECONNRESET)
		},
		"a body that breaks": func(req *http.Request) (*http.Response, error) {
			resp, err := respond(200, json, "")(req)
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"canary":`), brokenReader{}))
			return resp, err
		},
		"a panic": func(*http.Request) (*http.Response, error) { panic(canary) },
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New(canary) }

// No attribute, event, name or status has a key, an order, an argument of a URL, an
// amount or a text of the service.
func TestNew_recordsNothingSecret(t *testing.T) {
	for name, transport := range hostileResponses() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry()
				opts := o.options()
				opts.BaseURL = "https://canary:canary@gateway.example/canary?canary#canary"
				client, err := gateway.New("https://gateway.example/canary", canary+"-key-0123456789", otelgateway.New(opts),
					gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithAPIKeyOnPublicCalls(), gateway.WithUserAgent(canary))
				require.NoError(t, err)
				for _, c := range everycall.All() {
					for _, more := range [][]gateway.CallOption{
						nil, {gateway.WithAPIKey(canary + "-other-key-0123456789"), gateway.WithMerchant(canary), gateway.WithHeader("X-Canary", canary)},
					} {
						func() {
							defer func() { _ = recover() }()
							_, _ = c.Do(t.Context(), client, canaries(), more...)
						}()
					}
				}
				checkNothingSecret(t, o)
			})
		})
	}
}

// Nor are those of a call that is refused before it is sent.
func TestNew_recordsNothingSecretUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, option := range map[string]gateway.Option{
			"key's source": gateway.WithAPIKeySource(func(context.Context) (string, error) { return "", errors.New(canary) }),
			"order guard":  gateway.WithOrderGuard(refusingGuard{}),
		} {
			o := newTelemetry()
			client, err := gateway.New("https://gateway.example", "", gateway.WithoutAPIKey(), otelgateway.New(o.options()), option)
			require.NoError(t, err)
			for _, c := range everycall.All() {
				if c.Key != everycall.NoKey {
					values := canaries()
					_, err := c.Do(t.Context(), client, values)
					require.Error(t, err, name)
					values.WithdrawalID, values.Invoice.OrderID, values.Balance.CoinSymbol = "canary/../", "canary\x00", "canary\x00"
					_, err = c.Do(t.Context(), client, values)
					require.Error(t, err, name)
				}
			}
			checkNothingSecret(t, o)
		}
	})
}

type refusingGuard struct{}

func (refusingGuard) Begin(context.Context, gateway.Order) (gateway.Lease, error) {
	return gateway.Lease{}, errors.New(canary)
}

func (refusingGuard) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, nil
}

func checkNothingSecret(t *testing.T, o *telemetry) {
	t.Helper()
	require.NotEmpty(t, o.spans())
	var all strings.Builder
	for _, span := range o.spans() {
		fmt.Fprintf(&all, "%s %+v\n", span.Name, span.Status)
		for name, value := range attributesOf(span) {
			fmt.Fprintf(&all, "%s=%s\n", name, value)
		}
		for _, event := range span.Events {
			fmt.Fprintf(&all, "%s %v\n", event.Name, asText(event.Attributes))
		}
		assert.Empty(t, span.Links)
		fmt.Fprintf(&all, "%+v\n", span)
	}
	for name, metric := range o.collect(t) {
		fmt.Fprintf(&all, "%s %+v\n", name, metric.Data)
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				fmt.Fprintln(&all, asText(point.Attributes.ToSlice()))
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				fmt.Fprintln(&all, asText(point.Attributes.ToSlice()))
			}
		}
	}
	text := strings.ToLower(all.String())
	assert.Contains(t, text, "gateway.outcome")
	for _, secret := range []string{canary, amount, "http://", "https://gateway"} {
		assert.NotContains(t, text, secret)
	}
}
