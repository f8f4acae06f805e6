package sqlguard

import (
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
	g.once(t, id, gateway.OutcomeUnknown)
	summary, err1 := g.PendingSummary(ctx)
	pending, err2 := g.Pending(ctx, gateway.PendingQuery{Most: 10})
	if err := errors.Join(err1, err2); err != nil || len(pending) != 1 || summary.Count != 1 || pending[0].OrderID != id {
		t.Fatalf("%+v, %+v, %v", pending, summary, err)
	}
	found := gateway.Finding{Exists: true, By: "anna", Note: `it's in "the" list \`, Invoice: []byte(`{"id":"4711 é"}`)}
	check(t, g.Resolve(ctx, pending[0], found))
	marked, err := g.Mark(ctx, []gateway.OrderStatus{{OrderID: id + "2"}, {OrderID: id}})
	if err != nil || marked != 1 {
		t.Errorf("%d marked, %v", marked, err)
	}
	check(t, g.ResolveAll(ctx, []Resolution{{g.order(t, id+"2"), exists}}))
	if o := g.order(t, id); string(o.Record.Invoice) != string(found.Invoice) || o.Finding.Note != found.Note {
		t.Errorf("%+v", o)
	}
	check(t, g.Forget(ctx, g.order(t, id)))
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
			plain, w := tt.w.guard(t), tt.w
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
	wantText(t, w.mustNew(t).begins(t.Context(), order), "autocommit=0")
	plain.wantState(t, gateway.OrderFree, 0)
}

// Check refuses a table or settings with which a guard cannot work, and Migrate does not begin with those settings.
func TestGuard_Check(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.mustNew(t)
		wantText(t, g.Check(t.Context()), "there is no table "+w.table+": call Migrate")
		check(t, g.Migrate(t.Context()))
		check(t, g.Check(t.Context()))
		execute(t, g.db, "DROP VIEW "+w.table+"_list")
		wantText(t, g.Check(t.Context()), "there is no table")
		check(t, g.Migrate(t.Context()))
		execute(t, g.db, "DROP VIEW "+w.table+"_list") // SQLite renames no column of a view
		execute(t, g.db, "ALTER TABLE "+w.table+" RENAME COLUMN attempt TO try")
		execute(t, g.db, "CREATE VIEW "+w.table+"_list AS SELECT 1")
		wantText(t, g.Check(t.Context()), "the table is not one of this version of sqlguard")
	})
	mariadb, sqlite := newMariaDB(t), newSQLiteWith(t, "")
	mariadb.guard(t)
	for want, w := range map[string]testDB{
		"the encoding of the database is UTF-16le, and must be UTF-8": sqlite.with("_pragma=encoding('UTF-16')&_pragma=busy_timeout(1)"),
		"busy_timeout is 0":    newSQLiteWith(t, "_txlock=deferred"),
		"autocommit is off":    mariadb.with("&autocommit=0"),
		"EMPTY_STRING_IS_NULL": mariadb.with("&sql_mode=%27EMPTY_STRING_IS_NULL%27"),
	} {
		g := w.mustNew(t)
		wantText(t, g.Check(t.Context()), want)
		wantText(t, g.Migrate(t.Context()), want)
	}
}

// with returns the database of connections with more settings.
func (w testDB) with(settings string) testDB {
	w.dsn += settings
	return w
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
			tt.w.copy(t, g, "old", 10_000)
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
			unknown := owner.unknown(t, "unknown")[0]
			g := w.with("&options=-c%20role%3D" + role + "_" + name).mustNew(t)
			for what, do := range map[string]func() error{
				"migrate": func() error { return g.Migrate(ctx) },
				"send": func() error {
					o := orderOf(rand.Text())
					return errors.Join(g.asks(ctx, &o), g.ends(ctx, o, gateway.OutcomeSucceeded))
				},
				"look":    func() error { _, err := g.PendingSummary(ctx); return err },
				"resolve": func() error { return g.Resolve(ctx, unknown, exists) },
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
	g := as.mustNew(t)
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
		g.inEachState(t)
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
