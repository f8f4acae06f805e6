package main

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
)

const testPassword = "a password for tests"

// A harness is a stand-in gateway and a file, for one shop after another.
type harness struct {
	t      *testing.T
	gw     *gatewaytest.Server
	file   string
	margin time.Duration
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	gw.SetResult(gatewaytest.OpCreateInvoice, `{"orderId":"{{orderId}}","address":"invented-address","amount":"{{amount}}","expiresAt":"2999-12-31T23:59:59Z"}`)
	return &harness{t: t, gw: gw, file: filepath.Join(t.TempDir(), "shop.db"), margin: time.Nanosecond}
}

// open starts a shop over the file, and returns its URL.
func (h *harness) open() (server string, s *shop) {
	h.t.Helper()
	db, err := openDatabase(h.file, io.Discard)
	require.NoError(h.t, err)
	cfg := config{password: testPassword, margin: h.margin, ratesTTL: time.Nanosecond}
	s, err = newShop(h.t.Context(), cfg, connectTo(h.gw), db, slog.New(slog.DiscardHandler))
	require.NoError(h.t, err)
	web := httptest.NewServer(s.handler())
	h.t.Cleanup(func() {
		web.Close()
		assert.NoError(h.t, db.Close())
	})
	return web.URL, s
}

// A page is what the shop has responded, after redirects.
type page struct {
	status     int
	text, path string
}

// heading returns the first heading of a page.
func (p page) heading() string {
	found := regexp.MustCompile(`<h1[^>]*>([^<]*)</h1>`).FindStringSubmatch(p.text)
	if found == nil {
		return ""
	}
	return found[1]
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
	return page{resp.StatusCode, string(text), resp.Request.URL.Path}
}

func nothing(*http.Request) {}

func asMerchant(r *http.Request) { r.SetBasicAuth("anna", testPassword) }

// order opens the order of a product and returns its address.
func (h *harness) order(server, product string) string {
	h.t.Helper()
	id := regexp.MustCompile(`name="order" value="([A-Z2-7]{26})"`).FindStringSubmatch(h.do("GET", server, nil, nothing).text)
	require.NotNil(h.t, id)
	p := h.do("POST", server+"/orders", url.Values{"order": {id[1]}, "product": {product}}, nothing)
	require.Equal(h.t, "How would you like to pay?", p.heading())
	return server + p.path
}

// pay presses the button that orders.
func (h *harness) pay(order, coin string) page {
	h.t.Helper()
	return h.do("POST", order+"/pay", url.Values{"pair": {h.pair(coin)}, "email": {"ida@shop.example"}}, nothing)
}

// pair returns the identifier of a coin on its first network.
func (h *harness) pair(coin string) string {
	for _, p := range h.gw.Catalog() {
		if p.Coin.Symbol == coin {
			return p.ID
		}
	}
	return ""
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

func TestPurchase(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault []gatewaytest.Fault
		page  string // the heading after the button was pressed
		says  string // a text of that page
		again string // the heading after it was pressed again
		sent  int    // after that
	}{
		{
			"a lost response is unknown and never sent again",
			[]gatewaytest.Fault{gatewaytest.FaultCommitThenDrop()},
			"We are checking your order", "Please do not pay anything yet", "We are checking your order", 1,
		},
		{
			"the page of a CDN is unknown and never sent again",
			[]gatewaytest.Fault{gatewaytest.FaultPage(502)},
			"We are checking your order", "Please do not pay anything yet", "We are checking your order", 1,
		},
		{
			"a refused order can be sent again",
			[]gatewaytest.Fault{gatewaytest.FaultRefuse(400, "not today")},
			"How would you like to pay?", "The payment service refused your last choice", "Pay your order", 2,
		},
		{
			"an order is sent once however often the button is pressed", nil,
			"Pay your order", "invented-address", "Pay your order", 1,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			server, _ := h.open()
			order := h.order(server, "mug")
			for _, fault := range test.fault {
				h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault)
			}
			p := h.pay(order, "BTC")
			assert.Equal(t, test.page, p.heading())
			p.has(t, test.says)
			assert.Equal(t, test.page, h.do("GET", order, nil, nothing).heading(), "after a reload")
			server, _ = h.open()
			assert.Equal(t, test.page, h.do("GET", server+p.path, nil, nothing).heading(), "after a restart")
			assert.Equal(t, test.again, h.pay(server+p.path, "LTC").heading())
			assert.Equal(t, test.sent, h.sent())
			assert.LessOrEqual(t, len(h.gw.Invoices()), 1)
		})
	}
}

// Two tabs that order at the same time get one invoice.
func TestPurchase_twoTabs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, _ := h.open()
	order := h.order(server, "mug")
	var tabs sync.WaitGroup
	for _, coin := range []string{"BTC", "LTC", "BTC", "DOGE"} {
		tabs.Go(func() { h.pay(order, coin) })
	}
	tabs.Wait()
	assert.Equal(t, "Pay your order", h.do("GET", order, nil, nothing).heading())
	assert.Equal(t, 1, h.sent())
}

