// Command gateway queries a payment gateway from a shell, and creates invoices there:
//
//	gateway coins --coin USDT
//	gateway invoice create --order A-17 --price 10.50 --amount 10.50
//	gateway help outcomes
//
// Its exit code is the outcome, so that a script knows whether an invoice exists. The
// settings are those of [gateway.FromEnv].
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

func main() {
	withoutCoreFile()
	debug.SetTraceback("crash") // a crash ends with SIGABRT: by default its code is 2
	twice := exitInterrupted
	if slices.Contains(os.Args[1:], "invoice") { // the flags may stand before it
		signal.Ignore(syscall.SIGPIPE) // so that stderr has a response that stdout does not take
		twice = exitUnknown            // it may have been sent: not the code that SIGINT has in a shell
	}
	os.Exit(cli.Main(run, twice))
}

// run runs the command that the arguments name, and returns its exit code.
func run(ctx context.Context, args []string, c cli.Console) int {
	s := &session{Console: c}
	err := cli.Execute(ctx, s.root(), args, c)
	if err != nil {
		if _, ok := errors.AsType[*cli.UsageError](err); ok && s.format == "" {
			s.format = cli.AskedFormat(args, envOutput)
		}
		s.reportError(err)
	}
	return exitCode(err)
}
