package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "migrate", Short: "Create the table", Args: cobra.NoArgs,
		Long: `Creates the table and its indexes, where they are missing, and reports a new one. Any number of
processes may use the table meanwhile. With SQLite it creates the file too.`,
		Example: `  gateway orders migrate --dry-run   # prints the SQL
  gateway orders migrate`,
	}
	dryRun := c.Flags().Bool("dry-run", false, "print the SQL, and run nothing")
	return s.runs(c, 5*time.Minute, func(ctx context.Context, _ []string) error { return s.migrate(ctx, *dryRun) })
}

func (s *session) migrate(ctx context.Context, dryRun bool) error {
	guard, err := s.connect(!dryRun)
	if dryRun && errors.Is(err, fs.ErrNotExist) {
		return s.writeSQL(sqlguard.SQLite, 0)
	}
	if err != nil {
		return err
	}
	version, err := guard.SchemaVersion(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the database cannot be used: %w", err)
	case dryRun:
		return s.writeSQL(s.dialect, version)
	case version == sqlguard.SchemaVersion:
		return s.write(fmt.Sprintf("the table %s is there: there is nothing to do\n", s.database.table))
	}
	if err := guard.Migrate(ctx); err != nil {
		return err
	}
	return s.write(fmt.Sprintf("the table %s is new, and empty: it knows no earlier order\n", s.database.table))
}

func (s *session) writeSQL(dialect sqlguard.Dialect, version int) error {
	text, err := sqlguard.MigrationSQL(dialect, s.database.table, version)
	if err != nil {
		return err
	}
	return s.write(text)
}

func (s *session) forgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "forget ORDER", Short: "Forget a created order, so that the next call creates another invoice", Args: cobra.ExactArgs(1),
		Long: `Forgets a created order whose invoice can no longer be paid, such as an expired one: the next call for
the order sends it, and it has a second invoice. Ask the gateway's operator first whether a repeated
orderId creates a new invoice. An order that is free, in flight or unknown is refused, and so is an order
that has another attempt by now, and with it another invoice.`,
		Example: "  gateway orders forget A-17 --attempt 42",
	}
	s.prints(c, formatTable, formatJSON)
	merchant := merchantFlag(c.Flags(), "none")
	attempt := c.Flags().String("attempt", "", "the `attempt` that created the invoice, as orders show prints it")
	_ = c.MarkFlagRequired("attempt") // fails only for a flag that does not exist
	return s.runs(c, ordersTimeout, func(ctx context.Context, args []string) error {
		guard, err := s.guard(ctx)
		if err != nil {
			return err
		}
		o, err := known(ctx, guard, *merchant, args[0])
		if err == nil {
			o.Attempt = *attempt
			err = guard.Forget(ctx, o)
		}
		if err != nil {
			return err
		}
		s.tell("The order is forgotten. It had this invoice; the next call for the order creates another one:")
		return s.printDone(recordOf(o, defaultMargin))
	})
}

func (s *session) pruneCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "prune --older-than AGE", Short: "Delete old orders that are created or free", Args: cobra.NoArgs,
		Long: `Deletes the orders that are created or free and have not changed for longer than AGE, such as 400d
or 9600h, at least 24h. Orders that are unknown or in flight stay. A deleted order is forgotten: if
it is sent again, it has a second invoice. Choose an age after which no order is sent again.`,
		Example: "  gateway orders prune --older-than 400d --dry-run",
	}
	s.prints(c, formatTable, formatJSON)
	age := c.Flags().String("older-than", "", "the `age`, in days as 400d or in hours as 9600h")
	dryRun := c.Flags().Bool("dry-run", false, "count them, and delete nothing")
	_ = c.MarkFlagRequired("older-than") // fails only for a flag that does not exist
	return s.runs(c, 0, func(ctx context.Context, _ []string) error {
		d, err := parseAge(*age)
		if err != nil {
			return usage("--older-than: %w", err)
		}
		return s.prune(ctx, d, *dryRun)
	})
}

// parseAge reads an age of whole days or of hours.
func parseAge(text string) (age time.Duration, err error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if n, err = strconv.Atoi(days); err == nil && n < 100_000 {
			age = time.Duration(n) * 24 * time.Hour
		}
	} else {
		age, err = time.ParseDuration(text)
	}
	if err != nil || age < 24*time.Hour {
		return 0, errors.New("it is an age such as 400d or 9600h, at least 24h and below 100000d")
	}
	return age, nil
}

func (s *session) prune(ctx context.Context, age time.Duration, dryRun bool) error {
	guard, err := s.guard(ctx)
	if err != nil {
		return err
	}
	count := 0
	if dryRun {
		count, err = guard.Prunable(ctx, age)
	} else if count, err = guard.Prune(ctx, age); err != nil {
		return fmt.Errorf("%d orders were deleted, and up to 1000 others may be: %w", count, err)
	}
	if err != nil {
		return err
	}
	return s.printDone(map[string]any{"pruned": count, "dryRun": dryRun})
}
