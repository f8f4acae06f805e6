package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
)

const testPassword = "a password for tests"

// testMerchants is a setting with a hash that is fast to check, made once.
var testMerchants = sync.OnceValue(func() string {
	hash, err := bcrypt.GenerateFromPassword([]byte(testPassword), bcrypt.MinCost)
	if err != nil {
		panic(err)
	}
	return "Anna:" + string(hash)
})

// A harness is a stand-in gateway and a database for any number of shops.
type harness struct {
	t        *testing.T
	gw       *gatewaytest.Server
	database string
	cfg      config
	options  []gateway.Option // additional client options
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	gw.SetShape(gatewaytest.InvoicePayable)
	users, err := parseMerchants(testMerchants())
	require.NoError(t, err)
	return &harness{t: t, gw: gw, database: "file:" + filepath.Join(t.TempDir(), "shop.db"), cfg: config{
		merchants: users, pageTimeout: 10 * time.Second, invoiceTimeout: time.Second, fields: demoFields(),
		ratesTTL: 50 * time.Millisecond, ratesStaleAfter: time.Minute, transit: time.Nanosecond,
	}}
}

// open starts one more shop over the same database, like another process.
func (h *harness) open() (*shop, *httptest.Server) {
	h.t.Helper()
	db, err := openDatabase(h.t.Context(), h.database)
	require.NoError(h.t, err)
	connect := func(opts ...gateway.Option) (*gateway.Client, error) {
		return gateway.New(h.gw.URL, h.gw.APIKey, slices.Concat(opts, h.options)...)
	}
	s, err := newShop(h.t.Context(), h.cfg, connect, db, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(h.t, err)
	server := httptest.NewServer(s.handler())
	h.t.Cleanup(func() {
		server.Close()
		s.sending.Wait()
		assert.NoError(h.t, db.Close())
	})
	return s, server
}

// A visitor is an HTTP client with cookies that does not follow redirects.
type visitor struct {
	t       *testing.T
	mu      sync.Mutex
	cookies map[string]string
}

func newVisitor(t *testing.T) *visitor { return &visitor{t: t, cookies: map[string]string{}} }

// SetCookies implements [http.CookieJar]. The visitor is on this machine,
// where browsers send secure cookies without TLS, too.
func (v *visitor) SetCookies(_ *url.URL, cookies []*http.Cookie) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range cookies {
		v.cookies[c.Name] = c.Value
	}
}

// Cookies implements [http.CookieJar].
func (v *visitor) Cookies(*url.URL) (all []*http.Cookie) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, value := range v.cookies {
		all = append(all, &http.Cookie{Name: name, Value: value})
	}
	return all
}

// A response is what a visitor received.
type response struct {
	status   int
	text     string
	location string
	header   http.Header
}

func (v *visitor) do(method, address string, form url.Values, header ...string) (response, error) {
	req, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return response{}, err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return v.roundTrip(req)
}

func (v *visitor) roundTrip(req *http.Request) (response, error) {
	client := http.Client{Jar: v, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, string(text), resp.Header.Get("Location"), resp.Header}, err
}

func (v *visitor) get(address string) response {
	v.t.Helper()
	res, err := v.do(http.MethodGet, address, nil)
	require.NoError(v.t, err)
	return res
}

func (v *visitor) post(address string, form ...string) response {
	v.t.Helper()
	res, err := v.do(http.MethodPost, address, formOf(form...))
	require.NoError(v.t, err)
	return res
}

func formOf(pairs ...string) url.Values {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return form
}

// buyForm returns the identifier in the Buy form of a product.
func (v *visitor) buyForm(server, product string) string {
	v.t.Helper()
	id := regexp.MustCompile(`[A-Z2-7]{26}-` + product).FindString(v.get(server + "/").text)
	require.NotEmpty(v.t, id)
	return id
}

// order posts the Buy form and returns the path of the order.
func (v *visitor) order(server, product string) string {
	v.t.Helper()
	id := v.buyForm(server, product)
	res := v.post(server+"/orders", "order", id)
	require.Equal(v.t, http.StatusSeeOther, res.status, res.text)
	require.Equal(v.t, "/orders/"+id, res.location)
	return res.location
}

// pay posts the payment form of an order for a pair.
func (v *visitor) pay(server, path string, pair string) response {
	v.t.Helper()
	price := hiddenPriceField.FindStringSubmatch(v.get(server + path).text)
	if price == nil {
		return v.post(server+path+"/pay", "pair", pair)
	}
	return v.post(server+path+"/pay", "pair", pair, "price", html.UnescapeString(price[1]))
}

// pair returns the ID of a coin on a network.
func (h *harness) pair(coin, network string) string {
	h.t.Helper()
	for _, p := range h.gw.Catalog() {
		if p.Coin.Symbol == coin && p.Network.Name == network {
			return p.ID
		}
	}
	require.Fail(h.t, "pair not found")
	return ""
}

// logIn logs in as the merchant.
func (v *visitor) logIn(server string) *visitor {
	v.t.Helper()
	res := v.post(server+"/admin/login", "name", "Anna", "password", testPassword)
	require.Equal(v.t, http.StatusSeeOther, res.status, res.text)
	return v
}

// hiddenPriceField matches the price in the form of the offers page.
var hiddenPriceField = regexp.MustCompile(`name="price" value="([^"]*)"`)

var tags = regexp.MustCompile(`<[^>]*>`)

// visibleText returns the text of a page without its tags.
func (res response) visibleText() string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(res.text, " ")), " ")
}

// sent returns how many requests for an invoice the gateway received.
func (h *harness) sent() (n int) {
	for _, r := range h.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			n++
		}
	}
	return n
}

// lastRequestID returns what the last request for an invoice had as X-Request-Id.
func (h *harness) lastRequestID() (id string) {
	for _, r := range h.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			id = r.Header.Get("X-Request-Id")
		}
	}
	require.NotEmpty(h.t, id)
	return id
}

// onBothDatabases runs a test over SQLite and over PostgreSQL.
func onBothDatabases(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, newHarness(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t)
		h.database = newDatabase(t)
		test(t, h)
	})
}

// newPostgres starts a PostgreSQL server.
func newPostgres(t *testing.T) *postgrestest.Server {
	t.Helper()
	server, err := startPostgres()
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	return server
}

func startPostgres() (*postgrestest.Server, error) {
	return postgrestest.Start("fsync=off", "shared_buffers=32MB", "max_connections=300")
}

// sharedPostgres is the server of all tests that do not stop theirs. It ends with this process.
var sharedPostgres = sync.OnceValues(startPostgres)

// newDatabase creates a database in PostgreSQL and returns its URL.
func newDatabase(t *testing.T) string {
	t.Helper()
	server, err := sharedPostgres()
	require.NoError(t, err)
	db, err := sql.Open("pgx", server.DSN("postgres"))
	require.NoError(t, err)
	defer db.Close()
	name := "shop_" + strings.ToLower(rand.Text())
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return server.DSN(name)
}

// readOrder returns the stored order of a path.
func (h *harness) readOrder(s *shop, at string) order {
	h.t.Helper()
	o, err := s.db.order(h.t.Context(), path.Base(at))
	require.NoError(h.t, err)
	return o
}

// updateOrders changes all stored orders.
func (h *harness) updateOrders(s *shop, set string, args ...any) {
	h.t.Helper()
	_, err := s.db.change(h.t.Context(), `UPDATE shop_orders SET `+set, args...)
	require.NoError(h.t, err)
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			require.Fail(t, "timeout: "+what)
		}
	}
}
