package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/commandline"
)

// Environment variables that [gateway.FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
	envPlainHTTP  = "GATEWAY_PLAIN_HTTP"
)

// envOutput is the environment variable that -o takes the place of.
const envOutput = "GATEWAY_OUTPUT"

// A command is a subcommand.
type command struct {
	name     string // of one or two words
	synopsis string // what follows the name
	short    string // what it does, in one line
	text     string // more of the help, with examples
	timeout  time.Duration

	// define defines the flags of the command, and returns what it does.
	define func(flags *flag.FlagSet) action
	// local is true of a command that uses no gateway.
	local bool
	// least and most are how many arguments it has besides the flags.
	least, most int
	words       []string // which they may be, for completion
}

// An action carries a command out after its flags have been parsed.
type action func(ctx context.Context, s *session) error

// manyArguments is the largest number of identifiers that a command takes.
const manyArguments = 1000

// commands returns all commands, in the order of the help.
func commands() []command {
	return []command{
		coinsCommand(), ratesCommand(), quoteCommand(), balanceCommand(), invoiceCommand(),
		withdrawalGetCommand(), withdrawalWaitCommand(), withdrawalWatchCommand(), probeCommand(), mockCommand(),
		completionCommand(), versionCommand(),
	}
}

// A session is one run of a command.
type session struct {
	console
	format    string        // formatTable or formatJSON
	baseURL   string        // of -url; "" for that of the environment
	plainHTTP bool          // of -plain-http
	timeout   time.Duration // of -timeout; 0 for none
	args      []string      // the arguments that are not flags
}

func (s *session) execute(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return &usageError{text: overview()}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return s.help(args[1:])
	}
	c, args, err := find(args)
	if err != nil {
		return err
	}
	flags, do := s.flagSet(c)
	switch err := s.parse(flags, c, args); {
	case errors.Is(err, flag.ErrHelp):
		return s.write(helpOf(c))
	case err != nil:
		return err
	}
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	return do(ctx, s)
}

// find returns the command that the arguments begin with, and the others.
func find(args []string) (command, []string, error) {
	var siblings, names []string
	for _, c := range commands() {
		words := strings.Fields(c.name)
		names = append(names, words[0])
		switch {
		case len(args) >= len(words) && strings.Join(args[:len(words)], " ") == c.name:
			return c, args[len(words):], nil
		case words[0] == args[0]:
			siblings = append(siblings, words[1])
		}
	}
	if siblings != nil {
		text := fmt.Sprintf("gateway %s is followed by %s", args[0], strings.Join(siblings, ", or "))
		if len(args) > 1 && !couldBeKey(args[1]) {
			text += commandline.Similar(args[1], siblings, "")
		}
		return command{}, nil, &usageError{text: text, see: "help " + args[0]}
	}
	return command{}, nil, &usageError{text: "there is no command " + mistyped(args[0], names, "of that name"), see: "help"}
}

// mistyped returns a name in quotes and the question whether another one was meant, or other
// if it could be the key.
func mistyped(name string, names []string, other string) string {
	if couldBeKey(name) {
		return other
	}
	return named(name, other) + commandline.Similar(name, names, "")
}

// flagSet returns the flags of a command, and what it does after they were parsed.
func (s *session) flagSet(c command) (*flag.FlagSet, action) {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	do := c.define(flags)
	if c.local {
		return flags, do
	}
	flags.StringVar(&s.baseURL, "url", "", "the base `URL` of the gateway, instead of that in "+envBaseURL)
	flags.BoolVar(&s.plainHTTP, "plain-http", false, "accept a base URL that begins with http://, as "+envPlainHTTP+"=1 does")
	flags.DurationVar(&s.timeout, "timeout", c.timeout, "how `long` the command may take, 0 for any time")
	flags.Func("o", "the format of the output, `table` or json (default that in "+envOutput+", or table)", s.setFormat)
	return flags, do
}

func (s *session) setFormat(text string) error {
	if text != formatTable && text != formatJSON {
		return errors.New("it is table or json")
	}
	s.format = text
	return nil
}

// parse parses the flags and arguments of a command, in any order. After "--" there
// are only arguments.
func (s *session) parse(flags *flag.FlagSet, c command, args []string) error {
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return err
			}
			return usage(c, flagError(flags, err))
		}
		rest := flags.Args()
		if before := len(args) - len(rest) - 1; before >= 0 && args[before] == "--" {
			s.args = append(s.args, rest...)
			break
		}
		if len(rest) == 0 {
			break
		}
		s.args, args = append(s.args, rest[0]), rest[1:]
	}
	empty := emptyFlag(flags)
	if text := os.Getenv(envOutput); s.format == "" && !c.local && text != "" && s.setFormat(text) != nil {
		return usage(c, envOutput+" is table or json")
	}
	s.format = cmp.Or(s.format, formatTable)
	switch {
	case empty != "":
		return usage(c, fmt.Sprintf("-%s is empty: give it a value, or leave it out", empty))
	case len(s.args) < c.least:
		return usage(c, "an argument is missing")
	case len(s.args) > c.most:
		return usage(c, named(s.args[c.most], fmt.Sprintf("number %d", c.most+1))+" is one argument too many")
	case s.timeout < 0:
		return usage(c, "-timeout is negative")
	default:
		return nil
	}
}

// emptyFlag returns the name of a flag that was given with an empty text, as of a variable
// that is not set: without -orders no order is remembered, and without -url another
// gateway is asked.
func emptyFlag(flags *flag.FlagSet) (name string) {
	flags.Visit(func(f *flag.Flag) {
		if value, ok := f.Value.(flag.Getter); ok && value.Get() == "" {
			name = f.Name
		}
	})
	return name
}

// asksForJSON reports whether the arguments have -o json, also behind one that is wrong, or
// the environment asks for it.
func asksForJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-o=json", "--o=json":
			return true
		case "-o", "--o":
			return slices.Contains(args[i+1:min(i+2, len(args))], formatJSON)
		case "-o=table", "--o=table":
			return false
		}
	}
	return os.Getenv(envOutput) == formatJSON
}

// client returns a client with the settings of the environment. A flag takes the place
// of its variable, so that whatever reads the key reads it as [gateway.FromEnv] does.
func (s *session) client(opts ...gateway.Option) (*gateway.Client, error) {
	set := map[string]string{}
	if s.baseURL != "" {
		set[envBaseURL] = s.baseURL
	}
	if s.plainHTTP {
		set[envPlainHTTP] = "1"
	}
	for name, value := range set {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	if os.Getenv(envBaseURL) == "" {
		return nil, &usageError{text: fmt.Sprintf(
			"no gateway is named: set %s or give -url, and set %s or %s for the key", envBaseURL, envAPIKey, envAPIKeyFile)}
	}
	return gateway.FromEnv(opts...)
}

func (s *session) write(text string) error {
	_, err := io.WriteString(s.out, text)
	return err
}

// usage returns the error for wrong arguments of a command.
func usage(c command, wrong string) error {
	return &usageError{text: fmt.Sprintf("gateway %s: %s", c.name, wrong), see: "help " + c.name}
}
