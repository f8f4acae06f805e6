// Command reference does the task of ../README.md. It has no table of its own: the order guard
// remembers each order, and the client replays what it knows, waits for a call that is at work, and
// says when nobody can know.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
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

// An order whose process has died is in flight until the end of its lease, and unknown from then
// on. The lease is longer than a call can take by the policy: 7 seconds.
const lease = 10 * time.Second

func retryPolicy() gateway.RetryPolicy {
	return gateway.RetryPolicy{MaxAttempts: 2, MaxDelay: time.Second, InvoiceTimeout: 3 * time.Second}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("shop", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// Processes wait for each other, and what is committed survives a power failure.
	const settings = "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", os.Getenv("DATABASE_URL")+settings)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	guard, err := sqlguard.New(db, sqlguard.WithLease(lease))
	if err != nil {
		return err
	}
	if err := guard.Migrate(ctx); err != nil {
		return err
	}
	client, err := gateway.FromEnv(gateway.WithOrderGuard(guard), gateway.WithRetry(retryPolicy()))
	if err != nil {
		return err
	}
	s := &shop{client, guard}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /orders/{id}/pay", s.pay)
	routes.HandleFunc("GET /orders/{id}", s.show)
	routes.HandleFunc("POST /reconcile", s.reconcile)
	server := &http.Server{Addr: os.Getenv("SHOP_ADDR"), Handler: routes, ReadTimeout: 10 * time.Second}
	finished := make(chan error, 1)
	context.AfterFunc(ctx, func() { finished <- server.Shutdown(context.Background()) }) // waits for calls at work
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-finished
}

type shop struct {
	client *gateway.Client
	guard  *sqlguard.Guard
}

// pay responds with the invoice of an order: a new one, or the one that it has.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	price, err := decimal.NewFromString(r.PostFormValue("price"))
	request := gateway.InvoiceRequest{OrderID: r.PathValue("id"), Price: price, Amount: price, BaseCurrency: "usd"}
	if err != nil || request.Validate() != nil {
		http.Error(w, "This is not a price.", http.StatusBadRequest)
		return
	}
	ctx := context.WithoutCancel(r.Context()) // a buyer who leaves must not cut off an invoice
	invoice, err := s.client.CreateInvoice(ctx, request)
	if err != nil {
		slog.Warn("no invoice to show", "order", request.OrderID, "error", err)
	}
	switch {
	case err == nil:
		showInvoice(w, invoice.Raw)
	case gateway.OutcomeOf(err) == gateway.OutcomeConflict:
		http.Error(w, "This order has an invoice with another price.", http.StatusConflict)
	case gateway.OutcomeOf(err) == gateway.OutcomeUnknown:
		showPending(w)
	case gateway.SafeToRetry(err):
		http.Error(w, "Payments are not available at the moment. Please try again.", http.StatusServiceUnavailable)
	default:
		http.Error(w, "This order cannot be paid at the moment. Nothing was ordered.", http.StatusBadGateway)
	}
}

// show responds with what is known of an order.
func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	order, err := s.guard.Order(r.Context(), "", r.PathValue("id"))
	switch {
	case err != nil:
		slog.Error("an order cannot be read", "error", err)
		http.Error(w, "Please try again.", http.StatusServiceUnavailable)
	case order.State == sqlguard.StateCreated:
		showInvoice(w, order.Record.Invoice)
	case order.State == sqlguard.StateFree:
		http.Error(w, "This order has no invoice.", http.StatusNotFound)
	default: // in flight or unknown
		showPending(w)
	}
}

// reconcile ends the unknown orders whose invoices are in the file, with the row as the invoice.
func (s *shop) reconcile(w http.ResponseWriter, r *http.Request) {
	file, err := export.Read(r.Body, export.Settings{Order: "order_id", Invoice: "invoice_id", Created: "created", Price: "price", Amount: "amount"})
	if err == nil {
		_, err = s.guard.Reconcile(r.Context(), sqlguard.Statement{Rows: file.Rows}, sqlguard.ReconcileOptions{Apply: true, By: "the file"})
	}
	if err != nil {
		slog.Error("a file cannot be used, or only in part", "error", err)
		http.Error(w, "This file cannot be used, or only in part.", http.StatusUnprocessableEntity)
	}
}

// showInvoice shows the gateway's bytes, or the row of a file. Without them a person has found that the invoice exists,
// and has not said what it is.
func showInvoice(w http.ResponseWriter, invoice json.RawMessage) {
	if len(invoice) == 0 {
		showPending(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(invoice)
}

func showPending(w http.ResponseWriter) {
	http.Error(w, "We are checking your payment. Do not order again; this page will show it.", http.StatusAccepted)
}
