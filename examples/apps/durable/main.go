// Command durable creates an invoice, once over restarts and replicas. The README links to it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:orders.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	guard, err := sqlguard.New(db) // db is a *sql.DB of PostgreSQL, MariaDB or SQLite
	if err != nil {
		log.Fatal(err)
	}
	if err := guard.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	client, err := gateway.FromEnv(gateway.WithOrderGuard(guard))
	if err != nil {
		log.Fatal(err)
	}
	invoice, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	if err := errors.Join(err, client.Shutdown(ctx)); err != nil { // waits until the outcome is recorded
		log.Fatal(err)
	}
	fmt.Printf("order %s has an invoice: %s\n", invoice.OrderID, invoice.Raw)
}
