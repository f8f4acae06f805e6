package sqlguard

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A planned statement is one of the guard, with arguments, and how its plan finds the rows.
type planned struct {
	name  string
	text  string
	args  []any
	finds []string // the indexes that it uses, in the order of the plan
}

func plannedStatements(g *Guard) []planned {
	key := key{order: "old-5000"}
	table, open, done := g.cfg.table+"_pkey", g.cfg.table+openIndex, g.cfg.table+doneIndex
	year := 365 * 24 * time.Hour
	at := func(age time.Duration) string { return time.Now().Add(-age).UTC().Format(time.RFC3339) }
	ofLastHour := newComparison(Statement{From: time.Now().Add(-time.Hour), Until: time.Now()}, time.Minute)
	return []planned{
		{"Begin", g.stmts.begin, g.beginArgs(key, "token", orderOf(key.order)), []string{table, table}}, // to look, and to begin
		{"End", g.stmts.succeeded, endArgs(key, "token", gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: orderOf(key.order).Request, Invoice: []byte("{}")}), []string{table}},
		{"Order", g.stmts.order, []any{"", key.order}, []string{table}},
		{"Resolve", g.stmts.resolve, []any{"", key.order, 1, exists, "anna", "", nil}, []string{table}},
		{"Pending", g.stmts.pending, g.pendingArgs(PendingQuery{}), []string{open}},
		{"Pending, the first", g.stmts.pending, g.pendingArgs(PendingQuery{Most: 10}), []string{open}},
		{"Pending, the next", g.stmts.pending, g.pendingArgs(PendingQuery{Most: 10, After: Order{ID: key.order, Since: time.Now()}}), []string{open}},
		{"PendingSummary", g.stmts.pendingSummary, nil, []string{open}},
		{"Reconcile, unknown orders", g.stmts.unknownOf, []any{""}, []string{open}},
		{"Reconcile, created orders", g.stmts.createdOf, g.createdArgs(ofLastHour), []string{done}},
		{"Reconcile, orders of rows", g.stmts.ordersOf, []any{"", `["old-1","old-2","other"]`}, []string{table}},
		{"Prune, first of many", g.stmts.prune, []any{at(100 * year), at(24 * time.Hour)}, []string{done, "ctid"}},
		{"Prune, in the middle", g.stmts.prune, []any{at(25 * time.Hour), at(24 * time.Hour)}, []string{done, "ctid"}},
		{"Prune, none", g.stmts.prune, []any{at(100 * year), at(99 * year)}, []string{done, "ctid"}},
	}
}

// Every statement finds its rows by an index, however many orders the table has: with the
// plan that PostgreSQL makes for these arguments, and with the one for any.
func TestPlans(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	w.fill(t, g.db, 100_000, time.Minute)
	statements := []string{
		`UPDATE ` + w.table + ` SET token = 'token' WHERE order_id LIKE 'old-__77'`,
		`UPDATE ` + w.table + ` SET unknown_since = now() WHERE order_id LIKE 'old-__78'`,
		`VACUUM ANALYZE ` + w.table,
	}
	for _, text := range statements {
		execute(t, g.db, text)
	}
	for _, p := range plannedStatements(g) {
		t.Run(p.name, func(t *testing.T) {
			p.compare(t, "for these arguments", p.plan(t, g.db))
			p.compare(t, "for any", p.genericPlan(t, g.db))
		})
	}
}

// plan returns the plan for the arguments.
func (p planned) plan(t *testing.T, db *sql.DB) (text string) {
	t.Helper()
	check(t, db.QueryRow(`EXPLAIN (FORMAT JSON) `+p.text, p.args...).Scan(&text))
	return text
}

// genericPlan returns the plan that is made once for a prepared statement.
func (p planned) genericPlan(t *testing.T, db *sql.DB) (text string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	check(t, err)
	defer func() {
		_, _ = conn.ExecContext(context.Background(), `RESET plan_cache_mode; DEALLOCATE planned`)
		_ = conn.Close()
	}()
	execute := `EXPLAIN (FORMAT JSON) EXECUTE planned`
	if n := len(p.args); n > 0 {
		execute += `(NULL` + strings.Repeat(`, NULL`, n-1) + `)`
	}
	if _, err := conn.ExecContext(t.Context(), `SET plan_cache_mode = force_generic_plan; PREPARE planned AS `+p.text); err != nil {
		t.Fatal(err)
	}
	check(t, conn.QueryRowContext(t.Context(), execute).Scan(&text))
	return text
}

