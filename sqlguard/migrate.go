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
// is an error, and is left as it is. So are settings with which a guard cannot work and orders of the other kind, see
// [Guard.Check], and in PostgreSQL a table of the name in a schema that is not in the search_path: two tables would be two
// memories of one order. Where another shop has that one, use [WithTable] or [MigrationSQL].
func (g *Guard) Migrate(ctx context.Context) error {
	err := refuse(ctx, g.db, g.sql.misset)
	if err == nil {
		err = g.migrate(ctx)
	}
	if err == nil {
		err = g.checkKind(ctx)
	}
	if err != nil {
		return fmt.Errorf("sqlguard: migrating the table: %w", explained(err))
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
	if err := refuse(ctx, conn, g.sql.elsewhere, g.cfg.table); err != nil {
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

// SchemaVersion returns the version of the table; 0 if there is no table, or not all of it. A table of a newer
// version of the package is an error.
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

// Check reports whether the guard can work: whether the table exists in this version, can be read and has no sent orders of
// the other kind, see [WithMerchants], and whether the connection has the settings that it needs. In MariaDB autocommit must be
// on and EMPTY_STRING_IS_NULL off, and in SQLite the encoding must be UTF-8. [gateway.Client.Check] calls it.
func (g *Guard) Check(ctx context.Context) error {
	err := refuse(ctx, g.db, g.sql.misset)
	if err == nil {
		var exists bool
		if exists, err = g.exists(ctx, g.db); err == nil && !exists {
			err = fmt.Errorf("there is no table %s: call Migrate", g.cfg.table)
		}
	}
	if err == nil {
		_, err = g.read(ctx, g.db, key{}) // with the columns and the grants of a guard
	}
	if err == nil {
		err = g.checkKind(ctx)
	}
	if err != nil {
		return fmt.Errorf("sqlguard: check: %w", explained(err))
	}
	return nil
}

// refuse returns as an error what a query says is wrong, if anything.
func refuse(ctx context.Context, q querier, query string, args ...any) error {
	if query == "" {
		return nil
	}
	var wrong string
	rows, err := q.QueryContext(ctx, query, args...)
	err = readRows(rows, err, func() error { return rows.Scan(&wrong) })
	if err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	return err
}

// checkMerchant refuses an order of the kind that the guard is not for.
func (g *Guard) checkMerchant(merchant string) error {
	switch {
	case merchant != "" && !g.cfg.merchants:
		return badArgument("WithMerchants", "is not set, and the call names a merchant by WithMerchant")
	case merchant == "" && g.cfg.merchants:
		return badArgument("WithMerchants", "is set, and the call names no merchant: name it by WithMerchant, in WithDefaults for all calls of a client")
	}
	return nil
}

// checkKind refuses a table that has a sent order of the other kind. A free order is none: nothing of it is to be remembered.
func (g *Guard) checkKind(ctx context.Context) error {
	found := false
	err := g.onConn(ctx, isRepeatable, func(ctx context.Context, h handle) error {
		rows, err := h.QueryContext(ctx, g.queries.otherKind)
		return readRows(rows, err, func() error {
			found = true
			return nil
		})
	})
	const moved = "stop all processes and move them: UPDATE %s SET merchant = %s WHERE merchant = %s"
	switch {
	case err != nil || !found:
		return err
	case g.cfg.merchants:
		return badArgument("WithMerchants", fmt.Sprintf("is set, and the table has orders without a merchant, which would be sent again: "+moved, g.sql.table, "'NAME'", "''"))
	default:
		return badArgument("WithMerchants", fmt.Sprintf("is not set, and the table has orders of a merchant, which would be sent again: set it, or "+moved, g.sql.table, "''", "'NAME'"))
	}
}

// makeSure refuses the table as checkKind does, until this process has recorded that an order is created: processes of the
// other kind see that one, in the same way, after they have recorded an order and before they send it.
func (g *Guard) makeSure(ctx context.Context) error {
	if g.isSure.Load() {
		return nil
	}
	return g.checkKind(ctx)
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
