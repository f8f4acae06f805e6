// Command gateway queries a payment gateway from a shell, and creates invoices there:
//
//	gateway coins -coin USDT
//	gateway invoice create -order A-17 -price 10.50 -amount 10.50
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
	"syscall"
)

func main() { os.Exit(start()) }

// start runs the command with a context that Ctrl-C cancels, and returns its exit code. A
// second Ctrl-C ends the process at once.
func start() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	withoutCoreFile()
	debug.SetTraceback("crash") // a crash ends with SIGABRT: by default its code is 2
	invoice := len(os.Args) > 1 && os.Args[1] == "invoice"
	if invoice {
		signal.Ignore(syscall.SIGPIPE) // so that stderr has a response that stdout does not take
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		if invoice { // which may have been sent: not the code that SIGINT has in a shell
			os.Exit(exitUnknown)
		}
		os.Exit(exitInterrupted)
	}()
	return run(ctx, os.Args[1:], standard())
}

// run runs the command that the arguments name, and returns its exit code.
func run(ctx context.Context, args []string, c console) int {
	s := &session{console: c}
	err := s.execute(ctx, args)
	if err != nil {
		if _, ok := errors.AsType[*usageError](err); ok && asksForJSON(args) {
			s.format = formatJSON
		}
		s.reportError(err)
	}
	return exitCode(err)
}
