package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
	"github.com/cryptogw/gateway/sqlguard"
)

// A shop holds what the handlers share. It does not change once it is created.
type shop struct {
	config
	logger  *slog.Logger
	demo    *gatewaytest.Server // nil for a real gateway
	client  *gateway.Client
	guard   *sqlguard.Guard
	orders  store
	catalog *pricing.Cache[*pricing.Catalog]
	rates   *pricing.Cache[*gateway.ExchangeRates]
	pages   *template.Template
}

type config struct {
	password string        // of the merchant's pages
	margin   time.Duration // after an invoice was sent; before it has passed, nobody can find that there is none
	ratesTTL time.Duration // how long exchange rates are kept
	maxStale time.Duration // how old they may be to fix an amount
	patience time.Duration // how long a page waits for its invoice
}

// retry bounds the calls to the gateway.
var retry = gateway.RetryPolicy{
	MaxAttempts: 3, MaxDelay: 2 * time.Second, MaxRetryAfter: 2 * time.Second,
	AttemptTimeout: 5 * time.Second, InvoiceTimeout: 15 * time.Second,
}

// longestRequest is longer than any request of the shop may take.
const longestRequest = 2 * time.Minute

func newShop(ctx context.Context, cfg config, connect connector, db *sql.DB, logger *slog.Logger) (*shop, error) {
	s := &shop{config: cfg, logger: logger}
	s.pages = template.New("").Funcs(template.FuncMap{"price": formatPrice, "product": productName})
	template.Must(s.pages.ParseFS(web, "web/*.html", "web/pages/*.html"))
	var err error
	if s.guard, err = sqlguard.New(db); err != nil {
		return nil, err
	}
	if err := s.guard.Migrate(ctx); err != nil {
		return nil, err
	}
	if s.orders, err = newStore(ctx, db); err != nil {
		return nil, err
	}
	if s.client, err = connect(gateway.WithOrderGuard(s.guard), gateway.WithRetry(retry), gateway.WithLogger(logger), gateway.WithInvoiceDecoder(readDetails)); err != nil {
		return nil, err
	}
	if s.catalog, err = pricing.NewCatalogCache(s.client, pricing.CacheOptions{TTL: time.Minute}); err != nil {
		return nil, err
	}
	s.rates, err = pricing.NewRatesCache(s.client, pricing.CacheOptions{TTL: cfg.ratesTTL, MaxStale: cfg.maxStale})
	return s, err
}

//go:embed web
var web embed.FS

// headers let a page load from its own host only, run no inline script, and be stored nowhere.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
}

func (s *shop) handler() http.Handler {
	static, _ := fs.Sub(web, "web/static") // fails for an invalid name only
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.StripPrefix("/static", http.FileServerFS(static)))
	mux.Handle("GET /{$}", s.page(s.showProducts))
	mux.Handle("POST /orders", s.page(s.buy))
	mux.Handle("GET /orders/{id}", s.forOrder(s.showOrder))
	mux.Handle("POST /orders/{id}/pay", s.forOrder(s.pay))
	mux.Handle("GET /orders/{id}/qr.png", s.forOrder(s.showQR))
	mux.Handle("GET /admin", s.forMerchant(s.showOrders))
	mux.Handle("POST /admin/paid", s.forMerchant(s.setPaid))
	mux.Handle("GET /admin/unknown", s.forMerchant(s.showUnknown))
	mux.Handle("POST /admin/unknown", s.forMerchant(s.resolve))
	mux.Handle("/", s.page(func(http.ResponseWriter, *http.Request) error { return notFound() }))
	return http.NewCrossOriginProtection().Handler(mux)
}

// A handler is an HTTP handler that may fail. It fails before it writes anything.
type handler func(http.ResponseWriter, *http.Request) error

// page returns an HTTP handler that shows an error as a page.
func (s *shop) page(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if err := h(w, r); err != nil {
			s.showError(w, r, err)
		}
	})
}

// forOrder returns a page for the order of the path. Whoever knows the identifier, a long random text, sees
// the order: the buyer, on every device that has the link, and the merchant.
func (s *shop) forOrder(h func(http.ResponseWriter, *http.Request, order) error) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		o, err := s.orders.order(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		return h(w, r, o)
	})
}

// forMerchant returns a page that asks for the password. The name is the merchant's to choose.
func (s *shop) forMerchant(h handler) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		_, password, _ := r.BasicAuth()
		given, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(s.password))
		if subtle.ConstantTimeCompare(given[:], want[:]) == 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="the merchant's pages", charset="UTF-8"`)
			return &problem{http.StatusUnauthorized, "For the merchant only", "This page needs your name and the password of the shop."}
		}
		return h(w, r)
	})
}

// A view is the data of the layout.
type view struct {
	Title          string
	Demo, Merchant bool
	Page           any // the data of the page itself
}

// render writes a page. It executes the whole template first, so that an error leaves no partial page.
func (s *shop) render(w http.ResponseWriter, r *http.Request, status int, name, title string, page any) error {
	var text bytes.Buffer
	data := view{title, s.demo != nil, strings.HasPrefix(r.URL.Path, "/admin"), page}
	if err := s.pages.ExecuteTemplate(&text, name+".html", data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = text.WriteTo(w) // fails if the reader has gone
	return nil
}

// redirect makes the browser get another page.
func redirect(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther) // #nosec G710 -- a path of this shop
	return nil
}

// A problem is an error with its own page.
type problem struct {
	status      int
	title, text string
}

func (p *problem) Error() string { return p.title + ": " + p.text }

func notFound() error {
	return &problem{http.StatusNotFound, "Page not found", "The address may be wrong."}
}

func badInput(text string) error {
	return &problem{http.StatusUnprocessableEntity, "This cannot be accepted", text}
}

// showError shows a problem. Any other error comes from the database or the gateway; only the log has its text.
func (s *shop) showError(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	switch {
	case ok:
	case errors.Is(err, sql.ErrNoRows):
		p, _ = errors.AsType[*problem](notFound())
	default:
		s.logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		p = &problem{http.StatusServiceUnavailable, "Not available at the moment", "No order is lost. Please try again in a moment."}
		w.Header().Set("Retry-After", "5")
	}
	if err := s.render(w, r, p.status, "problem", p.title, p.text); err != nil {
		http.Error(w, p.title, p.status)
	}
}

func formatPrice(price decimal.Decimal, currency string) string {
	if sign := map[string]string{"usd": "$", "eur": "€"}[currency]; sign != "" {
		return sign + price.StringFixed(2)
	}
	return strings.TrimSpace(price.StringFixed(2) + " " + strings.ToUpper(currency))
}
