// Command withdrawal follows a withdrawal until it is COMPLETED or FAILED, and
// prints a line whenever anything of it changes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
)

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	flags := flag.NewFlagSet("withdrawal [flags] ID", flag.ContinueOnError)
	every := flags.Duration("every", 2*time.Second, "the shortest `time` between two inquiries; the longest is ten times as long")
	timeout := flags.Duration("timeout", 10*time.Minute, "the longest `time` to wait")
	args, err := cli.Parse(flags, args, 1, 1)
	if err != nil {
		return err
	}
	client, err := cli.Client(getenv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()

	wait := gateway.WaitOptions{MinInterval: *every, MaxInterval: 10 * *every}
	for w, err := range client.WatchWithdrawal(ctx, args[0], wait) {
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: %s %s, fee %s, on %s to %s\n", w.Status, w.Amount, w.Coin, w.Fee, w.Network, w.Destination)
		if w.Status == gateway.WithdrawalFailed {
			return &gateway.WithdrawalFailedError{Withdrawal: w}
		}
	}
	return nil
}
