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
// call it at once. If there is nothing to do, it takes no lock. If a process dies in it, the database has everything or
// nothing new; in MariaDB a second Migrate completes the work. A missing view of a table is left to the table's owner if
// this user may not create it.
//
// Migrate leaves a table of another version as it is, and returns an error. It also returns an error for settings with
// which a guard cannot work or can lose orders, for orders of the other kind, see [Guard.Check], and in PostgreSQL for a
// table of the name in a schema that is not in the search_path: two tables would be two memories of one order. If that
// table belongs to another shop, use [WithTable] or [MigrationSQL].
func (g *Guard) Migrate(ctx context.Context) error {
	err := g.checkSettings(ctx)
	if err == nil {
		err = g.migrate(ctx)
	}
	if err == nil {
		_, err = g.read(ctx, g.db, key{}) // with the columns of this version
	}
	if err == nil {
		err = g.checkKind(ctx)
	}
	if err != nil {
		return fmt.Errorf("sqlguard: migrating the table: %w", advised(err))
	}
	return nil
}

func (g *Guard) migrate(ctx context.Context) error {
	_, missing, err := g.missing(ctx, g.db)
	if err != nil || missing == nil {
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
	version, missing, err := g.missing(ctx, conn) // another process may have created some of it
	if err != nil {
		return err
	}
	for _, text := range append(missing, "COMMIT") {
		_, err := conn.ExecContext(ctx, text)
		switch {
		case version == SchemaVersion && hasCode(err, g.sql.denials):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// missing returns the version of the table, and the statements that create the missing parts; nil for none.
func (g *Guard) missing(ctx context.Context, q querier) (version int, statements []string, err error) {
	version, err = g.version(ctx, q)
	switch {
	case err != nil:
		return 0, nil, err
	case version == 0:
		return 0, append(g.sql.creation(), g.sql.view()), g.refuse(ctx, q, g.sql.elsewhere)
	}
	rows, err := q.QueryContext(ctx, g.sql.fill(g.sql.viewIs))
	statements = []string{g.sql.view()}
	err = readRows(rows, err, func() error {
		statements = nil
		return nil
	})
	return version, statements, err
}

// newerColumn is a column that the table has in all newer versions. Besides, no insert of this version succeeds there.
var newerColumn = fmt.Sprint("schema_", SchemaVersion+1)

// version returns the version of the table, which its columns tell; 0 if there is none.
func (g *Guard) version(ctx context.Context, q querier) (version int, err error) {
	rows, err := q.QueryContext(ctx, g.sql.fill(g.sql.tableHas))
	err = readRows(rows, err, func() error {
		var column string
		if err := rows.Scan(&column); err != nil {
			return err
		}
		if version = SchemaVersion; column == newerColumn {
			return errors.New("the table is of a newer version of sqlguard: update this program")
		}
		return nil
	})
	return version, err
}

// SchemaVersion returns the version of the table; 0 if there is no table, or none that this user may see. A table of a
// newer version of the package is an error.
func (g *Guard) SchemaVersion(ctx context.Context) (int, error) {
	version, err := g.version(ctx, g.db)
	if err != nil {
		return 0, fmt.Errorf("sqlguard: the version of the table: %w", err)
	}
	return version, nil
}

// Check reports whether the guard can work, and cannot lose its records. The table must exist in this version and have no
// sent orders of the other kind, see [WithMerchants]. This user must be allowed to read and write it: Check tries that in
// a transaction, and rolls back. The settings must be these; [WithoutDurability] accepts settings with which a crash loses
// orders.
//
//   - PostgreSQL: fsync is on, and the table is neither UNLOGGED nor TEMPORARY. synchronous_commit may have any value: every
//     statement that writes turns it on for itself.
//   - SQLite: the encoding is UTF-8, and busy_timeout is not 0. The journal_mode is WAL, TRUNCATE or PERSIST, and synchronous is
//     FULL or EXTRA, or the journal_mode is DELETE, and synchronous is EXTRA.
//   - MariaDB: autocommit is on, the sql_mode does not have EMPTY_STRING_IS_NULL, and the table's engine has transactions.
//     innodb_flush_log_at_trx_commit is 3; or it is 1, and sync_binlog is 1 if there is a binary log.
//
// [gateway.Client.Check] calls it.
func (g *Guard) Check(ctx context.Context) error {
	err := g.checkSettings(ctx)
	if err == nil {
		var version int
		if version, err = g.version(ctx, g.db); err == nil && version == 0 {
			err = fmt.Errorf("there is no table %s that this user can see: call Migrate", g.cfg.table)
		}
	}
	if err == nil {
		_, err = g.read(ctx, g.db, key{}) // with the columns and the grants of a guard
	}
	if err == nil {
		err = g.checkKind(ctx)
	}
	if err == nil {
		err = g.tryToWrite(ctx)
	}
	if err != nil {
		return fmt.Errorf("sqlguard: check: %w", advised(err))
	}
	return nil
}

// tryToWrite inserts and updates a row as Begin and End do, and rolls back.
func (g *Guard) tryToWrite(ctx context.Context) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	k, has := key{order: fmt.Sprint("check ", randomName())}, g.guessed(stored{})
	for _, statement := range []string{"INSERT", "UPDATE"} {
		version := randomName()
		written, err := g.write(ctx, tx, k, has, row{}, version)
		if err == nil && !written {
			err = errors.New("nothing is written")
		}
		if err != nil {
			return fmt.Errorf("a guard cannot %s: %w", statement, err)
		}
		has.version = version
	}
	return nil
}

// checkSettings refuses settings with which a guard cannot work, or can lose orders.
func (g *Guard) checkSettings(ctx context.Context) error {
	err := g.refuse(ctx, g.db, g.sql.misset)
	if err == nil && !g.cfg.withoutDurability {
		if err = g.refuse(ctx, g.db, g.sql.losing); err != nil {
			err = fmt.Errorf("a crash or a power failure can lose orders, which are then sent again: %w (WithoutDurability accepts it)", err)
		}
	}
	return err
}

// refuse returns the faults that a query finds, as an error; nil for none.
func (g *Guard) refuse(ctx context.Context, q querier, query string) error {
	if query == "" {
		return nil
	}
	var all []string
	rows, err := q.QueryContext(ctx, g.sql.fill(query))
	err = readRows(rows, err, func() error {
		var wrong string
		err := rows.Scan(&wrong)
		all = append(all, wrong)
		return err
	})
	if err == nil && len(all) > 0 {
		err = errors.New(strings.Join(all, "; "))
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

// checkKind refuses a table that has a sent order of the other kind. A free order does not count: it may be forgotten.
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
		return strings.Join(append(s.creation(), s.view()), ";\n\n") + ";\n", nil
	case SchemaVersion:
		return "", nil
	default:
		return "", badArgument("from", fmt.Sprintf("must be from 0 to %d", SchemaVersion))
	}
}
