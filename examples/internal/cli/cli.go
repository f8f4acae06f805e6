// Package cli is what the examples have in common and a merchant's program
// has already: settings, arguments, Ctrl-C and exit codes.
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

// Exit codes. A program may have further ones, see [Exit].
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// A Program is an example without the process around it.
type Program func(ctx context.Context, args []string, stdout io.Writer) error

// Main runs a program, whose context Ctrl-C ends, and returns its exit code: 0
// when it did what it was asked, 1 when that failed, 2 when it was called
// wrongly, 130 when it was interrupted. A second Ctrl-C ends the process.
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

// Code returns the exit code for what a program returned.
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

// Exit returns err with the exit code of the program.
func Exit(code int, err error) error { return &exitError{code, err} }

// Configured reports whether the environment names a gateway.
func Configured() bool { return os.Getenv(BaseURL) != "" }

// Client returns a client for the gateway that the environment names.
func Client(opts ...gateway.Option) (*gateway.Client, error) {
	if !Configured() {
		return nil, Exit(exitUsage, fmt.Errorf(
			"set %s, and %s or %s, to use a gateway; `go run ./examples/quickstart` needs none of them", BaseURL, APIKey, APIKeyFile))
	}
	return gateway.FromEnv(opts...)
}

// Parse reads the arguments of a program into its flags, whose name is the
// program's usage, and returns those that are left, from least to most many.
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

// Usage says what is wrong with the arguments of a program, and its usage.
func Usage(flags *flag.FlagSet, wrong string) error {
	var text strings.Builder
	flags.SetOutput(&text)
	fmt.Fprintf(&text, "%s\nusage: %s\n", wrong, flags.Name())
	flags.PrintDefaults()
	return Exit(exitUsage, errors.New(strings.TrimSpace(text.String())))
}
