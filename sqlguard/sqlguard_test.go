package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const order = "A-17"

// A scenario is what two processes, a and b, and a person do with one order.
type scenario struct {
	a, b *Guard
	seen Order // as the person read it
}

// newScenario returns one in an empty table.
func newScenario(t *testing.T, w testDB) *scenario {
	t.Helper()
	p := &scenario{a: w.guard(t), b: w.guard(t)}
	execute(t, p.a.db, `DELETE FROM `+w.table)
	return p
}

func (p *scenario) doAll(t *testing.T, actions string) {
	t.Helper()
	for action := range strings.SplitSeq(actions, ", ") {
		check(t, p.do(t.Context(), action))
	}
}

// A step is one action: what it must return, and the state that must follow.
type step struct {
	action string
	want   error
	state  State
}

// orderOf is what a process asks.
func (p *scenario) orderOf(who string) gateway.Order {
	return gateway.Order{Request: invoice, RequestID: "request of " + who}
}

// recordOf is what a process reports.
func (p *scenario) recordOf(who string, outcome gateway.Outcome) gateway.OrderRecord {
	r := gateway.OrderRecord{Outcome: outcome, Request: invoice, RequestID: p.orderOf(who).RequestID}
	if outcome == gateway.OutcomeSucceeded {
		r.Invoice = []byte(`{"by":"` + who + `"}`)
	}
	return r
}

var reports = map[string]gateway.Outcome{
	"succeeds": gateway.OutcomeSucceeded, "is rejected": gateway.OutcomeRejected, "sends nothing": gateway.OutcomeNotSent,
	"learns nothing": gateway.OutcomeUnknown, "reports nonsense": gateway.Outcome(77),
}

// do performs an action. Its first word is the actor.
func (p *scenario) do(ctx context.Context, action string) error {
	who, what, _ := strings.Cut(action, " ")
	g, o := map[string]*Guard{"a": p.a, "b": p.b}[who], p.orderOf(who)
	if outcome, ok := reports[what]; ok {
		return recorded(g.End(ctx, o, p.recordOf(who, outcome)))
	}
	switch what {
	case "begins", "resubmits":
		o.Resubmit = what == "resubmits"
		return granted(g.Begin(ctx, o))
	case "is lost":
		_, err := p.a.db.ExecContext(ctx, `DELETE FROM `+p.a.cfg.table)
		return err
	case "ends": // the lease expires
		return p.a.endLeases(ctx)
	case "looks it up":
		var err error
		p.seen, err = p.a.Order(ctx, "", order)
		return err
	case "finds one", "finds none":
		return p.a.Resolve(ctx, p.seen, Resolution{Exists: what == "finds one", By: "anna", Note: "by phone"})
	default:
		panic("no such action: " + action)
	}
}

