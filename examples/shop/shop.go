package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httplog/v3"
)

// A shop holds what the handlers share. It does not change once it is created.
type shop struct {
	cfg    config
	logger *slog.Logger
	demo   *standIn // nil for a real gateway

	client      *gateway.Client
	catalog     *gateway.Catalog
	rates       *gateway.Cache[*gateway.ExchangeRates]
	balance     *gateway.Cache[*gateway.Balance]
	withdrawals *gateway.Cache[[]withdrawalRow]
	guard       *sqlguard.Guard
	db          *database
	history     *rateHistory
	sessions    *scs.SessionManager
	pages       map[string]*template.Template
	sending     sync.WaitGroup // the invoices that are being sent
}

// A connector creates a client of the configured gateway.
type connector func(opts ...gateway.Option) (*gateway.Client, error)

func newShop(ctx context.Context, cfg config, connect connector, db *database, logger *slog.Logger) (*shop, error) {
	s := &shop{cfg: cfg, logger: logger, db: db, history: &rateHistory{}}
	s.sessions = newSessions(db, s.showError)
	var err error
	if s.pages, err = parsePages(); err != nil {
		return nil, err
	}
	if s.guard, err = sqlguard.New(db.DB, sqlguard.WithLease(cfg.lease())); err != nil {
		return nil, err
	}
	if err := errors.Join(s.guard.CreateTable(ctx), db.createTables(ctx)); err != nil {
		return nil, err
	}
	s.client, err = connect(gateway.WithOrderGuard(choiceGuard{s.guard, db}), gateway.WithRetry(cfg.retry()), gateway.WithLogger(logger))
	if err != nil {
		return nil, err
	}
	s.catalog = s.client.Catalog(gateway.CacheOptions{TTL: time.Minute, MaxStale: 10 * time.Minute})
	s.rates = s.client.Rates(gateway.CacheOptions{TTL: cfg.ratesTTL, MaxStale: 10 * time.Minute})
	s.balance = gateway.NewCache(func(ctx context.Context) (*gateway.Balance, error) {
		return s.client.Balance(ctx, gateway.BalanceQuery{})
	}, gateway.CacheOptions{TTL: 10 * time.Second, MaxStale: time.Hour})
	s.withdrawals = gateway.NewCache(s.loadWithdrawals, gateway.CacheOptions{TTL: cfg.ratesTTL, MaxStale: time.Minute})
	return s, nil
}

// maxForm limits the body of a request, in bytes; every body is a form.
const maxForm = 16 << 10

// policy lets a page load from its own host only, and run no inline script.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// handler returns all routes of the shop with their middleware.
func (s *shop) handler() http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(s.page(func(http.ResponseWriter, *http.Request) error {
		return &problem{http.StatusForbidden, "A request from another site", "A form of this shop is accepted only from a page of this shop."}
	}))
	r := chi.NewRouter()
	r.Use(withRequestID, httplog.RequestLogger(s.logger, &httplog.Options{
		Schema: httplog.SchemaOTEL.Concise(true), RecoverPanics: true,
		LogExtraAttrs: func(r *http.Request, _ string, _ int) []slog.Attr {
			return []slog.Attr{slog.String("request", middleware.GetReqID(r.Context()))}
		},
	}), middleware.GetHead, withHeaders, middleware.RequestSize(maxForm), protection.Handler)
	r.NotFound(s.page(func(http.ResponseWriter, *http.Request) error { return notFound() }).ServeHTTP)
	r.MethodNotAllowed(s.page(func(http.ResponseWriter, *http.Request) error {
		return &problem{http.StatusMethodNotAllowed, "Not possible", "This address does not take such a request."}
	}).ServeHTTP)
	static, _ := fs.Sub(web, "web/static") // fails for an invalid name only
	r.With(middleware.SetHeader("Cache-Control", "max-age=300")).Handle("/static/*", http.StripPrefix("/static", http.FileServerFS(static)))
	r.Method("GET", "/", s.page(s.showProducts))
	r.Method("POST", "/orders", s.page(s.buy))
	r.Method("GET", "/orders/{id}", s.page(s.showOrder))
	r.Method("POST", "/orders/{id}/pay", s.page(s.pay))
	r.Method("POST", "/orders/{id}/contact", s.page(s.setContact))
	r.Method("POST", "/orders/{id}/lose", s.page(s.loseNextResponse))
	r.Method("GET", "/orders/{id}/qr.png", s.page(s.showQR))
	r.Method("GET", "/healthz", s.page(s.showHealth))
	r.Route("/admin", s.merchantRoutes)
	return r
}

