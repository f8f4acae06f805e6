package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A shop holds what the handlers share. It does not change once it is
// created.
type shop struct {
	cfg    config
	logger *slog.Logger
	demo   bool // whether the gateway is the stand-in

	client   *gateway.Client
	catalog  *gateway.Catalog
	rates    *gateway.Cache[*gateway.ExchangeRates]
	balance  *gateway.Cache[*gateway.Balance]
	guard    *sqlguard.Guard
	db       *database
	orders   orderStore
	watched  watchList
	observer *observer
	history  *rateHistory
	sessions *sessions
	pages    pages

	buyerStreams    chan struct{}   // limits the live streams of all buyers
	merchantStreams chan struct{}   // limits the live streams of all merchants
	streamCounts    streamCounts    // limits the live streams of each buyer
	streamCtx       context.Context // ends when the shop closes
	closeStreams    context.CancelFunc
	gatewayWait     time.Duration // how long a merchant's page waits for the gateway
}

// A connector creates a client of the configured gateway.
type connector func(opts ...gateway.Option) (*gateway.Client, error)

// Limits of concurrent live streams; a page works without one. Merchants
// have their own limit, which buyers cannot exhaust.
const (
	maxStreams         = 512
	maxStreamsPerBuyer = 8 // per buyer
	maxMerchantStreams = 16
)

func newShop(ctx context.Context, cfg config, connect connector, db *database, logger *slog.Logger) (*shop, error) {
	s := &shop{
		cfg: cfg, logger: logger, db: db, orders: orderStore{db}, watched: watchList{db},
		observer: newObserver(), history: &rateHistory{}, gatewayWait: 5 * time.Second,
		buyerStreams: make(chan struct{}, maxStreams), merchantStreams: make(chan struct{}, maxMerchantStreams), streamCounts: streamCounts{open: map[string]int{}},
	}
	s.streamCtx, s.closeStreams = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if s.pages, err = parsePages(); err != nil {
		return nil, err
	}
	if s.sessions, err = newSessions(db, cfg.password, cfg.iterations); err != nil {
		return nil, err
	}
	if s.guard, err = sqlguard.New(db.DB, sqlguard.WithLease(cfg.lease())); err != nil {
		return nil, err
	}
	if err := s.createTables(ctx); err != nil {
		return nil, err
	}
	s.client, err = connect(gateway.WithOrderGuard(fence{s.guard, s.orders, cfg.lease()}), gateway.WithRetry(cfg.retry()),
		gateway.WithObserver(s.observer), gateway.WithLogger(logger))
	if err != nil {
		return nil, err
	}
	s.catalog = s.client.Catalog(gateway.CacheOptions{TTL: time.Minute, MaxStale: 10 * time.Minute})
	s.rates = gateway.NewCache(func(ctx context.Context) (*gateway.ExchangeRates, error) {
		return s.client.ExchangeRates(ctx)
	}, gateway.CacheOptions{TTL: cfg.ratesTTL, MaxStale: 10 * time.Minute})
	s.balance = gateway.NewCache(func(ctx context.Context) (*gateway.Balance, error) {
		return s.client.Balance(ctx, gateway.BalanceQuery{})
	}, gateway.CacheOptions{TTL: 10 * time.Second, MaxStale: time.Hour})
	return s, nil
}

func (s *shop) createTables(ctx context.Context) error {
	if err := s.guard.CreateTable(ctx); err != nil {
		return err
	}
	if err := s.db.createTables(ctx); err != nil {
		return fmt.Errorf("creating the tables of the shop: %w", err)
	}
	return nil
}

// handler returns all routes of the shop with their middleware.
func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]handlerFunc{
		"GET /{$}":                s.showProducts,
		"POST /orders":            s.openOrder,
		"GET /orders/{id}":        s.showOrder,
		"POST /orders/{id}/pay":   s.payOrder,
		"GET /orders/{id}/qr.png": s.showQR,
		"GET /static/{file}":      s.showStatic,
		"GET /healthz":            s.showHealth,
		"GET /admin/login":        s.showLogin,
		"POST /admin/login":       s.login,
		"POST /admin/logout":      s.logout,
	} {
		mux.Handle(pattern, s.handle(s.withTimeout(h)))
	}
	for pattern, h := range map[string]handlerFunc{
		"GET /admin":              s.showOverview,
		"GET /admin/orders/{id}":  s.showRecord,
		"POST /admin/orders/{id}": s.resolveOrder,
		"GET /admin/money":        s.showMoney,
		"POST /admin/withdrawals": s.addWithdrawal,
		"GET /admin/metrics":      s.showMetrics,
	} {
		mux.Handle(pattern, s.handle(s.withTimeout(s.requireMerchant(h))))
	}
	mux.Handle("GET /orders/{id}/live", s.handle(s.streamOffers))
	mux.Handle("GET /admin/withdrawals/live", s.handle(s.requireMerchant(s.streamWithdrawals)))
	return s.withMiddleware(mux)
}