// scenarios cover every transition.
var scenarios = map[string][]step{
	"success": {
		{"a begins", nil, StateInFlight},
		{"b begins", errInFlight, StateInFlight},
		{"b resubmits", errInFlight, StateInFlight},
		{"a begins", errInFlight, StateInFlight},
		{"a succeeds", nil, StateCreated},
		{"b begins", errCreated, StateCreated},
		{"b resubmits", errCreated, StateCreated},
		{"a begins", errCreated, StateCreated},
	},
	"rejection": {
		{"a begins", nil, StateInFlight},
		{"a is rejected", nil, StateFree},
		{"b begins", nil, StateInFlight},
		{"b is rejected", nil, StateFree},
	},
	"nothing sent": {
		{"a begins", nil, StateInFlight},
		{"a sends nothing", nil, StateFree},
		{"a resubmits", nil, StateInFlight},
		{"a succeeds", nil, StateCreated},
	},
	"unknown": {
		{"a begins", nil, StateInFlight},
		{"a learns nothing", nil, StateUnknown},
		{"a begins", errUnknown, StateUnknown},
		{"b begins", errUnknown, StateUnknown},
		{"time ends", nil, StateUnknown},
		{"b begins", errUnknown, StateUnknown},
	},
	"an invalid outcome": {
		{"a begins", nil, StateInFlight},
		{"a reports nonsense", nil, StateUnknown},
	},
	"a resubmission leaves the first unknown": {
		{"a begins", nil, StateInFlight},
		{"a learns nothing", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"a resubmits", errInFlight, StateInFlight},
		{"b is rejected", nil, StateUnknown},
		{"a resubmits", nil, StateInFlight},
		{"a sends nothing", nil, StateUnknown},
		{"a begins", errUnknown, StateUnknown},
		{"a resubmits", nil, StateInFlight},
		{"a learns nothing", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"b succeeds", nil, StateCreated},
	},
	"crash": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"b begins", errUnknown, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"b is rejected", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
	},
	"crash, and none exists": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
		{"b begins", nil, StateInFlight},
		{"b succeeds", nil, StateCreated},
	},
	"crash, and one exists": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds one", nil, StateCreated},
		{"anna finds none", ErrNotUnknown, StateCreated},
		{"b begins", errCreated, StateCreated},
	},
	"slow, but before any other": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"a begins", errInFlight, StateUnknown},
		{"a resubmits", errInFlight, StateUnknown},
		{"a is rejected", nil, StateFree},
		{"a is rejected", nil, StateFree},
	},
	"late rejection during a resubmission": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"a is rejected", nil, StateInFlight},
		{"a resubmits", errInFlight, StateInFlight},
		{"b succeeds", nil, StateCreated},
	},
	"late success during a resubmission": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"a succeeds", nil, StateInFlight},
		{"b is rejected", nil, StateCreated},
		{"anna looks it up", nil, StateCreated},
		{"anna finds none", ErrNotUnknown, StateCreated},
	},
	"late success during a resubmission that dies": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"a succeeds", nil, StateInFlight},
		{"time ends", nil, StateUnknown}, // b may have created another
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateCreated}, // the late success is recorded
	},
	"late unknown outcome after a success": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"b succeeds", nil, StateCreated},
		{"a learns nothing", nil, StateCreated},
	},
	"late success after it was found that none exists": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
		{"a succeeds", nil, StateCreated},
		{"b begins", errCreated, StateCreated},
	},
	"late success during the next one": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
		{"b begins", nil, StateInFlight},
		{"a succeeds", nil, StateInFlight},
		{"b is rejected", nil, StateCreated},
	},
	"late rejection after it was found that none exists": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
		{"a is rejected", nil, StateFree},
	},
	"late unknown outcome after it was found that none exists": {
		{"a begins", nil, StateInFlight},
		{"time ends", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
		{"b begins", nil, StateInFlight},
		{"a learns nothing", nil, StateInFlight},
		{"b is rejected", nil, StateUnknown},
	},
	"nothing to resolve": {
		{"anna looks it up", nil, StateFree},
		{"anna finds none", ErrNotUnknown, StateFree},
		{"a begins", nil, StateInFlight},
		{"anna looks it up", nil, StateInFlight},
		{"anna finds none", ErrNotUnknown, StateInFlight},
		{"a learns nothing", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"anna looks it up", nil, StateInFlight},
		{"anna finds none", ErrNotUnknown, StateInFlight},
		{"b is rejected", nil, StateUnknown},
		{"anna finds none", ErrNotUnknown, StateUnknown}, // she looked while it was being sent
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
		{"anna finds none", ErrNotUnknown, StateFree},
	},
	"resolved too late": {
		{"a begins", nil, StateInFlight},
		{"a learns nothing", nil, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"b resubmits", nil, StateInFlight},
		{"b learns nothing", nil, StateUnknown},
		{"anna finds none", ErrTriedAgain, StateUnknown},
		{"anna looks it up", nil, StateUnknown},
		{"anna finds none", nil, StateFree},
	},
	"an end without a beginning": {
		{"a is rejected", nil, StateFree},
		{"a succeeds", ErrNotHeld, StateFree},
		{"a begins", nil, StateInFlight},
		{"b is rejected", nil, StateInFlight},
		{"b sends nothing", nil, StateInFlight},
		{"a is rejected", nil, StateFree},
	},
}

// I-122
func TestGuard_transitions(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		a, b := w.guard(t), w.guard(t)
		for name, steps := range scenarios {
			t.Run(name, func(t *testing.T) { runScenario(t, &scenario{a: a, b: b}, steps) })
		}
	})
}

