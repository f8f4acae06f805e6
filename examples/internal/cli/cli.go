// Package cli has what the examples share and a merchant's program already has:
// settings, arguments, Ctrl-C and exit codes.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/cryptogw/gateway"
)

// Environment variables that the examples read, by [gateway.FromEnv].
const (
	BaseURL    = "GATEWAY_BASE_URL"
	APIKey     = "GATEWAY_API_KEY"
	APIKeyFile = "GATEWAY_API_KEY_FILE"
)

// Exit codes. A program may have others, see [Exit].
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// A Program is the main function of an example, without the process.
type Program func(ctx context.Context, args []string, stdout io.Writer) error

// Main runs a program with a context that Ctrl-C cancels, and returns its exit
// code: 0 for success, 1 for failure, 2 for wrong usage, 130 for an interrupt. A
// second Ctrl-C ends the process.
func Main(program Program) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, program, os.Stderr)
}

func run(ctx context.Context, program Program, stderr io.Writer) int {
	err := program(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	return Code(err)
}

// Code returns the exit code for the error that a program returned, which may be
// nil.
func Code(err error) int {
	exit, hasCode := errors.AsType[*exitError](err)
	switch {
	case err == nil:
		return 0
	case hasCode:
		return exit.code
	case errors.Is(err, gateway.ErrInvalidArgument):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitFailed
	}
}

type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// Exit returns an error that wraps err and has an exit code.
func Exit(code int, err error) error { return &exitError{code, err} }

// Configured reports whether the environment sets the base URL of a gateway.
func Configured() bool { return os.Getenv(BaseURL) != "" }

// Client returns a client for the gateway in the environment.
func Client(opts ...gateway.Option) (*gateway.Client, error) {
	if !Configured() {
		return nil, Exit(exitUsage, fmt.Errorf(
			"set %s, and %s or %s, to use a gateway; `go run ./examples/quickstart` needs none of them", BaseURL, APIKey, APIKeyFile))
	}
	return gateway.FromEnv(opts...)
}

// Parse parses the arguments of a program. The name of the flag set is the
// program's usage. Parse returns the arguments after the flags; it is an error if
// there are fewer than least or more than most.
func Parse(flags *flag.FlagSet, args []string, least, most int) ([]string, error) {
	var text strings.Builder
	flags.SetOutput(&text)
	flags.Usage = func() {
		fmt.Fprintln(&text, "usage:", flags.Name())
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, Exit(0, errors.New(strings.TrimSpace(text.String())))
	case err != nil:
		return nil, Exit(exitUsage, errors.New(strings.TrimSpace(text.String())))
	case flags.NArg() < least:
		return nil, Usage(flags, "an argument is missing")
	case flags.NArg() > most:
		return nil, Usage(flags, fmt.Sprintf("%q is one argument too many", flags.Arg(most)))
	default:
		return flags.Args(), nil
	}
}

// Usage returns an error for wrong arguments of a program, with its usage.
func Usage(flags *flag.FlagSet, wrong string) error {
	var text strings.Builder
	flags.SetOutput(&text)
	fmt.Fprintf(&text, "%s\nusage: %s\n", wrong, flags.Name())
	flags.PrintDefaults()
	return Exit(exitUsage, errors.New(strings.TrimSpace(text.String())))
}
