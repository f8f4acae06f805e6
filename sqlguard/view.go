package sqlguard

import (
	"fmt"
	"strings"
)

// A listing has the differences between the databases in the view for people.
type listing struct {
	create   string                                // creates a view that is not there
	time     string                                // around a column with a time
	text     string                                // around a column with the bytes of a text
	document string                                // the column record as JSON
	held     string                                // the newest attempt in the document, until it ends
	invoice  string                                // the attempt that created the invoice
	unknown  string                                // the last attempt of unknown outcome
	last     string                                // the last attempt that created no invoice
	member   string                                // around the name of a member of shown, for its text
	request  string                                // what precedes the name of a member of the request there
	findings func(time func(string) string) string // the findings in the document as one text; NULL for none
}

// utf8Hex matches the hexadecimal digits of UTF-8 without NUL. PostgreSQL converts no other bytes into a text.
const utf8Hex = "^(0[1-9a-f]|[1-7].|(c[2-9a-f]|d.)[89ab].|(e0[ab]|e[1-9a-cef][89ab]|ed[89]).[89ab].|(f0[9ab]|f[1-3][89ab]|f48).[89ab].[89ab].)*$"

var postgresList = listing{
	create:   "CREATE OR REPLACE VIEW ",
	time:     `to_char(to_timestamp(nullif(%s, 0) / 1000000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
	text:     "CASE WHEN encode(%[1]s, 'hex') ~ '" + utf8Hex + "' THEN convert_from(%[1]s, 'UTF8') ELSE encode(%[1]s, 'escape') END",
	document: `replace(convert_from(record, 'UTF8'), '\u0000', '\ufffd')::jsonb`, // which has no NUL
	held:     "document -> 'held'", invoice: "document #> '{invoices,0}'", unknown: "document #> '{open,-1}'", last: "document -> 'last'",
	member: "shown #>> '{%s}'", request: "request,",
	findings: func(time func(string) string) string {
		return "(SELECT string_agg(concat(CASE WHEN (f ->> 'exists')::boolean THEN 'exists' ELSE 'absent' END, ' by ', f ->> 'by', ' at ', " + time("(f ->> 'at')::bigint") +
			", ': ' || (f ->> 'note')), '; ' ORDER BY n) FROM jsonb_array_elements(document -> 'findings') WITH ORDINALITY AS e(f, n))"
	},
}

var sqliteList = listing{
	create:   "CREATE VIEW IF NOT EXISTS ",
	time:     "strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', nullif(%s, 0) / 1000000, 'unixepoch')",
	text:     "CAST(%s AS text)",
	document: "CAST(record AS text)",
	held:     "json_extract(document, '$.held')", invoice: "json_extract(document, '$.invoices[0]')", unknown: "json_extract(document, '$.open[#-1]')", last: "json_extract(document, '$.last')",
	member: "json_extract(shown, '$.%s')", request: "request.",
	findings: func(time func(string) string) string {
		return "(SELECT group_concat(CASE WHEN json_extract(value, '$.exists') THEN 'exists' ELSE 'absent' END || ' by ' || json_extract(value, '$.by') || ' at ' || " +
			time("json_extract(value, '$.at')") + " || coalesce(': ' || json_extract(value, '$.note'), ''), '; ') FROM json_each(document, '$.findings'))"
	},
}

var mariaList = listing{
	create:   "CREATE OR REPLACE SQL SECURITY INVOKER VIEW ", // so that a restored one does not need its first owner
	time:     "DATE_FORMAT(TIMESTAMPADD(MICROSECOND, nullif(%s, 0), TIMESTAMP '1970-01-01 00:00:00'), '%%Y-%%m-%%dT%%H:%%i:%%sZ')",
	text:     "CONVERT(%s USING utf8mb4)",
	document: "CONVERT(record USING utf8mb4)",
	held:     "JSON_EXTRACT(document, '$.held')", invoice: "JSON_EXTRACT(document, '$.invoices[0]')", last: "JSON_EXTRACT(document, '$.last')",
	unknown: "JSON_EXTRACT(document, CONCAT('$.open[', JSON_LENGTH(document, '$.open') - 1, ']'))", // MariaDB 10.11 finds [-1] only once in a statement
	member:  "JSON_VALUE(shown, '$.%s')", request: "request.",
	findings: func(time func(string) string) string { // the first nine: of a view with JSON_TABLE, a dump names the database of its table
		var all []string
		for i := range 9 {
			member := func(name string) string { return fmt.Sprintf("JSON_VALUE(document, '$.findings[%d].%s')", i, name) }
			all = append(all, "CONCAT(IF("+member("exists")+", 'exists', 'absent'), ' by ', "+member("by")+", ' at ', "+time(member("at"))+", COALESCE(CONCAT(': ', "+member("note")+"), ''))")
		}
		return "NULLIF(CONCAT_WS('; ', " + strings.Join(all, ", ") + "), '')"
	},
}

// view returns the statement for the view in which people read the table. Of a created order it shows the request of the
// invoice, and when that was sent; of any other order those of the last attempt.
func (s *schema) view() string {
	l := s.list
	member := func(name string) string { return fmt.Sprintf(l.member, name) }
	time := func(value string) string { return fmt.Sprintf(l.time, value) }
	columns := []string{
		"merchant", "order_id", "state",
		member(l.request+"price") + " AS price", member(l.request+"baseCurrency") + " AS currency", member(l.request+"amount") + " AS amount",
		member(l.request+"coinSymbol") + " AS coin", member(l.request+"networkName") + " AS network",
		"replace(substr(" + member("sentAt") + ", 1, 20), '.', 'Z') AS sent_at", // without fractions of a second
		l.findings(time) + " AS findings",
		fmt.Sprintf(l.text, "invoice") + " AS invoice",
	}
	for _, name := range []string{"lease_until", "open_since", "ended_at", "created_at", "resolved_at", "changed_at"} {
		columns = append(columns, time(name)+" AS "+name)
	}
	columns = append(columns, "outcome", "attempts", "gateway", fmt.Sprintf(l.text, "record")+" AS record")
	const state = "CASE WHEN open_since > 0 AND lease_until > {now} THEN 'in flight' WHEN created_at > 0 THEN 'created' WHEN open_since > 0 THEN 'unknown' ELSE 'free' END"
	shown := "coalesce(CASE WHEN state = 'in flight' THEN " + l.held + " END, " + strings.Join([]string{l.invoice, l.held, l.unknown, l.last}, ", ") + ")"
	return s.fill(l.create + s.nameWith("_list") + " AS SELECT " + strings.Join(columns, ",\n\t") +
		"\nFROM (SELECT o.*, " + shown + " AS shown\n\tFROM (SELECT t.*, " + l.document + " AS document, " + state + " AS state FROM {table} AS t) AS o) AS l")
}