// runScenario runs a scenario on an empty table, and compares the state after each
// step.
func runScenario(t *testing.T, p *scenario, steps []step) {
	clear(p.a.tokens)
	clear(p.b.tokens)
	execute(t, p.a.db, `DELETE FROM `+p.a.cfg.table)
	for i, s := range steps {
		if err := p.do(t.Context(), s.action); !errors.Is(err, s.want) {
			t.Fatalf("step %d, %s: %v, want %v", i, s.action, err, s.want)
		}
		now, err := p.b.Order(t.Context(), "", order)
		if err != nil || now.ID != order || now.State != s.state {
			t.Fatalf("step %d, after %s: %+v, %v, want it %s", i, s.action, now, err, s.state)
		}
		pending, err := p.a.Pending(t.Context(), PendingQuery{})
		check(t, err)
		if s.state != StateUnknown && len(pending) > 0 || s.state == StateUnknown && !reflect.DeepEqual(pending, []Order{now}) {
			t.Fatalf("step %d, after %s: pending are %+v, the order is %+v", i, s.action, pending, now)
		}
		if now.Since.IsZero() == (s.state == StateUnknown) {
			t.Fatalf("step %d, after %s: unknown since %v", i, s.action, now.Since)
		}
	}
}

// End returns what the table has then: what the call reports, or what is more certain.
func TestGuard_End_returns(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		for name, tt := range map[string]struct {
			before  string // what happens, separated by commas
			report  gateway.Outcome
			want    gateway.Outcome
			from    string // whose record it is
			wantErr error
		}{
			"created":                    {"a begins", gateway.OutcomeSucceeded, gateway.OutcomeSucceeded, "a", nil},
			"rejected":                   {"a begins", gateway.OutcomeRejected, gateway.OutcomeRejected, "a", nil},
			"not sent":                   {"a begins", gateway.OutcomeNotSent, gateway.OutcomeNotSent, "a", nil},
			"unknown":                    {"a begins", gateway.OutcomeUnknown, gateway.OutcomeUnknown, "a", nil},
			"no outcome":                 {"a begins", gateway.Outcome(77), gateway.OutcomeUnknown, "a", nil},
			"created after unknown":      {"b begins, b learns nothing, a resubmits", gateway.OutcomeSucceeded, gateway.OutcomeSucceeded, "a", nil},
			"rejected after unknown":     {"b begins, b learns nothing, a resubmits", gateway.OutcomeRejected, gateway.OutcomeUnknown, "b", nil},
			"not sent after unknown":     {"b begins, b learns nothing, a resubmits", gateway.OutcomeNotSent, gateway.OutcomeUnknown, "b", nil},
			"rejected after created":     {"a begins, time ends, b resubmits, b succeeds", gateway.OutcomeRejected, gateway.OutcomeSucceeded, "b", nil},
			"unknown after created":      {"a begins, time ends, b resubmits, b succeeds", gateway.OutcomeUnknown, gateway.OutcomeSucceeded, "b", nil},
			"created after created":      {"a begins, time ends, b resubmits, b succeeds", gateway.OutcomeSucceeded, gateway.OutcomeSucceeded, "b", nil},
			"created, taken over":        {"a begins, time ends, b resubmits", gateway.OutcomeSucceeded, gateway.OutcomeSucceeded, "a", nil},
			"unknown, taken over":        {"a begins, time ends, b resubmits", gateway.OutcomeUnknown, gateway.OutcomeUnknown, "a", nil},
			"rejected, taken over":       {"a begins, time ends, b resubmits", gateway.OutcomeRejected, gateway.OutcomeUnknown, "a", nil}, // as the table has it of a
			"rejected, taken over twice": {"a begins, time ends, b resubmits, b learns nothing", gateway.OutcomeRejected, gateway.OutcomeUnknown, "b", nil},
			"rejected, found absent":     {"a begins, time ends, anna looks it up, anna finds none, b begins", gateway.OutcomeRejected, gateway.OutcomeRejected, "a", nil},
			"rejected, no row":           {"a begins, everything is lost", gateway.OutcomeRejected, gateway.OutcomeRejected, "a", nil},
			"unknown, no row":            {"a begins, everything is lost", gateway.OutcomeUnknown, gateway.OutcomeUnknown, "a", ErrNotHeld},
			"created, no row":            {"a begins, everything is lost", gateway.OutcomeSucceeded, gateway.OutcomeSucceeded, "a", ErrNotHeld},
		} {
			t.Run(name, func(t *testing.T) {
				p := newScenario(t, w)
				p.doAll(t, tt.before)
				has, err := p.a.End(t.Context(), p.orderOf("a"), p.recordOf("a", tt.report))
				if !errors.Is(err, tt.wantErr) || has.Outcome != tt.want || has.RequestID != p.orderOf(tt.from).RequestID {
					t.Fatalf("%+v, %v", has, err)
				}
				if o, err := p.a.Order(t.Context(), "", order); err != nil || tt.want == gateway.OutcomeSucceeded && !has.CreatedAt.Equal(o.Created) {
					t.Errorf("created at %v, %+v, %v", has.CreatedAt, o, err)
				}
				if want := `{"by":"` + tt.from + `"}`; tt.want == gateway.OutcomeSucceeded && string(has.Invoice) != want || len(has.Others) > 0 {
					t.Errorf("%+v", has)
				}
			})
		}
	})
}

