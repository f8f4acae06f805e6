package sqlguard

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"time"
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

// The names of the indexes are that of the table and one of these. See schema.
const (
	openIndex = "_open"
	doneIndex = "_done"
)

// schema returns the statements for the table and its indexes. One has only the
// orders that are in flight or unknown, so that the speed of Pending does not depend on
// the number of orders; the other has all others, by the time that Prune asks for.
func (d Dialect) schema(table string) []string {
	return d.fill(table, `CREATE TABLE IF NOT EXISTS {table} (
	merchant      {key} NOT NULL DEFAULT '', -- empty: the one that the client is for
	order_id      {key} NOT NULL,
	attempts      integer NOT NULL, -- how often it was begun
	token         text,             -- of the Begin without End, otherwise NULL
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
	request       text,             -- JSON, a line for each attempt without a known outcome, the latest first
	request_id    text,             -- likewise
	sent_at       {time},
	status        integer,
	body          {bytes},          -- the beginning of a response that is no success
	cause         text,
	invoice       {bytes},          -- as the service sent it
	PRIMARY KEY (merchant, order_id)
)`, `CREATE INDEX IF NOT EXISTS {open index} ON {table} (merchant, order_id)
	WHERE token IS NOT NULL OR unknown_since IS NOT NULL`,
		`CREATE INDEX IF NOT EXISTS {done index} ON {table} (({changed}))
	WHERE token IS NULL AND unknown_since IS NULL`)
}

// statements are the SQL statements of a guard.
type statements struct {
	look, begin, succeeded, notCreated, unknown, resolve, order, pending, pendingSummary, cutoff, prune string
	unknownOf, createdOf, ordersOf                                                                      string
}

// begun is the verdict of the statement begin when it has stored the token. Any
// other verdict is the state of the order, which is then unchanged.
const begun = "begun"

// Parameters of begin: merchant, order, token, lease, the state besides free that may be
// begun, request, request id, and in PostgreSQL how long to wait for a lock. An order that was
// refused when the statement began is neither written nor locked. One that may be begun is
// decided by the clock after the wait for its row; if it may not be any more, there is no row to
// return, or that of a state that may be begun. The token makes the statement idempotent:
// database/sql sends it again after a broken connection.
//
// The record of an order that was unknown stays, and the request and the id that it had are kept
// in a second line, until End says what became of this attempt.
const beginText = `INSERT INTO {table} AS o (merchant, order_id, token, attempts, begun_at, lease_until, request, request_id)
SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), 1, c.at, {lease}, CAST($6 AS text), CAST($7 AS text) FROM {bounded clock}
ON CONFLICT (merchant, order_id) DO UPDATE SET {before}
	(token, attempts, begun_at, lease_until, unknown_since, request, request_id, sent_at, status, body, cause, invoice) = (
	SELECT excluded.token, o.attempts + 1, c.at, {lease},
		CASE WHEN o.token IS NOT NULL THEN coalesce(o.unknown_since, o.begun_at) ELSE o.unknown_since END,
		CASE WHEN c.known > 0 THEN coalesce(excluded.request, '') || coalesce({newline} || {few requests}, '') ELSE excluded.request END,
		CASE WHEN c.known > 0 THEN coalesce(excluded.request_id, '') || coalesce({newline} || {first request_id}, '') ELSE excluded.request_id END,
		CASE WHEN c.known > 0 THEN CASE c.known WHEN 1 THEN o.sent_at ELSE o.begun_at END END,
		CASE WHEN c.known > 0 THEN o.status END,
		CASE WHEN c.known > 0 THEN o.body END,
		CASE WHEN c.known > 0 THEN {cause} END,
		CASE WHEN c.known > 0 THEN o.invoice END
	FROM (SELECT {clock} AS at, CASE WHEN o.token IS NULL AND o.unknown_since IS NULL THEN 0 ELSE {known} END AS known) AS c)
WHERE {state} IN ('free', $5) {after}
RETURNING 'begun' AS verdict, CASE WHEN unknown_since IS NULL THEN 0 ELSE 1 END AS known, {record}`