// A planNode is what is compared of a node of a plan.
type planNode struct {
	Type     string     `json:"Node Type"`
	Table    string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Arbiters []string   `json:"Conflict Arbiter Indexes"`
	Plans    []planNode `json:"Plans"`
}

// compare fails if the plan reads the table otherwise than by the expected indexes.
func (p planned) compare(t *testing.T, which, text string) {
	t.Helper()
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		t.Fatal(text, err)
	}
	if finds := plans[0].Plan.finds(); !slices.Equal(finds, p.finds) {
		t.Errorf("the plan %s uses %q, want %q:\n%s", which, finds, p.finds, text)
	}
}

// finds returns by what a plan finds the rows of the table.
func (n planNode) finds() (finds []string) {
	switch {
	case n.Type == "Tid Scan":
		finds = append(finds, "ctid")
	case n.Type == "Index Scan", n.Type == "Bitmap Index Scan":
		finds = append(finds, n.Index)
	case n.Type == "Bitmap Heap Scan":
	case n.Type == "ModifyTable":
		finds = append(finds, n.Arbiters...)
	case n.Table != "":
		finds = append(finds, fmt.Sprintf("%s of %s", n.Type, n.Table))
	}
	for _, inner := range n.Plans {
		finds = append(finds, inner.finds()...)
	}
	return finds
}

// So it is in SQLite.
func TestPlans_SQLite(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	w.fill(t, g.db, 1000, time.Minute)
	execute(t, g.db, `ANALYZE`)
	wants := map[string]string{
		"End":                       "SEARCH {t} USING INDEX sqlite_autoindex_{t}_1 (merchant=? AND order_id=?)",
		"Order":                     "SEARCH {t} USING INDEX sqlite_autoindex_{t}_1 (merchant=? AND order_id=?)",
		"Resolve":                   "SEARCH {t} USING INDEX sqlite_autoindex_{t}_1 (merchant=? AND order_id=?)",
		"Pending":                   "SCAN {t} USING INDEX {t}_open; USE TEMP B-TREE FOR ORDER BY",
		"Pending, the next":         "SCAN {t} USING INDEX {t}_open; USE TEMP B-TREE FOR ORDER BY",
		"Pending, the first":        "SCAN {t} USING INDEX {t}_open; USE TEMP B-TREE FOR ORDER BY",
		"PendingSummary":            "SCAN {t} USING INDEX {t}_open",
		"Reconcile, unknown orders": "SEARCH {t} USING INDEX {t}_open (merchant=?)",
		"Reconcile, created orders": "SEARCH {t} USING INDEX {t}_done (<expr>>? AND <expr><?)",
		"Reconcile, orders of rows": "SEARCH {t} USING INDEX sqlite_autoindex_{t}_1 (merchant=? AND order_id=?); LIST; SCAN json_each VIRTUAL TABLE INDEX 1:",
		"Prune, first of many":      "SEARCH {t} USING INTEGER PRIMARY KEY (rowid=?); LIST; SEARCH {t} USING INDEX {t}_done (<expr>>? AND <expr><?)",
	}
	for _, p := range plannedStatements(g) {
		want, ok := wants[p.name]
		if !ok {
			continue // Begin has a scan of the one row of the clock; the others of Prune are the same
		}
		texts := sqlitePlan(t, g.db, p)
		if got := strings.Join(texts, "; "); got != strings.ReplaceAll(want, "{t}", w.table) {
			t.Errorf("%s: %s", p.name, got)
		}
	}
}

func sqlitePlan(t *testing.T, db *sql.DB, p planned) (texts []string) {
	t.Helper()
	rows, err := db.Query(`EXPLAIN QUERY PLAN `+p.text, p.args...)
	check(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var text string
		check(t, rows.Scan(&id, &parent, &unused, &text))
		text, _, _ = strings.Cut(text, " SUBQUERY ")
		texts = append(texts, text)
	}
	check(t, rows.Err())
	return texts
}

// Migrate of a table that is complete takes no lock: otherwise every Begin would wait until
// it had waited for a VACUUM.
func TestGuard_Migrate_beside_VACUUM(t *testing.T) {
	w := newPostgres(t)
	impatient := w.guard(t)
	w.lockWith(t, `LOCK TABLE `+w.table+` IN SHARE UPDATE EXCLUSIVE MODE`) // is what VACUUM takes
	impatient.db.SetMaxOpenConns(1)
	execute(t, impatient.db, `SET lock_timeout = 1`)
	if err := impatient.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}
