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

// A shop is all that the handlers share. It is made once and never changes.
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
	orders   orderBook
	watched  watchList
	observer *observer
	history  *rateHistory
	sessions *sessions
	pages    pages

	streams      chan struct{}   // has a place for each live stream of a buyer
	desks        chan struct{}   // has one for each of a merchant
	watchers     watchers        // how many streams each buyer has
	streaming    context.Context // ends when the shop closes
	closeStreams context.CancelFunc
	glance       time.Duration // how long a page of the merchant's waits for the gateway
}

// A connector makes a client of a gateway that somebody else knows.
type connector func(opts ...gateway.Option) (*gateway.Client, error)

// How many pages have live numbers at once; a page without them works as well.
// Those of merchants have places of their own, which no crowd of buyers takes.
const (
	maxStreams      = 512
	maxBuyerStreams = 8 // of one buyer
	maxDesks        = 16
)

func newShop(ctx context.Context, cfg config, connect connector, db *database, logger *slog.Logger) (*shop, error) {
	s := &shop{
		cfg: cfg, logger: logger, db: db, orders: orderBook{db}, watched: watchList{db},
		observer: newObserver(), history: &rateHistory{}, glance: 5 * time.Second,
		streams: make(chan struct{}, maxStreams), desks: make(chan struct{}, maxDesks), watchers: watchers{open: map[string]int{}},
	}
	s.streaming, s.closeStreams = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if s.pages, err = parsePages(); err != nil {
		return nil, err
	}
	if s.sessions, err = newSessions(db, cfg.password, cfg.rounds); err != nil {
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

// handler is every route of the shop, behind what all of them need.
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
		mux.Handle(pattern, s.handle(s.timely(h)))
	}
	for pattern, h := range map[string]handlerFunc{
		"GET /admin":              s.showOverview,
		"GET /admin/orders/{id}":  s.showRecord,
		"POST /admin/orders/{id}": s.resolveOrder,
		"GET /admin/money":        s.showMoney,
		"POST /admin/withdrawals": s.addWithdrawal,
		"GET /admin/metrics":      s.showMetrics,
	} {
		mux.Handle(pattern, s.handle(s.timely(s.asMerchant(h))))
	}
	mux.Handle("GET /orders/{id}/live", s.handle(s.streamOffers))
	mux.Handle("GET /admin/withdrawals/live", s.handle(s.asMerchant(s.streamWithdrawals)))
	return s.around(mux)
}
