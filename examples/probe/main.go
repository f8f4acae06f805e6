// Command probe asks a gateway everything that can be asked without changing
// anything, and says where its answers are not as INTERFACE.md has them: which
// shape a result has where the page shows none, which members are new, missing
// or of another type, and what the client can not read.
//
//	GATEWAY_BASE_URL=https://gateway.example GATEWAY_API_KEY=... go run ./examples/probe
//
// It creates no invoice. With -withdrawal ID it asks for a withdrawal too, and
// with -json it prints a [Report]. It shows names and types of what the gateway
// says, and no key; an error may quote the beginning of an answer.
//
// Without a gateway it asks a stand-in, whose answers have shapes that are drawn
// at random.
//
// Its exit code is 1 when an answer could not be read, and 0 when all could,
// whatever they differ in.
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
	id := flags.String("withdrawal", "", "the `ID` of a withdrawal to ask for")
	asJSON := flags.Bool("json", false, "print a report for machines")
	keyOnPublic := flags.Bool("key-on-public", false, "send the key with every call, also where INTERFACE.md does not ask for it")
	seed := flags.Uint64("seed", 0, "draw the shapes of the stand-in with this `number`; 0 is any")
	if _, err := cli.Parse(flags, args, 0, 0); err != nil {
		return err
	}
	var out printer = people{stdout}
	if *asJSON {
		out = machines{stdout}
	}
	p := &probe{withdrawal: *id, tell: out.call}
	opts := []gateway.Option{gateway.WithObserver(&p.drifts)}
	if *keyOnPublic {
		opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
	}
	if !cli.Configured() {
		return p.askStandIn(ctx, out, cmp.Or(*seed, 1+rand.Uint64N(999_999)), opts) // #nosec G404 -- no secret is drawn
	}
	client, err := cli.Client(opts...)
	if err != nil {
		return err
	}
	p.client = client
	return p.report(ctx, out, Report{})
}

// askStandIn probes a gateway of its own.
func (p *probe) askStandIn(ctx context.Context, out printer, seed uint64, opts []gateway.Option) error {
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

// shapes are those that a stand-in can give to each result that is asked for.
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

// report asks everything, and prints what came of it.
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
		return fmt.Errorf("%s could not be read", count(r.Unread, "answer"))
	default:
		return nil
	}
}
