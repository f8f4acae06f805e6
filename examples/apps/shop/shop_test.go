package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

const testPassword = "a password for tests"

// Headings of the page of an order.
const (
	choosing, checking, paying = "How would you like to pay?", "We are checking your order", "Pay your order"
	saved                      = "Your order is saved"
	notNow                     = "Payments are not available at the moment: BTC on Bitcoin was not ordered" // on that page
)

// A harness is a stand-in gateway and a file, for one shop after another.
type harness struct {
	t                *testing.T
	gw               *gatewaytest.Server
	file             string
	margin, maxStale time.Duration
	patience         time.Duration
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	gw.SetResult(gatewaytest.OpCreateInvoice, `{"orderId":"{{orderId}}","address":"invented-address","amount":"{{amount}}","expiresAt":"2999-12-31T23:59:59Z"}`)
	return &harness{t, gw, filepath.Join(t.TempDir(), "shop.db"), time.Microsecond, time.Minute, time.Minute}
}

// open starts a shop over the file, and returns its URL.
func (h *harness) open() (server string, s *shop) {
	h.t.Helper()
	db, err := openDatabase(h.file, io.Discard)
	require.NoError(h.t, err)
	cfg := config{password: testPassword, margin: h.margin, ratesTTL: time.Microsecond, maxStale: h.maxStale, patience: h.patience}
	s, err = newShop(h.t.Context(), cfg, connectTo(h.gw), db, slog.New(slog.DiscardHandler))
	require.NoError(h.t, err)
	web := httptest.NewServer(s.handler())
	h.t.Cleanup(func() {
		web.Close()
		assert.NoError(h.t, s.client.Shutdown(context.Background()))
		assert.NoError(h.t, db.Close())
	})
	return web.URL, s
}

// A page is what the shop has responded, after redirects.
type page struct {
	status     int
	wait       string // Retry-After
	text, path string
}

// heading returns the first heading of a page.
func (p page) heading() string { return p.find(`<h1[^>]*>([^<]*)</h1>`) }

// find returns the part of a page that the group of an expression matches; "" for none.
func (p page) find(expression string) string {
	if found := regexp.MustCompile(expression).FindStringSubmatch(p.text); found != nil {
		return found[1]
	}
	return ""
}

// has fails the test unless the page has a text.
func (p page) has(t *testing.T, text string) {
	t.Helper()
	assert.True(t, strings.Contains(p.text, text), "%q is not on the page %q", text, p.heading())
}

func (h *harness) do(method, address string, form url.Values, change func(*http.Request)) page {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, address, strings.NewReader(form.Encode()))
	require.NoError(h.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	change(req)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(h.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(h.t, err)
	require.False(h.t, strings.Contains(string(text), h.gw.APIKey), "the key is on a page")
	return page{resp.StatusCode, resp.Header.Get("Retry-After"), string(text), resp.Request.URL.Path}
}

func nothing(*http.Request) {}

func (h *harness) get(address string) page { return h.do("GET", address, nil, nothing) }

func asMerchant(r *http.Request) { r.SetBasicAuth("anna", testPassword) }

// order opens the order of a product and returns its address.
func (h *harness) order(server, product string) string {
	h.t.Helper()
	id := h.get(server).find(`name="order" value="([A-Z2-7]{26})"`)
	p := h.do("POST", server+"/orders", url.Values{"order": {id}, "product": {product}}, nothing)
	require.Equal(h.t, choosing, p.heading())
	return server + p.path
}

// pay presses the button that orders, with a coin on its first network.
func (h *harness) pay(order, coin string) page {
	h.t.Helper()
	form := url.Values{"email": {"ida@shop.example"}}
	for _, p := range h.gw.Catalog() {
		if p.Coin.Symbol == coin && !form.Has("pair") {
			form.Set("pair", p.ID)
		}
	}
	return h.do("POST", order+"/pay", form, nothing)
}

// loses makes the gateway create the next invoice and lose its response.
func (h *harness) loses() {
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
}

// sent returns how many requests for an invoice the gateway has received.
func (h *harness) sent() (n int) {
	for _, r := range h.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			n++
		}
	}
	return n
}

