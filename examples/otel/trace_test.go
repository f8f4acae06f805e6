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

// A fixture is a gateway, and a client whose spans are recorded.
type fixture struct {
	gw       *gatewaytest.Server
	client   *gateway.Client
	exporter *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

// inBubble runs a test in virtual time; wrap returns the transport between
// otelhttp and the gateway.
func inBubble(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, test func(*testing.T, fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		s := fixture{gw: gw, exporter: tracetest.NewInMemoryExporter()}
		s.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.exporter))
		var err error
		s.client, err = gateway.New(gw.URL, gw.APIKey,
			gateway.WithHTTPClient(&http.Client{Transport: traced(wrap(gw.Transport()), s.provider)}))
		require.NoError(t, err)
		test(t, s)
	})
}

func unwrapped(base http.RoundTripper) http.RoundTripper { return base }

// names returns the names of the spans that have ended.
func (s fixture) names() []string {
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

// calls makes one call of each operation.
func calls(t *testing.T, s fixture) {
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
	inBubble(t, unwrapped, func(t *testing.T, s fixture) {
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

// Each attempt has its own span, a child of the caller's.
func TestTraced_attempts(t *testing.T) {
	inBubble(t, unwrapped, func(t *testing.T, s fixture) {
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

// No span contains the key or an identifier, whatever the outcome of a call.
func TestTraced_redacted(t *testing.T) {
	for name, fault := range map[string]gatewaytest.Fault{
		"success":   {},
		"a refusal": gatewaytest.Refuse(404, "no"),
		"a drop":    gatewaytest.CommitThenDrop(),
		"truncated": gatewaytest.Truncate(40),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, unwrapped, func(t *testing.T, s fixture) {
				s.gw.InjectFault(gatewaytest.AnyOperation, -1, fault)
				pair, id := s.gw.Catalog()[0], s.gw.Withdrawals()[0].WithdrawRequestID
				_, _ = s.client.CoinNetwork(t.Context(), pair.ID)
				_, _ = s.client.Balance(t.Context(), gateway.BalanceQuery{NetworkName: pair.Network.Name})
				_, _ = s.client.CreateInvoice(t.Context(), order())
				_, _ = s.client.Withdrawal(t.Context(), id)
				require.GreaterOrEqual(t, len(s.names()), 4)
				for _, span := range s.exporter.GetSpans() {
					assert.Equal(t, "http://localhost", attributeOf(span, "url.full"))
					whole := fmt.Sprintf("%+v", span)
					for _, secret := range []string{s.gw.APIKey, pair.ID, id, pair.Network.Name, "A-17", "/gateway/api", "/api"} {
						assert.NotContains(t, whole, secret)
					}
				}
			})
		})
	}
}

// A transport's error may have the key in its text, as it is sent or read: the span has
// only its type, and the client still has the error.
func TestTraced_errorsWithTheKey(t *testing.T) {
	for name, fail := range map[string]func(*http.Response, error) (*http.Response, error){
		"instead of a response": func(_ *http.Response, err error) (*http.Response, error) { return nil, err },
		"within the body": func(resp *http.Response, err error) (*http.Response, error) {
			resp.Body = failingBody{resp.Body, err}
			return resp, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrap := func(base http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					key := r.Header.Get("X-Api-Key")
					require.NotEmpty(t, key)
					resp, err := base.RoundTrip(r)
					require.NoError(t, err)
					return fail(resp, fmt.Errorf("malformed header %s: %w", key, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}))
				})
			}
			inBubble(t, wrap, func(t *testing.T, s fixture) {
				_, err := s.client.Balance(t.Context(), gateway.BalanceQuery{})
				require.ErrorIs(t, err, syscall.ECONNRESET)
				assert.Contains(t, err.Error(), "malformed header [REDACTED]")
				require.NotEmpty(t, s.names())
				for _, span := range s.exporter.GetSpans() {
					assert.Equal(t, codes.Error, span.Status.Code)
					assert.NotContains(t, fmt.Sprintf("%+v", span), s.gw.APIKey)
				}
			})
		})
	}
}

type failingBody struct {
	io.ReadCloser
	err error
}

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }

// otelhttp alone records the identifier: without [hostOnly] it is in the span.
func TestTraced_whyHostOnly(t *testing.T) {
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

// The gateway gets no trace headers, even if the process sets a global propagator.
func TestTraced_noTraceHeaders(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	inBubble(t, unwrapped, func(t *testing.T, s fixture) {
		calls(t, s)
		for _, request := range s.gw.Requests() {
			assert.Empty(t, request.Header.Get("Traceparent"))
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The outcome of an invoice is the same as without otelhttp.
func TestTraced_invoice(t *testing.T) {
	noConnection := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		name    string
		fault   gatewaytest.Fault
		before  func(*http.Request) error // of the first attempt; nil sends it
		outcome gateway.Outcome
		created int
		spans   int
	}{
		{"created", gatewaytest.Fault{}, nil, gateway.OutcomeSucceeded, 1, 1},
		{"refused", gatewaytest.Refuse(429, "no"), nil, gateway.OutcomeRejected, 0, 1},
		{"created, response lost", gatewaytest.CommitThenDrop(), nil, gateway.OutcomeUnknown, 1, 1},
		{"request lost", gatewaytest.Reset(), nil, gateway.OutcomeUnknown, 0, 1},
		{"no connection at first", gatewaytest.Fault{}, func(*http.Request) error {
			return noConnection
		}, gateway.OutcomeSucceeded, 1, 2},
		{"one byte read", gatewaytest.Fault{}, func(r *http.Request) error {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			return noConnection
		}, gateway.OutcomeUnknown, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			attempts := 0
			wrap := func(base http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					attempts++
					assert.Nil(t, r.GetBody, "with it net/http would send the body again")
					if attempts == 1 && tt.before != nil {
						return nil, tt.before(r)
					}
					return base.RoundTrip(r)
				})
			}
			inBubble(t, wrap, func(t *testing.T, s fixture) {
				s.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, tt.fault)
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
