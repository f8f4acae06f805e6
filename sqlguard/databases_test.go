package sqlguard

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/mariadbtest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
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
	if o := g.order(t, id); string(o.Record.Invoice) != string(found.Invoice) || o.Findings[0].Note != found.Note {
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

// The table decides whether there is one, and has its version; the view for people is made again.
func TestGuard_Check(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.mustNew(t)
		wantText(t, g.Check(t.Context()), "there is no table "+w.table+" that this user can see: call Migrate")
		check(t, g.Migrate(t.Context()))
		check(t, g.Check(t.Context()))
		g.once(t, order, gateway.OutcomeSucceeded)
		execute(t, g.db, "DROP VIEW "+w.table+"_list")
		check(t, g.Check(t.Context()))
		if version, err := g.SchemaVersion(t.Context()); version != SchemaVersion || err != nil {
			t.Errorf("version %d, %v", version, err)
		}
		check(t, g.Migrate(t.Context()))
		var orders int
		if check(t, g.db.QueryRow("SELECT count(*) FROM "+w.table+"_list").Scan(&orders)); orders != 1 {
			t.Errorf("%d orders are in the view, which Check has written into", orders)
		}
		execute(t, g.db, "DROP VIEW "+w.table+"_list") // SQLite renames no column of a view
		execute(t, g.db, "ALTER TABLE "+w.table+" RENAME COLUMN attempt TO try")
		for _, err := range []error{g.Check(t.Context()), g.Migrate(t.Context())} {
			wantText(t, err, "the table is not one of this version of sqlguard")
		}
	})
}

// Check and Migrate refuse settings with which a guard cannot work, or can lose orders: the latter without WithoutDurability.
func TestGuard_Check_settings(t *testing.T) {
	postgres, mariadb, unlogged, aria := newPostgres(t), newMariaDB(t), newPostgres(t), newMariaDB(t)
	execute(t, unlogged.guard(t).db, "ALTER TABLE "+unlogged.table+" SET UNLOGGED")
	execute(t, aria.guard(t).db, "ALTER TABLE "+aria.table+" ENGINE = Aria")
	logs, err := mariadbtest.Start("innodb-flush-method=nosync", "log-bin=log", "server-id=1")
	check(t, err)
	t.Cleanup(logs.Stop)
	binlog := testDB{MariaDB, "mysql", logs.DSN("shop") + "?interpolateParams=true", DefaultTable}
	file := func(settings string) testDB { return newSQLiteWith(t, "_pragma=busy_timeout(1)"+settings) }
	flushing := func(value int) func(*testing.T) {
		return func(t *testing.T) {
			const set = "SET GLOBAL innodb_flush_log_at_trx_commit = "
			execute(t, mariadb.open(t), set+fmt.Sprint(value))
			t.Cleanup(func() { execute(t, mariadb.open(t), set+"0") })
		}
	}
	for name, tt := range map[string]struct {
		w     testDB
		set   func(*testing.T)
		want  string // empty for nothing
		loses bool   // WithoutDurability accepts it
	}{
		"SQLite, another encoding":                {newSQLiteWith(t, "").with("_pragma=encoding('UTF-16')&_pragma=busy_timeout(1)"), nil, "the encoding of the database is UTF-16le, and must be UTF-8", false},
		"SQLite, two writers":                     {newSQLiteWith(t, "_txlock=deferred"), nil, "busy_timeout is 0", false},
		"SQLite, without a journal":               {file("&_pragma=journal_mode(OFF)"), nil, "journal_mode is off, and a crash corrupts the database", false},
		"SQLite, the journal in memory":           {file("&_pragma=journal_mode(MEMORY)"), nil, "journal_mode is memory", false},
		"SQLite, WAL":                             {file("&_pragma=journal_mode(WAL)"), nil, "", false},
		"SQLite, WAL with NORMAL":                 {file("&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"), nil, "synchronous is NORMAL, and journal_mode is wal: add _pragma=", true},
		"SQLite, WAL with OFF":                    {file("&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"), nil, "synchronous is OFF", true},
		"SQLite, DELETE, the default":             {file(""), nil, "synchronous is FULL, and journal_mode is delete", true},
		"SQLite, DELETE with EXTRA":               {file("&_pragma=synchronous(EXTRA)"), nil, "", false},
		"SQLite, TRUNCATE with FULL":              {file("&_pragma=journal_mode(TRUNCATE)"), nil, "", false},
		"SQLite, in memory":                       {testDB{SQLite, "sqlite", "file:check?mode=memory&cache=shared", DefaultTable}, nil, "the database is in memory", true},
		"PostgreSQL, fsync":                       {postgres, nil, "fsync is off, and must be on", true},
		"PostgreSQL, a table without a log":       {unlogged, nil, "the table is UNLOGGED or TEMPORARY", true},
		"MariaDB, autocommit":                     {mariadb.with("&autocommit=0"), nil, "autocommit is off", false},
		"MariaDB, empty texts":                    {mariadb.with("&sql_mode=%27EMPTY_STRING_IS_NULL%27"), nil, "EMPTY_STRING_IS_NULL", false},
		"MariaDB, flush of 0":                     {mariadb, nil, "innodb_flush_log_at_trx_commit is 0, and must be 1 or 3", true},
		"MariaDB, flush of 2":                     {mariadb, flushing(2), "innodb_flush_log_at_trx_commit is 2", true},
		"MariaDB, flush of 3":                     {mariadb, flushing(3), "", false},
		"MariaDB, a log that is not synced":       {binlog, nil, "sync_binlog is 0, and must be 1", true},
		"MariaDB, a disk that is not synced":      {binlog, nil, "innodb_flush_method is nosync", true},
		"MariaDB, an engine without transactions": {aria, nil, "the table has the engine Aria, which has no transactions: ALTER TABLE", false},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.set != nil {
				tt.set(t)
			}
			accepting := tt.want
			if tt.loses {
				accepting = ""
			}
			for g, want := range map[*Guard]string{tt.w.strict(t): tt.want, tt.w.mustNew(t): accepting} {
				wantText(t, g.Migrate(t.Context()), want)
				if want == "" {
					check(t, g.Check(t.Context()))
				} else {
					wantText(t, g.Check(t.Context()), want)
				}
			}
		})
	}
}

