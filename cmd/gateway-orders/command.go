package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

// envDB is the environment variable that --db and --db-file take the place of.
const envDB = "GATEWAY_ORDERS_DB"

const unchanged = "nothing was changed"

// A session is one run of a command.
type session struct {
	cli.Console
	format   string // of --output, or the default
	db       string // of --db
	dbFile   string // of --db-file
	table    string // of --table
	merchant string // of --merchant; "" for the client's own

	dialect sqlguard.Dialect // after connect
	guard   *sqlguard.Guard  // after connect
	close   func() error
}

// root returns the tree of all commands.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use: "gateway-orders", Short: "Lists and ends the orders whose invoice may exist or not",
		Long: `gateway-orders lists the orders whose invoice may exist or not, and ends them when a person
has found out which.

The database is that of the shop: ` + envDB + `, or the flag --db-file or --db. It is
postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:PATH. A password is
in the first two, in PGPASSWORD or in ~/.pgpass, and not in --db, which other users of the machine
can read.

When an order is unknown:
  gateway-orders pending                     which ones are, each with a token
  gateway-orders evidence ORDER              what to ask the gateway's operator
  gateway-orders resolve --token TOKEN --exists --by NAME     or --absent: what you found`,
	}
	s.settings(root, traits{formats: []string{cli.FormatTable, cli.FormatJSON, cli.FormatCSV}, timeout: 30 * time.Second, single: true})
	root.AddCommand(s.pendingCommand(), s.showCommand(), s.evidenceCommand(), s.resolveCommand(), s.reconcileCommand(),
		s.exportCommand(), s.lostCommand(), s.gatewayCommand(), s.pruneCommand(), s.migrateCommand(), s.versionCommand(),
		cli.Exits("exits", "The exit code says whether there is something left to do:", "", exits()))
	return root
}

// The traits of a command that uses the database.
type traits struct {
	formats []string      // of the output, the default first; nil for a table or JSON
	timeout time.Duration // 0 for none
	early   string        // what is so when it was interrupted
	single  bool          // whether it is about the orders of one merchant
}

// settings defines the flags of all commands that use the database. The root has them too, so that
// they may stand before the command. It returns --timeout.
func (s *session) settings(c *cobra.Command, t traits) *time.Duration {
	flags := c.Flags()
	flags.StringVar(&s.db, "db", "", "the `URL` of the database, without a password, instead of "+envDB)
	flags.StringVar(&s.dbFile, "db-file", "", "a `file` with the URL of the database, instead of "+envDB)
	flags.StringVar(&s.table, "table", sqlguard.DefaultTable, "the `name` of the table")
	if t.single {
		flags.StringVar(&s.merchant, "merchant", "", "the `name` of the merchant; without it, orders of calls that name none, and for pending all")
	}
	cli.OutputFlag(c, &s.format, t.formats[0], t.formats...)
	return flags.Duration("timeout", t.timeout, "how `long` it may take, 0 for any time")
}

// An action carries a command out after its flags have been parsed.
type action func(ctx context.Context, args []string) error

// uses makes a command one that uses the database.
func (s *session) uses(c *cobra.Command, t traits, do action) *cobra.Command {
	if t.formats == nil {
		t.formats = []string{cli.FormatTable, cli.FormatJSON}
	}
	timeout := s.settings(c, t)
	c.RunE = func(c *cobra.Command, args []string) error {
		s.format = cmp.Or(s.format, t.formats[0])
		if *timeout < 0 {
			return cli.Usage(c, "--timeout is negative")
		}
		ctx := c.Context()
		if *timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *timeout)
			defer cancel()
		}
		err := do(ctx, args)
		if s.guard != nil {
			if closed := s.close(); err == nil {
				err = closed
			}
		}
		return ended(ctx, err, *timeout, t.early)
	}
	return c
}

// ended says what is so when a command was interrupted.
func ended(ctx context.Context, err error, limit time.Duration, early string) error {
	if err == nil || ctx.Err() == nil || exitCode(err) != cli.ExitFailed {
		return err
	}
	if part, ok := errors.AsType[*partError](err); ok {
		early, err = part.done, part.cause
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the time of --timeout, %s, is over: %s (%w)", limit, early, err)
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

// note writes lines for a person to stderr, after the result.
func (s *session) note(format string, args ...any) {
	if s.format != cli.FormatJSON {
		_, _ = fmt.Fprintf(s.Err, format+"\n", args...)
	}
}

func (s *session) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "The version of this program, and of the table that it works with", Example: "  gateway-orders version",
		RunE: func(*cobra.Command, []string) error {
			if s.format == cli.FormatJSON {
				return s.WriteJSON(map[string]any{"version": cli.Version(), "go": runtime.Version(), "table": sqlguard.SchemaVersion})
			}
			return s.Write(fmt.Sprintf("gateway-orders %s, %s, version %d of the table\n", cli.Version(), runtime.Version(), sqlguard.SchemaVersion))
		},
	}
	cli.OutputFlag(c, &s.format, cli.FormatTable, cli.FormatTable, cli.FormatJSON)
	return c
}
