package sqlguard

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// A Dialect is the SQL of one database. The zero Dialect is not valid.
type Dialect int8

const (
	PostgreSQL Dialect = iota + 1 // PostgreSQL, through github.com/jackc/pgx/v5/stdlib.
	SQLite                        // SQLite 3.40 and later, through modernc.org/sqlite.
	MariaDB                       // MariaDB 10.11 and later, through github.com/go-sql-driver/mysql. MySQL 8 is not tested.
)

// String returns the name of the database.
func (d Dialect) String() string {
	if d < PostgreSQL || d > MariaDB {
		return fmt.Sprintf("Dialect(%d)", int8(d))
	}
	return dialects[d].name
}

func (d Dialect) isValid() bool { return d >= PostgreSQL && d <= MariaDB }

// badDialect is the reason for refusing a dialect.
const badDialect = "must be PostgreSQL, SQLite or MariaDB"

// A dialect has the differences between the databases. Identifiers are passed as bytes, so that neither the
// encoding of a connection nor a collation makes one of two.
type dialect struct {
	name, driver string    // driver is the package of the driver's type
	quote        string    // of names
	placeholder  string    // before the number of a parameter; empty for ?
	now          string    // microseconds since 1970, when the statement began
	id           [2]string // the types of identifiers: of a merchant or gateway, and of an order
	toID, ofID   string    // around a parameter of bytes, and around a column
	blob         string
	values       [2]string // around the values of an insert of a row that is not there
	written      string    // what further condition a write has
	isOpen       string    // of a partial index, which is not possible everywhere
	isDone       string
	tableHas     string // selects the names of the columns of the table
	viewIs       string // selects a row if the view exists
	elsewhere    string // selects why the table is not created, if anything; empty for nothing to check
	misset       string // selects why a guard cannot work, with the settings of a connection and of the table, if anything; empty for nothing to check
	losing       string // selects why a crash or a power failure loses orders, if anything
	list         listing
	engine       string   // of the table
	begin, lock  string   // Migrate begins with them; in MariaDB a statement that creates something ends the transaction
	again        []string // codes of errors after which a write may be tried again
	refusals     []string // codes of errors of a server that executes nothing: it is read-only, or not ready
	denials      []string // codes of errors of a user who may not create
	losses       []string // codes of errors of a server that goes away, and of a driver that has lost its connection
	terminate    string   // ends the server's side of a connection
}

// readOnly are the codes of MariaDB for a server or a transaction that only reads.
var readOnly = []string{"Error 1290", "Error 1792", "Error 1836"}

// durably is true. Whatever synchronous_commit is, the transaction of a statement that has it waits until the disk has its commit.
const durably = "set_config('synchronous_commit', 'on', true) = 'on'"

// sqliteFile is the file of the database, if it has one.
const sqliteFile = "pragma_database_list WHERE name = 'main' AND file <> ''"

