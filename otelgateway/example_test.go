package otelgateway_test

import (
	"context"
	"fmt"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/pricing"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/shopspring/decimal"
)

// A checkout asks for the rates, which fails once, and creates an invoice. Here the spans
// and metrics stay in memory; a program exports them, for example with OTLP.
func ExampleNew() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.FaultRefuse(500, "try again"))

	exporter := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))

	client, err := gateway.New(gw.URL, gw.APIKey,
		gateway.WithRetry(gateway.RetryPolicy{BaseDelay: time.Millisecond}),
		otelgateway.New(otelgateway.Options{TracerProvider: tracers, MeterProvider: meters}))
	check(err)

	ctx, span := tracers.Tracer("shop").Start(context.Background(), "checkout")
	pair, err := client.CoinNetworkBySymbol(ctx, "USDT", "Tron")
	check(err)
	rates, err := client.ExchangeRates(ctx)
	check(err)
	price := decimal.RequireFromString("25.00")
	amount, err := pricing.ToCoin(rates, price, "usd", pair)
	check(err)
	_, err = client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: amount, CoinSymbol: "USDT"})
	check(err)
	span.End()

	printSpans(exporter.GetSpans(), trace.SpanID{}, "")
	// Output:
	// checkout
	//   gateway.coin_network_by_symbol
	//     GET /api/networks-coins/{coinSymbol}/{networkName}
	//   gateway.exchange_rates
	//     GET /api/exchange-rate
	//     GET /api/exchange-rate
	//   gateway.create_invoice
	//     POST /api/invoice/create
}

// unknown is a guard with this many unknown orders. A program passes its [sqlguard.Guard].
type unknown int

func (n unknown) PendingSummary(context.Context) (sqlguard.PendingSummary, error) {
	return sqlguard.PendingSummary{Count: int(n), Oldest: time.Now().Add(-time.Hour)}, nil
}

// A program registers the gauges of its pending orders, for the alarms. They end after the last export.
func ExampleRegisterPending() {
	ctx, reader := context.Background(), sdkmetric.NewManualReader() // or the reader of the exporter for Prometheus
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer meters.Shutdown(ctx)
	gauges, err := otelgateway.RegisterPending(unknown(2), otelgateway.Options{MeterProvider: meters, Guard: "shop"})
	check(err)
	defer gauges.Unregister()

	var collected metricdata.ResourceMetrics
	check(reader.Collect(ctx, &collected))
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if counts, ok := m.Data.(metricdata.Gauge[int64]); ok {
			fmt.Println(m.Name, counts.DataPoints[0].Value)
		}
	}
	// Output:
	// gateway.orders.pending 2
	// gateway.orders.readable 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// printSpans prints the spans below a parent, each with those below it.
func printSpans(spans tracetest.SpanStubs, parent trace.SpanID, indent string) {
	for _, span := range spans {
		if span.Parent.SpanID() == parent {
			fmt.Println(indent + span.Name)
			printSpans(spans, span.SpanContext.SpanID(), indent+"  ")
		}
	}
}
