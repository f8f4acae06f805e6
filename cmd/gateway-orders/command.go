package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway/cmd/internal/commandline"

	"github.com/cryptogw/gateway/sqlguard"
)

// envDB is the environment variable that -db takes the place of.
const envDB = "GATEWAY_ORDERS_DB"

// A command is a subcommand.
type command struct {
	name     string
	synopsis string // what follows the name
	short    string // what it does, in one line
	text     string // more of the help, with an example
	timeout  time.Duration
	early    string // what is so when it was interrupted

	define func(s *session, flags *flag.FlagSet) action // defines its own flags
	// local is true of a command that needs no database, single of one that is about the orders of one merchant.
	local, single bool
	// formats are those of the output, the default first; none for a text that has only one.
	formats []string
	// least and most are how many arguments it has besides the flags.
	least, most int
	argument    string   // what an argument is
	words       []string // which it may be, for completion
}

// An action carries a command out after its flags have been parsed.
type action func(ctx context.Context) error

const unchanged = "nothing was changed"

// tableOrJSON are the formats of most commands.
func tableOrJSON() []string { return []string{formatTable, formatJSON} }

// commands returns all commands, in the order of the help.
func commands() []command {
	return []command{
		pendingCommand(), showCommand(), evidenceCommand(), resolveCommand(), reconcileCommand(),
		exportCommand(), pruneCommand(), migrateCommand(), versionCommand(), completionCommand(),
	}
}

// A session is one run of a command.
type session struct {
	console
	format   string
	db       string         // of -db or the environment
	table    string         // of -table
	merchant string         // of -merchant; "" for the client's own
	limit    *time.Duration // of -timeout; nil for that of the command, zero for none
	args     []string       // the arguments that are not flags

	guard *sqlguard.Guard // after open
	close func() error
}

func (s *session) execute(ctx context.Context, args []string) error {
	before := newFlags("gateway-orders")
	s.defineCommon(before, command{formats: allFormats()})
	if err := before.Parse(args); errors.Is(err, flag.ErrHelp) {
		return s.write(overview())
	} else if err != nil {
		return &usageError{text: "gateway-orders: " + flagError(before, err)}
	}
	rest := before.Args()
	switch {
	case len(rest) == 0:
		return &usageError{text: overview()}
	case rest[0] == "help":
		return s.help(rest[1:])
	}
	c, err := find(rest[0])
	if err != nil {
		return err
	}
	flags := newFlags(c.name)
	s.defineCommon(flags, c)
	do := c.define(s, flags)
	switch err := s.parse(flags, c, before, rest[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return s.write(helpOf(c))
	case err != nil:
		return err
	}
	return s.carryOut(ctx, c, do)
}

// carryOut runs an action within the time that it has, and says what is so when it was interrupted.
func (s *session) carryOut(ctx context.Context, c command, do action) error {
	limit := c.timeout
	if s.limit != nil {
		limit = *s.limit
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err := do(ctx)
	if s.guard != nil {
		if closed := s.close(); err == nil {
			err = closed
		}
	}
	if err == nil || ctx.Err() == nil || exitCode(err) != exitFailed {
		return err
	}
	early := c.early
	if part, ok := errors.AsType[*partError](err); ok {
		early, err = part.done, part.cause
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the time of -timeout, %s, is over: %s (%w)", limit, early, err)
	}
	return fmt.Errorf("interrupted: %s", early)
}

// A partError is that of a command that has done a part of its work.
type partError struct {
	done  string
	cause error
}

func (e *partError) Error() string { return e.done + ": " + e.cause.Error() }
func (e *partError) Unwrap() error { return e.cause }

// find returns the command of a name.
func find(name string) (command, error) {
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return command{}, &usageError{text: "there is no command " + shown(name, "of that name") + commandline.Similar(name, names, "") + "\nSee: gateway-orders help"}
}

func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// defineCommon defines the flags that may stand before the command too.
func (s *session) defineCommon(flags *flag.FlagSet, c command) {
	if len(c.formats) > 0 {
		flags.Func("o", fmt.Sprintf("the `format` of the output: %s (default %s)", strings.Join(c.formats, " or "), c.formats[0]), s.setFormat)
	}
	if c.local {
		return
	}
	flags.Func("db", "the `URL` of the database, postgres://… or sqlite:PATH, instead of "+envDB, func(text string) error {
		s.db = text
		return nil
	})
	flags.StringVar(&s.table, "table", cmp.Or(s.table, sqlguard.DefaultTable), "the `name` of the table")
	if c.single || c.name == "" {
		flags.StringVar(&s.merchant, "merchant", s.merchant, "the `name` of the merchant; without it, orders of calls that name none, and for pending all")
	}
	flags.Func("timeout", fmt.Sprintf("how `long` it may take, 0s for any time (default %s)", c.timeout), func(text string) error {
		limit, err := time.ParseDuration(text)
		if err != nil || limit < 0 {
			return errors.New("it is a duration such as 90s or 5m")
		}
		s.limit = &limit
		return nil
	})
}

// setFormat takes what any command knows; parse compares it with those of the command.
func (s *session) setFormat(text string) error {
	if !slices.Contains(allFormats(), text) {
		return errors.New("it is table or json, and csv or json of export")
	}
	s.format = text
	return nil
}

// parse parses the flags and arguments of a command, in any order. After "--" there are only
// arguments.
func (s *session) parse(flags *flag.FlagSet, c command, before *flag.FlagSet, args []string) error {
	for {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return err
		} else if err != nil {
			return usage(c, flagError(flags, err))
		}
		rest := flags.Args()
		if end := len(args) - len(rest) - 1; end >= 0 && args[end] == "--" {
			s.args = append(s.args, rest...)
			break
		}
		if len(rest) == 0 {
			break
		}
		s.args, args = append(s.args, rest[0]), rest[1:]
	}
	return s.checkParsed(flags, c, before)
}

// checkParsed returns what is wrong with the flags and arguments that any command could have.
func (s *session) checkParsed(flags *flag.FlagSet, c command, before *flag.FlagSet) error {
	given := map[string]bool{}
	empty := ""
	note := func(f *flag.Flag) {
		given[f.Name] = true
		if value, ok := f.Value.(flag.Getter); ok && value.Get() == "" {
			empty = f.Name
		}
	}
	before.Visit(note)
	flags.Visit(note)
	foreign := ""
	for name := range given {
		if flags.Lookup(name) == nil {
			foreign = name
		}
	}
	switch {
	case foreign != "":
		return usage(c, "has no flag -"+foreign)
	case given["o"] && !slices.Contains(c.formats, s.format):
		return usage(c, "-o is "+strings.Join(c.formats, " or ")+" here")
	case empty != "":
		return usage(c, fmt.Sprintf("-%s is empty: give it a value, or leave it out", empty))
	case len(s.args) < c.least:
		return usage(c, c.argument+" is missing")
	case len(s.args) > c.most:
		return usage(c, "there is one argument too many")
	case !given["o"] && len(c.formats) > 0:
		s.format = c.formats[0]
	}
	return nil
}

func (s *session) write(text string) error {
	_, err := io.WriteString(s.out, text)
	return err
}

// usage returns the error for wrong arguments of a command.
func usage(c command, wrong string) error {
	return &usageError{text: fmt.Sprintf("gateway-orders %s: %s", c.name, wrong), of: c.name}
}

// badFlag returns the error for a flag whose value is wrong.
func badFlag(c, name, wrong string) error {
	return &usageError{text: fmt.Sprintf("gateway-orders %s: -%s %s", c, name, wrong), of: c}
}
