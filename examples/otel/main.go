// Command otel traces the calls of a client with OpenTelemetry and prints the
// spans: one for each attempt, under that of whoever makes the calls.
//
//	cd examples/otel
//	go run .
//
// Without a gateway in the environment it asks a stand-in, creates an invoice
// there, and lets the first attempt of a call fail, for a span more; with one it
// only reads. It is a module of its own, so that no user of the client has
// OpenTelemetry in a build. What to copy is in trace.go.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/shopspring/decimal"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	if _, err := cli.Parse(flag.NewFlagSet("otel", flag.ContinueOnError), args, 0, 0); err != nil {
		return err
	}
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(stdout), stdouttrace.WithPrettyPrint())
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() {
		// The spans are printed even after Ctrl-C.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, provider.Shutdown(ctx))
	}()
	through := gateway.WithHTTPClient(&http.Client{Transport: traced(newTransport(), provider)})

	ctx, span := provider.Tracer("examples/otel").Start(ctx, "checkout")
	defer span.End()
	if cli.Configured() {
		client, err := cli.Client(through)
		if err != nil {
			return err
		}
		_, err = client.ExchangeRates(ctx)
		return err
	}
	return checkout(ctx, through)
}

// checkout asks a stand-in for the rates, in vain at first, and creates an
// invoice.
func checkout(ctx context.Context, opts ...gateway.Option) error {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.Refuse(500, "not at the first time"))
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	if err != nil {
		return err
	}
	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		return err
	}
	price := decimal.RequireFromString("25.00")
	amount, err := rates.ToCoin(price, "usd", "USDT", 6)
	if err != nil {
		return err
	}
	_, err = client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: "order-1", Price: price, Amount: amount, CoinSymbol: "USDT"})
	return err
}
