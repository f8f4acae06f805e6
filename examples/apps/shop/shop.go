package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httplog/v3"
)

// A shop holds what the handlers share. It does not change once it is created.
type shop struct {
	cfg    config
	logger *slog.Logger
	demo   *gatewaytest.Server // nil for a real gateway

	client      *gateway.Client
	catalog     *pricing.Cache[*pricing.Catalog]
	rates       *pricing.Cache[*gateway.ExchangeRates]
	balance     *cached[*gateway.Balance]
	withdrawals *cached[[]withdrawalRow]
	guard       *sqlguard.Guard
	db          *database
	sessions    *scs.SessionManager
	pages       *template.Template
	sending     sync.WaitGroup // the invoices that are being sent
}

// A connector creates a client of the configured gateway.
type connector func(opts ...gateway.Option) (*gateway.Client, error)

func newShop(ctx context.Context, cfg config, connect connector, db *database, logger *slog.Logger) (*shop, error) {
	pages := template.New("").Funcs(template.FuncMap{"price": formatPrice, "rate": formatRate, "product": productName})
	template.Must(pages.ParseFS(web, "web/*.html", "web/pages/*.html"))
	s := &shop{cfg: cfg, logger: logger, db: db, pages: pages}
	s.sessions = newSessions(db, s.showError)
	var err error
	if s.guard, err = sqlguard.New(db.DB, sqlguard.WithLease(cfg.lease())); err != nil {
		return nil, err
	}
	if err := errors.Join(s.guard.Migrate(ctx), db.createTables(ctx)); err != nil {
		return nil, err
	}
	s.client, err = connect(gateway.WithOrderGuard(shopGuard{s.guard, db}), gateway.WithRetry(cfg.retry()), gateway.WithLogger(logger))
	if err != nil {
		return nil, err
	}
	return s, s.addCaches()
}

// addCaches makes what the pages show without asking the gateway each time.
func (s *shop) addCaches() error {
	var err1, err2 error
	s.catalog, err1 = pricing.NewCatalogCache(s.client, pricing.CacheOptions{TTL: time.Minute, MaxStale: 10 * time.Minute})
	s.rates, err2 = pricing.NewRatesCache(s.client, pricing.CacheOptions{TTL: s.cfg.ratesTTL, MaxStale: 10 * time.Minute})
	s.balance = &cached[*gateway.Balance]{ttl: 10 * time.Second, maxStale: time.Hour, load: func(ctx context.Context) (*gateway.Balance, error) {
		return s.client.Balance(ctx, gateway.BalanceQuery{})
	}}
	s.withdrawals = &cached[[]withdrawalRow]{ttl: s.cfg.ratesTTL, maxStale: time.Minute, load: s.loadWithdrawals}
	return errors.Join(err1, err2)
}

// The limits of the body of a request, in bytes: that of a form, and of the one that has a
// file.
const (
	maxForm   = 16 << 10
	maxExport = 8 << 20
)

func isForm(r *http.Request) bool { return r.URL.Path != "/admin/reconcile" }

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
	r.Use(httplog.RequestLogger(s.logger, &httplog.Options{Schema: httplog.SchemaOTEL.Concise(true), RecoverPanics: true}), withRequestID)
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		r.Use(middleware.SetHeader(name, value))
	}
	r.Use(middleware.GetHead, middleware.RequestSize(maxExport), middleware.Maybe(middleware.RequestSize(maxForm), isForm), protection.Handler)
	r.NotFound(s.page(func(http.ResponseWriter, *http.Request) error { return notFound() }))
	r.MethodNotAllowed(s.page(func(http.ResponseWriter, *http.Request) error {
		return &problem{http.StatusMethodNotAllowed, "Not possible", "This address does not take such a request."}
	}))
	static, _ := fs.Sub(web, "web/static") // fails for an invalid name only
	r.With(middleware.SetHeader("Cache-Control", "max-age=300")).Handle("/static/*", http.StripPrefix("/static", http.FileServerFS(static)))
	r.Get("/", s.page(s.showProducts))
	r.Post("/orders", s.page(s.buy))
	r.Get("/orders/{id}", s.forOrder(s.showOrder))
	r.Post("/orders/{id}/pay", s.forOrder(s.pay))
	r.Post("/orders/{id}/contact", s.forOrder(s.setContact))
	r.Post("/orders/{id}/lose", s.forOrder(s.loseNextResponse))
	r.Get("/orders/{id}/qr.png", s.forOrder(s.showQR))
	r.Get("/healthz", s.page(s.showHealth))
	r.Route("/admin", s.merchantRoutes)
	return r
}

// merchantRoutes are the merchant's pages. Checking a password takes a while on purpose;
// a few logins wait for each other, and the rest is refused.
func (s *shop) merchantRoutes(r chi.Router) {
	r.Use(s.sessions.LoadAndSave)
	r.Get("/login", s.page(func(w http.ResponseWriter, r *http.Request) error { return s.loginForm(w, r, http.StatusOK, "") }))
	r.With(middleware.ThrottleBacklog(2, 16, 5*time.Second)).Post("/login", s.page(s.login))
	r.Post("/logout", s.page(s.logout))
	r.Group(func(r chi.Router) {
		r.Use(s.requireMerchant)
		r.Get("/", s.page(s.showOrders))
		r.Get("/pending", s.page(s.showPending))
		r.Post("/reconcile", s.page(s.reconcile))
		r.Get("/orders.csv", s.page(s.exportOrders))
		r.Get("/orders/{id}", s.forOrder(s.showRecord))
		r.Post("/orders/{id}/resolve", s.forOrder(s.resolveOrder))
		r.Post("/orders/{id}/mark", s.forOrder(s.markOrder))
		r.Get("/money", s.page(func(w http.ResponseWriter, r *http.Request) error { return s.renderMoney(w, r, http.StatusOK, "", "") }))
		r.Post("/money", s.page(s.followWithdrawal))
		r.Get("/coins", s.page(s.showCoins))
		r.Get("/odd", s.page(s.showOdd))
	})
}

// withRequestID gives a request a random identifier, for the log and for questions to the
// merchant. The one of chi would have the name of the host.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		httplog.SetAttrs(r.Context(), slog.String("request", id))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), middleware.RequestIDKey, id)))
	})
}

// showHealth reports whether this process can take orders. It does not call the gateway:
// without it the shop can still serve pages.
func (s *shop) showHealth(w http.ResponseWriter, r *http.Request) error {
	if err := s.db.PingContext(r.Context()); err != nil {
		return err
	}
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
	return len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
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
// which is of no use to whoever reads it. Without a cookie it is "".
func buyerOf(r *http.Request) string {
	cookie, err := r.Cookie(buyerCookie)
	if err != nil || !isRandomText(cookie.Value) {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(cookie.Value)))
}

// forOrder returns a page for the order of the path. A merchant sees every order; for a
// buyer, that of another one is not found.
func (s *shop) forOrder(h func(http.ResponseWriter, *http.Request, order) error) http.HandlerFunc {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		o, err := s.db.order(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		if buyer := buyerOf(r); merchant(r.Context()) == "" && (buyer == "" || buyer != o.Buyer) {
			return notFound()
		}
		return h(w, r, o)
	})
}
