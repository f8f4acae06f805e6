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

	const each = 100 // orders of a worker on each server
	var loaded, working sync.WaitGroup
	var mu sync.Mutex
	var created []string
	refused := 0
	loaded.Add(4)
	for range 4 {
		working.Go(func() {
			for done := 0; done < 2*each; {
				id := rand.Text()
				err := g.begins(t.Context(), id)
				if err == nil {
					err = g.End(t.Context(), orderOf(id), scaleRecord(id))
				}
				mu.Lock()
				if err != nil {
					refused++
				} else {
					created = append(created, id)
					done++
				}
				mu.Unlock()
				if err == nil && done == each {
					loaded.Done()
				}
			}
		})
	}
	loaded.Wait()
	primary.Kill()
	execute(t, direct, `SELECT pg_promote()`)
	working.Wait()
	t.Logf("%d orders are created, %d refused", len(created), refused)
	for _, id := range created {
		if o, err := g.Order(t.Context(), "", id); err != nil || o.State != StateCreated {
			t.Errorf("%+v, %v", o, err)
		}
	}
}
