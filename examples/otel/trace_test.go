package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A scene is a gateway, and a client whose spans are kept.
type scene struct {
	gw       *gatewaytest.Server
	client   *gateway.Client
	exporter *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

// play runs a test in virtual time; between is what stands between otelhttp and
// the gateway.
func play(t *testing.T, between func(http.RoundTripper) http.RoundTripper, test func(*testing.T, scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		s := scene{gw: gw, exporter: tracetest.NewInMemoryExporter()}
		s.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.exporter))
		var err error
		s.client, err = gateway.New(gw.URL, gw.APIKey,
			gateway.WithHTTPClient(&http.Client{Transport: traced(between(gw.Transport()), s.provider)}))
		require.NoError(t, err)
		test(t, s)
	})
}

func nothing(base http.RoundTripper) http.RoundTripper { return base }

// names are those of the spans that have ended.
func (s scene) names() []string {
	names := []string{}
	for _, span := range s.exporter.GetSpans() {
		names = append(names, span.Name)
	}
	return names
}

func attributeOf(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func order() gateway.InvoiceRequest {
	ten := decimal.RequireFromString("10.50")
	return gateway.InvoiceRequest{OrderID: "A-17", Price: ten, Amount: ten}
}

// calls makes one of each.
func calls(t *testing.T, s scene) {
	t.Helper()
	ctx := t.Context()
	pair := s.gw.Catalog()[0]
	_, err := s.client.CoinNetworks(ctx)
	require.NoError(t, err)
	_, err = s.client.CoinNetwork(ctx, pair.ID)
	require.NoError(t, err)
	_, err = s.client.CoinNetworkBySymbol(ctx, pair.Coin.Symbol, pair.Network.Name)
	require.NoError(t, err)
	_, err = s.client.ExchangeRates(ctx)
	require.NoError(t, err)
	_, err = s.client.Balance(ctx, gateway.BalanceQuery{CoinSymbol: pair.Coin.Symbol})
	require.NoError(t, err)
	_, err = s.client.CreateInvoice(ctx, order())
	require.NoError(t, err)
	_, err = s.client.Withdrawal(ctx, s.gw.Withdrawals()[0].WithdrawRequestID)
	require.NoError(t, err)
}

func TestTraced_names(t *testing.T) {
	play(t, nothing, func(t *testing.T, s scene) {
		calls(t, s)
		assert.Equal(t, []string{
			"gateway.coin_networks", "gateway.coin_network", "gateway.coin_network_by_symbol", "gateway.exchange_rates",
			"gateway.balance", "gateway.create_invoice", "gateway.withdrawal",
		}, s.names())
		for _, span := range s.exporter.GetSpans() {
			assert.Equal(t, trace.SpanKindClient, span.SpanKind)
		}
	})
}

// Each attempt has a span of its own, under that of the caller.
func TestTraced_attempts(t *testing.T) {
	play(t, nothing, func(t *testing.T, s scene) {
		s.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.Reset())
		s.gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.Refuse(503, "not now"))
		ctx, caller := s.provider.Tracer("test").Start(t.Context(), "checkout")
		_, err := s.client.ExchangeRates(ctx)
		require.NoError(t, err)
		caller.End()
		assert.Equal(t, []string{"gateway.exchange_rates", "gateway.exchange_rates", "gateway.exchange_rates", "checkout"}, s.names())
		spans := s.exporter.GetSpans()
		for i, status := range []string{"", "503", "200"} {
			assert.Equal(t, caller.SpanContext().SpanID(), spans[i].Parent.SpanID())
			assert.Equal(t, status, attributeOf(spans[i], "http.response.status_code"))
			assert.Equal(t, status != "200", spans[i].Status.Code == codes.Error)
		}
		assert.False(t, spans[1].StartTime.Before(spans[0].EndTime), "one after another")
	})
}

