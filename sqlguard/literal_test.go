package sqlguard

import (
	"database/sql"
	"flag"
	"fmt"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/literal"
)

var (
	literalSchedules = flag.Int("schedules", 80, "how many schedules TestLiteral runs")
	literalSeed      = flag.Uint64("schedules.seed", 1, "the seed of the first of them")
)

// The merchant who follows the outcomes literally does no harm, with the guards of this package,
// whose processes are killed.
func TestLiteral(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		w.guard(t) // creates the table
		if w.dialect == SQLite {
			w.dsn += "&_pragma=synchronous(OFF)" // no power fails here
		}
		for _, http2 := range []bool{false, true} {
			first := *literalSeed
			if http2 {
				first += uint64(*literalSchedules) // orders of their own
			}
			report := literal.World{HTTP2: http2, Open: w.store}.Run(t, first, *literalSchedules/4)
			t.Logf("HTTP/2 %v: %v", http2, report)
			report.Verify(t)
		}
	})
}

// A literalStore is the table of a database, in a bubble: each process has a handle of its own.
type literalStore struct {
	testDB
	db *sql.DB // of the store itself
}

func (w testDB) store() (literal.Store, error) {
	db, err := sql.Open(w.driver, w.dsn)
	return literalStore{w, db}, err
}

func (s literalStore) Guard() (gateway.OrderGuard, func() error, error) {
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		return nil, nil, err
	}
	guard, err := New(db, WithTable(s.table))
	return guard, db.Close, err
}

// Expire ends the lease of an order, as the passage of time does.
func (s literalStore) Expire(orderID string) error {
	_, err := s.db.Exec(fmt.Sprintf(`UPDATE %q SET lease_until = begun_at WHERE token IS NOT NULL AND order_id = $1`, s.table), orderID)
	return err
}

func (s literalStore) Survives() bool { return true }
func (s literalStore) Close() error   { return s.db.Close() }
