// Command gateway asks a payment gateway from a shell, creates invoices there, and ends the orders whose
// invoice may exist or not:
//
//	gateway coins
//	gateway invoice create --order A-17 --price 10.50 --amount 10.50
//	gateway orders pending
//
// The exit code is the outcome, so that a script knows whether an invoice exists. The settings are those of
// [gateway.FromEnv].
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	debug.SetTraceback("crash") // a panic ends with SIGABRT: the exit code 2 would say that nothing was sent
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitUnknown) // an invoice may have been sent
	}()
	os.Exit(run(ctx, os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr}))
}

// A console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// run runs the command that the arguments name, and returns its exit code.
func run(ctx context.Context, args []string, c console) int {
	s := &session{console: c}
	defer s.closeDatabase()
	root := s.root()
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetArgs(append([]string{}, args...)) // for nil, cobra takes the arguments of the process
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !s.started {
		err = usage("%w\nRun '%s --help' for usage.", err, command.CommandPath())
	}
	if err != nil {
		s.report(err)
	}
	return exitCode(err)
}