// Parameters of look: merchant, order, token.
const lookText = `SELECT CASE WHEN token = $3 THEN 'begun' ELSE {state} END AS verdict,
	CASE WHEN token = $3 THEN CASE WHEN unknown_since IS NULL THEN 0 ELSE 1 END ELSE {known} END AS known, {record}
FROM {table} WHERE merchant = $1 AND order_id = $2`

// In PostgreSQL, to look and to begin is one statement. Its comment is what pg_stat_activity, which has
// 1,024 bytes of a statement, shows of the table.
const beginInPostgres = `/* sqlguard: Begin in {table} */ WITH known AS (
{look}
), begun AS (
{begin}
)
SELECT * FROM begun UNION ALL SELECT * FROM known WHERE NOT EXISTS (SELECT FROM begun)`

// Parameters of end: merchant, order, token, outcome, and what recordArgs returns. An outcome that is
// reported after the order was resolved or resubmitted does not end the current attempt; it only
// records that an invoice exists or may exist. What is known of an order that is created
// does not change, unless its invoice is not known. What was not sent or was rejected after
// an unknown outcome leaves the record of that one.
//
// There is a statement for each outcome, because their expressions cost time in each call.
const (
	endBegin = `UPDATE {table} SET
	token         = CASE WHEN token = $3 THEN NULL ELSE token END,
	ended_at      = {now},
	outcome       = $4,
`
	endAfter = `
WHERE merchant = $1 AND order_id = $2`

	succeededText = endBegin + `	unknown_since = NULL,
	created_at    = {now},
	sent_at       = CASE WHEN {settled} THEN sent_at ELSE {instant $5} END,
	status        = CASE WHEN {settled} THEN status ELSE CAST($6 AS integer) END,
	body          = CASE WHEN {settled} THEN body ELSE CAST($7 AS {bytes}) END,
	cause         = CASE WHEN {settled} THEN cause ELSE CAST($8 AS text) END,
	request       = CASE WHEN {settled} THEN request ELSE CAST($9 AS text) END,
	request_id    = CASE WHEN {settled} THEN request_id ELSE CAST($10 AS text) END,
	invoice       = CASE WHEN {settled} THEN invoice ELSE CAST($11 AS {bytes}) END` + endAfter + `
RETURNING {state} AS verdict, {known} AS known, {record}`

	notCreatedText = endBegin + `	sent_at       = CASE WHEN {left} THEN sent_at ELSE {instant $5} END,
	status        = CASE WHEN {left} THEN status ELSE CAST($6 AS integer) END,
	body          = CASE WHEN {left} THEN body ELSE CAST($7 AS {bytes}) END,
	cause         = CASE WHEN {left} THEN cause ELSE CAST($8 AS text) END,
	request       = CASE WHEN unknown_since IS NOT NULL THEN {rest request} WHEN created_at IS NOT NULL THEN request ELSE CAST($9 AS text) END,
	request_id    = CASE WHEN unknown_since IS NOT NULL THEN {rest request_id} WHEN created_at IS NOT NULL THEN request_id ELSE CAST($10 AS text) END` + endAfter + ` AND token = $3
RETURNING {state} AS verdict, {known} AS known, {record}`

	unknownText = endBegin + `	unknown_since = CASE WHEN created_at IS NULL THEN coalesce(unknown_since, begun_at) ELSE unknown_since END,
	sent_at       = CASE WHEN {created} THEN sent_at ELSE {instant $5} END,
	status        = CASE WHEN {created} THEN status ELSE CAST($6 AS integer) END,
	body          = CASE WHEN {created} THEN body ELSE CAST($7 AS {bytes}) END,
	cause         = CASE WHEN {created} THEN cause ELSE CAST($8 AS text) END,
	request       = CASE
		WHEN {created} THEN request
		WHEN token <> $3 THEN {first request} || {newline} || coalesce(CAST($9 AS text), '')
		WHEN unknown_since IS NULL OR {earlier} IS NULL THEN CAST($9 AS text)
		WHEN {first of earlier} = CAST($9 AS text) THEN {earlier}
		ELSE coalesce(CAST($9 AS text), '') || {newline} || {earlier} END,
	request_id    = CASE
		WHEN {created} THEN request_id
		WHEN token <> $3 THEN {first request_id} || {newline} || coalesce(CAST($10 AS text), '')
		ELSE CAST($10 AS text) END` + endAfter + `
RETURNING {state} AS verdict, {known} AS known, {record}`
)