var dialects = [...]dialect{
	PostgreSQL: {
		name: "PostgreSQL", driver: "github.com/jackc/pgx/v5/stdlib",
		quote: `"`, placeholder: "$",
		now: "CAST(extract(epoch FROM now()) * 1000000 AS bigint)",
		id:  [2]string{`text COLLATE "C"`, `text COLLATE "C"`}, toID: "convert_from(%s, 'UTF8')", ofID: "convert_to(%s, 'UTF8')", blob: "bytea",
		values:  [2]string{"SELECT ", " WHERE " + durably + " ON CONFLICT DO NOTHING"},
		written: " AND " + durably,
		isOpen:  " WHERE open_since > 0", isDone: " WHERE open_since = 0",
		tableHas: "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('{name}') AND attnum > 0 AND NOT attisdropped",
		viewIs:   "SELECT 1 WHERE to_regclass('{name}_list') IS NOT NULL",
		elsewhere: "SELECT 'the schema ' || quote_ident(nspname) || ' has a table of the name, and this user''s search_path does not have the schema: add it, or, if that is another shop''s, name this one''s by WithTable or run MigrationSQL' " +
			"FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE relname = '{name}' AND relkind IN ('r', 'p') AND NOT pg_table_is_visible(pg_class.oid) AND NOT pg_is_other_temp_schema(n.oid) LIMIT 1",
		losing: "SELECT 'fsync is off, and must be on' WHERE current_setting('fsync') = 'off' " +
			"UNION ALL SELECT 'the table is UNLOGGED or TEMPORARY, and a crash empties it: ALTER TABLE {table} SET LOGGED' FROM pg_class WHERE oid = to_regclass('{name}') AND relpersistence <> 'p'",
		list:  postgresList,
		begin: "BEGIN", lock: "SELECT pg_advisory_xact_lock(hashtext('sqlguard'))", // of several CREATE … IF NOT EXISTS at once, all but one can fail
		again:    []string{"40001", "40P01"},
		refusals: []string{"25006", "57P03"}, denials: []string{"42501"}, losses: []string{"57P01", "57P02", "conn closed"},
		terminate: "SELECT pg_terminate_backend(pg_backend_pid())",
	},
	SQLite: {
		name: "SQLite", driver: "modernc.org/sqlite",
		quote: `"`,
		now:   "CAST(round((julianday('now') - 2440587.5) * 86400000) AS integer) * 1000",
		id:    [2]string{"text", "text"}, toID: "CAST(%s AS text)", ofID: "%s", blob: "blob",
		values: [2]string{"VALUES (", ") ON CONFLICT DO NOTHING"},
		isOpen: " WHERE open_since > 0", isDone: " WHERE open_since = 0",
		tableHas: "SELECT name FROM pragma_table_info('{name}')",
		viewIs:   "SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = '{name}_list'",
		misset: "SELECT 'the encoding of the database is ' || encoding || ', and must be UTF-8' FROM pragma_encoding WHERE encoding <> 'UTF-8' " +
			"UNION ALL SELECT 'busy_timeout is 0, and of two writers one fails at once: add _pragma=busy_timeout(10000) to the DSN' FROM pragma_busy_timeout, " + sqliteFile + " AND timeout = 0 " +
			"UNION ALL SELECT 'journal_mode is ' || journal_mode || ', and a crash corrupts the database: set it to WAL' FROM pragma_journal_mode, " + sqliteFile + " AND journal_mode IN ('off', 'memory')",
		losing: "SELECT 'synchronous is ' || CASE synchronous WHEN 0 THEN 'OFF' WHEN 1 THEN 'NORMAL' ELSE 'FULL' END || ', and journal_mode is ' || journal_mode || ': " +
			"add _pragma=journal_mode(WAL)&_pragma=synchronous(FULL) to the DSN' FROM pragma_synchronous, pragma_journal_mode, " + sqliteFile +
			" AND synchronous < CASE journal_mode WHEN 'delete' THEN 3 ELSE 2 END " + // only EXTRA syncs the directory from which the journal is deleted
			"UNION ALL SELECT 'the database is in memory' FROM pragma_database_list WHERE name = 'main' AND file = ''",
		list:  sqliteList,
		begin: "BEGIN IMMEDIATE",
	},
	MariaDB: {
		name: "MariaDB", driver: "github.com/go-sql-driver/mysql",
		quote: "`",
		now:   "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
		id:    [2]string{"varbinary(512)", "varbinary(1024)"}, toID: "%s", ofID: "%s", blob: "longblob",
		values: [2]string{"SELECT ", " FROM DUAL WHERE @@autocommit = 1"}, written: " AND @@autocommit = 1",
		tableHas: "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{name}'",
		viewIs:   "SELECT 1 FROM information_schema.views WHERE table_schema = DATABASE() AND table_name = '{name}_list'",
		misset: "SELECT 'autocommit is off, and must be on' FROM DUAL WHERE @@autocommit = 0 " +
			"UNION ALL SELECT 'the sql_mode has EMPTY_STRING_IS_NULL, and must not' FROM DUAL WHERE FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) > 0 " +
			"UNION ALL SELECT CONCAT('the table has the engine ', engine, ', which has no transactions: ALTER TABLE {table} ENGINE = InnoDB') " +
			"FROM information_schema.tables JOIN information_schema.engines USING (engine) WHERE table_schema = DATABASE() AND table_name = '{name}' AND transactions <> 'YES'",
		losing: "SELECT CONCAT('innodb_flush_log_at_trx_commit is ', @@innodb_flush_log_at_trx_commit, ', and must be 1 or 3') FROM DUAL WHERE @@innodb_flush_log_at_trx_commit IN (0, 2) " +
			"UNION ALL SELECT CONCAT('innodb_flush_method is ', @@innodb_flush_method) FROM DUAL WHERE @@innodb_flush_method IN ('nosync', 'littlesync') " +
			"UNION ALL SELECT CONCAT('sync_binlog is ', @@sync_binlog, ', and must be 1, or innodb_flush_log_at_trx_commit 3') " + // after a crash, what the binary log has is committed
			"FROM DUAL WHERE @@log_bin = 1 AND @@sync_binlog <> 1 AND @@innodb_flush_log_at_trx_commit = 1",
		engine: " ENGINE = InnoDB", list: mariaList,
		again:    []string{"Error 1213", "Error 1205", "Error 1020"},
		refusals: append([]string{"Error 1047"}, readOnly...), denials: []string{"Error 1142", "Error 1044"}, losses: []string{"Error 1053", "Error 1927", "invalid connection"},
	},
}

