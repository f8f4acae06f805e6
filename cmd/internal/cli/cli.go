// Package cli is what both commands are made with, on cobra: the rules of their command lines, and what
// they print.
//
// No error quotes an argument: it could be the key in a wrong place, and errors are kept in logs. A
// suggestion is one of our own words.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes that both commands have.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// A UsageError is a mistake in the arguments or the settings. Nothing was done.
type UsageError struct {
	Text string
	See  string // what to run for more; "" for nothing
}

func (e *UsageError) Error() string { return e.Text }

// Usage returns the error for wrong arguments of a command. The text has none of them.
func Usage(c *cobra.Command, wrong string) error {
	return &UsageError{Text: c.CommandPath() + ": " + wrong, See: c.CommandPath() + " --help"}
}

// Main runs a command with a context that Ctrl-C cancels, and returns its exit code. A second
// Ctrl-C ends the process at once, with the code twice.
func Main(run func(ctx context.Context, args []string, c Console) int, twice int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(twice)
	}()
	return run(ctx, os.Args[1:], Standard())
}

// Execute runs the command of a tree that the arguments name. Before, it gives the whole tree its rules.
func Execute(ctx context.Context, root *cobra.Command, args []string, c Console) error {
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetArgs(append([]string{}, args...)) // not nil, for which cobra takes those of the process
	root.Version = Version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, args, err) })
	prepare(root)
	if err := oldForm(root, args); err != nil {
		return err
	}
	return root.ExecuteContext(ctx)
}

// prepare gives a command and those below it the rules of all commands.
func prepare(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	for _, sub := range c.Commands() {
		prepare(sub)
	}
	completeFiles(c)
	switch {
	case c.HasSubCommands():
		c.Args = func(c *cobra.Command, args []string) error { return followed(c, args) }
		c.RunE = func(c *cobra.Command, _ []string) error { return followed(c, nil) }
		c.ValidArgsFunction = cobra.NoFileCompletions
	case c.Runnable():
		check := c.Args
		if check == nil || c.HasParent() && c.Parent().Name() == "completion" {
			check = Args(0, 0, "")
		}
		c.Args = func(c *cobra.Command, args []string) error {
			if name := emptyFlag(c.Flags()); name != "" {
				return Usage(c, "--"+name+" is empty: give it a value, or leave it out")
			}
			return check(c, args)
		}
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// completeFiles lets a shell complete the names of files only for flags whose value is one.
func completeFiles(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if kind, _ := pflag.UnquoteUsage(f); kind != "file" && kind != "directory" {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // fails where there is one already
		}
	})
}

// Args is for a command that takes from least to most arguments besides its flags; what says what one is.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usage(c, what+" is missing")
		case len(args) > most:
			return Usage(c, "there is one argument too many")
		default:
			return nil
		}
	}
}

// emptyFlag returns the name of a flag that was given with an empty text, as of a variable that is
// not set: it is not the same as a flag that was left out.
func emptyFlag(flags *pflag.FlagSet) (name string) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			name = f.Name
		}
	})
	return name
}

// helpCommand is `help`, whose errors are like those of any command.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "The flags of a command, and examples",
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // those of the root may stand before it
		Args:               func(*cobra.Command, []string) error { return nil },
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err == nil && len(rest) > 0 {
				if !of.HasSubCommands() {
					return Usage(c, "there is one argument too many")
				}
				err = followed(of, rest)
			}
			if err != nil {
				return err
			}
			return of.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
			if of, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range of.Commands() {
					if !sub.Hidden {
						words = append(words, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// Version returns the version of this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
