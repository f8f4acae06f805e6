package rivergateway_test

import (
	"context"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/rivergateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A worker process: one database has the merchant's tables, those of River and the guard's.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop@db.example/shop")
	check(err)
	guard, err := sqlguard.New(stdlib.OpenDBFromPool(pool))
	check(err)
	jobs, err := rivergateway.New(rivergateway.Config{
		Guard: guard, Pool: pool, // the base URL and the key are those of the environment
		OnInvoice: onInvoice, OnPending: onPending,
	})
	check(err)
	workers := river.NewWorkers()
	check(jobs.AddWorkers(workers))
	engine, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers:              workers,
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 20}},
		PeriodicJobs:         []*river.PeriodicJob{rivergateway.PeriodicPending(5 * time.Minute)},
		RescueStuckJobsAfter: 10 * time.Minute, // after the lease of the guard
	})
	check(err)
	check(engine.Start(ctx))
}

// onInvoice records what became of an order, in the transaction that ends its job.
func onInvoice(ctx context.Context, tx pgx.Tx, r rivergateway.InvoiceResult) error {
	var response []byte
	if r.Invoice != nil {
		response = r.Invoice.Raw
	}
	_, err := tx.Exec(ctx, `UPDATE orders SET invoice = $2, response = $3, reason = $4 WHERE id = $1`,
		r.OrderID, r.Outcome.String(), string(response), r.Reason)
	return err
}

// onPending raises an alarm.
func onPending(_ context.Context, r rivergateway.PendingReport) error {
	if r.Count > 0 {
		log.Printf("%d orders must be looked up, the first since %v", r.Count, r.Oldest)
	}
	return nil
}

// A web handler stores an order and its job in one transaction.
func ExampleInsertInvoiceTx() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop@db.example/shop")
	check(err)
	engine, err := river.NewClient(riverpgxv5.New(pool), &river.Config{}) // inserts only
	check(err)
	invoice := gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"), BaseCurrency: "usd",
	}
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (id) VALUES ($1)`, invoice.OrderID); err != nil {
			return err
		}
		_, err := rivergateway.InsertInvoiceTx(ctx, engine, tx, invoice, rivergateway.InsertOptions{})
		return err
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
