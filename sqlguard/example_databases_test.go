package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/shopspring/decimal"
)

// byOrder are several databases. Each order lives in one of them: the database that its hash
// chooses. Their number cannot change while orders are remembered.
type byOrder []*sqlguard.Guard

func (g byOrder) of(o gateway.Order) *sqlguard.Guard {
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, o.Key())
	return g[hash.Sum32()%uint32(len(g))]
}

func (g byOrder) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	return g.of(o).Begin(ctx, o)
}

func (g byOrder) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return g.of(o).End(ctx, o, r)
}

// Orders are spread over four databases. A second call for one gets its invoice, because both
// calls ask the same database.
func Example_severalDatabases() {
	ctx := context.Background()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	dir, err := os.MkdirTemp("", "orders")
	check(err)
	defer os.RemoveAll(dir)
	var guards byOrder
	for i := range 4 {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, fmt.Sprint(i))+"?_pragma=busy_timeout(10000)")
		check(err)
		defer db.Close()
		guard, err := sqlguard.New(db)
		check(errors.Join(err, guard.Migrate(ctx)))
		guards = append(guards, guard)
	}
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithOrderGuard(guards))
	check(err)

	price := decimal.RequireFromString("10.50")
	for _, id := range []string{"A-17", "A-18", "A-19", "A-18"} {
		invoice, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: id, Price: price, Amount: price})
		check(err)
		fmt.Println(id, "created before:", invoice.Replayed)
	}
	// Output:
	// A-17 created before: false
	// A-18 created before: false
	// A-19 created before: false
	// A-18 created before: true
}
