package sqlguard

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"

	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

// A DSN names a primary and its synchronous replica. The primary is killed under load and the replica
// promoted: orders that were created stay so, none is refused for ever, and the calls go on there.
func TestFailover(t *testing.T) {
	primary, err := postgrestest.Start("fsync=off", "shared_buffers=32MB")
	check(t, err)
	defer primary.Stop()
	replica, err := primary.Replica()
	check(t, err)
	defer replica.Stop()
	direct := testDB{PostgreSQL, "pgx", replica.DSN("postgres"), DefaultTable}.open(t)
	w := testDB{PostgreSQL, "pgx", fmt.Sprintf("postgres://postgres@127.0.0.1:%s,127.0.0.1:%s/postgres?sslmode=disable&target_session_attrs=read-write",
		primary.Port(), replica.Port()), DefaultTable}
	g := w.guard(t)
	execute(t, g.db, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	execute(t, g.db, `SELECT pg_reload_conf()`)

	l := failingOver{g: g}
	l.loaded.Add(4)
	for range 4 {
		l.working.Go(func() { l.work(t) })
	}
	l.loaded.Wait()
	primary.Kill()
	execute(t, direct, `SELECT pg_promote()`)
	l.working.Wait()
	t.Logf("%d orders are created, %d refused", len(l.created), l.refused)
	for _, id := range l.created {
		if o, err := g.Order(t.Context(), "", id); err != nil || o.State != StateCreated {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// A failingOver is workers that begin and end orders.
type failingOver struct {
	g               *Guard
	loaded, working sync.WaitGroup // loaded: half of the orders of each worker are created

	mu      sync.Mutex
	created []string
	refused int
}

// work creates 200 orders.
func (l *failingOver) work(t *testing.T) {
	for done := 0; done < 200; {
		id := rand.Text()
		err := l.g.begins(t.Context(), id)
		if err == nil {
			err = recorded(l.g.End(t.Context(), orderOf(id), successOf(id)))
		}
		l.mu.Lock()
		if err != nil {
			l.refused++
		} else {
			l.created = append(l.created, id)
			done++
		}
		l.mu.Unlock()
		if err == nil && done == 100 {
			l.loaded.Done()
		}
	}
}