// The record has who resolved an order, how and when.
func TestGuard_record(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		p := newScenario(t, w)
		p.doAll(t, "a begins, a learns nothing, b resubmits, b is rejected")
		listed, err := p.a.Pending(t.Context(), PendingQuery{})
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		o := listed[0]
		want := Order{
			ID: order, State: StateUnknown, Attempts: 2, Outcome: gateway.OutcomeRejected,
			Begun: o.Begun, Ended: o.Ended, Since: o.Since, Record: gateway.OrderRecord{Request: invoice, RequestID: p.orderOf("a").RequestID},
		}
		if !reflect.DeepEqual(o, want) || o.Since.After(o.Begun) || o.Begun.After(o.Ended) || o.Since.IsZero() || o.Ended.Location() != time.UTC {
			t.Fatalf("%+v", o)
		}
		found := Resolution{Exists: true, By: "anna", Note: "it's invoice 4711; DROP TABLE"}
		check(t, p.b.Resolve(t.Context(), o, found))
		after, err := p.a.Order(t.Context(), "", order)
		want.State, want.Since = StateCreated, time.Time{}
		want.Created, want.Resolved, want.Resolution = after.Created, after.Resolved, found
		want.Record.Outcome, want.Record.CreatedAt = gateway.OutcomeSucceeded, after.Created
		if err != nil || !reflect.DeepEqual(after, want) || after.Created != after.Resolved || after.Resolved.Before(after.Ended) {
			t.Fatalf("%+v, %v", after, err)
		}
	})
}

// The lease is measured by the clock of the database, in milliseconds.
func TestGuard_lease(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithLease(90*time.Second+7*time.Millisecond))
		check(t, g.begins(t.Context(), order))
		query := `SELECT begun_at || '', lease_until || '' FROM ` + w.table
		if w.dialect == PostgreSQL {
			query = `SELECT to_char(begun_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
				to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM ` + w.table
		}
		var begun, until time.Time
		check(t, g.db.QueryRow(query).Scan(stamp{&begun}, stamp{&until}))
		if lease := until.Sub(begun); lease != 90*time.Second+7*time.Millisecond {
			t.Errorf("from %v to %v: %v", begun, until, lease)
		}
		if age := time.Since(begun).Abs(); age > time.Hour {
			t.Errorf("begun %v ago", age)
		}
	})
}

// A UUID is one order in either case.
func TestGuard_identifiers_UUID(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		const upper, lower = "8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B", "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"
		g := w.guard(t)
		check(t, g.begins(t.Context(), upper))
		check(t, g.ends(t.Context(), lower, gateway.OutcomeUnknown))
		for _, id := range []string{upper, lower} {
			if o, err := g.Order(t.Context(), "", id); err != nil || o.State != StateUnknown {
				t.Errorf("%s: %s %v", id, o.State, err)
			}
			if lease, err := g.Begin(t.Context(), orderOf(id)); err != nil || lease.State != gateway.OrderUnknown {
				t.Errorf("%s: %s %v", id, lease.State, err)
			}
		}
		check(t, g.Resolve(t.Context(), Order{ID: upper, State: StateUnknown, Attempts: 1}, Resolution{By: "anna", Exists: true}))
	})
}

// Other identifiers are compared byte by byte and stored unchanged.
func TestGuard_identifiers(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		ids := []string{"a", "A", "000123", "123", "0e5", "null", `o'"; --`, "é", "e\u0301", "訂單", "%", "$1", "?1", strings.Repeat("x", 1024)}
		for _, id := range ids {
			check(t, g.begins(t.Context(), id))
			check(t, g.ends(t.Context(), id, gateway.OutcomeUnknown))
		}
		pending, err := g.Pending(t.Context(), PendingQuery{})
		check(t, err)
		var listed []string
		for _, o := range pending {
			listed = append(listed, o.ID)
		}
		slices.Sort(listed)
		slices.Sort(ids)
		if !slices.Equal(listed, ids) {
			t.Errorf("%q, want %q", listed, ids)
		}
	})
}

