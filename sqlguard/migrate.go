package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SchemaVersion is the version of the table that this package works with.
const SchemaVersion = 1

const (
	migrateLockTimeout = 200 * time.Millisecond // for which a Begin may wait behind Migrate
	leastMigratePause  = 100 * time.Millisecond
	mostMigratePause   = 5 * time.Second
)

// Migrate creates the table and its indexes, where they are missing. Any number of processes may
// call it at once. Where there is nothing to do it takes no lock. A process that dies in it
// leaves what was there, or all of it.
//
// In PostgreSQL it waits for the lock that changes the table for 0.2 seconds, in which a
// Begin waits behind it, and tries again until ctx ends.
func (g *Guard) Migrate(ctx context.Context) error {
	migrate := g.migrateSQLite
	if g.cfg.dialect == PostgreSQL {
		migrate = g.migratePostgres
	}
	if err := migrate(ctx); err != nil {
		return fmt.Errorf("sqlguard: migrating the table: %w", err)
	}
	return nil
}

// SchemaVersion returns the version of the table; 0 if there is no table. It does not look at the
// columns: a table that another program has made has the first version, too, and cannot be used.
func (g *Guard) SchemaVersion(ctx context.Context) (int, error) {
	exists, _, err := g.shape(ctx, g.db)
	if err != nil {
		return 0, fmt.Errorf("sqlguard: the version of the table: %w", err)
	}
	if !exists {
		return 0, nil
	}
	return SchemaVersion, nil
}

// MigrationSQL returns the statements that bring the table from a version to
// [SchemaVersion], for a merchant's own tool; those from version 0 create it. The table name
// is as for [WithTable]. The error for an invalid argument is a [*gateway.ArgumentError].
func MigrationSQL(d Dialect, table string, from int) (string, error) {
	if d != PostgreSQL && d != SQLite {
		return "", badArgument("dialect", "must be PostgreSQL or SQLite")
	}
	if reason := checkTable(table); reason != "" {
		return "", badArgument("table", reason)
	}
	switch from {
	case 0:
		return strings.Join(d.schema(table), ";\n\n") + ";\n", nil
	case SchemaVersion:
		return "", nil
	default:
		return "", badArgument("from", fmt.Sprintf("must be from 0 to %d", SchemaVersion))
	}
}

// A querier is a handle, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// shapeInPostgres and shapeInSQLite return whether there is a table, and the names of its indexes.
const (
	shapeInPostgres = `SELECT '' WHERE to_regclass(CAST($1 AS text)) IS NOT NULL
UNION ALL SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass(CAST($1 AS text))`
	shapeInSQLite = `SELECT '' WHERE EXISTS (SELECT 1 FROM pragma_table_info(?1)) UNION ALL SELECT name FROM pragma_index_list(?1)`
)

// shape returns whether the table is there, and its indexes.
func (g *Guard) shape(ctx context.Context, q querier) (exists, indexed bool, err error) {
	query, table := shapeInSQLite, g.cfg.table
	if g.cfg.dialect == PostgreSQL {
		query, table = shapeInPostgres, `"`+table+`"`
	}
	names, err := readTexts(q.QueryContext(ctx, query, table))
	indexed = slices.Contains(names, g.cfg.table+openIndex) && slices.Contains(names, g.cfg.table+doneIndex)
	return len(names) > 0, indexed, err
}

// migration returns the statements that are missing. It runs no others: in PostgreSQL,
// CREATE INDEX … IF NOT EXISTS waits for all writers and for a VACUUM even if there is
// nothing to create, and every Begin waits behind it.
func (g *Guard) migration(ctx context.Context, q querier) ([]string, error) {
	exists, indexed, err := g.shape(ctx, q)
	switch schema := g.cfg.dialect.schema(g.cfg.table); {
	case err != nil || indexed:
		return nil, err
	case exists:
		return schema[1:], nil
	default:
		return schema, nil
	}
}

// migratePostgres tries again when the lock on the table was not to be had in time.
func (g *Guard) migratePostgres(ctx context.Context) error {
	if texts, err := g.migration(ctx, g.db); err != nil || len(texts) == 0 {
		return err
	}
	for pause := leastMigratePause; ; pause = min(2*pause, mostMigratePause) {
		err := g.migrateOnce(ctx)
		if err == nil || sqlState(err) != lockNotAvailable {
			return err
		}
		if wait(ctx, pause) != nil {
			return err
		}
	}
}

// migrateOnce runs what is missing in one transaction, and under an advisory lock: of
// several concurrent CREATE … IF NOT EXISTS, all but one can fail.
func (g *Guard) migrateOnce(ctx context.Context) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('sqlguard'))`); err != nil {
		return err
	}
	texts, err := g.migration(ctx, tx) // another process may have done it
	if err != nil {
		return err
	}
	timeout := fmt.Sprintf(`SET LOCAL lock_timeout = %d`, migrateLockTimeout.Milliseconds())
	for _, text := range append([]string{timeout}, texts...) {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// migrateSQLite runs what is missing in a transaction that has the write lock from its
// beginning: one that reads first could not take it after another process has written.
func (g *Guard) migrateSQLite(ctx context.Context) error {
	if texts, err := g.migration(ctx, g.db); err != nil || len(texts) == 0 {
		return err
	}
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	texts, err := g.migration(ctx, conn)
	for _, text := range texts {
		if _, err = conn.ExecContext(ctx, text); err != nil {
			break
		}
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		_, undone := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		return errors.Join(err, undone)
	}
	return nil
}

// The SQLSTATEs of PostgreSQL that mean something here.
const (
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
	undefinedColumn  = "42703"

	preparedTwice   = "42P05" // these are of a pooler that gives each transaction another connection
	preparedNowhere = "26000"
)

// sqlState returns the SQLSTATE of an error of PostgreSQL, or "".
func sqlState(err error) string {
	if state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return state.SQLState()
	}
	return ""
}

// explained says what to do about a table or a column that does not exist, or a prepared statement.
func explained(err error) error {
	if err == nil {
		return nil
	}
	state, text := sqlState(err), err.Error()
	if state == preparedTwice || state == preparedNowhere {
		return fmt.Errorf("%w: behind PgBouncer with transaction pooling, the DSN needs default_query_exec_mode=exec", err)
	}
	if state == undefinedTable || strings.Contains(text, "no such table") {
		return fmt.Errorf("%w: call Migrate, which creates the table", err)
	}
	if state == undefinedColumn || strings.Contains(text, "no such column") || strings.Contains(text, "has no column named") {
		return fmt.Errorf("%w: the table is not one of this version of sqlguard: name another by WithTable, or rename this one and call Migrate", err)
	}
	return err
}