// An order is sent once, whatever the gateway answers and however often the button is pressed, unless it was refused.
func TestPurchase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  gatewaytest.Fault
		page   string // the heading after the button was pressed
		says   string // a text of that page
		status string // of that page, with Retry-After
		again  string // the heading after it was pressed again
		sent   int    // after that
	}{
		"a lost response":      {gatewaytest.FaultCommitThenDrop(), checking, "Please do not pay anything yet", "202", checking, 1},
		"the page of a CDN":    {gatewaytest.FaultPage(502), checking, "Please do not pay anything yet", "202", checking, 1},
		"a refusal":            {gatewaytest.FaultRefuse(400, "not today"), choosing, "did not accept BTC on Bitcoin", "422", paying, 2},
		"a refusal of the key": {gatewaytest.FaultRefuse(403, "no"), choosing, notNow, "503 5", paying, 2},
		"a busy gateway":       {gatewaytest.FaultRefuse(429, "no"), choosing, notNow, "503 5", paying, 2},
		"another base URL":     {gatewaytest.FaultRedirect(308, "https://other.example/gateway/api/invoice/create"), choosing, notNow, "503 5", paying, 2},
		"an invoice":           {gatewaytest.Fault{}, paying, "invented-address", "200", paying, 1},
	} {
		h := newHarness(t)
		server, _ := h.open()
		order := h.order(server, "mug")
		h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, test.fault)
		p := h.pay(order, "BTC")
		assert.Equal(t, test.page, p.heading(), name)
		p.has(t, test.says)
		assert.Equal(t, test.status, strings.TrimSpace(fmt.Sprint(p.status, " ", p.wait)), name)
		assert.Equal(t, test.page, h.get(order).heading(), "%s: after a reload", name)
		server, _ = h.open()
		assert.Equal(t, test.page, h.get(server+p.path).heading(), "%s: after a restart", name)
		assert.Equal(t, test.again, h.pay(server+p.path, "LTC").heading(), name)
		assert.Equal(t, test.sent, h.sent(), name)
		assert.LessOrEqual(t, len(h.gw.Invoices()), 1, name)
	}
}

// A page does not wait for a gateway that takes long. It asks again, and the order is sent once.
func TestPurchase_slow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.patience = 100 * time.Millisecond
	server, _ := h.open()
	order := h.order(server, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultStall())
	for range 2 {
		p := h.pay(order, "BTC")
		assert.Equal(t, "Your order is being sent", p.heading())
		assert.Equal(t, http.StatusAccepted, p.status)
	}
	h.gw.Close() // the response is lost
	assert.Equal(t, 1, h.sent())
}

// The invoice has the rate of the click, and keeps it.
func TestPurchase_rateMoves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, _ := h.open()
	h.gw.SetRate("LTC", "90", "80")
	order := h.order(server, "mug") // $18.00
	h.get(order).has(t, ">0.2 LTC<")
	h.gw.SetRate("LTC", "72", "64")
	h.pay(order, "LTC").has(t, `<span id="pay-amount">0.25</span>`)
	h.gw.SetRate("LTC", "60", "50")
	h.pay(order, "LTC").has(t, `<span id="pay-amount">0.25</span>`)
	assert.Equal(t, 1, h.sent())
}

// An order that the shop cannot accept sends nothing.
func TestPurchase_notSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(h *harness, s *shop)
		coin   string
		status int
		says   string
	}{
		"no coin is chosen":                    {nil, "", 422, "Please choose one of the coins below."},
		"the coin is off":                      {nil, "XMR", 422, "Please choose one of the coins below."},
		"the price is too small for the coin":  {func(h *harness, _ *shop) { h.gw.SetRate("DOGE", "9", "9") }, "DOGE", 422, "Too little for this coin."},
		"the rates are older than is accepted": {func(h *harness, _ *shop) { h.maxStale = time.Microsecond }, "BTC", 503, "No order is lost."},
		"the gateway cannot be reached":        {func(h *harness, _ *shop) { h.gw.Close() }, "BTC", 503, "No order is lost."},
		"the order is older than a day":        {func(_ *harness, s *shop) { s.age(t) }, "BTC", 200, "It was not paid within a day."},
	} {
		h := newHarness(t)
		server, s := h.open()
		order := h.order(server, "mug")
		if test.change != nil {
			test.change(h, s)
		}
		server, _ = h.open()
		p := h.pay(server+strings.TrimPrefix(order, order[:strings.Index(order, "/orders")]), test.coin)
		assert.Equal(t, test.status, p.status, name)
		p.has(t, test.says)
		assert.Zero(t, h.sent(), name)
	}
}

// An order that was not sent can be sent later.
func TestPurchase_unsent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, s := h.open()
	order := h.order(server, "mug")
	s.begins(t, path.Base(order))(gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})
	p := h.get(order)
	assert.Equal(t, "503 5 "+choosing, fmt.Sprint(p.status, " ", p.wait, " ", p.heading()))
	p.has(t, notNow)
	assert.Equal(t, paying, h.pay(order, "BTC").heading())
}

