package sqlguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// SchemaVersion is the version of the table that this package works with.
const SchemaVersion = 1

// Migrate creates the table, its indexes and the view for people, where they are missing. Any number of processes may
// call it at once. Where there is nothing to do it takes no lock. A process that dies in it
// leaves what was there, or all of it; in MariaDB a second Migrate completes it. A table of a newer version
// is an error, and is left as it is.
func (g *Guard) Migrate(ctx context.Context) error {
	if err := g.migrate(ctx); err != nil {
		return fmt.Errorf("sqlguard: migrating the table: %w", err)
	}
	return nil
}

func (g *Guard) migrate(ctx context.Context) error {
	if exists, err := g.exists(ctx, g.db); err != nil || exists {
		return err
	}
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if begin := g.sql.begin; begin != "" {
		if _, err := conn.ExecContext(ctx, begin); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	}
	if lock := g.sql.lock; lock != "" {
		if _, err := conn.ExecContext(ctx, lock); err != nil {
			return err
		}
	}
	if exists, err := g.exists(ctx, conn); err != nil || exists { // another process has done it
		return err
	}
	for _, text := range g.sql.creation() {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// exists reports whether the view for people is there, which is created last. A newer version of the package, with
// whose table this one must not work, creates a view with the last suffix too, and a column without a default, so that
// no insert of this version succeeds.
func (g *Guard) exists(ctx context.Context, q querier) (bool, error) {
	newer, err := g.hasView(ctx, q, len(suffixes)-1)
	switch {
	case err != nil:
		return false, err
	case newer:
		return false, errors.New("the table is of a newer version of sqlguard: update this program")
	}
	return g.hasView(ctx, q, 0)
}

func (g *Guard) hasView(ctx context.Context, q querier, suffix int) (exists bool, err error) {
	rows, err := q.QueryContext(ctx, g.sql.fill(fmt.Sprintf(g.sql.exists, "?")), g.sql.nameOfView(g.cfg.table, suffix))
	err = readRows(rows, err, func() error {
		exists = true
		return nil
	})
	return exists, err
}

// SchemaVersion returns the version of the table; 0 if there is no table, or not all of it. That of a newer version
// of the package is an error.
func (g *Guard) SchemaVersion(ctx context.Context) (int, error) {
	exists, err := g.exists(ctx, g.db)
	switch {
	case err != nil:
		return 0, fmt.Errorf("sqlguard: the version of the table: %w", err)
	case exists:
		return SchemaVersion, nil
	default:
		return 0, nil
	}
}

// Check reports whether the guard can work: whether the table exists in this version and can be read, and
// whether the connection has the settings that it needs. In MariaDB autocommit must be on and EMPTY_STRING_IS_NULL off, and in SQLite the encoding
// must be UTF-8. [gateway.Client.Check] calls it.
func (g *Guard) Check(ctx context.Context) error {
	exists, err := g.exists(ctx, g.db)
	if err == nil && !exists {
		err = fmt.Errorf("there is no table %s: call Migrate", g.cfg.table)
	}
	if err == nil {
		_, err = g.read(ctx, g.db, key{}) // with the columns and the grants of a guard
	}
	if err == nil && g.sql.misset != "" {
		err = g.checkSettings(ctx)
	}
	if err != nil {
		return fmt.Errorf("sqlguard: check: %w", explained(err))
	}
	return nil
}

func (g *Guard) checkSettings(ctx context.Context) error {
	var wrong string
	rows, err := g.db.QueryContext(ctx, g.sql.misset)
	err = readRows(rows, err, func() error { return rows.Scan(&wrong) })
	if err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	return err
}

// MigrationSQL returns the statements that bring the table from a version to
// [SchemaVersion], for a merchant's own tool; those from version 0 create it. The table name
// is as for [WithTable]. The error for an invalid argument is a [*gateway.ArgumentError].
func MigrationSQL(d Dialect, table string, from int) (string, error) {
	if !d.isValid() {
		return "", badArgument("dialect", badDialect)
	}
	if reason := checkTable(table); reason != "" {
		return "", badArgument("table", reason)
	}
	switch from {
	case 0:
		s := d.schema(table)
		return strings.Join(s.creation(), ";\n\n") + ";\n", nil
	case SchemaVersion:
		return "", nil
	default:
		return "", badArgument("from", fmt.Sprintf("must be from 0 to %d", SchemaVersion))
	}
}
