package sqlguard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// life uses every method of a guard, with texts that need escapes.
func (w testDB) life(t *testing.T) {
	t.Helper()
	ctx, id := t.Context(), "Müller's \""+rand.Text()
	g := w.guard(t)
	g.once(t, id, gateway.OutcomeUnknown)
	wantError(t, w.guard(t).begins(ctx, id), errUnknown)
	check(t, errors.Join(g.resubmits(ctx, id), g.ends(ctx, id, gateway.OutcomeUnknown)))
	summary, err1 := g.PendingSummary(ctx)
	pending, err2 := g.Pending(ctx, gateway.PendingQuery{Most: 10})
	if err := errors.Join(err1, err2); err != nil || len(pending) != 1 || summary.Count != 1 || pending[0].OrderID != id {
		t.Fatalf("%+v, %+v, %v", pending, summary, err)
	}
	found := []byte(`{"id":"4711 é"}`)
	check(t, g.Resolve(ctx, pending[0], gateway.Finding{Exists: true, By: "anna", Note: `it's in "the" list \`, Invoice: found}))
	marked, err := g.Mark(ctx, []gateway.OrderStatus{{OrderID: id + "2"}, {OrderID: id}})
	if err != nil || marked != 1 {
		t.Errorf("%d marked, %v", marked, err)
	}
	check(t, g.ResolveAll(ctx, []Resolution{{g.order(t, id+"2"), gateway.Finding{Exists: true, By: "anna"}}}))
	if o := g.order(t, id); string(o.Record.Invoice) != string(found) || o.Finding.Note != `it's in "the" list \` {
		t.Errorf("%+v", o)
	}
	_, err = g.Prune(ctx, 24*time.Hour)
	check(t, err)
}

// Settings of a connection in which a guard works, and sees the orders of all others as the same.
func TestSettings(t *testing.T) {
	postgres, mariadb := newPostgres(t), newMariaDB(t)
	for name, tt := range map[string]struct {
		w        testDB
		settings string
	}{
		"PostgreSQL, client_encoding":    {postgres, "sslmode=disable&client_encoding=LATIN1"},
		"PostgreSQL, simple protocol":    {postgres, "sslmode=disable&default_query_exec_mode=simple_protocol"},
		"PostgreSQL, another date style": {postgres, "sslmode=disable&datestyle=SQL,DMY&timezone=Asia/Kolkata"},
		"PostgreSQL, bytea_output":       {postgres, "sslmode=disable&bytea_output=escape"},
		"MariaDB, latin1":                {mariadb, "interpolateParams=true&charset=latin1"},
		"MariaDB, without interpolation": {mariadb, "interpolateParams=false"},
		"MariaDB, parseTime":             {mariadb, "interpolateParams=true&parseTime=true&loc=Asia%2FKolkata"},
		"MariaDB, another zone":          {mariadb, "interpolateParams=true&time_zone=%27%2B05:30%27"},
		"MariaDB, no_backslash_escapes":  {mariadb, "sql_mode=%27NO_BACKSLASH_ESCAPES,ANSI_QUOTES%27&interpolateParams=false"},
		"MariaDB, without strict mode":   {mariadb, "interpolateParams=true&sql_mode=%27%27"},
		"MariaDB, found rows":            {mariadb, "interpolateParams=true&clientFoundRows=true"},
		"MariaDB, serializable":          {mariadb, "interpolateParams=true&tx_isolation=%27SERIALIZABLE%27"},
	} {
		t.Run(name, func(t *testing.T) {
			plain := tt.w.guard(t)
			w := tt.w
			address, _, _ := strings.Cut(w.dsn, "?")
			w.dsn = address + "?" + tt.settings
			w.life(t)
			id := "Ü-" + rand.Text()
			check(t, w.guard(t).begins(t.Context(), id))
			wantError(t, plain.begins(t.Context(), id), errInFlight)
		})
	}
}

// A connection that commits nothing grants nothing.
func TestSettings_autocommit(t *testing.T) {
	w := newMariaDB(t)
	plain := w.guard(t)
	w.dsn += "&autocommit=0"
	g := w.mustNew(t)
	if err := g.begins(t.Context(), order); err == nil || !strings.Contains(err.Error(), "autocommit=0") {
		t.Error(err)
	}
	plain.wantState(t, gateway.OrderFree, 0)
}

// Check refuses a table or settings with which a guard cannot work, and Migrate does not begin with those settings.
func TestGuard_Check(t *testing.T) {
	postgres, mariadb, sqlite := newPostgres(t), newMariaDB(t), newSQLite(t)
	for name, tt := range map[string]struct {
		w        testDB
		settings string // which Migrate refuses too
		without  bool   // the table
		sql      string // before the check
		want     string // "" for no error
	}{
		"PostgreSQL":                     {w: postgres},
		"MariaDB":                        {w: mariadb},
		"SQLite":                         {w: sqlite},
		"PostgreSQL, without a table":    {w: newPostgres(t), without: true, want: "call Migrate"},
		"MariaDB, without a table":       {w: newMariaDB(t), without: true, want: "call Migrate"},
		"SQLite, without a table":        {w: newSQLite(t), without: true, want: "call Migrate"},
		"SQLite, a table without a view": {w: newSQLite(t), sql: "DROP VIEW {table}_list", want: "there is no table"},
		"PostgreSQL, another table":      {w: newPostgres(t), sql: "ALTER TABLE {table} RENAME COLUMN attempt TO try", want: "not one of this version"},
		"MariaDB, another table":         {w: newMariaDB(t), sql: "ALTER TABLE {table} RENAME COLUMN attempt TO try", want: "not one of this version"},
		"SQLite, another table":          {w: newSQLite(t), sql: "ALTER TABLE {table} RENAME COLUMN attempt TO try", want: "not one of this version"},
		"SQLite, a newer table":          {w: newSQLite(t), sql: "CREATE VIEW {table}_next AS SELECT 1", want: "newer version of sqlguard"},
		"SQLite, UTF-16":                 {w: newSQLiteWith(t, ""), settings: "_pragma=encoding('UTF-16')&_pragma=busy_timeout(1)", without: true, want: "the encoding of the database is UTF-16le, and must be UTF-8"},
		"SQLite, without busy_timeout":   {w: newSQLiteWith(t, ""), settings: "_txlock=deferred", without: true, want: "busy_timeout is 0"},
		"MariaDB, without autocommit":    {w: mariadb, settings: "&autocommit=0", want: "autocommit is off"},
		"MariaDB, empty texts are null":  {w: mariadb, settings: "&sql_mode=%27EMPTY_STRING_IS_NULL%27", want: "EMPTY_STRING_IS_NULL"},
	} {
		t.Run(name, func(t *testing.T) {
			if !tt.without {
				owner := tt.w.guard(t)
				if tt.sql != "" {
					execute(t, owner.db, strings.ReplaceAll(tt.sql, "{table}", tt.w.table))
				}
			}
			tt.w.dsn += tt.settings
			g := tt.w.mustNew(t)
			all := []error{g.Check(t.Context())}
			if tt.settings != "" {
				all = append(all, g.Migrate(t.Context()))
			}
			for _, err := range all {
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%v, not %q", err, tt.want)
				}
			}
		})
	}
}

// The client refuses a lease that is not longer than an invoice may take.
func TestWithLease_client(t *testing.T) {
	w := newSQLite(t)
	for lease, want := range map[time.Duration]string{0: "", 3 * time.Minute: "the lease of the guard is 3m0s, and must be longer than an invoice may take, which is 3m10s"} {
		opts := []Option{}
		if lease > 0 {
			opts = append(opts, WithLease(lease))
		}
		_, err := gateway.New("https://gateway.example", "a-key", gateway.WithOrderGuard(w.guard(t, opts...)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a lease of %v: %v", lease, err)
		}
	}
}

// A wait for the lock of SQLite ends with the context, and afterwards the connection waits as before.
func TestSQLite_busy(t *testing.T) {
	w := newSQLite(t)
	g := w.guard(t)
	g.db.SetMaxOpenConns(1)
	tx, err := w.open(t).BeginTx(t.Context(), nil)
	check(t, err)
	execute(t, tx, `DELETE FROM gateway_orders`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := g.begins(ctx, order); err == nil {
		t.Error("a lease is granted while another one writes")
	}
	check(t, tx.Rollback())
	var timeout int
	check(t, g.db.QueryRow("PRAGMA busy_timeout").Scan(&timeout))
	if timeout != 20000 {
		t.Errorf("the connection waits for %d ms", timeout)
	}
	check(t, g.begins(t.Context(), order))
}

// Every statement finds its rows by an index, however many orders the table has.
func TestPlans(t *testing.T) {
	for name, tt := range map[string]struct {
		w       testDB
		explain string
		scans   string // of a plan that reads the whole table
	}{
		"PostgreSQL": {newPostgres(t), "EXPLAIN (FORMAT JSON) ", `"Seq Scan"`},
		"MariaDB":    {newMariaDB(t), "EXPLAIN FORMAT=JSON ", `"access_type": "ALL"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := tt.w.guard(t)
			g.once(t, "old", gateway.OutcomeSucceeded)
			tt.w.copy(t, g, "old", 30_000)
			g.once(t, order, gateway.OutcomeUnknown)
			execute(t, g.db, map[Dialect]string{PostgreSQL: "ANALYZE ", MariaDB: "ANALYZE TABLE "}[tt.w.dialect]+tt.w.table)
			now := time.Now().UnixMicro()
			for text, args := range map[string][]any{
				g.queries.order:               {[]byte(""), []byte(order)},
				g.queries.pending:             {int64(0), []byte(""), []byte(""), 100},
				g.queries.pendingSummary:      nil,
				g.queries.batchEnd:            {now - (100 * time.Hour).Microseconds()},
				g.queries.otherKind:           nil,
				g.sql.queries(true).otherKind: nil,
			} {
				var plan string
				check(t, g.db.QueryRow(tt.explain+text, args...).Scan(&plan))
				if strings.Contains(plan, tt.scans) {
					t.Errorf("%s\n%s", text, plan)
				}
			}
		})
	}
}

// The grants of docs/production.md are enough for what each role does, and for no more.
func TestGrants(t *testing.T) {
	page, err := os.ReadFile("../docs/production.md")
	check(t, err)
	_, rest, _ := strings.Cut(string(page), "```sql\nCREATE ROLE")
	text, _, _ := strings.Cut(rest, "```")
	w := newPostgres(t)
	owner, role := w.guard(t), "r"+strings.ToLower(rand.Text())
	execute(t, owner.db, strings.NewReplacer("gateway_orders", w.table, "shop_", role+"_").Replace("CREATE ROLE"+text))
	t.Cleanup(func() {
		for _, name := range []string{"sender", "resolver", "pruner", "monitor"} {
			execute(t, owner.db, "DROP OWNED BY "+role+"_"+name)
			execute(t, owner.db, "DROP ROLE "+role+"_"+name)
		}
	})
	ctx := t.Context()
	for name, can := range map[string]string{"sender": "migrate, send, look", "resolver": "migrate, look, resolve", "pruner": "migrate, look, prune", "monitor": "migrate, look, view"} {
		t.Run(name, func(t *testing.T) {
			owner.once(t, "unknown", gateway.OutcomeUnknown)
			as := w
			as.dsn += "&options=-c%20role%3D" + role + "_" + name
			g, err := New(as.open(t), WithTable(w.table))
			check(t, err)
			g.retryEnd = 0
			unknown := owner.order(t, "unknown")
			for what, do := range map[string]func() error{
				"migrate": func() error { return g.Migrate(ctx) },
				"send": func() error {
					id := rand.Text()
					return errors.Join(g.begins(ctx, id), g.ends(ctx, id, gateway.OutcomeSucceeded))
				},
				"look":    func() error { _, err := g.PendingSummary(ctx); return err },
				"resolve": func() error { return g.Resolve(ctx, unknown, gateway.Finding{By: "anna", Exists: true}) },
				"prune":   func() error { _, err := g.Prune(ctx, 24*time.Hour); return err },
				"view": func() error {
					var count int
					return g.db.QueryRow("SELECT count(*) FROM " + w.table + "_list").Scan(&count)
				},
			} {
				if err := do(); (err == nil) != strings.Contains(can, what) && (what != "resolve" || name != "sender") {
					t.Errorf("%s: %v", what, err)
				}
			}
			execute(t, owner.db, "DELETE FROM "+w.table)
		})
	}
}

// In MariaDB a role that cannot see the view cannot see that there is a table.
func TestGrants_MariaDB(t *testing.T) {
	w := newMariaDB(t)
	owner, user := w.guard(t), "u"+strings.ToLower(rand.Text())
	execute(t, owner.db, "CREATE USER "+user)
	t.Cleanup(func() { execute(t, owner.db, "DROP USER "+user) })
	execute(t, owner.db, "GRANT SELECT, INSERT, UPDATE ON "+w.table+" TO "+user)
	as := w
	as.dsn = strings.Replace(w.dsn, "root@", user+"@", 1)
	g, err := New(as.open(t), WithTable(w.table))
	check(t, err)
	if err := g.Migrate(t.Context()); err == nil {
		t.Error("without the view nothing is denied")
	}
	execute(t, owner.db, "GRANT SELECT ON "+w.table+"_list TO "+user)
	check(t, g.Migrate(t.Context()))
	g.once(t, order, gateway.OutcomeSucceeded)
}

// The view shows people what the table has.
func TestView(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		check(t, g.begins(t.Context(), "in flight"))
		for id, outcome := range map[string]gateway.Outcome{"created": gateway.OutcomeSucceeded, "unknown": gateway.OutcomeUnknown, "free": gateway.OutcomeRejected} {
			g.once(t, id, outcome)
		}
		rows, err := g.db.Query("SELECT order_id, state, outcome, begun_at, record FROM " + w.table + "_list ORDER BY order_id")
		var found []string
		err = readRows(rows, err, func() error {
			var id, state, outcome, record string
			var begun sql.RawBytes
			err := rows.Scan(&id, &state, &outcome, &begun, &record)
			if len(begun) < len("2026-11-22 03:14:15") || !json.Valid([]byte(record)) {
				t.Errorf("%s, %s", begun, record)
			}
			found = append(found, id+" is "+state+": "+outcome)
			return err
		})
		if got := strings.Join(found, ", "); err != nil || got != "created is created: succeeded, free is free: rejected, in flight is in flight: , unknown is unknown: unknown" {
			t.Errorf("%s, %v", got, err)
		}
	})
}