// Parameters of resolve: merchant, order, attempts, finding, by, note, invoice. If the attempts
// had several requests, it is not known whose invoice exists.
const resolveText = `UPDATE {table} SET
	token         = NULL,
	unknown_since = NULL,
	created_at    = CASE WHEN $4 = 'exists' THEN {now} ELSE created_at END,
	resolved_at   = {now},
	resolved_by   = $5,
	resolution    = $4,
	note          = $6,
	sent_at       = CASE {known} WHEN 1 THEN sent_at ELSE begun_at END,
	cause         = {cause of known},
	invoice       = CASE WHEN $4 = 'exists' AND CAST($7 AS {bytes}) IS NOT NULL THEN CAST($7 AS {bytes}) ELSE invoice END,
	request       = CASE WHEN replace(request || {newline}, {first request} || {newline}, '') = '' THEN {first request} END,
	request_id    = {first request_id}
WHERE merchant = $1 AND order_id = $2 AND attempts = $3 AND {state} = 'unknown'
RETURNING 'resolved'`

// orderText selects what scan reads.
const orderText = `SELECT merchant, order_id, {state}, attempts, {text}begun_at{/text}, {text}ended_at{/text}, coalesce(outcome, ''),
	{text}coalesce(unknown_since, begun_at){/text}, {text}created_at{/text},
	{text}resolved_at{/text}, coalesce(resolution, ''), coalesce(resolved_by, ''), coalesce(note, ''),
	{known}, {record}, {text}{latest}{/text}
FROM {table} `

// latestText is when an unknown order can have been sent at the latest. Nothing is sent after a lease, nor
// after the End of an attempt.
const latestText = `CASE WHEN token IS NULL THEN coalesce(ended_at, lease_until) ELSE lease_until END`

const whereUnknown = `WHERE (token IS NOT NULL OR unknown_since IS NOT NULL) AND {state} = 'unknown'`

// Parameters of pending: how many at most, and after which since, merchant and order.
const pendingText = orderText + whereUnknown + `
	AND (coalesce(unknown_since, begun_at), merchant, order_id) > ({instant $2}, $3, $4)
ORDER BY coalesce(unknown_since, begun_at), merchant, order_id LIMIT $1`

const pendingSummaryText = `SELECT count(*), {text}min(coalesce(unknown_since, begun_at)){/text} FROM {table} ` + whereUnknown

// Parameter of unknownOf: merchant.
const unknownOfText = orderText + whereUnknown + ` AND merchant = $1`

// fewText selects what scan reads, without responses.
var fewText = strings.Replace(orderText, "{record}", `coalesce(request, '') AS requests, '' AS ids, begun_at, sent_at, 0 AS status, NULL AS body, '' AS cause, NULL AS invoice, NULL AS created_at`, 1)

// Parameters of createdOf: merchant, and after and before which the invoice was made. The last time is
// after all times; without it PostgreSQL expects a third of the table and reads all.
var createdOfText = fewText + `WHERE merchant = $1 AND token IS NULL AND unknown_since IS NULL
	AND {changed} > {instant $2} AND {changed} < {instant $4} AND begun_at > {instant $2} AND created_at < {instant $3}
ORDER BY {changed}`

