package sqlguard

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/guardtest"
	"github.com/cryptogw/gateway/internal/testing/held"
)

// A namedGuard is a guard with a handle of its own, over a table that another process finds by its name.
type namedGuard struct {
	*Guard
	name string
}

func (g namedGuard) Close() error { return g.db.Close() }

func openNamed(name string) (gateway.OrderGuard, error) {
	parts := strings.SplitN(name, " ", 3)
	db, err := sql.Open(parts[0], parts[2])
	if err != nil {
		return nil, err
	}
	g, err := New(db, WithTable(parts[1]), WithMerchants())
	return namedGuard{g, name}, err
}

// The rules of the interface, over each database.
func TestGuard(t *testing.T) {
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			guardtest.Run(t, guardtest.Guard{
				New: func(t *testing.T) gateway.OrderGuard {
					w := table(t)
					return namedGuard{w.guard(t, WithMerchants()), w.driver + " " + w.table + " " + w.dsn}
				},
				Store:  func(g gateway.OrderGuard) string { return g.(namedGuard).name },
				Reopen: openNamed,
				Expire: func(name string) error {
					g, err := openNamed(name)
					if err != nil {
						return err
					}
					_, err = g.(namedGuard).db.Exec("UPDATE " + g.(namedGuard).sql.table + " SET lease_until = begun_at")
					return errors.Join(err, g.(namedGuard).Close())
				},
			})
		})
	}
}

// However the wait of a caller ends, the guard has the outcome of its order.
func TestGuard_contextEnds(t *testing.T) {
	t.Parallel()
	held.Test(t, held.HTTP1, func(t *testing.T) gateway.OrderGuard { return newSQLite(t).guard(t) })
}