// Check finds that a guard cannot write, and leaves nothing in the table.
func TestGuard_Check_writes(t *testing.T) {
	postgres, mariadb, sqlite, newer := newPostgres(t), newMariaDB(t), newSQLite(t), newMariaDB(t)
	for _, w := range []testDB{postgres, mariadb, sqlite} {
		w.guard(t)
	}
	execute(t, newer.guard(t).db, "ALTER TABLE "+newer.table+" ADD COLUMN priority integer NOT NULL")
	for name, tt := range map[string]struct {
		w    testDB
		want string
	}{
		"PostgreSQL, without INSERT":            {postgres.as(t, "SELECT, UPDATE"), "a guard cannot INSERT: ERROR: permission denied for table"},
		"PostgreSQL, without UPDATE":            {postgres.as(t, "SELECT, INSERT"), "a guard cannot UPDATE: ERROR: permission denied for table"},
		"PostgreSQL, without SELECT":            {postgres.as(t, "UPDATE, INSERT"), "permission denied for table"},
		"PostgreSQL, all that a guard needs":    {postgres.as(t, "SELECT, INSERT, UPDATE"), ""},
		"PostgreSQL, a session that only reads": {postgres.with("&default_transaction_read_only=on"), "a guard cannot INSERT: ERROR: cannot execute INSERT in a read-only transaction"},
		"MariaDB, without INSERT":               {mariadb.as(t, "SELECT, UPDATE"), "a guard cannot INSERT: Error 1142"},
		"MariaDB, without UPDATE":               {mariadb.as(t, "SELECT, INSERT"), "a guard cannot UPDATE: Error 1142"},
		"MariaDB, without any right":            {mariadb.as(t, ""), "Error 1044"},
		"MariaDB, all that a guard needs":       {mariadb.as(t, "SELECT, INSERT, UPDATE"), ""},
		"MariaDB, a session that only reads":    {mariadb.with("&tx_read_only=1"), "a guard cannot INSERT: Error 1792"},
		"MariaDB, a column that is needed":      {newer.with("&sql_mode=STRICT_ALL_TABLES"), "a guard cannot INSERT: Error 1364"},
		"SQLite, a file that only reads":        {sqlite.with("&mode=ro"), "a guard cannot INSERT: attempt to write a readonly database"},
		"SQLite, a session that only reads":     {sqlite.with("&_pragma=query_only(1)"), "a guard cannot INSERT: attempt to write a readonly database"},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tt.w.mustNew(t).Check(t.Context()), tt.want)
		})
	}
	for _, w := range []testDB{postgres, mariadb, sqlite, newer} {
		var orders int
		if check(t, w.open(t).QueryRow("SELECT count(*) FROM "+w.table).Scan(&orders)); orders != 0 {
			t.Errorf("%d orders are left", orders)
		}
	}
}

