package otelgateway_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
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

// A program registers the gauges of its pending orders, for the alarms. They end after the last export.
func ExampleRegisterPending() {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	check(err)
	guard, err := sqlguard.New(db)
	check(err)
	meters := sdkmetric.NewMeterProvider() // with a reader, such as that of the exporter for Prometheus
	gauges, err := otelgateway.RegisterPending(guard, otelgateway.Options{MeterProvider: meters, Guard: "shop"})
	check(err)
	defer gauges.Unregister()
	defer meters.Shutdown(context.Background())
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