// Parameters of ordersOf: merchant, and the ids as a JSON array.
var ordersOfText = fewText + `WHERE merchant = $1 AND order_id {among $2}`

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
	look, begin := strings.ReplaceAll(lookText, "{state}", byClock), beginningOf()
	if d == PostgreSQL {
		begin = strings.NewReplacer("{look}", look, "{begin}", begin).Replace(beginInPostgres)
	}
	texts := d.fill(table, look, begin, succeededText, notCreatedText, unknownText, resolveText, orderText+`WHERE merchant = $1 AND order_id = $2`,
		pendingText, pendingSummaryText, cutoffText, d.pruneText(), unknownOfText, createdOfText, ordersOfText)
	return statements{
		look: texts[0], begin: texts[1], succeeded: texts[2], notCreated: texts[3], unknown: texts[4], resolve: texts[5],
		order: texts[6], pending: texts[7], pendingSummary: texts[8], cutoff: texts[9], prune: texts[10],
		unknownOf: texts[11], createdOf: texts[12], ordersOf: texts[13],
	}
}

// recordText selects what storedRecord scans, after knownText.
const recordText = `coalesce(request, '') AS requests, coalesce(request_id, '') AS ids, begun_at, sent_at,
	coalesce(status, 0) AS status, body, coalesce(cause, '') AS cause, invoice, created_at`

// How much the columns of the record say.
const (
	keptNothing    = 0 // there is no record
	keptByEnd      = 1 // the columns are the record
	keptByBegin    = 2 // the process has not recorded an outcome, yet
	keptOfEarlier  = 3 // likewise, and the columns besides the first request and id are the record of an earlier attempt
	noOutcome      = "the process did not record an outcome"
	noOutcomeAgain = "the process that sent it again did not record an outcome; before: request "
)

// knownText is which of these it is, but for keptNothing.
const knownText = `CASE WHEN {row}token IS NULL THEN 1 WHEN {row}unknown_since IS NULL THEN 2 ELSE 3 END`

// causeText is why the outcome is unknown.
const causeText = `CASE {known as} WHEN 1 THEN {row}cause WHEN 2 THEN '` + noOutcome + `'
			ELSE substr('` + noOutcomeAgain + `' || coalesce({rest request_id}, '') || ': ' || coalesce({row}cause, ''), 1, 2048) END`

// stateText is the state of a row. {now} is constant during a statement, so that the
// state is the same wherever it occurs in one. In PostgreSQL it is when the statement
// arrived, before it waited for a lock: an order is then in flight for longer, and
// never unknown too early. Only begin needs the time after the wait.
const (
	stateText  = stateUntil + `{now}` + stateAfter
	byClock    = stateUntil + `{clock}` + stateAfter
	stateUntil = `CASE
		WHEN {row}token IS NOT NULL AND {row}lease_until > `
	stateAfter = ` THEN 'in flight'
		WHEN {row}token IS NOT NULL OR {row}unknown_since IS NOT NULL THEN 'unknown'
		WHEN {row}created_at IS NOT NULL THEN 'created'
		ELSE 'free' END`
)

// earlierText are the requests of the attempts before the one that ends, whose outcome is unknown.
const earlierText = `CASE WHEN token = $3 THEN {rest request} ELSE request END`

// What is known of an order does not change any more: settledText with a success, createdText with an
// unknown outcome, and leftText with one that proves nothing about an earlier attempt.
const (
	settledText = `created_at IS NOT NULL AND unknown_since IS NULL AND invoice IS NOT NULL`
	createdText = `created_at IS NOT NULL AND unknown_since IS NULL`
	leftText    = `created_at IS NOT NULL OR unknown_since IS NOT NULL`
)

// firstLine is the first line of a text.
func firstLine(text string) string {
	return "substr(" + text + ", 1, {find}(" + text + " || {newline}, {newline}) - 1)"
}

