package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "migrate", Short: "Create the table", Args: cobra.NoArgs,
		Long: `Creates the table, its indexes and the view for people, where they are missing, and reports which.
Any number of processes may use the table meanwhile. With SQLite it creates the file too. Settings
with which the database can lose orders are refused.`,
		Example: `  gateway orders migrate
  gateway orders migrate --sql postgresql >migration.sql`,
	}
	dialect := c.Flags().String("sql", "", "print the statements for a `database` instead: postgresql, mariadb or sqlite")
	loses := c.Flags().Bool("without-durability", false, "accept settings with which a crash loses orders, as of a cluster whose other nodes keep them")
	return s.runs(c, 5*time.Minute, func(ctx context.Context, _ []string) error {
		if *dialect != "" {
			return s.printSQL(*dialect)
		}
		var opts []sqlguard.Option
		if *loses {
			opts = append(opts, sqlguard.WithoutDurability())
		}
		guard, version, err := s.connect(ctx, true, opts...)
		if err != nil {
			return err
		}
		seen := s.seesView(ctx)
		if err := guard.Migrate(ctx); err != nil {
			return err
		}
		switch {
		case version == 0:
			return s.write(fmt.Sprintf("the table %s is new, and empty: it knows no earlier order\n", s.table))
		case !seen && s.seesView(ctx):
			return s.write(fmt.Sprintf("the table %[1]s is there; its view for people, %[1]s_list, was missing, and is made again\n", s.table))
		default:
			return s.write(fmt.Sprintf("the table %s is there: there is nothing to do\n", s.table))
		}
	})
}

// printSQL prints the statements that create the table in a database, for the tool of a DBA.
func (s *session) printSQL(database string) error {
	for d := sqlguard.PostgreSQL; d <= sqlguard.MariaDB; d++ {
		if strings.EqualFold(d.String(), database) {
			text, err := sqlguard.MigrationSQL(d, s.table, 0)
			if err != nil {
				return usage("--table: %w", err)
			}
			return s.write(text)
		}
	}
	return usage("--sql is postgresql, mariadb or sqlite")
}

// seesView reports whether the view for people is there, and this user may read it.
func (s *session) seesView(ctx context.Context) bool {
	return s.db.QueryRowContext(ctx, "SELECT count(*) FROM "+s.table+"_list WHERE 1 = 0").Scan(new(int)) == nil
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
	merchant := merchantFlag(c.Flags())
	attempt := c.Flags().String("attempt", "", "the `number` of the attempt that created the invoice, as orders show prints it")
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
		return s.printDone(recordOf(o, gateway.DefaultMargin))
	})
}

func (s *session) pruneCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "prune --days NUMBER", Short: "Delete old orders that are created or free", Args: cobra.NoArgs,
		Long: `Deletes the orders that are created or free and have not changed for that many days. Orders that
are unknown or in flight stay. A deleted order is forgotten: if it is sent again, it has a second
invoice. Choose an age after which no order is sent again.`,
		Example: "  gateway orders prune --days 400 --dry-run",
	}
	s.prints(c, formatTable, formatJSON)
	days := c.Flags().Int("days", 0, "the `number` of days without a change, 1 to 36500")
	dryRun := c.Flags().Bool("dry-run", false, "count them, and delete nothing")
	_ = c.MarkFlagRequired("days") // fails only for a flag that does not exist
	return s.runs(c, 0, func(ctx context.Context, _ []string) error {
		if *days < 1 || *days > 36500 {
			return usage("--days is a number from 1 to 36500")
		}
		return s.prune(ctx, time.Duration(*days)*24*time.Hour, *dryRun)
	})
}

func (s *session) prune(ctx context.Context, age time.Duration, dryRun bool) error {
	guard, err := s.guard(ctx)
	if err != nil {
		return err
	}
	count := 0
	if dryRun {
		count, err = guard.Prunable(ctx, age)
	} else {
		count, err = guard.Prune(ctx, age)
	}
	switch {
	case errors.Is(err, sqlguard.ErrUnanswered):
		return fmt.Errorf("%d orders were deleted, and up to 1000 others may be: %w", count, err)
	case err != nil && count > 0:
		return fmt.Errorf("%d orders were deleted: %w", count, err)
	case err != nil:
		return err
	}
	return s.printDone(map[string]any{"pruned": count, "dryRun": dryRun})
}
