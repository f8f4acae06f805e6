// Command probe makes every call to a gateway that changes nothing, and reports
// how the responses differ from docs/interface.md: which shape a result has if none
// is documented, which members are new, missing or of another type, and what the
// client cannot read.
//
//	GATEWAY_BASE_URL=https://gateway.example GATEWAY_API_KEY=... go run ./examples/probe
//
// It creates no invoice. With -withdrawal ID it also inquires about a withdrawal,
// and with -json it prints a [Report]. It prints the names and types of what it
// receives, and never the key; an error may quote the beginning of a response.
//
// Without a gateway in the environment it uses a stand-in with shapes chosen at
// random.
//
// Its exit code is 1 if a response could not be read, and 0 otherwise, whatever
// the differences.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("probe [flags]", flag.ContinueOnError)
	id := flags.String("withdrawal", "", "the `ID` of a withdrawal to inquire about")
	asJSON := flags.Bool("json", false, "print the report as JSON")
	keyOnPublic := flags.Bool("key-on-public", false, "send the key with every call, even if docs/interface.md does not require it")
	seed := flags.Uint64("seed", 0, "choose the shapes of the stand-in with this `number`; 0 is a random one")
	if _, err := cli.Parse(flags, args, 0, 0); err != nil {
		return err
	}
	var out printer = textPrinter{stdout}
	if *asJSON {
		out = jsonPrinter{stdout}
	}
	p := &probe{withdrawal: *id, print: out.call}
	opts := []gateway.Option{gateway.WithObserver(&p.drifts)}
	if *keyOnPublic {
		opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
	}
	if !cli.Configured() {
		return p.useStandIn(ctx, out, cmp.Or(*seed, 1+rand.Uint64N(999_999)), opts) // #nosec G404 -- no secret is drawn
	}
	client, err := cli.Client(opts...)
	if err != nil {
		return err
	}
	p.client = client
	return p.report(ctx, out, Report{})
}

// useStandIn probes a stand-in that it starts.
func (p *probe) useStandIn(ctx context.Context, out printer, seed uint64, opts []gateway.Option) error {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	draw := rand.New(rand.NewPCG(seed, seed)) // #nosec G404 -- no secret is drawn
	for _, group := range shapes() {
		gw.SetShape(group[draw.IntN(len(group))])
	}
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	if err != nil {
		return err
	}
	p.client = client
	p.withdrawal = cmp.Or(p.withdrawal, gw.Withdrawals()[0].WithdrawRequestID)
	return p.report(ctx, out, Report{StandIn: true, Seed: seed})
}

// shapes returns the shapes that a stand-in can give to each result.
func shapes() [][]gatewaytest.Shape {
	return [][]gatewaytest.Shape{
		{gatewaytest.PairAsRecord, gatewaytest.PairInArray},
		{gatewaytest.SymbolAsArray, gatewaytest.SymbolAsRecord},
		{
			gatewaytest.RatesAsRecords, gatewaytest.RatesAsNumbers, gatewaytest.RatesUpperCase,
			gatewaytest.RatesWithCoin, gatewaytest.RatesBySymbol, gatewaytest.RatesByFiat,
		},
		{gatewaytest.BalanceAsRecords, gatewaytest.BalanceAsRecord, gatewaytest.BalanceBare, gatewaytest.BalanceBySymbol},
	}
}

// report makes all calls, and prints the report.
func (p *probe) report(ctx context.Context, out printer, r Report) error {
	out.begin(r)
	p.all(ctx)
	r.Calls = p.calls
	for _, call := range r.Calls {
		r.Findings += len(call.Findings)
		if call.Error != "" {
			r.Unread++
		}
	}
	if err := out.end(r); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.Unread > 0:
		return fmt.Errorf("%s could not be read", count(r.Unread, "response"))
	default:
		return nil
	}
}
