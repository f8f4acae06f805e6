// Command shop is a small shop that accepts cryptocurrency: an example of a merchant's
// backend built on the gateway client, with pages for buyers and for the merchant.
// Without settings it runs on a stand-in gateway and a SQLite file.
//
// Read checkout.go first, then payment.go and merchant.go.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/otelgateway"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/crypto/bcrypt"
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
	options, metrics, err := newMetrics()
	if err != nil {
		return err
	}
	measured := func(opts ...gateway.Option) (*gateway.Client, error) {
		return connect(append(opts, otelgateway.New(options))...)
	}
	s, err := newShop(ctx, cfg, measured, db, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	s.demo = demo
	_, err = otelgateway.RegisterPending(s.guard, options)
	if err := errors.Join(err, db.bindGateway(ctx, name), s.seedDemo(ctx)); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return fmt.Errorf("SHOP_ADDR: %w", err)
	}
	fmt.Fprintln(stdout, cfg.startupLine(listener.Addr(), s.demo != nil))
	return s.serve(ctx, listener, metrics)
}

// newMetrics returns where metrics go, and their page for Prometheus.
func newMetrics() (otelgateway.Options, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return otelgateway.Options{}, nil, err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	return otelgateway.Options{MeterProvider: meters}, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
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
	if s.demo != nil {
		group.Go(func() error { return every(ctx, 2*time.Second, func() { updateRates(s.demo) }) })
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

// every calls a function at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) error {
	for {
		do()
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// A config holds the shop's own settings from the environment. The settings of the
// gateway are read by [gateway.FromEnv].
type config struct {
	addr           string        // SHOP_ADDR
	metricsAddr    string        // SHOP_METRICS_ADDR
	database       string        // DATABASE_URL: postgres://… or file:…
	merchants      merchants     // SHOP_MERCHANTS
	password       string        // of the merchant "demo", if SHOP_MERCHANTS is not set
	fields         paymentFields // SHOP_INVOICE_ADDRESS and so on
	invoiceTimeout time.Duration // SHOP_INVOICE_TIMEOUT: the timeout of one attempt to create an invoice

	pageTimeout     time.Duration // the timeout of a page for the database and the gateway
	ratesTTL        time.Duration // how long rates are cached
	ratesStaleAfter time.Duration // the age from which rates fix no amount
	transit         time.Duration // how long a request may be in transit: before, nobody can find that there is no invoice
}

// configFromEnv reads the settings. The defaults of the demo are for the stand-in.
func configFromEnv(demo bool) (config, error) {
	file, defaults := "file:shop.db", paymentFields{}
	if demo {
		file, defaults = "file:demo.db", demoFields()
	}
	cfg := config{
		addr:        cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8080"),
		metricsAddr: os.Getenv("SHOP_METRICS_ADDR"),
		database:    cmp.Or(os.Getenv("DATABASE_URL"), file),
		pageTimeout: 10 * time.Second, ratesTTL: 5 * time.Second, ratesStaleAfter: 30 * time.Second, transit: 15 * time.Minute,
	}
	var err error
	if cfg.fields, err = fieldsFromEnv(defaults); err != nil {
		return cfg, err
	}
	if cfg.invoiceTimeout, err = time.ParseDuration(cmp.Or(os.Getenv("SHOP_INVOICE_TIMEOUT"), "15s")); err != nil {
		return cfg, fmt.Errorf("SHOP_INVOICE_TIMEOUT: %w", err)
	}
	if cfg.invoiceTimeout < time.Second || cfg.invoiceTimeout > time.Minute {
		return cfg, errors.New("SHOP_INVOICE_TIMEOUT must be from 1s to 1m")
	}
	lines := os.Getenv("SHOP_MERCHANTS")
	if lines == "" {
		cfg.password = rand.Text()
		hash, err := bcrypt.GenerateFromPassword([]byte(cfg.password), bcrypt.DefaultCost)
		if err != nil {
			return cfg, err
		}
		lines = "demo:" + string(hash)
	}
	cfg.merchants, err = parseMerchants(lines)
	return cfg, err
}

// retry is the retry policy of the gateway client. It bounds the duration of
// CreateInvoice; the lease of the order guard depends on that bound.
func (c config) retry() gateway.RetryPolicy {
	return gateway.RetryPolicy{
		MaxAttempts: 3, MaxDelay: 2 * time.Second, MaxRetryAfter: 2 * time.Second,
		AttemptTimeout: 5 * time.Second, InvoiceTimeout: c.invoiceTimeout,
	}
}

// lease is longer than CreateInvoice can take, with what the order guard may take before
// it.
func (c config) lease() time.Duration {
	policy := c.retry()
	return time.Duration(policy.MaxAttempts)*(policy.InvoiceTimeout+policy.MaxDelay) + 12*time.Second
}

// startupLine is the line that the shop prints when it starts.
func (c config) startupLine(addr net.Addr, demo bool) string {
	which, where, login := "GATEWAY_BASE_URL", "PostgreSQL", "of SHOP_MERCHANTS"
	if demo {
		which = "a stand-in in this process with invented data"
	}
	if path, ok := strings.CutPrefix(c.database, "file:"); ok {
		where = "SQLite, " + path
	}
	if c.password != "" {
		login = "demo, password " + c.password
	}
	return fmt.Sprintf("http://%s is ready (gateway: %s; orders: %s; merchant: /admin, name %s)", addr, which, where, login)
}