// merchantRoutes are the merchant's pages. Checking a password takes a while on purpose;
// a few logins wait for each other, and the rest is refused.
func (s *shop) merchantRoutes(r chi.Router) {
	r.Use(s.sessions.LoadAndSave)
	r.Method("GET", "/login", s.page(s.showLogin))
	r.With(middleware.ThrottleBacklog(2, 16, 5*time.Second)).Method("POST", "/login", s.page(s.login))
	r.Method("POST", "/logout", s.page(s.logout))
	r.Group(func(r chi.Router) {
		r.Use(s.requireMerchant)
		r.Method("GET", "/", s.page(s.showOrders))
		r.Method("GET", "/orders.csv", s.page(s.exportOrders))
		r.Method("GET", "/orders/{id}", s.page(s.showRecord))
		r.Method("POST", "/orders/{id}/resolve", s.page(s.resolveOrder))
		r.Method("POST", "/orders/{id}/mark", s.page(s.markOrder))
		r.Method("GET", "/money", s.page(s.showMoney))
		r.Method("POST", "/money", s.page(s.followWithdrawal))
		r.Method("GET", "/coins", s.page(s.showCoins))
		r.Method("GET", "/coins/{coin}.svg", s.page(s.showChart))
	})
}

// withRequestID gives a request a random identifier, for the log and for questions to the
// merchant. The one of chi would have the name of the host.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), middleware.RequestIDKey, rand.Text())))
	})
}

func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// showHealth reports whether this process can take orders. It does not call the gateway:
// without it the shop can still serve pages.
func (s *shop) showHealth(w http.ResponseWriter, r *http.Request) error {
	if err := s.db.PingContext(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte("ok\n"))
	return err
}

// The cookies of a buyer: who they are, and the cart that they have not ordered yet.
const (
	buyerCookie = "__Host-buyer"
	cartCookie  = "__Host-cart"
)

// isRandomText reports whether a text is one of [rand.Text].
func isRandomText(text string) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(text) == 26
}

// ensureCookie returns the random text of a cookie, and sets it if there is none.
func ensureCookie(w http.ResponseWriter, r *http.Request, name string, age time.Duration) string {
	if cookie, err := r.Cookie(name); err == nil && isRandomText(cookie.Value) {
		return cookie.Value
	}
	text := rand.Text()
	setCookie(w, name, text, age)
	return text
}

func setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// buyerOf returns the identifier of the buyer in the database: a hash of the cookie,
// which is of no use to whoever reads it.
func buyerOf(r *http.Request) (buyer string, ok bool) {
	cookie, err := r.Cookie(buyerCookie)
	if err != nil || !isRandomText(cookie.Value) {
		return "", false
	}
	sum := sha256.Sum256([]byte(cookie.Value))
	return base64.RawURLEncoding.EncodeToString(sum[:]), true
}

// buyerOrder returns the order named by the path. That of another buyer is not found.
func (s *shop) buyerOrder(r *http.Request) (order, error) {
	buyer, ok := buyerOf(r)
	if !ok {
		return order{}, notFound()
	}
	o, err := s.db.order(r.Context(), r.PathValue("id"))
	if err == nil && o.Buyer != buyer {
		return order{}, notFound()
	}
	return o, err
}
