// Command otel traces the calls of a client with OpenTelemetry and prints the
// spans: one for each attempt, as a child of the caller's span.
//
//	cd examples/otel
//	go run .
//
// Without a gateway in the environment it uses a stand-in, creates an invoice
// there, and makes the first attempt of a call fail, which adds a span; with one
// it only reads. It is a separate module, so that users of the client do not
// depend on OpenTelemetry. The code to copy is in trace.go.
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

// checkout requests the rates of a stand-in, which fails once, and creates an
// invoice.
func checkout(ctx context.Context, opts ...gateway.Option) error {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.Refuse(500, "try again"))
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
