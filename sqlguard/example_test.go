package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite"
)

// open returns a client and its guard, which all processes that use the database share.
func open(ctx context.Context, db *sql.DB, url, key string) (*gateway.Client, *sqlguard.Guard, error) {
	guard, err := sqlguard.New(db)
	if err != nil {
		return nil, nil, err
	}
	if err := guard.Migrate(ctx); err != nil { // or sqlguard.MigrationSQL in your migrations
		return nil, nil, err
	}
	client, err := gateway.New(url, key, gateway.WithOrderGuard(guard))
	return client, guard, err
}

// An invoice whose response is lost is not sent again, by any process, until a
// person has looked it up.
func Example() {
	ctx := context.Background()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())

	db, remove := database()
	defer remove()

	client, guard, err := open(ctx, db, gw.URL, gw.APIKey)
	check(err)

	price := decimal.RequireFromString("10.50")
	invoice := gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: price}
	_, err = client.CreateInvoice(ctx, invoice)
	fmt.Println("outcome:", gateway.OutcomeOf(err))
	_, err = client.CreateInvoice(ctx, invoice)
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		fmt.Println("an earlier invoice may exist:", unknown.Replayed)
	}

	pending, err := guard.Pending(ctx, gateway.PendingQuery{})
	check(err)
	for _, o := range pending {
		fmt.Printf("%s is %s after %d attempt\n", o.OrderID, o.State, o.Attempts)
		exists := len(gw.InvoicesFor(o.OrderID)) > 0 // in production, a person looks it up
		check(guard.Resolve(ctx, o, gateway.Finding{Exists: exists, By: "anna@shop.example"}))
	}
	created, err := client.CreateInvoice(ctx, invoice)
	check(err)
	fmt.Println("already created:", created.Replayed)
	// Output:
	// outcome: unknown
	// an earlier invoice may exist: true
	// A-17 is unknown after 1 attempt
	// already created: true
}

// After a restore the database has forgotten the newest orders. They are marked, so that nothing sends them again
// before a person has looked them up.
func ExampleGuard_Mark() {
	ctx := context.Background()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	db, remove := database()
	defer remove()
	client, guard, err := open(ctx, db, gw.URL, gw.APIKey)
	check(err)

	marked, err := guard.Mark(ctx, []gateway.OrderStatus{{OrderID: "A-17"}, {OrderID: "A-18"}})
	fmt.Println("marked:", marked, err)
	price := decimal.RequireFromString("10.50")
	_, err = client.CreateInvoice(ctx, gateway.InvoiceRequest{OrderID: "A-17", Price: price, Amount: price})
	fmt.Println(gateway.OutcomeOf(err), "requests:", len(gw.Requests()))
	// Output:
	// marked: 2 <nil>
	// unknown requests: 0
}

// A page lists the pending orders, and its form sends a token back with the finding.
func ExampleToken() {
	ctx := context.Background()
	db, remove := database()
	defer remove()
	guard, err := sqlguard.New(db)
	check(err)
	check(guard.Migrate(ctx))
	_, err = guard.Mark(ctx, []gateway.OrderStatus{{OrderID: "A-17"}})
	check(err)

	pending, err := guard.Pending(ctx, gateway.PendingQuery{})
	check(err)
	token := sqlguard.Token(pending[0]) // in the form

	order, err := sqlguard.ParseToken(token)
	check(err)
	err = guard.Resolve(ctx, order, gateway.Finding{Exists: true, By: "anna@shop.example", Note: "invoice 4711"})
	fmt.Println(order.OrderID, err)
	// Output: A-17 <nil>
}

// database returns an empty database; in production, of PostgreSQL, MariaDB, or of a file on a local disk.
func database() (db *sql.DB, remove func()) {
	dir, err := os.MkdirTemp("", "orders")
	check(err)
	db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "orders.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	check(err)
	return db, func() {
		check(db.Close())
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
