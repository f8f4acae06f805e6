package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// Environment variables that [gateway.FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
	envPlainHTTP  = "GATEWAY_PLAIN_HTTP"
)

// readTimeout is how long a command that reads may take.
const readTimeout = time.Minute

// A session is one run of the command.
type session struct {
	console
	started   bool   // whether the command line was accepted
	format    string // of --output
	baseURL   string // of --url; empty for the environment
	plainHTTP bool   // of --plain-http

	database databaseFlags
	db       *sql.DB // once it is open
	dialect  sqlguard.Dialect
}

// A usageError is a mistake on the command line, in a setting or in a file. Nothing was done.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// root returns the tree of all commands.
func (s *session) root() *cobra.Command {
	s.format = formatTable
	root := group("gateway", "Ask a payment gateway, create invoices there, and end unknown orders")
	root.Long = root.Short + `.

Settings, from the environment:
  GATEWAY_BASE_URL       the base URL, https and possibly with a path; or the flag --url
  GATEWAY_API_KEY        the API key, which is never an argument
  GATEWAY_API_KEY_FILE   a file with the key, instead
  GATEWAY_PLAIN_HTTP=1   accept a base URL that begins with http://; or the flag --plain-http
  GATEWAY_ORDERS_DB      the database of the orders commands; or the flag --db-file or --db`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version()
	root.SetHelpCommand(helpCommand())
	invoice := group("invoice", "Create an invoice")
	invoice.AddCommand(s.invoiceCommand())
	root.AddCommand(s.coinsCommand(), s.ratesCommand(), s.balanceCommand(), invoice, s.withdrawalCommand(), s.ordersCommand(),
		s.mockCommand(), s.probeCommand(), s.versionCommand())
	return root
}

// group returns a command that needs another one after it.
func group(name, short string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, RunE: func(c *cobra.Command, _ []string) error {
		var names []string
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		return fmt.Errorf("%s is followed by one of: %s", c.CommandPath(), strings.Join(names, ", "))
	}}
}

// helpCommand is cobra's, except that a topic that does not exist is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{Use: "help [command]", Short: "Help about any command", RunE: func(c *cobra.Command, args []string) error {
		of, rest, err := c.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return errors.New("there is no such command")
		}
		return of.Help()
	}}
}

// runs makes do what a command does, for at most limit unless --timeout says otherwise.
func (s *session) runs(c *cobra.Command, limit time.Duration, do func(ctx context.Context, args []string) error) *cobra.Command {
	timeout := c.Flags().Duration("timeout", limit, "how `long` it may take; 0 for any time")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkFlags(c.Flags()); err != nil {
			return err
		}
		ctx := c.Context()
		if *timeout != 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *timeout)
			defer cancel()
		}
		s.started = true
		return do(ctx, args)
	}
	return c
}

// checkFlags refuses an empty value: it is the value of a variable that is not set, and a flag that was left out
// means something else. It refuses negative durations too.
func checkFlags(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Value.Type() == "string" && value == "":
			err = fmt.Errorf("--%s is empty: give it a value, or leave it out", f.Name)
		case f.Value.Type() == "duration" && strings.HasPrefix(value, "-"):
			err = fmt.Errorf("--%s is negative", f.Name)
		}
	})
	return err
}

// asks gives a command the flags for a gateway and an output format, and runs do within a time limit.
func (s *session) asks(c *cobra.Command, limit time.Duration, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.Flags().StringVar(&s.baseURL, "url", "", "the base `URL` of the gateway, instead of "+envBaseURL)
	c.Flags().BoolVar(&s.plainHTTP, "plain-http", false, "accept a base URL that begins with http://, as "+envPlainHTTP+"=1 does")
	s.prints(c, formatTable, formatJSON)
	return s.runs(c, limit, do)
}

// client returns a client with the settings of the environment. A flag replaces its variable, so that
// [gateway.FromEnv] reads everything.
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
		return nil, usage("no gateway is named: set %s or give --url, and set %s or %s for the key", envBaseURL, envAPIKey, envAPIKeyFile)
	}
	if os.Getenv(envAPIKey) == "" && os.Getenv(envAPIKeyFile) == "" {
		opts = append(opts, gateway.WithoutAPIKey()) // coins and rates need none
	}
	opts = append(opts, gateway.WithLogger(slog.New(slog.DiscardHandler))) // the command prints what it skips and cannot know
	return gateway.FromEnv(opts...)
}

// tellSkipped says on stderr which records of a response the client skipped, and why.
func (s *session) tellSkipped(skipped []gateway.Skipped) {
	for _, each := range skipped {
		s.tell("skipped: %s %s: %s: %s", each.CoinSymbol, each.NetworkName, each.Pointer, each.Reason)
	}
}

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		s.started = true
		return s.write(fmt.Sprintf("gateway %s, %s, %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
	}}
}

// version returns the version of this program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
