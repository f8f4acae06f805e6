package sqlguard

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
)

// A Dialect is the SQL of one database. The zero Dialect is not valid.
type Dialect int8

const (
	PostgreSQL Dialect = iota + 1 // PostgreSQL, through github.com/jackc/pgx/v5/stdlib.
	SQLite                        // SQLite 3.35 and later, through modernc.org/sqlite.
)

// String returns the name of the database.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	default:
		return fmt.Sprintf("Dialect(%d)", int8(d))
	}
}

// Packages of the drivers that dialectOf recognises.
const (
	pgxPackage    = "github.com/jackc/pgx/v5/stdlib"
	sqlitePackage = "modernc.org/sqlite"
)

// dialectOf returns the dialect of a driver, or 0. It compares the package of the
// driver's type, so that neither driver need be imported.
func dialectOf(d driver.Driver) Dialect {
	kind := reflect.TypeOf(d)
	if kind == nil || kind.Kind() != reflect.Pointer {
		return 0
	}
	switch kind.Elem().PkgPath() {
	case pgxPackage:
		return PostgreSQL
	case sqlitePackage:
		return SQLite
	default:
		return 0
	}
}

// Schema returns the statements that create the table and its indexes if they do
// not exist, for a merchant's own migrations. The table name is as for
// [WithTable]. The error for an invalid argument is a [*gateway.ArgumentError].
func Schema(d Dialect, table string) (string, error) {
	if d != PostgreSQL && d != SQLite {
		return "", badArgument("dialect", "must be PostgreSQL or SQLite")
	}
	if reason := checkTable(table); reason != "" {
		return "", badArgument("table", reason)
	}
	return strings.Join(d.schema(table), ";\n\n") + ";\n", nil
}

// The names of the indexes are that of the table and one of these. See schema.
const (
	openIndex = "_open"
	doneIndex = "_done"
)

// CreateTable creates the table and its indexes if they do not exist. Any number of
// processes may call it at once.
func (g *Guard) CreateTable(ctx context.Context) error {
	create := g.createInSQLite
	if g.cfg.dialect == PostgreSQL {
		create = g.createInPostgres
	}
	if err := create(ctx, g.cfg.dialect.schema(g.cfg.table)); err != nil {
		return fmt.Errorf("sqlguard: creating the table: %w", err)
	}
	return nil
}

// indexesText returns how many of the indexes a table in PostgreSQL has.
const indexesText = `SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = to_regclass(CAST($1 AS text)) AND relname IN ($2, $3)`

