package otelgateway_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/documented/everycall"
	"github.com/cryptogw/gateway/otelgateway"
)

// A failed read has the reason of its last attempt.
func TestNew_errorType(t *testing.T) {
	for want, tt := range map[string]struct {
		transport roundTrip
		option    gateway.Option
	}{
		"dial": {transport: func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}},
		"response_too_large": {
			transport: respond(201, "application/json", everycall.Enveloped(everycall.WithdrawalJSON)),
			option:    gateway.WithMaxResponseBytes(10),
		},
		"response_mismatch": {transport: respond(201, "application/json",
			everycall.Enveloped(strings.Replace(everycall.WithdrawalJSON, everycall.WithdrawalID, "other", 1)))},
		"missing_api_key": {option: gateway.WithAPIKeySource(func(context.Context) (string, error) { return "", nil })},
		"start": { // although the source's own error has a status
			option: gateway.WithAPIKeySource(func(context.Context) (string, error) {
				return "", &gateway.APIError{Operation: "vault", StatusCode: 418}
			}),
		},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, f fixture) {
				key := f.gw.APIKey
				opts := []gateway.Option{otelgateway.New(f.options()), gateway.WithHTTPClient(&http.Client{Transport: tt.transport})}
				if tt.option != nil {
					opts = append(opts, tt.option)
				}
				if tt.transport == nil {
					key = ""
				}
				client, err := gateway.New(f.gw.URL, key, opts...)
				require.NoError(t, err)
				_, err = client.Withdrawal(t.Context(), everycall.WithdrawalID)
				require.Error(t, err)
				last := f.spans()[len(f.spans())-1]
				assert.Equal(t, want, attributesOf(last)["error.type"], err)
			})
		})
	}
}

// Another request for an order that is being created is refused as such.
func TestNew_orderInFlight(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		var client *gateway.Client
		base := f.gw.Transport()
		client = f.connect(t, roundTrip(func(req *http.Request) (*http.Response, error) {
			other := order()
			other.CoinSymbol = "BTC"
			_, err := client.CreateInvoice(context.Background(), other)
			assert.ErrorIs(t, err, gateway.ErrOrderInFlight)
			return base.RoundTrip(req)
		}), f.options())
		_, err := client.CreateInvoice(t.Context(), order())
		require.NoError(t, err)
		assert.Equal(t, "order_in_flight", attributesOf(f.spans()[0])["error.type"])
	})
}

// An invoice of which nothing was sent at first has a span for each attempt, and is sent
// once.
func TestNew_invoiceAttempts(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, f fixture) {
		attempts := 0
		base := f.gw.Transport()
		client := f.connect(t, roundTrip(func(req *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return base.RoundTrip(req)
		}), f.options())
		_, err := client.CreateInvoice(t.Context(), order())
		require.NoError(t, err)
		const attempt = "POST /api/invoice/create"
		require.Equal(t, []string{attempt, attempt, "gateway.create_invoice"}, f.names())
		assert.Equal(t, "dial", attributesOf(f.spans()[0])["error.type"])
		assert.Equal(t, "1", attributesOf(f.spans()[1])["http.request.resend_count"])
		assert.Len(t, f.gw.Invoices(), 1)
	})
}

// An instrument that cannot be made is reported, and fails no call.
func TestNew_instrumentErrors(t *testing.T) {
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	var handled []error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled = append(handled, err) }))
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey, otelgateway.New(otelgateway.Options{MeterProvider: brokenMeters{}}))
	require.NoError(t, err)
	assert.Equal(t, []error{errInstrument}, handled)
	_, err = client.ExchangeRates(t.Context())
	assert.NoError(t, err)
}

var errInstrument = errors.New("no such instrument")

// brokenMeters make no histogram.
type brokenMeters struct{ noop.MeterProvider }

func (brokenMeters) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ noop.Meter }

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, errInstrument
}
