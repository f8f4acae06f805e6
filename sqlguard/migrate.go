package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SchemaVersion is the version of the table that this package works with: 1 has the states of
// the orders, 2 their records too.
const SchemaVersion = 2

// recordColumns are those that version 2 has added, with their types.
func recordColumns() [][2]string {
	return [][2]string{
		{"recorded", "integer"},
		{"request", "text"},
		{"request_id", "text"},
		{"sent_at", "{time}"},
		{"status", "integer"},
		{"body", "{bytes}"},
		{"cause", "text"},
		{"invoice", "{bytes}"},
	}
}

const (
	migrateLockTimeout = 200 * time.Millisecond // for which a Begin may wait behind Migrate
	leastMigratePause  = 100 * time.Millisecond
	mostMigratePause   = 5 * time.Second
)

// Migrate creates the table and its indexes, or brings those of an earlier version to
// [SchemaVersion], while processes of this and of the earlier version use them. Any number of processes may
// call it at once. Where there is nothing to do it takes no lock. A process that dies in it
// leaves the version that was there, or the new one.
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

// SchemaVersion returns the version of the table by the columns that it has; 0 if there is no
// table. One that lacks some of those of a version has the version before.
func (g *Guard) SchemaVersion(ctx context.Context) (int, error) {
	columns, _, err := g.shape(ctx, g.db)
	if err != nil {
		return 0, fmt.Errorf("sqlguard: the version of the table: %w", err)
	}
	return version(columns), nil
}

func version(columns map[string]bool) int {
	if len(columns) == 0 {
		return 0
	}
	if len(missingColumns(columns)) > 0 {
		return 1
	}
	return SchemaVersion
}

// missingColumns are those that a table lacks.
func missingColumns(columns map[string]bool) (missing [][2]string) {
	for _, column := range recordColumns() {
		if !columns[column[0]] {
			missing = append(missing, column)
		}
	}
	return missing
}

// MigrationSQL returns the statements that bring the table from a version to
// [SchemaVersion], for a merchant's own tool; those from version 0 create it. The table name
// is as for [WithTable]. The error for an invalid argument is a [*gateway.ArgumentError].
//
// In PostgreSQL set a lock_timeout for the statement that changes the table, and repeat it:
// while it waits, every Begin waits behind it. [Guard.Migrate] does.
func MigrationSQL(d Dialect, table string, from int) (string, error) {
	if d != PostgreSQL && d != SQLite {
		return "", badArgument("dialect", "must be PostgreSQL or SQLite")
	}
	if reason := checkTable(table); reason != "" {
		return "", badArgument("table", reason)
	}
	var texts []string
	switch from {
	case 0:
		texts = d.schema(table)
	case 1:
		texts = d.addColumns(table, recordColumns())
	case SchemaVersion:
		return "", nil
	default:
		return "", badArgument("from", fmt.Sprintf("must be from 0 to %d", SchemaVersion))
	}
	return strings.Join(texts, ";\n\n") + ";\n", nil
}

// addColumns returns the statements that add columns: one in PostgreSQL, and one for each in
// SQLite.
func (d Dialect) addColumns(table string, columns [][2]string) (texts []string) {
	var clauses []string
	for _, column := range columns {
		if d == SQLite {
			texts = append(texts, fmt.Sprintf("ALTER TABLE {table} ADD COLUMN %s %s", column[0], column[1]))
		}
		clauses = append(clauses, fmt.Sprintf("\tADD COLUMN IF NOT EXISTS %s %s", column[0], column[1]))
	}
	if d == PostgreSQL && len(columns) > 0 {
		texts = []string{"ALTER TABLE {table}\n" + strings.Join(clauses, ",\n")}
	}
	return d.fill(table, texts...)
}

// A querier is a handle, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// shapeInPostgres and shapeInSQLite return the names of the columns of a table, and of its indexes with a prefix.
const (
	shapeInPostgres = `SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(CAST($1 AS text)) AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'index ' || relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass(CAST($1 AS text))`
	shapeInSQLite = `SELECT name FROM pragma_table_info(?1) UNION ALL SELECT 'index ' || name FROM pragma_index_list(?1)`
)

// shape returns the columns of the table, and whether its indexes are there.
func (g *Guard) shape(ctx context.Context, q querier) (columns map[string]bool, indexed bool, err error) {
	query, table := shapeInSQLite, g.cfg.table
	if g.cfg.dialect == PostgreSQL {
		query, table = shapeInPostgres, `"`+table+`"`
	}
	names, err := readTexts(q.QueryContext(ctx, query, table))
	columns = map[string]bool{}
	indexes := map[string]bool{}
	for _, name := range names {
		if index, ok := strings.CutPrefix(name, "index "); ok {
			indexes[index] = true
		} else {
			columns[name] = true
		}
	}
	return columns, indexes[g.cfg.table+openIndex] && indexes[g.cfg.table+doneIndex], err
}

// migration returns the statements that are missing. It runs no others: in PostgreSQL,
// CREATE INDEX … IF NOT EXISTS waits for all writers and for a VACUUM even if there is
// nothing to create, and every Begin waits behind it.
func (g *Guard) migration(ctx context.Context, q querier) ([]string, error) {
	columns, indexed, err := g.shape(ctx, q)
	if err != nil {
		return nil, err
	}
	schema := g.cfg.dialect.schema(g.cfg.table)
	switch from := version(columns); {
	case from == 0:
		return schema, nil
	case !indexed:
		return append(g.cfg.dialect.addColumns(g.cfg.table, missingColumns(columns)), schema[1:]...), nil
	default:
		return g.cfg.dialect.addColumns(g.cfg.table, missingColumns(columns)), nil
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
	if state == undefinedTable || state == undefinedColumn || strings.Contains(text, "no such table") ||
		strings.Contains(text, "no such column") || strings.Contains(text, "has no column named") {
		return fmt.Errorf("%w: call Migrate, which creates the table and brings an earlier one up", err)
	}
	return err
}
