package main

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cryptogw/gateway/cmd/internal/commandline"
)

// help prints the help of everything, of the exit codes or of a command.
func (s *session) help(args []string) error {
	switch name := strings.Join(args, " "); name {
	case "":
		return s.write(overview())
	case "exits":
		return s.write(exits)
	default:
		c, err := find(name)
		if err != nil {
			return err
		}
		return s.write(helpOf(c))
	}
}

func overview() string {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprint(aligned, "gateway-orders lists the orders whose invoice may exist or not, and ends them when a person\nhas found out which.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(aligned, "  gateway-orders %s\t%s\n", c.name, c.short)
	}
	fmt.Fprint(aligned, "  gateway-orders help COMMAND\tits flags, and examples\n")
	fmt.Fprint(aligned, "  gateway-orders help exits\tthe exit codes\n")
	_ = aligned.Flush() // to memory: cannot fail
	return text.String() + `
The database is that of the shop: the flag -db, or ` + envDB + `, which other users of the
machine cannot read. It is postgres://user@host:5432/database, whose password may be in PGPASSWORD
or ~/.pgpass, or sqlite:PATH. Flags stand before or after the command.

When an order is unknown:

  gateway-orders pending                     which ones are, each with a token
  gateway-orders evidence ORDER              what to ask the gateway's operator
  gateway-orders resolve -token TOKEN -exists -by NAME     or -absent: what you found
`
}

// helpOf returns the help of one command.
func helpOf(c command) string {
	s := &session{}
	flags := newFlags(c.name)
	s.defineCommon(flags, c)
	c.define(s, flags)
	var options strings.Builder
	flags.SetOutput(&options)
	flags.PrintDefaults()
	text := fmt.Sprintf("usage: %s\n\n%s\n", strings.TrimSpace("gateway-orders "+c.name+" "+c.synopsis), strings.TrimSpace(c.text))
	if options.Len() > 0 {
		text += "\nFlags:\n" + strings.ReplaceAll(options.String(), "\t", "  ")
	}
	return text
}

// shown returns an argument in quotes, or other if it could be a URL or a password in the wrong place.
func shown(argument, other string) string {
	if len(argument) > 20 || strings.Trim(argument, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return other
	}
	return strconv.Quote(argument)
}

// flagError is the text of an error of package flag. For a flag that is not defined it asks whether
// another one was meant.
func flagError(flags *flag.FlagSet, err error) string {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return withoutValue(err.Error())
	}
	if shown(name, "") == "" {
		return "a flag is not defined"
	}
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return "there is no flag -" + name + commandline.Similar(name, names, "-")
}

// withoutValue returns an error of package flag without the argument that it quotes, which could be a
// password in the wrong place.
func withoutValue(text string) string {
	if strings.HasPrefix(text, "bad flag syntax") {
		return "bad flag syntax"
	}
	start, rest, ok := strings.Cut(text, ` value "`)
	if !ok {
		return text
	}
	quoted, err := strconv.QuotedPrefix(`"` + rest)
	if err != nil || shown(strings.Trim(quoted, `"`), "") != "" {
		return text
	}
	after := rest[len(quoted)-1:]
	flagged, reason, _ := strings.Cut(after, ": ")
	if strings.Contains(reason, quoted) {
		return start + " value" + flagged
	}
	return start + " value" + flagged + ": " + reason
}