// In PostgreSQL nothing that was recorded is lost in a crash, although commits do not wait for the disk.
func TestPostgreSQL_synchronousCommit(t *testing.T) {
	server, err := postgrestest.Start("synchronous_commit=off", "wal_writer_delay=10000", "shared_buffers=32MB")
	check(t, err)
	t.Cleanup(server.Stop)
	w := testDB{PostgreSQL, "pgx", server.DSN("postgres"), DefaultTable}
	check(t, w.strict(t).Migrate(t.Context()))
	check(t, w.strict(t).Check(t.Context()))
	o, lost := orderOf(order), orderOf("A-18")
	for i, change := range []func(*Guard) error{
		func(g *Guard) error { return g.asks(t.Context(), &o) },
		func(g *Guard) error { return g.ends(t.Context(), o, gateway.OutcomeSucceeded) },
		func(g *Guard) error {
			return errors.Join(g.asks(t.Context(), &lost), g.ends(t.Context(), lost, gateway.OutcomeUnknown))
		},
		func(g *Guard) error { return g.ResolveAll(t.Context(), []Resolution{{g.order(t, "A-18"), exists}}) },
	} {
		check(t, change(w.mustNew(t)))
		check(t, server.Restart("KILL"))
		g := w.mustNew(t)
		got := fmt.Sprint(g.order(t, order).State, ", ", g.order(t, "A-18").State)
		if want := []string{"in flight, free", "created, free", "created, unknown", "created, created"}[i]; got != want {
			t.Fatalf("after a crash the orders are %s, not %s", got, want)
		}
	}
}

// as returns the database of a user who has rights on the table.
func (w testDB) as(t *testing.T, rights string) testDB {
	t.Helper()
	owner, user, drop := w.open(t), "u"+strings.ToLower(rand.Text()), "DROP USER "
	execute(t, owner, "CREATE USER "+user)
	if rights != "" {
		execute(t, owner, "GRANT "+rights+" ON "+w.table+" TO "+user)
	}
	if w.dialect == PostgreSQL {
		drop = "DROP OWNED BY " + user + "; DROP ROLE "
	}
	t.Cleanup(func() { execute(t, owner, drop+user) })
	return w.login(user)
}

// login returns the database of another user, or in PostgreSQL with a role.
func (w testDB) login(user string) testDB {
	if w.dialect == PostgreSQL {
		return w.with("&options=-c%20role%3D" + user)
	}
	w.dsn = strings.Replace(w.dsn, "root@", user+"@", 1)
	return w
}

