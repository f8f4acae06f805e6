package sqlguard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// Any number of processes may migrate at once, and a second time does nothing. A merchant's own column does not matter, and a table
// of a newer version, which its columns tell, is refused.
func TestMigrate(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.mustNew(t)
		wantVersion := func(want int, text string) {
			t.Helper()
			version, err := g.SchemaVersion(t.Context())
			if wantText(t, err, text); version != want {
				t.Errorf("version %d, want %d", version, want)
			}
		}
		wantVersion(0, "")
		wantText(t, g.begins(t.Context(), order), "call Migrate, which creates the table")
		errs := make([]error, 8)
		var all sync.WaitGroup
		for i := range errs {
			g := w.mustNew(t)
			all.Go(func() { errs[i] = errors.Join(g.Migrate(t.Context()), g.Migrate(t.Context())) })
		}
		all.Wait()
		check(t, errors.Join(errs...))
		wantVersion(SchemaVersion, "")
		execute(t, g.db, "ALTER TABLE "+w.table+" ADD COLUMN priority integer NOT NULL DEFAULT 0")
		check(t, g.Migrate(t.Context()))
		g.once(t, order, gateway.OutcomeSucceeded)

		execute(t, g.db, "ALTER TABLE "+w.table+" ADD COLUMN schema_2 integer")
		const newer = "of a newer version of sqlguard: update this program"
		wantVersion(0, newer)
		wantText(t, g.Migrate(t.Context()), newer)
		wantText(t, g.Check(t.Context()), newer)
	})
}

// Two roles with a schema of their own would have two tables, and send an order twice: the second table is refused, whoever
// may see the first. The guard uses the table that the search_path finds.
func TestMigrate_anotherSchema(t *testing.T) {
	w := newPostgres(t)
	role := "r" + strings.ToLower(rand.Text())
	owner := w.open(t)
	execute(t, owner, "CREATE ROLE "+role+"; CREATE SCHEMA "+role+" AUTHORIZATION "+role)
	t.Cleanup(func() { execute(t, owner, "DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role) })
	worker := w
	worker.dsn += "&options=-c%20role%3D" + role + "%20-c%20search_path%3D" + role
	w.guard(t).once(t, order, gateway.OutcomeSucceeded)
	wantText(t, worker.mustNew(t).Migrate(t.Context()), "the schema public has a table of the name")
	worker.dsn += ",public"
	execute(t, owner, "GRANT SELECT ON "+w.table+" TO "+role)
	worker.guard(t).wantState(t, gateway.OrderCreated, 1)
}

// The statements are those of Migrate, for a merchant's own tool.
func TestMigrationSQL(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		text, err := MigrationSQL(w.dialect, w.table, 0)
		check(t, err)
		db := w.open(t)
		for statement := range strings.SplitSeq(strings.TrimSuffix(text, ";\n"), ";\n") {
			execute(t, db, statement)
		}
		g := w.mustNew(t)
		check(t, g.Check(t.Context()))
		g.once(t, order, gateway.OutcomeSucceeded)
	})
	if none, err := MigrationSQL(SQLite, "a", SchemaVersion); none != "" || err != nil {
		t.Errorf("%s, %v", none, err)
	}
	_, err1 := MigrationSQL(0, "a", 0)
	_, err2 := MigrationSQL(SQLite, "A", 0)
	_, err3 := MigrationSQL(SQLite, "a", 2)
	for _, err := range []error{err1, err2, err3} {
		wantError(t, err, gateway.ErrInvalidArgument)
	}
}

// Prune deletes old orders that are created or free, in batches. Unknown orders and orders in flight stay.
func TestPrune(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		const old = 1200
		g.once(t, "old", gateway.OutcomeSucceeded)
		w.copy(t, g, "old", old-1)
		g.once(t, "rejected", gateway.OutcomeRejected)
		g.unknown(t, "unknown", "again")
		again := orderOf("again") // a resubmission
		again.Resubmit = true
		check(t, errors.Join(g.begins(t.Context(), "in flight"), g.asks(t.Context(), &again)))
		g.sets(t, "changed_at = changed_at - %d", (25 * time.Hour).Microseconds())
		g.once(t, "new", gateway.OutcomeSucceeded)

		prunable, err := g.Prunable(t.Context(), 24*time.Hour)
		check(t, err)
		for age, want := range map[time.Duration]int{26 * time.Hour: 0, 24 * time.Hour: prunable} {
			if count, err := g.Prune(t.Context(), age); err != nil || count != want || prunable != old+1 {
				t.Errorf("%d of %d are pruned, %v", count, prunable, err)
			}
		}
		for id, want := range map[string]string{"in flight": "in flight", "again": "in flight", "new": "created", "unknown": "unknown", "old": "free"} {
			if got := g.order(t, id).State.String(); got != want {
				t.Errorf("%s is %s", id, got)
			}
		}
		_, err1 := g.Prune(t.Context(), 23*time.Hour)
		_, err2 := g.Prunable(t.Context(), 23*time.Hour)
		wantError(t, err1, gateway.ErrInvalidArgument)
		wantError(t, err2, gateway.ErrInvalidArgument)
	})
}

// copy makes orders that differ from one in their ids only.
func (w testDB) copy(t *testing.T, g *Guard, id string, count int) {
	t.Helper()
	const columns = "merchant, gateway, version, attempts, attempt, begun_at, lease_until, open_since, ended_at, created_at, resolved_at, changed_at, outcome, invoice, record"
	numbers := fmt.Sprintf("(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 'copy-' || i AS name FROM n) AS n", count)
	if w.dialect == MariaDB {
		numbers = fmt.Sprintf("(SELECT concat('copy-', seq) AS name FROM seq_1_to_%d) AS n", count)
	}
	execute(t, g.db, fmt.Sprintf(`INSERT INTO %s (order_id, %s) SELECT name, %[2]s FROM %[1]s, %[3]s WHERE order_id = '%[4]s'`, w.table, columns, numbers, id))
}