// begins begins an order, as another process does, and returns a function that ends it.
func (s *shop) begins(t *testing.T, id string) func(gateway.OrderRecord) {
	o := gateway.Order{Request: gateway.InvoiceRequest{OrderID: id, CoinSymbol: "BTC", NetworkName: "Bitcoin"}}
	lease, err := s.guard.Begin(t.Context(), o)
	require.NoError(t, err)
	o.Attempt = lease.Attempt
	return func(r gateway.OrderRecord) {
		r.Request = o.Request
		_, err := s.guard.End(t.Context(), o, r)
		require.NoError(t, err)
	}
}

// age makes every order a day older.
func (s *shop) age(t *testing.T) {
	_, err := s.orders.db.ExecContext(t.Context(), `UPDATE shop_orders SET made_at = made_at - 86401`)
	require.NoError(t, err)
}

// A form that comes from another site, or does not name what the shop sells, changes nothing.
func TestShop_refuses(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, s := h.open()
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sells := url.Values{"order": {id}, "product": {"mug"}}
	otherSite := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	otherPassword := func(r *http.Request) { r.SetBasicAuth("anna", testPassword+"!") }
	for name, test := range map[string]struct {
		method, path string
		form         url.Values
		change       func(*http.Request)
		status       int
	}{
		"another product":                            {"POST", "/orders", url.Values{"order": {id}, "product": {"yacht"}}, nothing, 422},
		"an identifier that can be guessed":          {"POST", "/orders", url.Values{"order": {"1"}, "product": {"mug"}}, nothing, 422},
		"a form of another site":                     {"POST", "/orders", sells, otherSite, 403},
		"an order that is not known":                 {"GET", "/orders/" + id, nil, nothing, 404},
		"a page that does not exist":                 {"GET", "/nothing", nil, nothing, 404},
		"the merchant's pages without a password":    {"GET", "/admin", nil, nothing, 401},
		"the merchant's pages with another password": {"GET", "/admin/unknown", nil, otherPassword, 401},
		"a finding without a password":               {"POST", "/admin/unknown", url.Values{"found": {"absent"}}, nothing, 401},
		"a payment without a password":               {"POST", "/admin/paid", url.Values{"order": {id}, "paid": {"true"}}, nothing, 401},
		"the merchant's pages with the password":     {"GET", "/admin", nil, asMerchant, 200},
	} {
		assert.Equal(t, test.status, h.do(test.method, server+test.path, test.form, test.change).status, name)
	}
	_, err := s.orders.order(t.Context(), id)
	assert.ErrorIs(t, err, sql.ErrNoRows)
}

func TestRun_needsPassword(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop() // a shop that starts stops at once
	t.Setenv("SHOP_ADDR", "127.0.0.1:0")
	t.Setenv("SHOP_DB", filepath.Join(t.TempDir(), "shop.db"))
	t.Setenv("SHOP_PASSWORD", "short")
	assert.ErrorContains(t, run(ctx, io.Discard, io.Discard), "SHOP_PASSWORD")
}

// A file that is not there yet is reported, with its whole path.
func TestOpenDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a % b?#.db")
	for _, want := range []string{"new, empty order file: " + file + "\n", "orders: " + file + "\n"} {
		var stdout strings.Builder
		db, err := openDatabase(file, &stdout)
		require.NoError(t, err)
		assert.Equal(t, want, stdout.String())
		_, err = newStore(t.Context(), db)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	assert.FileExists(t, file)
}

// The demo can lose a response, and its invoices expire a day after they were made, by its clock.
func TestDemo(t *testing.T) {
	for _, name := range []string{"GATEWAY_BASE_URL", "GATEWAY_API_KEY", "GATEWAY_API_KEY_FILE"} {
		t.Setenv(name, "")
	}
	_, demo := openGateway()
	defer demo.Close()
	h := &harness{t, demo, filepath.Join(t.TempDir(), "demo.db"), time.Microsecond, time.Minute, time.Minute}
	server, s := h.open()
	s.demo = demo
	lost := h.order(server, "mug")
	h.get(lost).has(t, `name="lose"`)
	form := url.Values{"email": {"ida@shop.example"}, "pair": {demo.Catalog()[0].ID}, "lose": {"1"}}
	assert.Equal(t, checking, h.do("POST", lost+"/pay", form, nothing).heading())

	demo.Advance(48 * time.Hour)
	order := h.order(server, "mug")
	assert.Equal(t, paying, h.pay(order, "BTC").heading())
	status, err := s.guard.Order(t.Context(), "", path.Base(order))
	require.NoError(t, err)
	details, err := readDetails(status.Record.Invoice)
	require.NoError(t, err)
	assert.Greater(t, time.Until(details.ExpiresAt), 71*time.Hour)
	s.demo = nil
	form.Set("lose", "1")
	assert.Equal(t, paying, h.do("POST", h.order(server, "mug")+"/pay", form, nothing).heading(), "no real gateway loses it")
}
