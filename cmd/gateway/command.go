package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cryptogw/gateway"
)

// Environment variables that [gateway.FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
)

// A session is one run of the command.
type session struct {
	console
	started bool    // whether the command line was accepted
	format  string  // of --output
	table   string  // of --table
	db      *sql.DB // once it is open
}

// A usageError is a mistake on the command line, in a setting or in a file. Nothing was done.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func (s *session) root() *cobra.Command {
	s.format = formatTable
	root := group("gateway", "Ask a payment gateway, create invoices there, and end unknown orders")
	root.Long = root.Short + `.

Settings, from the environment:
  GATEWAY_BASE_URL       the base URL, https and possibly with a path
  GATEWAY_API_KEY        the API key
  GATEWAY_API_KEY_FILE   a file with the key, instead
  GATEWAY_PLAIN_HTTP=1   accept a base URL that begins with http://
  GATEWAY_ORDERS_DB      the database of the orders commands`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version()
	invoice := group("invoice", "Create an invoice")
	invoice.AddCommand(s.invoiceCommand())
	root.AddCommand(s.coinsCommand(), s.ratesCommand(), s.balanceCommand(), invoice, s.withdrawalCommand(), s.ordersCommand(),
		s.checkCommand(), s.mockCommand(), s.probeCommand(), s.versionCommand())
	return root
}

// group returns a command that needs another one after it. Cobra's own would end with 0, as if an invoice existed.
func group(name, short string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		return errors.New("another command must follow")
	}}
}

// runs makes do the action of a command, for at most limit unless --timeout sets another duration.
func (s *session) runs(c *cobra.Command, limit time.Duration, do func(ctx context.Context, args []string) error) *cobra.Command {
	timeout := c.Flags().Duration("timeout", limit, "the longest `duration` that it may take, such as 90s; 0 for any")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := refuseEmpty(c.Flags()); err != nil {
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

// refuseEmpty refuses an empty value: it is the value of a variable that is not set, and a flag that was left out
// means something else.
func refuseEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			err = fmt.Errorf("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

func (s *session) client(opts ...gateway.Option) (*gateway.Client, error) {
	if os.Getenv(envAPIKey) == "" && os.Getenv(envAPIKeyFile) == "" {
		opts = append(opts, gateway.WithoutAPIKey()) // coins and rates need none
	}
	opts = append(opts, gateway.WithLogger(slog.New(slog.DiscardHandler))) // the command prints what it skips and cannot know
	return gateway.FromEnv(opts...)
}