// createInPostgres runs the statements under an advisory lock: of several
// concurrent CREATE … IF NOT EXISTS, all but one can fail. It runs none if the indexes
// exist: CREATE INDEX … IF NOT EXISTS waits for all writers and for a VACUUM even if
// there is nothing to create, and every Begin waits behind it.
func (g *Guard) createInPostgres(ctx context.Context, texts []string) error {
	var indexes int
	table := g.cfg.table
	err := g.db.QueryRowContext(ctx, indexesText, `"`+table+`"`, table+openIndex, table+doneIndex).Scan(&indexes)
	if err != nil || indexes == 2 {
		return err
	}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, text := range append([]string{"SELECT pg_advisory_xact_lock(hashtext('sqlguard'))"}, texts...) {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// createInSQLite runs the statements outside a transaction, in which the second
// would fail if another process had written since the first.
func (g *Guard) createInSQLite(ctx context.Context, texts []string) error {
	for _, text := range texts {
		if _, err := g.db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// schema returns the statements for the table and its indexes. One has only the
// orders that are in flight or unknown, so that the speed of Pending does not depend on
// the number of orders; the other has all others, by the time that Prune asks for.
func (d Dialect) schema(table string) []string {
	return d.fill(table, `CREATE TABLE IF NOT EXISTS {table} (
	merchant      {key} NOT NULL DEFAULT '', -- empty: the one that the client is for
	order_id      {key} NOT NULL,
	attempts      integer NOT NULL, -- how often it was begun
	token         text,             -- of the Begin without End; otherwise NULL
	begun_at      {time} NOT NULL,
	lease_until   {time} NOT NULL,  -- from then on an order with a token is unknown
	ended_at      {time},
	outcome       text,             -- recorded at ended_at
	unknown_since {time},           -- NULL: no earlier outcome is unknown
	created_at    {time},           -- NULL: no invoice is known to exist
	resolved_at   {time},
	resolved_by   text,
	resolution    text,             -- "exists" or "does not exist"
	note          text,
	PRIMARY KEY (merchant, order_id)
)`, `CREATE INDEX IF NOT EXISTS {open index} ON {table} (merchant, order_id)
	WHERE token IS NOT NULL OR unknown_since IS NOT NULL`,
		`CREATE INDEX IF NOT EXISTS {done index} ON {table} (({changed}))
	WHERE token IS NULL AND unknown_since IS NULL`)
}

// statements are the SQL statements of a guard.
type statements struct {
	begin, end, resolve, order, pending, pendingSummary, cutoff, prune string
}

// begun is the verdict of the statement begin when it has stored the token. Any
// other verdict is the state of the order, which is then unchanged.
const begun = "begun"

// Parameters of begin: merchant, order, token, lease, the states besides free that
// may be begun, and in PostgreSQL how long to wait for a lock. The row is written
// even if the order is refused, because only then does one statement both decide and
// return the reason. It is decided by the clock after the wait for the row, which
// is read once. The token makes the statement idempotent: database/sql sends it again
// after a broken connection.
const beginText = `INSERT INTO {table} AS o (merchant, order_id, token, attempts, begun_at, lease_until)
SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), 1, c.at, {lease} FROM {bounded clock}
ON CONFLICT (merchant, order_id) DO UPDATE SET (token, attempts, begun_at, lease_until, unknown_since) = (
	SELECT
		CASE WHEN {open} THEN excluded.token ELSE o.token       END,
		CASE WHEN {open} THEN o.attempts + 1 ELSE o.attempts    END,
		CASE WHEN {open} THEN c.at           ELSE o.begun_at    END,
		CASE WHEN {open} THEN {lease}        ELSE o.lease_until END,
		CASE WHEN {open} AND o.token IS NOT NULL THEN coalesce(o.unknown_since, o.begun_at) ELSE o.unknown_since END
	FROM (SELECT {clock} AS at) AS c)
RETURNING CASE WHEN token = $3 THEN 'begun' ELSE {state by clock} END`

// Parameters of end: merchant, order, token, outcome. An outcome that is reported after the
// order was resolved or resubmitted does not end the current attempt; it only
// records that an invoice exists or may exist.
const endText = `UPDATE {table} SET
	token         = CASE WHEN token = $3 THEN NULL ELSE token END,
	unknown_since = CASE
		WHEN $4 = 'unknown' THEN coalesce(unknown_since, begun_at)
		WHEN $4 = 'succeeded' AND token = $3 THEN NULL
		ELSE unknown_since END,
	created_at    = CASE WHEN $4 = 'succeeded' THEN {now} ELSE created_at END,
	ended_at      = {now},
	outcome       = $4
WHERE merchant = $1 AND order_id = $2 AND (token = $3 OR $4 IN ('succeeded', 'unknown'))
RETURNING 'ended'`

// Parameters of resolve: merchant, order, attempts, finding, by, note.
const resolveText = `UPDATE {table} SET
	token         = NULL,
	unknown_since = NULL,
	created_at    = CASE WHEN $4 = 'exists' THEN {now} ELSE created_at END,
	resolved_at   = {now},
	resolved_by   = $5,
	resolution    = $4,
	note          = $6
WHERE merchant = $1 AND order_id = $2 AND attempts = $3 AND {state} = 'unknown'
RETURNING 'resolved'`

// orderText selects what scan reads.
const orderText = `SELECT merchant, order_id, {state}, attempts, {text}begun_at{/text}, {text}ended_at{/text}, coalesce(outcome, ''),
	{text}coalesce(unknown_since, begun_at){/text}, {text}created_at{/text},
	{text}resolved_at{/text}, coalesce(resolution, ''), coalesce(resolved_by, ''), coalesce(note, '')
FROM {table} `

const whereUnknown = `WHERE (token IS NOT NULL OR unknown_since IS NOT NULL) AND {state} = 'unknown'`

// Parameter of pending: how many at most.
const pendingText = orderText + whereUnknown + `
ORDER BY coalesce(unknown_since, begun_at), merchant, order_id LIMIT $1`

const pendingSummaryText = `SELECT count(*), {text}min(coalesce(unknown_since, begun_at)){/text} FROM {table} ` + whereUnknown

// Parameter of cutoff: the age, as a negative interval.
const cutoffText = `SELECT {text}{ago}{/text}`

// Parameters of prune: from and before, texts as cutoff returns one.
func (d Dialect) pruneText() string {
	if d == SQLite {
		return pruneInSQLite
	}
	return pruneInPostgres
}

const pruneInSQLite = `DELETE FROM {table} WHERE rowid IN (
	SELECT rowid FROM {table}
	WHERE token IS NULL AND unknown_since IS NULL AND {changed} >= $1 AND {changed} < $2
	ORDER BY {changed} LIMIT 1000)
RETURNING {changed}`

// It skips rows that are locked, and checks the conditions again on each row that it has
// locked: a row that a Begin has changed stays, and a Begin that comes later waits and
// inserts the row anew. The conditions are stated twice because a merchant may have
// partitioned the table: then several rows have the same ctid.
const pruneInPostgres = `DELETE FROM {table} WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM {table}
	WHERE token IS NULL AND unknown_since IS NULL
		AND {changed} >= CAST(CAST($1 AS text) AS timestamptz) AND {changed} < CAST(CAST($2 AS text) AS timestamptz)
	ORDER BY {changed} LIMIT 1000 FOR UPDATE SKIP LOCKED))
AND token IS NULL AND unknown_since IS NULL AND {changed} < CAST(CAST($2 AS text) AS timestamptz)
RETURNING {text}{changed}{/text}`

func (d Dialect) statements(table string) statements {
	texts := d.fill(table, beginText, endText, resolveText, orderText+`WHERE merchant = $1 AND order_id = $2`,
		pendingText, pendingSummaryText, cutoffText, d.pruneText())
	return statements{
		begin: texts[0], end: texts[1], resolve: texts[2], order: texts[3],
		pending: texts[4], pendingSummary: texts[5], cutoff: texts[6], prune: texts[7],
	}
}

// stateText is the state of a row. {now} is constant during a statement, so that the
// state is the same wherever it occurs in one. In PostgreSQL it is when the statement
// arrived, before it waited for a lock: an order is then in flight for longer, and
// never unknown too early. Only begin needs the time after the wait, {clock}.
const stateText = `CASE
		WHEN {row}token IS NOT NULL AND {row}lease_until > {now} THEN 'in flight'
		WHEN {row}token IS NOT NULL OR {row}unknown_since IS NOT NULL THEN 'unknown'
		WHEN {row}created_at IS NOT NULL THEN 'created'
		ELSE 'free' END`

// fill replaces the placeholders of SQL texts: first those of our own expressions,
// then those of what differs between the databases. A time is a text in SQLite,
// in a sortable form.
func (d Dialect) fill(table string, texts ...string) []string {
	state := func(row, now string) string {
		return strings.NewReplacer("{row}", row, "{now}", now).Replace(stateText)
	}
	ours := strings.NewReplacer(
		"{open}", state("o.", "c.at")+" IN ('free', $5, $6)",
		"{state}", state("", "{now}"),
		"{state by clock}", state("", "{clock}"),
		"{table}", `"`+table+`"`,
		"{open index}", `"`+table+openIndex+`"`,
		"{done index}", `"`+table+doneIndex+`"`,
	)
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = d.placeholders().Replace(ours.Replace(text))
	}
	return filled
}

// placeholders are those of what differs between the databases.
func (d Dialect) placeholders() *strings.Replacer {
	if d == SQLite {
		return sqlitePlaceholders()
	}
	return postgresPlaceholders()
}

func sqlitePlaceholders() *strings.Replacer {
	return strings.NewReplacer(
		"{key}", "text",
		"{time}", "text",
		"{now}", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
		"{clock}", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", // is read after the wait
		"{bounded clock}", "(SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS at) AS c WHERE true",
		"{lease}", "strftime('%Y-%m-%dT%H:%M:%fZ', c.at, ?4)",
		"{ago}", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?1)",
		"{changed}", "max(begun_at, coalesce(ended_at, begun_at), coalesce(resolved_at, begun_at))",
		"{text}", "coalesce(",
		"{/text}", ", '')",
		"$", "?",
	)
}

func postgresPlaceholders() *strings.Replacer {
	return strings.NewReplacer(
		"{key}", `text COLLATE "C"`,
		"{time}", "timestamptz",
		"{now}", "now()",
		"{clock}", "clock_timestamp()",
		"{bounded clock}", `(SELECT clock_timestamp() AS at, set_config('lock_timeout', CAST($7 AS text), true) AS bound) AS c
WHERE bound IS NOT NULL`, // for this statement, without another round trip
		"{lease}", "c.at + CAST(CAST($4 AS text) AS interval)",
		"{ago}", "(now() + CAST(CAST($1 AS text) AS interval))",
		"{changed}", "greatest(begun_at, ended_at, resolved_at)",
		"{text}", "coalesce(to_char(",
		"{/text}", ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '')`,
	)
}
