// Command shop is a small shop that accepts cryptocurrency: an example to read and to copy.
//
// Read checkout.go first, then payment.go and merchant.go.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "modernc.org/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// run starts the shop and shuts it down when ctx ends.
func run(ctx context.Context, stdout, stderr io.Writer) error {
	cfg := config{password: os.Getenv("SHOP_PASSWORD"), margin: 15 * time.Minute, ratesTTL: 5 * time.Second, maxStale: 30 * time.Second, patience: 5 * time.Second}
	if len(cfg.password) < 12 {
		return errors.New("SHOP_PASSWORD must hold the password of the merchant's pages, at least 12 characters")
	}
	connect, demo := openGateway()
	if demo != nil {
		defer demo.Close()
	}
	file := "shop.db"
	if demo != nil {
		file = "demo.db" // invented orders never mix with real ones
	}
	db, err := openDatabase(cmp.Or(os.Getenv("SHOP_DB"), file), stdout)
	if err != nil {
		return fmt.Errorf("SHOP_DB: %w", err)
	}
	defer func() { _ = db.Close() }()
	s, err := newShop(ctx, cfg, connect, db, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	s.demo = demo
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8080"))
	if err != nil {
		return fmt.Errorf("SHOP_ADDR: %w", err)
	}
	fmt.Fprintf(stdout, "http://%s is ready; the merchant's pages are under /admin\n", listener.Addr())
	return s.serve(ctx, listener)
}

// serve serves requests until ctx ends. It then waits for the invoices that are being sent, also for those whose
// buyers have left: an order whose process ends meanwhile is unknown.
func (s *shop) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: longestRequest, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		shutdown, stop := context.WithTimeout(context.WithoutCancel(ctx), longestRequest)
		defer stop()
		stopped <- errors.Join(server.Shutdown(shutdown), s.client.Shutdown(shutdown))
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// sqliteSettings make a writer wait for another instead of failing, and commits survive a power failure.
const sqliteSettings = "_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// openDatabase opens a file of SQLite and reports where it is. An order file that is missing, or another
// one than yesterday's, lets orders be sent twice.
func openDatabase(name string, stdout io.Writer) (*sql.DB, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	what := "orders:"
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) { // #nosec G703 -- whoever runs the shop chooses the file
		what = "new, empty order file:"
	}
	fmt.Fprintln(stdout, what, path)
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: sqliteSettings}).String())
}
