// Command gateway-orders is for the person who ends orders of unknown outcome in the table of
// package sqlguard:
//
//	gateway-orders -db sqlite:orders.db pending
//	gateway-orders evidence A-17
//	gateway-orders resolve A-17 -exists -by anna
//
// Its exit code says whether there is something left to do: see gateway-orders help exits.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(start()) }

// start runs the command with a context that Ctrl-C cancels, and returns its exit code. A
// second Ctrl-C ends the process at once.
func start() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return run(ctx, os.Args[1:], standard())
}

// run runs the command that the arguments name, and returns its exit code.
func run(ctx context.Context, args []string, c console) int {
	s := &session{console: c, format: formatTable, db: os.Getenv(envDB)}
	err := s.execute(ctx, args)
	if err != nil {
		s.reportError(err, args)
	}
	return exitCode(err)
}