// restLines are the others, or NULL.
func restLines(text string) string {
	return "CASE WHEN {find}(" + text + ", {newline}) > 0 THEN substr(" + text + ", {find}(" + text + ", {newline}) + 1) END"
}

// ofRow fills in our own expressions, about a row whose columns have a prefix.
func ofRow(text, prefix string) string {
	text = strings.NewReplacer(
		"{state}", stateText, "{latest}", latestText, "{record}", recordText, "{settled}", settledText, "{created}", createdText, "{left}", leftText,
		"{earlier}", earlierText, "{first of earlier}", firstLine("("+earlierText+")"),
		"{cause}", strings.ReplaceAll(causeText, "{known as}", "c.known"), "{cause of known}", strings.ReplaceAll(causeText, "{known as}", "{known}"),
	).Replace(text)
	text = strings.ReplaceAll(text, "{known}", knownText)
	return strings.NewReplacer(
		"{row}", prefix, "{few requests}", "CASE WHEN length("+prefix+"request) < 8192 THEN "+prefix+"request ELSE "+firstLine(prefix+"request")+" END",
		"{first request}", firstLine(prefix+"request"), "{first request_id}", firstLine(prefix+"request_id"),
		"{rest request}", restLines(prefix+"request"), "{rest request_id}", restLines(prefix+"request_id"),
	).Replace(text)
}

// beginningOf fills in the statement of an order that is begun: o is its row as it was.
func beginningOf() string {
	before, after, _ := strings.Cut(beginText, "{before}")
	set, returning, _ := strings.Cut(after, "{after}")
	return before + ofRow(strings.ReplaceAll(set, "{state}", byClock), "o.") + ofRow(returning, "")
}

// fill replaces the placeholders of SQL texts: first those of our own expressions,
// then those of what differs between the databases. A time is a text in SQLite,
// in a sortable form.
func (d Dialect) fill(table string, texts ...string) []string {
	names := strings.NewReplacer("{table}", `"`+table+`"`, "{open index}", `"`+table+openIndex+`"`, "{done index}", `"`+table+doneIndex+`"`)
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = d.placeholders().Replace(names.Replace(ofRow(text, "")))
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
		"{bytes}", "blob",
		"{newline}", "char(10)",
		"{find}", "instr",
		"{among $2}", "IN (SELECT value FROM json_each(?2))",
		"{instant $2}", "?2",
		"{instant $3}", "?3",
		"{instant $4}", "?4",
		"{instant $5}", "?5",
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
		"{bounded clock}", `(SELECT clock_timestamp() AS at, set_config('lock_timeout', CAST($8 AS text), true) AS bound) AS c
WHERE bound IS NOT NULL AND NOT EXISTS (SELECT FROM known WHERE verdict NOT IN ('free', $5))`, // for this statement, without another round trip
		"{lease}", "c.at + CAST(CAST($4 AS text) AS interval)",
		"{ago}", "(now() + CAST(CAST($1 AS text) AS interval))",
		"{changed}", "greatest(begun_at, ended_at, resolved_at)",
		"{bytes}", "bytea",
		"{newline}", "chr(10)",
		"{find}", "strpos",
		"{among $2}", "= ANY (ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($2 AS text) AS jsonb))))",
		"{instant $2}", "CAST(CAST($2 AS text) AS timestamptz)",
		"{instant $3}", "CAST(CAST($3 AS text) AS timestamptz)",
		"{instant $4}", "CAST(CAST($4 AS text) AS timestamptz)",
		"{instant $5}", "CAST(CAST($5 AS text) AS timestamptz)",
		"{text}", "coalesce(to_char(",
		"{/text}", ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '')`,
	)
}

// timeText is a time as the statements compare it: in SQLite as text, in the form that its clock writes.
func (d Dialect) timeText(at time.Time) string {
	if d == SQLite {
		return at.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}
