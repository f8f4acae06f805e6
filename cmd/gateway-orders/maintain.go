package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
)

func migrateCommand() command {
	return command{
		name: "migrate", synopsis: "[-dry-run]", short: "create the table, or bring an earlier one up",
		text: `
Creates the table, or brings one of an earlier version up while processes use it. Where there is
nothing to do it does nothing. It is the only command that creates a database file of SQLite.

  gateway-orders migrate -dry-run   # prints the SQL
  gateway-orders migrate`,
		timeout: 5 * time.Minute, early: "the table has the version that it had, or the new one: run it again", formats: tableOrJSON(),
		define: func(s *session, flags *flag.FlagSet) action {
			dryRun := flags.Bool("dry-run", false, "print the SQL, and run nothing")
			return func(ctx context.Context) error { return s.migrate(ctx, *dryRun) }
		},
	}
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
			return fmt.Errorf("-db cannot be used: %w", err)
		}
	} else if !dryRun || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	result := migrateJSON{Table: s.table, From: from, To: sqlguard.SchemaVersion}
	if dryRun {
		dialect := sqlguard.PostgreSQL
		if strings.HasPrefix(s.db, "sqlite:") {
			dialect = sqlguard.SQLite
		}
		result.SQL, err = sqlguard.MigrationSQL(dialect, s.table, from)
	} else {
		err = s.guard.Migrate(ctx)
	}
	switch {
	case err != nil:
		return err
	case s.format == formatJSON:
		return s.writeJSON(s.out, result)
	case dryRun && result.SQL != "":
		return s.write(result.SQL)
	case from == result.To:
		return s.write(fmt.Sprintf("the table %s has version %d: there is nothing to do\n", s.table, from))
	default:
		return s.write(fmt.Sprintf("the table %s has version %d now\n", s.table, result.To))
	}
}

func pruneCommand() command {
	return command{
		name: "prune", synopsis: "-older-than AGE [-dry-run]", short: "delete old orders that are created or free",
		text: `
Deletes the orders that are created or free and have not changed for longer than AGE, such as 400d
or 9600h, at least 24h. Those that are unknown or in flight stay. What is deleted is forgotten:
if it is sent again, it has a second invoice. Choose an age after which no order is sent again.

  gateway-orders prune -older-than 400d -dry-run`,
		early: unchanged, formats: tableOrJSON(),
		define: func(s *session, flags *flag.FlagSet) action {
			age := flags.String("older-than", "", "the `age`, in days as 400d or in hours as 9600h")
			dryRun := flags.Bool("dry-run", false, "count them, and delete nothing")
			return func(ctx context.Context) error {
				d, err := parseAge(*age)
				if err != nil {
					return badFlag("prune", "older-than", err.Error())
				}
				return s.prune(ctx, d, *dryRun)
			}
		},
	}
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
		count, err = s.prunable(ctx, time.Now().Add(-age))
	} else if count, err = s.guard.Prune(ctx, age); err != nil {
		return &partError{fmt.Sprintf("%d orders were deleted, and up to 1000 others may be", count), err}
	}
	if err != nil {
		return err
	}
	if s.format == formatJSON {
		return s.writeJSON(s.out, map[string]any{"pruned": count, "dryRun": dryRun})
	}
	return s.write(fmt.Sprintf("%d orders %s\n", count, verb))
}

func versionCommand() command {
	return command{
		name: "version", short: "the version of this program, and of the table that it works with",
		text:  "Prints the versions.\n\n  gateway-orders version",
		local: true, formats: tableOrJSON(),
		define: func(s *session, _ *flag.FlagSet) action {
			return func(context.Context) error {
				version := "unknown"
				if info, ok := debug.ReadBuildInfo(); ok {
					version = info.Main.Version
				}
				if s.format == formatJSON {
					return s.writeJSON(s.out, map[string]any{"version": version, "go": runtime.Version(), "table": sqlguard.SchemaVersion})
				}
				return s.write(fmt.Sprintf("gateway-orders %s, %s, version %d of the table\n", version, runtime.Version(), sqlguard.SchemaVersion))
			}
		},
	}
}
