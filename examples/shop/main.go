// Command shop is a small shop that accepts cryptocurrency: an example of a merchant's
// backend built on the gateway client, with pages for buyers and for the merchant.
// Without settings it runs on a stand-in gateway and a SQLite file.
//
// Read checkout.go first, then payment.go and merchant.go.
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
	"syscall"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/otelgateway"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/sync/errgroup"
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
	name, connect, demo, err := openGateway()
	if err != nil {
		return err
	}
	if demo != nil {
		defer demo.Close()
	}
	cfg, err := configFromEnv(demo != nil)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, cfg.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	option, metrics, err := newMetrics()
	if err != nil {
		return err
	}
	measured := func(opts ...gateway.Option) (*gateway.Client, error) { return connect(append(opts, option)...) }
	s, err := newShop(ctx, cfg, measured, db, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	s.demo = demo
	if err := errors.Join(db.bindGateway(ctx, name), s.seedDemo(ctx)); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return fmt.Errorf("SHOP_ADDR: %w", err)
	}
	fmt.Fprintln(stdout, cfg.startupLine(listener.Addr(), s.demo != nil))
	return s.serve(ctx, listener, metrics)
}

// newMetrics returns the client's metrics, and their page for Prometheus.
func newMetrics() (gateway.Option, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	return otelgateway.New(otelgateway.Options{MeterProvider: meters}), promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// serve serves requests until ctx ends. It then waits for the invoices that are being
// sent: an order whose process dies during CreateInvoice is unknown.
func (s *shop) serve(ctx context.Context, listener net.Listener, metrics http.Handler) error {
	handlers := map[net.Listener]http.Handler{listener: s.handler()}
	if s.cfg.metricsAddr != "" {
		extra, err := net.Listen("tcp", s.cfg.metricsAddr)
		if err != nil {
			return fmt.Errorf("SHOP_METRICS_ADDR: %w", errors.Join(err, listener.Close()))
		}
		handlers[extra] = metrics
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.sampleRates(ctx) })
	if s.demo != nil {
		group.Go(func() error { return updateRates(ctx, s.demo) })
	}
	for listener, handler := range handlers {
		server := &http.Server{ // which no slow client can hold for long
			Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * s.cfg.pageTimeout,
			IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		}
		group.Go(func() error {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			shutdown, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*s.cfg.pageTimeout)
			defer stop()
			return server.Shutdown(shutdown)
		})
	}
	<-ctx.Done()
	s.logger.Info("shutting down: no new requests; waiting for invoices that are being sent")
	defer s.sending.Wait()
	return group.Wait()
}
