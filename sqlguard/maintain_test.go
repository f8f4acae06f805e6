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

// Any number of processes may migrate at once, and a second time does nothing.
func TestMigrate(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.mustNew(t)
		version, err := g.SchemaVersion(t.Context())
		if err != nil || version != 0 {
			t.Errorf("version %d, %v", version, err)
		}
		if err := g.begins(t.Context(), order); err == nil || !strings.Contains(err.Error(), "call Migrate, which creates the table") {
			t.Error(err)
		}
		errs := make([]error, 8)
		var all sync.WaitGroup
		for i := range errs {
			db := w.open(t)
			all.Go(func() {
				g, err := New(db, WithTable(w.table))
				errs[i] = errors.Join(err, g.Migrate(t.Context()), g.Migrate(t.Context()))
			})
		}
		all.Wait()
		check(t, errors.Join(errs...))
		version, err = g.SchemaVersion(t.Context())
		if err != nil || version != SchemaVersion {
			t.Errorf("version %d, %v", version, err)
		}
		check(t, g.begins(t.Context(), order))
	})
}

// A table of a newer version, which its view tells, is refused; one with columns of the merchant's is not.
func TestMigrate_newerVersion(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		execute(t, g.db, "ALTER TABLE "+w.table+" ADD COLUMN priority integer NOT NULL DEFAULT 0")
		check(t, g.Migrate(t.Context()))
		g.once(t, order, gateway.OutcomeSucceeded)

		execute(t, g.db, "CREATE VIEW "+w.table+"_next AS SELECT order_id FROM "+w.table)
		_, err := g.SchemaVersion(t.Context())
		for _, err := range []error{err, g.Migrate(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), "of a newer version of sqlguard: update this program") {
				t.Error(err)
			}
		}
		execute(t, g.db, "DROP VIEW "+w.table+"_next")
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
	if err := worker.mustNew(t).Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "the schema public has a table of the name") {
		t.Errorf("a second table: %v", err)
	}
	worker.dsn += ",public"
	execute(t, owner, "GRANT SELECT ON "+w.table+" TO "+role)
	g := worker.mustNew(t)
	check(t, g.Migrate(t.Context()))
	g.wantState(t, gateway.OrderCreated)
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
		g := w.guard(t)
		g.once(t, order, gateway.OutcomeSucceeded)
		if none, err := MigrationSQL(w.dialect, w.table, SchemaVersion); none != "" || err != nil {
			t.Errorf("%s, %v", none, err)
		}
	})
	for _, err := range []error{second(MigrationSQL(0, "a", 0)), second(MigrationSQL(SQLite, "A", 0)), second(MigrationSQL(SQLite, "a", 2))} {
		wantError(t, err, gateway.ErrInvalidArgument)
	}
}

func second(_ string, err error) error { return err }

// Prune deletes old orders that are created or free, in batches, and none that is unknown or in flight.
func TestPrune(t *testing.T) {
	inEach(t, func(t *testing.T, w testDB) {
		g, other := w.guard(t), w.guard(t)
		const old = 2500
		g.once(t, "old", gateway.OutcomeSucceeded)
		w.copy(t, g, "old", old-1)
		g.once(t, "rejected", gateway.OutcomeRejected)
		g.once(t, "unknown", gateway.OutcomeUnknown)
		check(t, g.begins(t.Context(), "in flight"))
		check(t, errors.Join(other.begins(t.Context(), "late"))) // its success is followed by a resubmission
		check(t, other.ends(t.Context(), "late", gateway.OutcomeUnknown))
		check(t, other.resubmits(t.Context(), "late"))
		execute(t, g.db, fmt.Sprintf("UPDATE %s SET changed_at = changed_at - %d", w.table, (25*time.Hour).Microseconds()))
		g.once(t, "new", gateway.OutcomeSucceeded)

		count, err := g.Prunable(t.Context(), 24*time.Hour)
		if err != nil || count != old+1 {
			t.Errorf("%d can be pruned, %v", count, err)
		}
		if count, err = g.Prune(t.Context(), 26*time.Hour); err != nil || count != 0 {
			t.Errorf("%d are pruned, %v", count, err)
		}
		if count, err = g.Prune(t.Context(), 24*time.Hour); err != nil || count != old+1 {
			t.Errorf("%d are pruned, %v", count, err)
		}
		var left int
		check(t, g.db.QueryRow("SELECT count(*) FROM "+w.table).Scan(&left))
		for id, want := range map[string]gateway.OrderState{
			"in flight": gateway.OrderInFlight, "late": gateway.OrderInFlight, "new": gateway.OrderCreated, "unknown": gateway.OrderUnknown,
		} {
			if got := g.order(t, id); got.State != want || left != 4 {
				t.Errorf("%s is %s, and %d orders are left", id, got.State, left)
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
	columns := "merchant, gateway, version, attempts, attempt, begun_at, lease_until, open_since, ended_at, created_at, resolved_at, changed_at, outcome, invoice, record"
	numbers := fmt.Sprintf("(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 'copy-' || i AS name FROM n) AS n", count)
	if w.dialect == MariaDB {
		numbers = fmt.Sprintf("(SELECT concat('copy-', seq) AS name FROM seq_1_to_%d) AS n", count)
	}
	execute(t, g.db, fmt.Sprintf(`INSERT INTO %s (order_id, %s) SELECT name, %[2]s FROM %[1]s, %[3]s WHERE order_id = '%[4]s'`, w.table, columns, numbers, id))
}