// The UPDATE of docs/unknown.md moves an order that is in flight too.
func TestGuard_movedBaseURL(t *testing.T) {
	page, err := os.ReadFile("../docs/unknown.md")
	check(t, err)
	_, rest, _ := strings.Cut(string(page), "```sql\n")
	update, _, _ := strings.Cut(rest, "```")
	inEach(t, func(t *testing.T, w testDB) {
		g, o := w.guard(t), orderOf(order)
		o.Gateway = "https://old.example/api"
		check(t, g.asks(t.Context(), &o))
		execute(t, g.db, strings.Replace(update, "gateway_orders", w.table, 1))
		check(t, g.ends(t.Context(), o, gateway.OutcomeSucceeded))
		o.Gateway = "https://new.example/api"
		wantError(t, g.asks(t.Context(), &o), errCreated)
	})
}

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
	inServers(t, func(t *testing.T, w testDB) {
		owner, prefix, users := w.guard(t), "r"+strings.ToLower(rand.Text())[:20], map[string]testDB{}
		statements := strings.NewReplacer("gateway_orders", w.table, "shop_", prefix+"_").Replace("CREATE ROLE" + text)
		for statement := range strings.Lines(statements) {
			execute(t, owner.db, statement)
		}
		for _, name := range []string{"sender", "resolver", "pruner", "monitor"} {
			users[name] = w.withRole(t, prefix+"_"+name)
		}
		for name, can := range map[string]string{
			"sender": "migrate, check, send, look", "resolver": "migrate, look, resolve", "pruner": "migrate, look, prune", "monitor": "migrate, look, view",
		} {
			t.Run(name, func(t *testing.T) {
				g := users[name].mustNew(t)
				seen := owner.unknown(t, "unknown", "other")
				ctx := t.Context()
				for what, do := range map[string]func() error{
					"migrate": func() error { return g.Migrate(ctx) },
					"check":   func() error { return g.Check(ctx) },
					"send": func() error {
						o := orderOf(rand.Text())
						return errors.Join(g.asks(ctx, &o), g.ends(ctx, o, gateway.OutcomeSucceeded))
					},
					"look": func() error { _, err := g.PendingSummary(ctx); return err },
					"resolve": func() error {
						return errors.Join(g.Resolve(ctx, seen[0], exists), g.ResolveAll(ctx, []Resolution{{seen[1], exists}}))
					},
					"prune": func() error { _, err := g.Prune(ctx, 24*time.Hour); return err },
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
		execute(t, owner.db, "DROP VIEW "+w.table+"_list") // which only its owner makes again
		g := users["sender"].mustNew(t)
		check(t, errors.Join(g.Migrate(t.Context()), g.Check(t.Context()), owner.Migrate(t.Context())))
	})
}

func (w testDB) withRole(t *testing.T, role string) testDB {
	t.Helper()
	owner := w.open(t)
	if w.dialect == PostgreSQL {
		t.Cleanup(func() { execute(t, owner, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
		return w.login(role)
	}
	user := role + "_user"
	for _, statement := range []string{"CREATE USER " + user, "GRANT " + role + " TO " + user, "SET DEFAULT ROLE " + role + " FOR " + user} {
		execute(t, owner, statement)
	}
	t.Cleanup(func() {
		execute(t, owner, "DROP USER "+user)
		execute(t, owner, "DROP ROLE "+role)
	})
	return w.login(user)
}

// The view shows people what the table has, also in an older version of a database, and whatever bytes came from a gateway.
func TestView(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g, ctx := w.guard(t), t.Context()
		sent := time.Date(2026, 11, 30, 23, 59, 59, 999, time.FixedZone("", 3600))
		ends := func(id string, r gateway.OrderRecord) {
			o := orderOf(id)
			o.Request.BaseCurrency = "eur"
			check(t, g.asks(ctx, &o))
			r.Request, r.SentAt = o.Request, sent
			_, err := g.End(ctx, o, r)
			check(t, err)
		}
		ends("created", gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: []byte(`{"text":"café"}`)})
		ends("bytes", gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Invoice: []byte("\xff\x00")})
		ends("unknown", gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Cause: "a NUL \x00, and \\u0000"})
		ends("free", gateway.OrderRecord{Outcome: gateway.OutcomeRejected})
		check(t, g.begins(ctx, "in flight"))
		_, err := g.Mark(ctx, []gateway.OrderStatus{{OrderID: "marked"}})
		check(t, err)
		seen := g.unknown(t, "found")[0]
		check(t, g.Resolve(ctx, seen, gateway.Finding{Exists: true, By: "Änne", Note: "invoice 4711"}))

		check(t, g.Resolve(ctx, g.unknown(t, "twice")[0], gateway.Finding{By: "bert", Margin: time.Microsecond}))
		check(t, g.Resolve(ctx, g.unknown(t, "twice")[0], exists))

		columns := "state, price, currency, amount, coin, network, sent_at, findings, invoice, created_at"
		const at = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`
		for id, want := range map[string]string{
			"created":   `created;10.50;eur;10.50;USDT;Tron;2026-11-30T22:59:59Z;;{"text":"café"};` + at,
			"bytes":     `created;10.50;eur;10.50;USDT;Tron;2026-11-30T22:59:59Z;;.*;` + at,
			"unknown":   `unknown;10.50;eur;10.50;USDT;Tron;2026-11-30T22:59:59Z;;;`,
			"free":      `free;10.50;eur;10.50;USDT;Tron;2026-11-30T22:59:59Z;;;`,
			"in flight": `in flight;10.50;;10.50;USDT;Tron;` + at + `;;;`,
			"twice":     `created;10.50;;10.50;USDT;Tron;;absent by bert at ` + at + `; exists by anna at ` + at + `;;` + at,
			"marked":    `unknown;;;;;;;;;`,
			"found":     `created;10.50;;10.50;USDT;Tron;;exists by Änne at ` + at + `: invoice 4711;;` + at,
		} {
			cells := make([]sql.NullString, strings.Count(columns, ",")+1)
			places := make([]any, len(cells))
			for i := range cells {
				places[i] = &cells[i]
			}
			check(t, g.db.QueryRow("SELECT "+columns+" FROM "+w.table+"_list WHERE order_id = '"+id+"'").Scan(places...))
			var texts []string
			for _, cell := range cells {
				texts = append(texts, cell.String)
			}
			if got := strings.Join(texts, ";"); !regexp.MustCompile("(?s)^" + want + "$").MatchString(got) {
				t.Errorf("%s is %q, want %s", id, got, want)
			}
		}
		if w.dialect == MariaDB {
			var name, text, charset, collation string
			check(t, g.db.QueryRow("SHOW CREATE VIEW "+w.table+"_list").Scan(&name, &text, &charset, &collation))
			if strings.Contains(text, "`shop`.") {
				t.Errorf("a dump of the view reads the table of this database, wherever it is restored: %s", text)
			}
		}
		if w.dialect == SQLite && strings.Contains(g.sql.view(), "subsec") {
			t.Error("SQLite 3.40, which people have, does not know it")
		}
	})
}