// Of many concurrent calls, in one process and in several, one begins.
func TestGuard_concurrent(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		guards := []*Guard{w.guard(t), w.guard(t), w.guard(t)}
		for n := range 20 {
			id := fmt.Sprint(n)
			var let, refused atomic.Int32
			var all sync.WaitGroup
			for i := range 24 {
				all.Go(func() {
					o := orderOf(id)
					o.Resubmit = i%2 == 0
					switch err := granted(guards[i%len(guards)].Begin(t.Context(), o)); {
					case err == nil:
						let.Add(1)
					case errors.Is(err, errInFlight):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if let.Load() != 1 || refused.Load() != 23 {
				t.Fatalf("order %s: %d began, %d were refused", id, let.Load(), refused.Load())
			}
		}
	})
}

// Any number of processes may create the table at once.
func TestGuard_Migrate_at_once(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		var all sync.WaitGroup
		for range 8 {
			g, err := New(w.open(t), WithTable(w.table))
			check(t, err)
			all.Go(func() {
				if err := g.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// The texts for migrations make the same table as Migrate, whatever its name.
func TestMigrationSQL(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		w.table = "user" // a reserved word
		text, err := MigrationSQL(w.dialect, w.table, 0)
		check(t, err)
		db := w.open(t)
		t.Cleanup(func() { _, _ = db.Exec(`DROP TABLE "user"`) })
		for range 2 {
			if _, err := db.Exec(text); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
		g, err := New(db, WithTable(w.table))
		check(t, err)
		g.once(t, order, gateway.OutcomeSucceeded)
		g.wantVersion(t, SchemaVersion)
		execute(t, db, `DROP TABLE "user"`)
		g.wantVersion(t, 0)

		if text, err := MigrationSQL(w.dialect, w.table, SchemaVersion); err != nil || text != "" {
			t.Errorf("%q, %v", text, err)
		}
	})
	for _, bad := range []struct {
		dialect Dialect
		table   string
		from    int
	}{{0, DefaultTable, 0}, {SQLite, "", 0}, {PostgreSQL, "Orders", 0}, {SQLite, `a"b`, 0}, {SQLite, DefaultTable, -1}, {SQLite, DefaultTable, SchemaVersion + 1}} {
		if text, err := MigrationSQL(bad.dialect, bad.table, bad.from); text != "" || !errors.Is(err, gateway.ErrInvalidArgument) {
			t.Errorf("%v: %q, %v", bad, text, err)
		}
	}
}

// A table that another program has made grants no lease, and the error does not send anybody to Migrate in vain.
func TestGuard_another_table(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		db := w.open(t)
		execute(t, db, `CREATE TABLE `+w.table+` (order_id text, merchant text)`)
		g, err := New(db, WithTable(w.table))
		check(t, err)
		if err := g.begins(t.Context(), order); err == nil || !strings.Contains(err.Error(), "not one of this version of sqlguard") {
			t.Error(err)
		}
	})
}

// Without a table every method fails, and Begin grants no lease.
func TestGuard_no_table(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g, err := New(w.open(t), WithTable(w.table))
		check(t, err)
		_, err1 := g.Order(t.Context(), "", order)
		_, err2 := g.Pending(t.Context(), PendingQuery{})
		_, err3 := g.PendingSummary(t.Context())
		g.retryEnd = 0
		for i, err := range []error{
			g.begins(t.Context(), order), g.ends(t.Context(), order, gateway.OutcomeRejected),
			g.Resolve(t.Context(), Order{ID: order, State: StateUnknown}, Resolution{By: "anna"}), err1, err2, err3,
		} {
			if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrNotUnknown) || !strings.Contains(err.Error(), w.table) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if len(g.tokens) > 0 {
			t.Error("an order is held")
		}
	})
}

// Begin fails if its statement cannot be committed.
func TestGuard_Begin_not_committed(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		g := newPostgres(t).guard(t)
		refuse := g.cfg.table + "_refuse"
		_, err := g.db.Exec(fmt.Sprintf(`
			CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$;
			CREATE CONSTRAINT TRIGGER late AFTER INSERT ON %[2]s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s()`,
			refuse, g.cfg.table))
		check(t, err)
		t.Cleanup(func() { _, _ = g.db.Exec(`DROP FUNCTION ` + refuse + ` CASCADE`) })
		notBegun(t, g, "not today")
	})
	t.Run("SQLite", func(t *testing.T) {
		w := newSQLiteWith(t, "_pragma=journal_mode(DELETE)&_pragma=busy_timeout(10)")
		g := w.guard(t)
		reader, err := w.open(t).Query(`SELECT 1 FROM sqlite_schema`) // keeps its lock, so that no other connection can commit
		check(t, err)
		defer func() { _ = reader.Close() }()
		notBegun(t, g, "SQLITE_BUSY")
	})
}