// No span holds the key or an identifier, whatever comes of a call.
func TestTraced_nothingTold(t *testing.T) {
	for name, trouble := range map[string]gatewaytest.Fault{
		"success":   {},
		"a refusal": gatewaytest.Refuse(404, "no"),
		"a cut":     gatewaytest.CommitThenDrop(),
		"a half":    gatewaytest.Truncate(40),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nothing, func(t *testing.T, s scene) {
				s.gw.InjectFault(gatewaytest.AnyOperation, -1, trouble)
				pair, id := s.gw.Catalog()[0], s.gw.Withdrawals()[0].WithdrawRequestID
				_, _ = s.client.CoinNetwork(t.Context(), pair.ID)
				_, _ = s.client.Balance(t.Context(), gateway.BalanceQuery{NetworkName: pair.Network.Name})
				_, _ = s.client.CreateInvoice(t.Context(), order())
				_, _ = s.client.Withdrawal(t.Context(), id)
				require.GreaterOrEqual(t, len(s.names()), 4)
				for _, span := range s.exporter.GetSpans() {
					assert.Equal(t, "http://localhost", attributeOf(span, "url.full"))
					whole := fmt.Sprintf("%+v", span)
					for _, secret := range []string{s.gw.APIKey, pair.ID, id, pair.Network.Name, "A-17", "/gateway", "/api"} {
						assert.NotContains(t, whole, secret)
					}
				}
			})
		})
	}
}

// otelhttp by itself tells the identifier: without [discreet] it would be in the
// span.
func TestTraced_whyDiscreet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		exporter := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
		client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{
			Transport: otelhttp.NewTransport(gw.Transport(), otelhttp.WithTracerProvider(provider)),
		}))
		require.NoError(t, err)
		id := gw.Withdrawals()[0].WithdrawRequestID
		_, err = client.Withdrawal(t.Context(), id)
		require.NoError(t, err)
		span := exporter.GetSpans()[0]
		assert.Contains(t, attributeOf(span, "url.full"), id)
		assert.NotContains(t, fmt.Sprintf("%+v", span), gw.APIKey, "it records no header")
	})
}

// The gateway is not told of the trace, even where the process tells everybody.
func TestTraced_tellsTheGatewayNothing(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	play(t, nothing, func(t *testing.T, s scene) {
		calls(t, s)
		for _, request := range s.gw.Requests() {
			assert.Empty(t, request.Header.Get("Traceparent"))
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What becomes of an invoice is what becomes of it without otelhttp.
func TestTraced_invoice(t *testing.T) {
	noConnection := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		name    string
		trouble gatewaytest.Fault
		before  func(*http.Request) error // of the first attempt; nil sends it
		outcome gateway.Outcome
		created int
		spans   int
	}{
		{"it is created", gatewaytest.Fault{}, nil, gateway.OutcomeSucceeded, 1, 1},
		{"it is refused", gatewaytest.Refuse(429, "no"), nil, gateway.OutcomeRejected, 0, 1},
		{"it is created, and the answer lost", gatewaytest.CommitThenDrop(), nil, gateway.OutcomeUnknown, 1, 1},
		{"it is lost", gatewaytest.Reset(), nil, gateway.OutcomeUnknown, 0, 1},
		{"there is no connection at first", gatewaytest.Fault{}, func(*http.Request) error {
			return noConnection
		}, gateway.OutcomeSucceeded, 1, 2},
		{"a byte of it was read", gatewaytest.Fault{}, func(r *http.Request) error {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			return noConnection
		}, gateway.OutcomeUnknown, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			attempts := 0
			between := func(base http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					attempts++
					assert.Nil(t, r.GetBody, "with it net/http would send the body again")
					if attempts == 1 && tt.before != nil {
						return nil, tt.before(r)
					}
					return base.RoundTrip(r)
				})
			}
			play(t, between, func(t *testing.T, s scene) {
				s.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, tt.trouble)
				_, err := s.client.CreateInvoice(t.Context(), order())
				assert.Equal(t, tt.outcome, gateway.OutcomeOf(err))
				assert.Len(t, s.gw.InvoicesFor("A-17"), tt.created)
				assert.Len(t, s.names(), tt.spans)
				assert.Equal(t, tt.spans, attempts)
				assert.LessOrEqual(t, len(s.gw.Requests()), 1)
			})
		})
	}
}
