package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitLeft   = 6
)

// exits are the exit codes, for the help.
const exits = `The exit codes:

   0  there is nothing to do, or all of it is done
   1  it failed, or was interrupted; stderr says what was done until then
   2  the arguments are wrong; nothing was done
   6  orders are unknown, or a statement of the gateway differs: there is something to do
`

// errLeft is the end of a command after which there is something to do.
var errLeft = errors.New("there is something to do")

// A usageError is a mistake in the arguments. Nothing was done.
type usageError struct {
	text string
	of   string // the command that the help explains; "" for all
}

func (e *usageError) Error() string { return e.text }

// exitCode returns the exit code for the error of a command, which may be nil.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if err == errLeft { // an error that is joined to it counts more
		return exitLeft
	}
	return exitFailed
}

// A failure is an error as JSON, on stderr. No member is ever renamed or redefined.
type failure struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exitCode"`
}

// reportError prints an error on stderr, without the password of the database.
func (s *session) reportError(err error, args []string) {
	code := exitCode(err)
	if code == exitLeft {
		return
	}
	wrong, isUsage := errors.AsType[*usageError](err)
	text := redacted(err.Error(), secrets(args, isUsage))
	if s.format == formatJSON || asksForJSON(args) {
		_ = s.writeJSON(s.err, failure{text, code}) // there is nowhere left to report it
		return
	}
	lines := ""
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		lines += printable(strings.ReplaceAll(line, "\t", "    ")) + "\n"
	}
	if isUsage && wrong.of != "" {
		lines += fmt.Sprintf("See: gateway-orders help %s\n", wrong.of)
	}
	_, _ = io.WriteString(s.err, lines)
}

// asksForJSON reports whether the arguments have -o json, also behind one that is wrong.
func asksForJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-o=json", "--o=json":
			return true
		case "-o", "--o":
			return i+1 < len(args) && args[i+1] == formatJSON
		}
	}
	return false
}
