package sqlguard

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/guardtest"
)

// A namedGuard is a guard with a handle of its own, over a table that another process finds by its name.
type namedGuard struct {
	*Guard
	name string
}

func (g namedGuard) Close() error { return g.db.Close() }

func (w testDB) name() string { return fmt.Sprintf("%d %s %s %s", w.dialect, w.driver, w.table, w.dsn) }

func openNamed(name string) (gateway.OrderGuard, error) {
	var w testDB
	parts := strings.SplitN(name, " ", 4)
	_, err := fmt.Sscan(parts[0], &w.dialect)
	w.driver, w.table, w.dsn = parts[1], parts[2], parts[3]
	db, err2 := sql.Open(w.driver, w.dsn)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	g, err := New(db, WithTable(w.table), WithMerchants())
	return namedGuard{g, name}, err
}

// The rules of the interface, over each database.
func TestGuard(t *testing.T) {
	for name, table := range map[string]func(testing.TB) testDB{"PostgreSQL": newPostgres, "MariaDB": newMariaDB, "SQLite": newSQLite} {
		t.Run(name, func(t *testing.T) {
			guardtest.Run(t, guardtest.Guard{
				New: func(t *testing.T) gateway.OrderGuard {
					w := table(t)
					return namedGuard{w.guard(t, WithMerchants()), w.name()}
				},
				Store:  func(g gateway.OrderGuard) string { return g.(namedGuard).name },
				Reopen: openNamed,
				Expire: func(name string) error {
					g, err := openNamed(name)
					if err != nil {
						return err
					}
					return errors.Join(g.(namedGuard).endLeases(t.Context()), g.(namedGuard).Close())
				},
			})
		})
	}
}
