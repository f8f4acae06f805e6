package rivergateway

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A handle that is made as the README makes it gives its connections back to the pool. One with
// idle connections, which the README advises against, keeps them.
func TestPool_shared(t *testing.T) {
	const connections = 10
	for name, test := range map[string]struct{ idle, held int }{
		"as the README":       {0, 0},
		"SetMaxIdleConns(10)": {connections, connections},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := pgxpool.ParseConfig(newDatabase(t))
			check(t, err)
			cfg.MaxConns = connections
			pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
			check(t, err)
			t.Cleanup(pool.Close)
			db := stdlib.OpenDBFromPool(pool)
			t.Cleanup(func() { check(t, db.Close()) })
			if test.idle > 0 {
				db.SetMaxIdleConns(test.idle)
			}
			guard, err := sqlguard.New(db)
			check(t, err)
			ordersAtOnce(t, db, guard, connections)
			if held := int(pool.Stat().AcquiredConns()); held != test.held {
				t.Errorf("%d of %d connections are held, want %d", held, connections, test.held)
			}
		})
	}
}

// ordersAtOnce begins and ends as many orders at once as there are connections.
func ordersAtOnce(t *testing.T, db *sql.DB, guard *sqlguard.Guard, connections int) {
	t.Helper()
	begun := make(chan struct{})
	var all, working sync.WaitGroup
	all.Add(connections)
	for i := range connections {
		working.Go(func() {
			conn, err := db.Conn(t.Context()) // all are in use at once
			all.Done()
			<-begun
			o := gateway.Order{Request: gateway.InvoiceRequest{OrderID: fmt.Sprint(i)}}
			err = errors.Join(err, conn.Close())
			_, err1 := guard.Begin(t.Context(), o)
			_, err2 := guard.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded})
			if err = errors.Join(err, err1, err2); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(begun)
	working.Wait()
}
