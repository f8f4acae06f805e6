// Command withdrawal waits until a withdrawal is COMPLETED or FAILED:
//
//	go run ./examples/withdrawal -timeout 1h ID
//
// On a terminal it shows one line that is rewritten every second; elsewhere it
// prints a line for every change of the withdrawal. On Ctrl-C it prints the last
// known withdrawal and exits with code 130.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
)

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("withdrawal [flags] ID", flag.ContinueOnError)
	every := flags.Duration("every", 2*time.Second, "the minimum `time` between two inquiries; the maximum is ten times as long")
	timeout := flags.Duration("timeout", 10*time.Minute, "the maximum `time` to wait")
	args, err := cli.Parse(flags, args, 1, 1)
	if err != nil {
		return err
	}
	shown := displayOn(stdout)
	client, err := cli.Client(gateway.WithObserver(shown))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	return follow(ctx, client, args[0], gateway.WaitOptions{MinInterval: *every, MaxInterval: 10 * *every}, shown)
}

// follow shows a withdrawal until it has ended.
func follow(ctx context.Context, client *gateway.Client, id string, wait gateway.WaitOptions, shown display) error {
	stop := shown.start()
	defer stop()
	for w, err := range client.WatchWithdrawal(ctx, id, wait) {
		if err != nil {
			return err
		}
		shown.changed(w)
		if w.Status == gateway.WithdrawalFailed {
			return &gateway.WithdrawalFailedError{Withdrawal: w}
		}
	}
	return nil
}
