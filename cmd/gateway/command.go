package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// Environment variables that [gateway.FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
	envPlainHTTP  = "GATEWAY_PLAIN_HTTP"
	envProfile    = "GATEWAY_PROFILE"
)

// envOutput is the environment variable that --output takes the place of.
const envOutput = "GATEWAY_OUTPUT"

// manyArguments is the largest number of identifiers that a command takes.
const manyArguments = 1000

// A session is one run of a command.
type session struct {
	cli.Console
	format    string // of --output, or the default
	baseURL   string // of --url; "" for that of the environment
	plainHTTP bool   // of --plain-http
}

// root returns the tree of all commands.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use: "gateway", Short: "Asks a payment gateway, and creates invoices there",
		Long: `gateway asks a payment gateway, and creates invoices there.

Settings, from the environment:
  GATEWAY_BASE_URL       the base URL, https and possibly with a path; or the flag --url
  GATEWAY_API_KEY        the API key, which is never an argument
  GATEWAY_API_KEY_FILE   a file with the key, instead
  GATEWAY_PLAIN_HTTP=1   accept a base URL that begins with http://; or the flag --plain-http
  GATEWAY_PROFILE        a file of gateway probe --record: how this gateway answers
  GATEWAY_OUTPUT=json    print JSON, as -o json does
  NO_COLOR=1             print no colors`,
	}
	s.settings(root)
	invoice := &cobra.Command{Use: "invoice", Short: "Creates an invoice"}
	invoice.AddCommand(s.invoiceCommand())
	withdrawal := &cobra.Command{Use: "withdrawal", Short: "The status of withdrawals: now, at the end, or every change"}
	withdrawal.AddCommand(s.withdrawalGetCommand(), s.withdrawalWaitCommand(), s.withdrawalWatchCommand())
	root.AddCommand(s.coinsCommand(), s.ratesCommand(), s.quoteCommand(), s.balanceCommand(), invoice, withdrawal,
		s.probeCommand(), s.mockCommand(), s.versionCommand(), outcomes())
	return root
}

// settings defines the flags of all commands that ask a gateway. The root has them too, so that they may
// stand before the command.
func (s *session) settings(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&s.baseURL, "url", "", "the base `URL` of the gateway, instead of that in "+envBaseURL)
	flags.BoolVar(&s.plainHTTP, "plain-http", false, "accept a base URL that begins with http://, as "+envPlainHTTP+"=1 does")
	cli.OutputFlag(c, &s.format, "that in "+envOutput+", or table", cli.FormatTable, cli.FormatJSON)
}

// An action carries a command out after its flags have been parsed.
type action func(ctx context.Context, args []string) error

// asks makes a command one that asks a gateway, for at most limit unless --timeout says otherwise.
func (s *session) asks(c *cobra.Command, limit time.Duration, do action) *cobra.Command {
	s.settings(c)
	timeout := c.Flags().Duration("timeout", limit, "how `long` the command may take, 0 for any time")
	c.RunE = func(c *cobra.Command, args []string) error {
		s.format = cmp.Or(s.format, os.Getenv(envOutput), cli.FormatTable)
		switch {
		case s.format != cli.FormatTable && s.format != cli.FormatJSON:
			s.format = cli.FormatTable
			return cli.Usage(c, envOutput+" is table or json")
		case *timeout < 0:
			return cli.Usage(c, "--timeout is negative")
		}
		ctx := c.Context()
		if *timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *timeout)
			defer cancel()
		}
		return do(ctx, args)
	}
	return c
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
		return nil, &cli.UsageError{Text: fmt.Sprintf(
			"no gateway is named: set %s or give --url, and set %s or %s for the key", envBaseURL, envAPIKey, envAPIKeyFile)}
	}
	return gateway.FromEnv(opts...)
}

// tellSkipped tells on stderr what the client has left out of a response, and why.
func (s *session) tellSkipped(skipped []gateway.Skipped) error {
	for _, each := range skipped {
		if s.format != cli.FormatJSON {
			s.WriteError("left out: " + skippedText(each))
		} else if err := cli.EncodeJSON(s.Err, map[string]gateway.Skipped{"leftOut": each}, ""); err != nil {
			return err
		}
	}
	return nil
}

// skippedText says what was left out, where, and why.
func skippedText(s gateway.Skipped) string {
	name := cmp.Or(s.CoinSymbol, "a coin without a name")
	if s.NetworkName != "" {
		name += " on " + s.NetworkName
	}
	return name + ": " + s.Pointer + ": " + s.Reason
}

// printResult prints a result as JSON or as a table. It is the only output of a command
// on stdout.
func (s *session) printResult(value any, columns []string, rows [][]string) error {
	if s.format == cli.FormatJSON {
		return s.WriteJSON(value)
	}
	return s.WriteTable(columns, rows)
}

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "The version of this program", Example: "  gateway version",
		RunE: func(*cobra.Command, []string) error {
			return s.Write(fmt.Sprintf("gateway %s, %s, %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
		},
	}
}