// dialectOf returns the dialect of a driver, or 0. It compares the package of the
// driver's type, so that no driver need be imported.
func dialectOf(d driver.Driver) Dialect {
	kind := reflect.TypeOf(d)
	for dialect := PostgreSQL; dialect.isValid() && kind != nil && kind.Kind() == reflect.Pointer; dialect++ {
		if kind.Elem().PkgPath() == dialects[dialect].driver {
			return dialect
		}
	}
	return 0
}

// A schema is the SQL over one table.
type schema struct {
	dialect
	bare, table string // the name of the table, without and with quotes
}

func (d Dialect) schema(table string) schema {
	s := schema{dialect: dialects[d], bare: table}
	s.table = s.nameWith("")
	return s
}

// nameWith returns the quoted name of the table with a suffix: "_list" for the view, "_open" or "_done" for an index.
func (s *schema) nameWith(suffix string) string { return s.quote + s.bare + suffix + s.quote }

var parameter = regexp.MustCompile(`\{id\}|\?`)

// fill replaces {table}, the quoted name, {name}, the bare one, and {now} in a statement, and the placeholders: ? of a
// number or blob, and {id} of an identifier.
func (s *schema) fill(text string) string {
	count := 0
	text = parameter.ReplaceAllStringFunc(strings.NewReplacer("{table}", s.table, "{name}", s.bare, "{now}", s.now).Replace(text), func(kind string) string {
		count++
		place := "?"
		if s.placeholder != "" {
			place = s.placeholder + strconv.Itoa(count)
		}
		if kind == "{id}" {
			return fmt.Sprintf(s.toID, place)
		}
		return place
	})
	return text
}

// columns are the first columns of every query, see scan.
func (s *schema) columns() string {
	names := []string{"merchant", "order_id", "gateway"}
	for i, name := range names {
		names[i] = fmt.Sprintf(s.ofID, name)
	}
	return strings.Join(names, ", ") + ", version, attempts, attempt, begun_at, lease_until, open_since, ended_at, created_at, invoice, record, " + s.now
}

func (s *schema) selects(rest string) string {
	return s.fill("SELECT " + s.columns() + " FROM {table} " + rest)
}

// creation returns the statements for the table and its indexes. One index has only the orders that are in flight or
// unknown, so that the speed of Pending does not depend on the number of orders; the other is by the time that Prune
// asks for.
func (s *schema) creation() []string {
	table := fmt.Sprintf(`CREATE TABLE IF NOT EXISTS {table} (
	merchant    %[1]s NOT NULL, -- empty for the client's own
	order_id    %[2]s NOT NULL,
	gateway     %[1]s NOT NULL, -- the base URL
	version     bigint NOT NULL DEFAULT 0, -- another one after each change
	attempts    integer NOT NULL DEFAULT 0, -- how often it was begun
	attempt     bigint NOT NULL DEFAULT 0, -- names the attempt that was begun last
	begun_at    bigint NOT NULL DEFAULT 0, -- all times are microseconds since 1970, 0 for never
	lease_until bigint NOT NULL DEFAULT 0, -- until when the attempt can be sent
	open_since  bigint NOT NULL DEFAULT 0, -- when the oldest attempt began that has no known outcome
	ended_at    bigint NOT NULL DEFAULT 0, -- when an outcome was recorded last
	created_at  bigint NOT NULL DEFAULT 0, -- when it became known that an invoice exists
	resolved_at bigint NOT NULL DEFAULT 0,
	changed_at  bigint NOT NULL DEFAULT 0,
	outcome     %[1]s NOT NULL DEFAULT '', -- of the attempt that ended last
	invoice     %[3]s, -- of a created order, as the service sent it
	record      %[3]s NOT NULL, -- JSON: the attempts, further invoices and the finding
	PRIMARY KEY (merchant, order_id)%[4]s
)%[5]s`, s.id[0], s.id[1], s.blob, s.indexes(), s.engine)
	all := []string{table}
	if s.isOpen != "" {
		all = append(all, "CREATE INDEX IF NOT EXISTS "+s.nameWith("_open")+" ON {table} (open_since)"+s.isOpen,
			"CREATE INDEX IF NOT EXISTS "+s.nameWith("_done")+" ON {table} (changed_at)"+s.isDone)
	}
	for i := range all {
		all[i] = s.fill(all[i])
	}
	return all
}

// indexes are those within the statement for a table, where they cannot be partial.
func (s *schema) indexes() string {
	if s.isOpen != "" {
		return ""
	}
	return fmt.Sprintf(",\n\tINDEX %s (open_since),\n\tINDEX %s (changed_at)", s.nameWith("_open"), s.nameWith("_done"))
}
