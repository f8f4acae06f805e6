// Command checkout is examples/checkout of the root, for the grader: the routes of the task in front of its own,
// and an order guard that survives the process. TestGrade_checkout builds it together with the file of
// the example, whose main has another name there.
package main

import (
	"context"
	"database/sql"
	"net/http"
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := sql.Open("sqlite", os.Getenv("DATABASE_URL")+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	must(err)
	guard, err := sqlguard.New(db, sqlguard.WithLease(10*time.Second))
	must(err)
	must(guard.Migrate(ctx))
	policy := gateway.RetryPolicy{MaxAttempts: 2, MaxDelay: time.Second, InvoiceTimeout: 3 * time.Second}
	client, err := gateway.FromEnv(gateway.WithOrderGuard(guard), gateway.WithRetry(policy))
	must(err)
	t := task{client, guard}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /orders/{id}/pay", t.pay)
	routes.HandleFunc("GET /orders/{id}", t.show)
	routes.HandleFunc("POST /reconcile", t.reconcile)
	server := &http.Server{Addr: os.Getenv("SHOP_ADDR"), Handler: routes, ReadTimeout: 10 * time.Second}
	finished := make(chan error, 1)
	context.AfterFunc(ctx, func() { finished <- server.Shutdown(context.Background()) })
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		must(err)
	}
	must(<-finished)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type task struct {
	client *gateway.Client
	guard  *sqlguard.Guard
}

// pay is the checkout's way to an invoice, for an order of which it learns the price here.
func (t task) pay(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	price, err := decimal.NewFromString(r.PostFormValue("price"))
	if err != nil || !price.IsPositive() {
		http.Error(w, "This is not a price.", http.StatusBadRequest)
		return
	}
	shop, err := newCheckout(t.client, map[string]decimal.Decimal{id: price})
	must(err)
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawQuery = "/orders/"+id+"/invoice", "offer=58d98601-38df-47a2-83ee-e110f6faa833" // USDT on Tron
	r.Form = nil
	shop.ServeHTTP(w, r)
}

// show responds with what the guard knows, which the checkout has no route for.
func (t task) show(w http.ResponseWriter, r *http.Request) {
	order, err := t.guard.Order(r.Context(), "", r.PathValue("id"))
	switch {
	case err != nil:
		http.Error(w, "Please try again.", http.StatusServiceUnavailable)
	case order.State == sqlguard.StateFree:
		http.Error(w, "This order has no invoice.", http.StatusNotFound)
	case order.State == sqlguard.StateCreated && len(order.Record.Invoice) > 0:
		_, _ = w.Write(order.Record.Invoice)
	default:
		http.Error(w, "We are checking your payment.", http.StatusAccepted)
	}
}

// reconcile has the guard end what is in the file.
func (t task) reconcile(w http.ResponseWriter, r *http.Request) {
	file, err := export.Read(r.Body, export.Settings{Order: "order_id", Invoice: "invoice_id", Created: "created", Price: "price", Amount: "amount"})
	if err == nil {
		_, err = t.guard.Reconcile(r.Context(), sqlguard.Statement{Rows: file.Rows}, sqlguard.ReconcileOptions{Apply: true, By: "the file"})
	}
	if err != nil {
		http.Error(w, "This file cannot be used, or only in part.", http.StatusUnprocessableEntity)
	}
}
