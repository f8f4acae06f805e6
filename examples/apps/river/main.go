// Command river creates the invoice of an order with a durable job of River. Run it again
// after it was killed: the order is not sent twice, and its invoice is not lost.
//
//	DATABASE_URL=postgres://… GATEWAY_BASE_URL=https://… GATEWAY_API_KEY=… go run -C examples/apps ./river A-17 10.50
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/rivergateway"
	"github.com/cryptogw/gateway/sqlguard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 3 {
		log.Fatal("usage: river ORDER PRICE")
	}
	if err := run(ctx, os.Getenv("DATABASE_URL"), os.Args[1], os.Args[2], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database, order, price string, out io.Writer) error {
	amount, err := decimal.NewFromString(price)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	guard, err := sqlguard.New(db)
	if err != nil {
		return err
	}
	if err := errors.Join(migrate(ctx, pool), guard.Migrate(ctx)); err != nil {
		return err
	}
	engine, jobs, err := newEngine(pool, guard)
	if err != nil {
		return err
	}
	if err := insert(ctx, pool, engine, gateway.InvoiceRequest{OrderID: order, Price: amount, Amount: amount}); err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	shown := show(ctx, pool, order, out)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 220*time.Second)
	defer cancel()
	// Stop waits for an invoice that is being sent, and Shutdown for an outcome that could not be recorded.
	return errors.Join(shown, engine.Stop(stopping), jobs.Shutdown(stopping))
}

// migrate makes the tables of River and of the shop.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, outcome text, invoice text, reason text)`)
	return err
}

func newEngine(pool *pgxpool.Pool, guard *sqlguard.Guard) (*river.Client[pgx.Tx], *rivergateway.Jobs, error) {
	jobs, err := rivergateway.New(rivergateway.Config{
		Guard: guard, Pool: pool, // the base URL and the key are those of the environment
		OnInvoice: onInvoice, OnPending: onPending,
	})
	if err != nil {
		return nil, nil, err
	}
	workers := river.NewWorkers()
	if err := jobs.AddWorkers(workers); err != nil {
		return nil, nil, err
	}
	engine, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers:              workers,
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 20}},
		PeriodicJobs:         []*river.PeriodicJob{rivergateway.PeriodicPending(5 * time.Minute)},
		RescueStuckJobsAfter: 10 * time.Minute, // after the lease of the guard, and after a run
	})
	return engine, jobs, err
}

// onInvoice stores what became of an order, in the transaction that ends its job.
func onInvoice(ctx context.Context, tx pgx.Tx, r rivergateway.InvoiceResult) error {
	var invoice string
	if r.Invoice != nil {
		invoice = string(r.Invoice.Raw)
	}
	_, err := tx.Exec(ctx, `UPDATE orders SET outcome = $2, invoice = $3, reason = $4 WHERE id = $1`, r.OrderID, r.Outcome.String(), invoice, r.Reason)
	return err
}

// onPending raises an alarm.
func onPending(_ context.Context, r rivergateway.PendingReport) error {
	if r.Count > 0 {
		log.Printf("%d orders must be looked up, the first since %v", r.Count, r.Oldest)
	}
	return nil
}

// insert stores the order and its job in one transaction.
func insert(ctx context.Context, pool *pgxpool.Pool, engine *river.Client[pgx.Tx], r gateway.InvoiceRequest) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (id) VALUES ($1) ON CONFLICT (id) DO NOTHING`, r.OrderID); err != nil {
			return err
		}
		_, err := rivergateway.InsertInvoiceTx(ctx, engine, tx, r, rivergateway.InsertOptions{})
		return err
	})
}

// show waits for what became of the order, as a page of the shop would.
func show(ctx context.Context, pool *pgxpool.Pool, order string, out io.Writer) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		var outcome, invoice, reason string
		err := pool.QueryRow(ctx, `SELECT coalesce(outcome, ''), coalesce(invoice, ''), coalesce(reason, '') FROM orders WHERE id = $1`, order).
			Scan(&outcome, &invoice, &reason)
		if err != nil {
			return err
		}
		if outcome != "" {
			_, err := fmt.Fprintf(out, "order %s: %s %s%s\n", order, outcome, invoice, reason)
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
