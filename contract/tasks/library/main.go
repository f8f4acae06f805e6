// Command library does the tasks of ../TASKS.md with the client and sqlguard, as its guides have it.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/shopspring/decimal"
	_ "modernc.org/sqlite"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/cryptogw/gateway/sqlguard/export"
)

type line struct {
	Order   string          `json:"order"`
	State   string          `json:"state"`
	Invoice json.RawMessage `json:"invoice,omitempty"`
}

func print(l line) error { return json.NewEncoder(os.Stdout).Encode(l) }

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	db, err := sql.Open("sqlite", "file:"+os.Getenv("DATABASE")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	guard, err := sqlguard.New(db, sqlguard.WithLease(10*time.Second)) // longer than a call
	if err != nil {
		return err
	}
	if err := guard.Migrate(ctx); err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "pay":
		return pay(ctx, guard)
	case len(args) == 2 && args[0] == "show":
		return show(ctx, guard, args[1])
	case len(args) == 1 && args[0] == "pending":
		return pending(ctx, guard)
	case len(args) == 1 && args[0] == "reconcile":
		return reconcile(ctx, guard)
	}
	return errors.New("usage: library pay | show ORDER | pending | reconcile")
}

func pay(ctx context.Context, guard *sqlguard.Guard) error {
	client, err := gateway.FromEnv(gateway.WithOrderGuard(guard),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: 5 * time.Second}))
	if err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for ctx.Err() == nil && orders.Scan() {
		var order struct {
			Order string          `json:"order"`
			Price decimal.Decimal `json:"price"`
		}
		if err := json.Unmarshal(orders.Bytes(), &order); err != nil {
			return fmt.Errorf("order %q: %w", orders.Text(), err)
		}
		invoice, err := client.CreateInvoice(context.WithoutCancel(ctx), gateway.InvoiceRequest{
			OrderID: order.Order, Price: order.Price, Amount: order.Price, BaseCurrency: "usd",
		})
		if err != nil {
			log.Print(err)
		}
		if err := print(stateOf(order.Order, invoice, err)); err != nil {
			return err
		}
	}
	return orders.Err()
}

func stateOf(order string, invoice *gateway.Invoice, err error) line {
	var conflict *gateway.OrderConflictError
	if errors.As(err, &conflict) && conflict.Invoice != nil {
		return line{order, "created", conflict.Invoice.Raw}
	}
	switch gateway.OutcomeOf(err) {
	case gateway.OutcomeSucceeded:
		return line{order, "created", invoice.Raw}
	case gateway.OutcomeNotSent:
		return line{order, "not_sent", nil}
	case gateway.OutcomeRejected:
		return line{order, "refused", nil}
	default:
		return line{order, "unknown", nil}
	}
}

func show(ctx context.Context, guard *sqlguard.Guard, id string) error {
	order, err := guard.Order(ctx, "", id)
	if err != nil {
		return err
	}
	switch {
	case order.State == sqlguard.StateCreated:
		return print(line{id, "created", order.Record.Invoice})
	case order.State != sqlguard.StateFree: // in flight, or unknown
		return print(line{id, "unknown", nil})
	case order.Outcome == gateway.OutcomeRejected:
		return print(line{id, "refused", nil})
	default:
		return print(line{id, "not_sent", nil})
	}
}

func pending(ctx context.Context, guard *sqlguard.Guard) error {
	orders, err := guard.Pending(ctx, sqlguard.PendingQuery{})
	for _, order := range orders {
		err = errors.Join(err, print(line{order.ID, "unknown", nil}))
	}
	return err
}

func reconcile(ctx context.Context, guard *sqlguard.Guard) error {
	rows, err := export.CSV(os.Stdin, export.Columns{
		OrderID: "order_id", InvoiceID: "invoice_id", CreatedAt: "created", Price: "price", Amount: "amount",
	})
	if err != nil {
		return err
	}
	_, err = guard.Reconcile(ctx, sqlguard.Statement{Rows: rows}, sqlguard.ReconcileOptions{Apply: true, By: "the hourly file"})
	if err != nil {
		return err
	}
	return pending(ctx, guard)
}