func notBegun(t *testing.T, g *Guard, reason string) {
	t.Helper()
	if err := g.begins(t.Context(), order); err == nil || !strings.Contains(err.Error(), reason) {
		t.Fatalf("began: %v", err)
	}
	if o, err := g.Order(t.Context(), "", order); err != nil || o.Attempts != 0 {
		t.Fatalf("%+v, %v", o, err)
	}
}

// No statement is sent after the context has ended.
func TestGuard_Begin_ended_context(t *testing.T) {
	g := newSQLite(t).guard(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, g.begins(ctx, order), context.Canceled)
	wantError(t, g.ends(ctx, order, gateway.OutcomeSucceeded), context.Canceled)
	if o, err := g.Order(t.Context(), "", order); err != nil || o.Attempts != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// If the response of the database is lost, Begin undoes what it may have recorded.
func TestGuard_Begin_response_lost(t *testing.T) {
	g, connector := lossyGuard(t)
	lost := errors.New("connection reset")
	connector.lose(lost)
	wantError(t, g.begins(t.Context(), order), lost)
	o, err := g.Order(t.Context(), "", order)
	if err != nil || o.State != StateFree || o.Attempts != 1 || o.Outcome != gateway.OutcomeNotSent {
		t.Fatalf("%+v, %v", o, err)
	}
	check(t, g.begins(t.Context(), order))
}

// If that response is lost too, the order is unknown after its lease, never free.
func TestGuard_Begin_all_responses_lost(t *testing.T) {
	g, connector := lossyGuard(t)
	lost := errors.New("connection reset")
	connector.refuse(2, lost) // the statement that undoes it does not arrive
	connector.lose(lost)
	wantError(t, g.begins(t.Context(), order), lost)
	wantError(t, g.resubmits(t.Context(), order), errInFlight)
	check(t, g.endLeases(t.Context()))
	wantError(t, g.begins(t.Context(), order), errUnknown)
}

// database/sql sends a statement again after a broken connection. That is one
// attempt.
func TestGuard_Begin_sent_again(t *testing.T) {
	g, connector := lossyGuardOf(t, newPostgres(t))
	connector.lose(driver.ErrBadConn)
	check(t, g.begins(t.Context(), order))
	g.wantState(t, StateInFlight, 1)
}

// An outcome that cannot be recorded leaves the order unknown, until End is called again.
func TestGuard_End_not_recorded(t *testing.T) {
	for _, tt := range []struct {
		outcome gateway.Outcome
		want    State
	}{
		{gateway.OutcomeSucceeded, StateCreated},
		{gateway.OutcomeRejected, StateFree},
		{gateway.OutcomeNotSent, StateFree},
		{gateway.OutcomeUnknown, StateUnknown},
	} {
		t.Run(tt.outcome.String(), func(t *testing.T) {
			g := unendedGuard(t, tt.outcome)
			if pending, err := g.Pending(t.Context(), PendingQuery{}); err != nil || len(pending) != 1 {
				t.Fatal(pending, err)
			}
			wantError(t, g.begins(t.Context(), order), errUnknown)
			if err := g.ends(t.Context(), order, tt.outcome); err != nil {
				t.Error(err)
			}
			if o, err := g.Order(t.Context(), "", order); err != nil || o.State != tt.want || o.Outcome != tt.outcome {
				t.Errorf("%+v, %v", o, err)
			}
			if len(g.tokens)+len(g.unended) > 0 {
				t.Errorf("held: %v, %v", g.tokens, g.unended)
			}
		})
	}
}

// unendedGuard returns a guard whose End has failed, and whose lease has ended.
func unendedGuard(t *testing.T, outcome gateway.Outcome) *Guard {
	t.Helper()
	g, connector := lossyGuard(t)
	g.retryEnd = 0
	check(t, g.begins(t.Context(), order))
	lost := errors.New("connection refused")
	connector.refuse(1, lost)
	wantError(t, g.ends(t.Context(), order, outcome), lost)
	check(t, g.endLeases(t.Context()))
	return g
}

// An End is that of the last Begin: one that has failed before does not end it.
func TestGuard_End_not_recorded_and_begun_again(t *testing.T) {
	g := unendedGuard(t, gateway.OutcomeRejected)
	check(t, g.resubmits(t.Context(), order))
	check(t, g.ends(t.Context(), order, gateway.OutcomeSucceeded))
	g.wantState(t, StateCreated, 2)
	check(t, g.ends(t.Context(), order, gateway.OutcomeRejected))
	g.wantState(t, StateCreated, 2)
}

// While the database fails for a moment, End tries again.
func TestGuard_End_tried_again(t *testing.T) {
	lost := errors.New("connection reset")
	for name, fail := range map[string]func(*lossyConnector){
		"the statement is lost": func(c *lossyConnector) { c.refuse(1, lost) },
		"the response is lost":  func(c *lossyConnector) { c.lose(lost) },
	} {
		t.Run(name, func(t *testing.T) {
			g, connector := lossyGuard(t)
			check(t, g.begins(t.Context(), order))
			fail(connector)
			if err := g.ends(t.Context(), order, gateway.OutcomeSucceeded); err != nil {
				t.Error(err)
			}
			check(t, g.endLeases(t.Context()))
			if o, err := g.Order(t.Context(), "", order); err != nil || o.State != StateCreated || len(g.tokens)+len(g.unended) > 0 {
				t.Errorf("%+v, %v, held: %v, %v", o, err, g.tokens, g.unended)
			}
		})
	}
}

// A rejection whose statement was executed, but not confirmed, frees no attempt that has
// begun since.
func TestGuard_End_tried_again_after_another_Begin(t *testing.T) {
	w := newSQLite(t)
	g, connector := lossyGuardOf(t, w)
	other := w.guard(t)
	check(t, g.begins(t.Context(), order))
	connector.lose(errors.New("connection reset"))
	sent := 0
	connector.observe = func(string, []driver.NamedValue) {
		if sent++; sent == 2 { // the first has freed the order
			if err := other.begins(t.Context(), order); err != nil {
				t.Error(err)
			}
		}
	}
	if err := g.ends(t.Context(), order, gateway.OutcomeRejected); err != nil || sent != 2 {
		t.Error(err, sent)
	}
	g.wantState(t, StateInFlight, 2)
}

// An outcome that was not recorded because the row was gone is not taken for one that was, whoever has
// begun the order since.
func TestGuard_End_without_a_row_and_another_Begin(t *testing.T) {
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeUnknown} {
		w := newSQLite(t)
		g, connector := lossyGuardOf(t, w)
		other := w.guard(t)
		check(t, g.begins(t.Context(), order))
		execute(t, other.db, `DELETE FROM `+w.table)
		connector.after = func(driver.Rows) {
			if err := other.begins(t.Context(), order); err != nil {
				t.Error(err)
			}
		}
		wantError(t, g.ends(t.Context(), order, outcome), ErrNotHeld)
		g.wantState(t, StateInFlight, 1)
	}
}

