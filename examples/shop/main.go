// Command shop is a small shop that accepts cryptocurrency: an example of a
// merchant's backend built on the gateway client, with pages for buyers and
// for the merchant. Without settings it runs on a stand-in gateway and a
// SQLite file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		return 1
	}
	return 0
}

// run starts the shop and shuts it down when ctx ends.
func run(ctx context.Context, stdout, stderr io.Writer) error {
	cfg, err := configFromEnv()
	if err != nil {
		return err
	}
	logger := slog.New(withRequestID{slog.NewTextHandler(stderr, nil)})
	source, err := openGateway()
	if err != nil {
		return err
	}
	defer source.close()
	db, err := openDatabase(ctx, cfg.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	s, err := newShop(ctx, cfg, source.connect, db, logger)
	if err != nil {
		return err
	}
	if err := db.bindGateway(ctx, source.name); err != nil {
		return err
	}
	s.demo = source.demo != nil
	listener, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return fmt.Errorf("SHOP_ADDR: %w", err)
	}
	if err := s.seedDemo(ctx, source.demo); err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintln(stdout, cfg.startupLine(listener.Addr(), s.demo))
	return s.serve(ctx, listener, source.demo)
}

// serve serves requests until ctx ends. It then waits for invoices that are
// being sent: an order whose process dies during CreateInvoice is unknown.
func (s *shop) serve(ctx context.Context, listener net.Listener, demo *standIn) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{
		Handler:           s.handler(),
		BaseContext:       func(net.Listener) context.Context { return background },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.cfg.maxRequestDuration(),
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.sampleRates(background) })
	wg.Go(func() { demo.updateRates(background) })

	serveErr := make(chan error, 1)
	wg.Go(func() { serveErr <- server.Serve(listener) })
	select {
	case err := <-serveErr:
		return err
	case <-ctx.Done():
	}
	s.logger.Info("shutting down: no new requests; waiting for invoices that are being sent")
	s.closeStreams()
	shutdownCtx, stop := context.WithTimeout(background, s.cfg.maxRequestDuration())
	defer stop()
	return errors.Join(server.Shutdown(shutdownCtx), ignoreServerClosed(<-serveErr))
}

// ignoreServerClosed returns nil for the error of a server that was shut
// down.
func ignoreServerClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
