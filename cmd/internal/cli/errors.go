package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// followed returns the error for a command that needs one of those below it.
func followed(c *cobra.Command, args []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	see := c.CommandPath() + " --help"
	switch {
	case c.HasParent():
		text := c.CommandPath() + " is followed by " + strings.Join(names, ", ")
		if last := len(names) - 1; last > 0 {
			text = c.CommandPath() + " is followed by " + strings.Join(names[:last], ", ") + " or " + names[last]
		}
		return &UsageError{Text: text + nearest("", args, names), See: see}
	case len(args) == 0:
		return &UsageError{Text: c.Long + "\n\n" + c.UsageString()}
	default:
		return &UsageError{Text: c.CommandPath() + ": there is no such command" + nearest("", args, names), See: see}
	}
}

// nearest returns the question whether one of our names was meant by the first argument, or "".
func nearest(prefix string, args, names []string) string {
	if len(args) == 0 || args[0] == "" {
		return ""
	}
	words := &cobra.Command{}
	for _, name := range names {
		words.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	for range 3 { // a name that it begins, then one that is one letter away, then two
		if found := words.SuggestionsFor(args[0]); len(found) > 0 {
			return ": did you mean " + prefix + found[0] + "?"
		}
		if len(args[0]) < 3 { // any short name is near
			return ""
		}
		words.SuggestionsMinimumDistance++
	}
	return ""
}

// flagError returns an error of the flags in words of our own: those of pflag quote arguments.
func flagError(c *cobra.Command, args []string, err error) error {
	if wrong, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return noFlag(c, args, wrong)
	}
	if wrong, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return Usage(c, "--"+wrong.GetFlag().Name+" needs a value")
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return Usage(c, "--"+wrong.GetFlag().Name+": "+form(wrong))
	}
	return Usage(c, "a flag begins with more than two hyphens, or has no name")
}

// form returns what the value of a flag looks like. Those of functions say it in their errors.
func form(wrong *pflag.InvalidValueError) string {
	switch wrong.GetFlag().Value.Type() {
	case "duration":
		return "it is a duration such as 90s or 5m"
	case "int":
		return "it is a number such as 20"
	case "bool":
		return "it stands alone, or is followed by =true or =false"
	default:
		return wrong.Unwrap().Error()
	}
}

// noFlag returns the error for a flag that a command does not have.
func noFlag(c *cobra.Command, args []string, wrong *pflag.NotExistError) error {
	name, hyphens := wrong.GetSpecifiedName(), "--"
	if group := wrong.GetSpecifiedShortnames(); group != "" {
		name, hyphens = group, "-"
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, f := range allFlags(c.Root()) {
		if hyphens == "--" && name == f.Name || hyphens == "-" && name == f.Shorthand { // a word of ours
			return Usage(c, "there is no flag "+hyphens+name+" here")
		}
	}
	which := "an argument is no flag"
	if at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, hyphens+name) }); at >= 0 {
		which = fmt.Sprintf("argument %d is no flag", at+1)
	}
	return Usage(c, which+nearest("--", []string{name}, names))
}

// allFlags returns the flags of a command and of those below it, by their names.
func allFlags(c *cobra.Command) map[string]*pflag.Flag {
	all := map[string]*pflag.Flag{}
	c.Flags().VisitAll(func(f *pflag.Flag) { all[f.Name] = f })
	for _, sub := range c.Commands() {
		for name, f := range allFlags(sub) {
			all[name] = f
		}
	}
	return all
}

// oldForm returns an error if a flag has one hyphen, as it had before: -order would be -o with the
// value rder, and -host the help.
func oldForm(root *cobra.Command, args []string) error {
	all := allFlags(root)
	short := map[string]*pflag.Flag{}
	for _, f := range all {
		if f.Shorthand != "" {
			short[f.Shorthand] = f
		}
	}
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, two := strings.CutPrefix(args[i], "--")
		if !two {
			name = strings.TrimPrefix(name, "-")
		}
		name, _, valued := strings.Cut(name, "=")
		f := all[name]
		switch {
		case !strings.HasPrefix(args[i], "-"):
			continue
		case f != nil && !two && len(name) > 1:
			return &UsageError{Text: fmt.Sprintf("%s: flags begin with two hyphens: write --%s", root.Name(), name), See: root.Name() + " --help"}
		case !two:
			f = short[name]
		}
		if f != nil && f.NoOptDefVal == "" && !valued {
			i++ // its value, which may begin with a hyphen
		}
	}
	return nil
}

// Reason returns why a file or an address cannot be used, without its name, which is an argument.
func Reason(err error) error {
	if in, ok := errors.AsType[*url.Error](err); ok {
		err = in.Err
	}
	if in, ok := errors.AsType[*fs.PathError](err); ok {
		return in.Err
	}
	if in, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(in.Err)
	}
	if in, ok := errors.AsType[*net.AddrError](err); ok {
		return errors.New(in.Err)
	}
	if in, ok := errors.AsType[*net.OpError](err); ok {
		return in.Err
	}
	return err
}
