package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "migrate", Short: "Create the table",
		Long: `Creates the table and its indexes, where they are missing. Any number of processes may use it
meanwhile. It is the only command that creates a database file of SQLite.`,
		Example: `  gateway-orders migrate --dry-run   # prints the SQL
  gateway-orders migrate`,
	}
	dryRun := c.Flags().Bool("dry-run", false, "print the SQL, and run nothing")
	return s.uses(c, traits{timeout: 5 * time.Minute, early: "the table is there or not: run it again"},
		func(ctx context.Context, _ []string) error { return s.migrate(ctx, *dryRun) })
}

// migrateJSON is the result of migrate.
type migrateJSON struct {
	Table string `json:"table"`
	From  int    `json:"from"`          // the version that the table had; 0 for no table
	To    int    `json:"to"`            // the version that it has, or would have
	SQL   string `json:"sql,omitempty"` // of a dry run: what would be run
}

func (s *session) migrate(ctx context.Context, dryRun bool) error {
	from, err := 0, s.connect(!dryRun)
	if err == nil {
		if from, err = s.guard.SchemaVersion(ctx); err != nil {
			return fmt.Errorf("the database cannot be used: %w", err)
		}
	} else if !dryRun || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	result := migrateJSON{Table: s.table, From: from, To: sqlguard.SchemaVersion}
	if dryRun {
		result.SQL, err = sqlguard.MigrationSQL(cmp.Or(s.dialect, sqlguard.SQLite), s.table, from) // a file that is not there is one of SQLite
	} else {
		err = s.guard.Migrate(ctx)
	}
	switch {
	case err != nil:
		return err
	case s.format == cli.FormatJSON:
		return s.WriteJSON(result)
	case dryRun && result.SQL != "":
		return s.Write(result.SQL)
	case from == result.To:
		return s.Write(fmt.Sprintf("the table %s has version %d: there is nothing to do\n", s.table, from))
	default:
		return s.Write(fmt.Sprintf("the table %s has version %d now\n", s.table, result.To))
	}
}

func (s *session) pruneCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "prune --older-than AGE", Short: "Delete old orders that are created or free",
		Long: `Deletes the orders that are created or free and have not changed for longer than AGE, such as 400d
or 9600h, at least 24h. Those that are unknown or in flight stay. What is deleted is forgotten:
if it is sent again, it has a second invoice. Choose an age after which no order is sent again.`,
		Example: "  gateway-orders prune --older-than 400d --dry-run",
	}
	age := c.Flags().String("older-than", "", "the `age`, in days as 400d or in hours as 9600h")
	dryRun := c.Flags().Bool("dry-run", false, "count them, and delete nothing")
	return s.uses(c, traits{early: unchanged}, func(ctx context.Context, _ []string) error {
		d, err := parseAge(*age)
		if err != nil {
			return cli.Usage(c, "--older-than "+err.Error())
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
	switch {
	case text == "":
		return 0, errors.New("is required: the age, such as 400d")
	case err != nil:
		return 0, errors.New("is an age such as 400d or 9600h")
	case age < 24*time.Hour:
		return 0, errors.New("must be at least 24h, and below 100000d")
	}
	return age, nil
}

func (s *session) prune(ctx context.Context, age time.Duration, dryRun bool) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	count, err := 0, error(nil)
	verb := "deleted"
	if dryRun {
		verb = "would be deleted"
		count, err = s.guard.Prunable(ctx, age)
	} else if count, err = s.guard.Prune(ctx, age); err != nil {
		return &partError{fmt.Sprintf("%d orders were deleted, and up to 1000 others may be", count), err}
	}
	if err != nil {
		return err
	}
	if s.format == cli.FormatJSON {
		return s.WriteJSON(map[string]any{"pruned": count, "dryRun": dryRun})
	}
	return s.Write(fmt.Sprintf("%d orders %s\n", count, verb))
}