// The invoice has the rate of the click, and keeps it.
func TestPurchase_rateMoves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, _ := h.open()
	h.gw.SetRate("LTC", "90", "80")
	order := h.order(server, "mug") // $18.00
	h.do("GET", order, nil, nothing).has(t, ">0.2<")
	h.gw.SetRate("LTC", "72", "64")
	h.pay(order, "LTC").has(t, `<span id="pay-amount">0.25</span>`)
	h.gw.SetRate("LTC", "60", "50")
	h.pay(order, "LTC").has(t, `<span id="pay-amount">0.25</span>`)
	assert.Equal(t, 1, h.sent())
}

// A buyer who closes the page does not cut off the invoice, which would be unknown.
func TestPurchase_buyerLeaves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, s := h.open()
	order := h.order(server, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(time.Millisecond)) // for each byte
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		form := url.Values{"pair": {h.pair("LTC")}, "email": {"ida@shop.example"}}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, order+"/pay", strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			_, err = http.DefaultClient.Do(req)
		}
		left <- err
	}()
	for h.sent() == 0 {
		runtime.Gosched()
	}
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	for state := gateway.OrderInFlight; state != gateway.OrderCreated; {
		status, err := s.guard.Order(t.Context(), "", path.Base(order))
		require.NoError(t, err)
		require.NotEqual(t, gateway.OrderUnknown, status.State)
		state = status.State
	}
	assert.Equal(t, "Pay your order", h.do("GET", order, nil, nothing).heading())
}

// What the shop cannot accept sends nothing.
func TestPurchase_notSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(h *harness, s *shop)
		coin   string
		status int
		says   string
	}{
		{"no coin is chosen", nil, "", 422, "Please choose one of the coins below."},
		{"the coin is off", nil, "XMR", 422, "Please choose one of the coins below."},
		{"the price is too small for the coin", func(h *harness, _ *shop) { h.gw.SetRate("DOGE", "9", "9") }, "DOGE", 422, "Too little for this coin."},
		{"there are no exchange rates", func(h *harness, s *shop) {
			h.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.FaultPage(502))
			s.rates, _ = pricing.NewRatesCache(s.client, pricing.CacheOptions{})
		}, "BTC", 503, "No order is lost."},
		{"the gateway cannot be reached", func(h *harness, _ *shop) { h.gw.Close() }, "BTC", 200, "Your last choice did not reach the payment service."},
		{"the order is older than a day", func(h *harness, s *shop) {
			_, err := s.orders.db.ExecContext(h.t.Context(), `UPDATE shop_orders SET made_at = made_at - 86401`)
			require.NoError(h.t, err)
		}, "BTC", 200, "It was not paid within a day."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			server, s := h.open()
			order := h.order(server, "mug")
			if test.change != nil {
				test.change(h, s)
			}
			p := h.pay(order, test.coin)
			assert.Equal(t, test.status, p.status)
			p.has(t, test.says)
			assert.Zero(t, h.sent())
		})
	}
}

// A form that comes from another site, or does not name what the shop sells, changes nothing.
func TestShop_refuses(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, s := h.open()
	order := h.order(server, "mug")
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	tests := []struct {
		name, method, path string
		form               url.Values
		change             func(*http.Request)
		status             int
	}{
		{"another product", "POST", "/orders", url.Values{"order": {id}, "product": {"yacht"}}, nothing, 422},
		{"an identifier that can be guessed", "POST", "/orders", url.Values{"order": {"1"}, "product": {"mug"}}, nothing, 422},
		{
			"a form of another site", "POST", "/orders",
			url.Values{"order": {id}, "product": {"mug"}},
			func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403,
		},
		{"a form without end", "POST", "/orders", url.Values{"order": {strings.Repeat("A", maxForm)}}, nothing, 422},
		{"an order that is not known", "GET", "/orders/" + id, nil, nothing, 404},
		{"a page that does not exist", "GET", "/nothing", nil, nothing, 404},
		{"the merchant's pages without a password", "GET", "/admin", nil, nothing, 401},
		{"the merchant's pages with another password", "GET", "/admin/unknown", nil, func(r *http.Request) { r.SetBasicAuth("anna", testPassword+"!") }, 401},
		{"a finding without a password", "POST", "/admin/unknown", url.Values{"found": {"absent"}}, nothing, 401},
		{"a payment without a password", "POST", "/admin/paid", url.Values{"order": {order}, "paid": {"true"}}, nothing, 401},
		{"the merchant's pages with the password", "GET", "/admin", nil, asMerchant, 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.status, h.do(test.method, server+test.path, test.form, test.change).status)
		})
	}
	_, err := s.orders.order(t.Context(), id)
	assert.ErrorIs(t, err, sql.ErrNoRows)
}

func TestRun_needsPassword(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop() // a shop that starts stops at once
	t.Setenv("SHOP_ADDR", "127.0.0.1:0")
	t.Setenv("SHOP_DB", filepath.Join(t.TempDir(), "shop.db"))
	for _, password := range []string{"", "short"} {
		t.Setenv("SHOP_PASSWORD", password)
		assert.ErrorContains(t, run(ctx, io.Discard, io.Discard), "SHOP_PASSWORD")
	}
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
