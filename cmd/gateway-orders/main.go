// Command gateway-orders is for the person who ends orders of unknown outcome in the table of
// package sqlguard:
//
//	gateway-orders pending --db sqlite:orders.db
//	gateway-orders evidence A-17
//	gateway-orders resolve A-17 --exists --by anna
//
// Its exit code says whether there is something left to do: see gateway-orders help exits.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/database"
)

func main() { os.Exit(start()) }

func start() int { return cli.Main(run, cli.ExitFailed) }

// run runs the command that the arguments name, and returns its exit code.
func run(ctx context.Context, args []string, c cli.Console) int {
	s := &session{Console: c}
	err := cli.Execute(ctx, s.root(), args, c)
	if err != nil && err != errLeft {
		if s.format == "" {
			s.format = cli.AskedFormat(args, "")
		}
		s.reportError(err)
	}
	return exitCode(err)
}

// exitLeft is the exit code beside those of package cli.
const exitLeft = 6

// exits returns all exit codes, in order.
func exits() []cli.Exit {
	return []cli.Exit{
		{Code: cli.ExitDone, Meaning: "done", Text: "There is nothing to do, or all of it is done."},
		{Code: cli.ExitFailed, Meaning: "failed", Text: "It failed, or was interrupted. Stderr says what was done until then."},
		{Code: cli.ExitUsage, Meaning: "usage", Text: "The arguments are wrong. Nothing was done."},
		{Code: exitLeft, Meaning: "something to do", Text: "Orders are unknown, or a statement of the gateway differs."},
	}
}

// errLeft is the end of a command after which there is something to do.
var errLeft = errors.New("there is something to do")

// exitCode returns the exit code for the error of a command, which may be nil.
func exitCode(err error) int {
	if err == nil {
		return cli.ExitDone
	}
	if _, ok := errors.AsType[*cli.UsageError](err); ok {
		return cli.ExitUsage
	}
	if err == errLeft { // an error that is joined to it counts more
		return exitLeft
	}
	return cli.ExitFailed
}

// A failure is an error as JSON, on stderr. No member is ever renamed or redefined.
type failure struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exitCode"`
}

// reportError prints an error on stderr.
func (s *session) reportError(err error) {
	text := database.WithoutURL(err)
	if s.format == cli.FormatJSON {
		_ = cli.EncodeJSON(s.Err, failure{text, exitCode(err)}, "  ") // there is nowhere left to report it
		return
	}
	var next []string
	if wrong, ok := errors.AsType[*cli.UsageError](err); ok && wrong.See != "" {
		next = append(next, "See: "+wrong.See)
	}
	s.WriteError(text, next...)
}