// What End could not record takes little memory, however often the database fails.
func TestGuard_End_not_recorded_many(t *testing.T) {
	g := newSQLite(t).guard(t)
	for n := range 2 * mostUnended {
		k := key{order: fmt.Sprint(n)}
		g.acquire(k, "token")
		g.ended(k, "token", false)
	}
	if len(g.unended) != mostUnended || len(g.tokens) > 0 {
		t.Errorf("%d orders, %d in flight", len(g.unended), len(g.tokens))
	}
}

func TestNew(t *testing.T) {
	db := newSQLite(t).open(t)
	for name, opts := range map[string][]Option{
		"nil option":     {nil},
		"no dialect":     {WithDialect(0)},
		"other dialect":  {WithDialect(3)},
		"no table":       {WithTable("")},
		"upper case":     {WithTable("Orders")},
		"digit":          {WithTable("1orders")},
		"injection":      {WithTable(`o"; DROP TABLE x; --`)},
		"schema":         {WithTable("shop.orders")},
		"long table":     {WithTable(strings.Repeat("x", 59))},
		"no lease":       {WithLease(0)},
		"negative lease": {WithLease(-time.Minute)},
		"short lease":    {WithLease(time.Second - 1)},
		"long lease":     {WithLease(24*time.Hour + 1)},
	} {
		if g, err := New(db, opts...); g != nil || !errors.Is(err, gateway.ErrInvalidArgument) {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
	if g, err := New(nil); g != nil || !errors.Is(err, gateway.ErrInvalidArgument) {
		t.Error(g, err)
	}
}

// The dialect follows from the driver. The error for an unknown driver names it,
// unless WithDialect is set.
func TestNew_dialect(t *testing.T) {
	for name, want := range map[string]Dialect{"pgx": PostgreSQL, "sqlite": SQLite} {
		db, err := sql.Open(name, "")
		check(t, err)
		if g, err := New(db); err != nil || g.cfg.dialect != want {
			t.Errorf("%s: %v", name, err)
		}
		_ = db.Close()
	}
	wrapped := sql.OpenDB(&lossyConnector{})
	t.Cleanup(func() { _ = wrapped.Close() })
	if _, err := New(wrapped); !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), "sqlguard.lossyDriver") {
		t.Error(err)
	}
	if g, err := New(wrapped, WithDialect(PostgreSQL)); err != nil || g.cfg.dialect != PostgreSQL {
		t.Error(err)
	}
	for d, want := range map[Dialect]string{PostgreSQL: "PostgreSQL", SQLite: "SQLite", 9: "Dialect(9)"} {
		if d.String() != want {
			t.Errorf("%d is %s", d, d)
		}
	}
}

func TestGuard_Resolve_arguments(t *testing.T) {
	g := newSQLite(t).guard(t)
	wantError(t, g.Resolve(t.Context(), Order{ID: order}, Resolution{By: " "}), gateway.ErrInvalidArgument)
	for _, invoice := range []string{"{", "no JSON", `"` + strings.Repeat("x", 64<<10) + `"`} {
		found := Resolution{By: "anna", Exists: true, Invoice: []byte(invoice)}
		wantError(t, g.Resolve(t.Context(), Order{ID: order, State: StateUnknown}, found), gateway.ErrInvalidArgument)
	}
}

// lossyGuard returns a guard over connections that lose statements and responses
// on demand.
func lossyGuard(t *testing.T, opts ...Option) (*Guard, *lossyConnector) {
	t.Helper()
	return lossyGuardOf(t, newSQLite(t), opts...)
}

func lossyGuardOf(t *testing.T, w testDB, opts ...Option) (*Guard, *lossyConnector) {
	t.Helper()
	w.guard(t) // creates the table
	connector := &lossyConnector{driver: w.open(t).Driver(), dsn: w.dsn}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	g, err := New(db, append([]Option{WithDialect(w.dialect), WithTable(w.table)}, opts...)...)
	check(t, err)
	return g, connector
}

type lossyConnector struct {
	driver driver.Driver
	dsn    string

	mu       sync.Mutex
	lost     error                                        // returned in place of the next response
	refusal  error                                        // returned in place of executing a statement
	refuseIn int                                          // the number of that statement from now
	broken   string                                       // a statement that fails, also a PRAGMA
	before   func()                                       // called once, before the next statement
	after    func(driver.Rows)                            // called once, with the rows of the next statement
	observe  func(query string, args []driver.NamedValue) // called before every statement
}

func (c *lossyConnector) lose(err error) { c.lost = err }

func (c *lossyConnector) refuse(n int, err error) { c.refuseIn, c.refusal = n, err }

func (c *lossyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	return lossyConn{conn, c}, err
}

func (c *lossyConnector) Driver() driver.Driver { return lossyDriver{} }

type lossyDriver struct{ driver.Driver }

type lossyConn struct {
	driver.Conn
	connector *lossyConnector
}

func (c lossyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if query == c.connector.broken {
		return nil, errors.New("interrupted")
	}
	if strings.HasPrefix(query, "PRAGMA") || strings.HasPrefix(query, "SELECT CASE WHEN token") { // what SQLite looks at before it writes
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	}
	l := c.connector
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuseIn--; l.refuseIn == 0 {
		return nil, l.refusal
	}
	if l.observe != nil {
		l.observe(query, args)
	}
	if before := l.before; before != nil {
		l.before = nil
		before()
	}
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	if err != nil || l.lost == nil && l.after == nil {
		return rows, err
	}
	if after := l.after; after != nil {
		l.after = nil
		after(rows)
		return rows, nil
	}
	for err == nil {
		err = rows.Next(make([]driver.Value, len(rows.Columns())))
	}
	if err != io.EOF {
		return nil, err
	}
	err, l.lost = l.lost, nil
	return nil, errors.Join(rows.Close(), err)
}
