package main

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(start()) // this is one of the shops of the crowd
	}
	os.Exit(m.Run())
}

const testPassword = "a password for tests"

// A stage is a stand-in gateway and a database, for any number of shops.
type stage struct {
	t        *testing.T
	gw       *gatewaytest.Server
	database string
	cfg      config
	options  []gateway.Option // of the client, after those of the shop
}

func newStage(t *testing.T) *stage {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	return &stage{t: t, gw: gw, database: "file:" + filepath.Join(t.TempDir(), "shop.db"), cfg: config{
		password: testPassword, page: 10 * time.Second, rounds: 1, patience: time.Second,
		ratesTTL: 50 * time.Millisecond, ratesStale: time.Minute, tick: 50 * time.Millisecond,
	}}
}

// open opens one more shop over the same database, as another process would.
func (st *stage) open() (*shop, *httptest.Server) {
	st.t.Helper()
	db, err := openDatabase(st.t.Context(), st.database)
	require.NoError(st.t, err)
	connect := func(opts ...gateway.Option) (*gateway.Client, error) {
		return gateway.New(st.gw.URL, st.gw.APIKey, slices.Concat(opts, st.options)...)
	}
	s, err := newShop(st.t.Context(), st.cfg, connect, db, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(st.t, err)
	server := httptest.NewServer(s.handler())
	st.t.Cleanup(func() {
		s.closeStreams()
		server.Close()
		assert.NoError(st.t, db.Close())
	})
	return s, server
}

// A visitor is a browser: it keeps cookies and follows no redirect.
type visitor struct {
	t       *testing.T
	mu      sync.Mutex
	cookies map[string]string
}

func newVisitor(t *testing.T) *visitor { return &visitor{t: t, cookies: map[string]string{}} }

// SetCookies implements [http.CookieJar]. The visitor is on this machine,
// where browsers send secure cookies without encryption too.
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

// An answer is what a visitor got.
type answer struct {
	status   int
	text     string
	location string
	header   http.Header
}

func (v *visitor) do(method, address string, form url.Values, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Jar: v, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(text), resp.Header.Get("Location"), resp.Header}, err
}

func (v *visitor) get(address string) answer {
	v.t.Helper()
	a, err := v.do(http.MethodGet, address, nil)
	require.NoError(v.t, err)
	return a
}

func (v *visitor) post(address string, form ...string) answer {
	v.t.Helper()
	a, err := v.do(http.MethodPost, address, formOf(form...))
	require.NoError(v.t, err)
	return a
}

func formOf(pairs ...string) url.Values {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return form
}

// order presses Buy and returns the path of the order.
func (v *visitor) order(server, product string) string {
	v.t.Helper()
	require.Equal(v.t, http.StatusOK, v.get(server+"/").status)
	a := v.post(server+"/orders", "product", product)
	require.Equal(v.t, http.StatusSeeOther, a.status, a.text)
	require.Regexp(v.t, `^/orders/[A-Z2-7]{26}$`, a.location)
	return a.location
}

// pay presses the button of an order, for a coin and a network.
func (v *visitor) pay(server, path string, pair string) answer {
	v.t.Helper()
	price := hiddenPrice.FindStringSubmatch(v.get(server + path).text)
	if price == nil {
		return v.post(server+path+"/pay", "pair", pair)
	}
	return v.post(server+path+"/pay", "pair", pair, "price", html.UnescapeString(price[1]))
}

// pair returns the identifier of a coin on a network.
func (st *stage) pair(coin, network string) string {
	st.t.Helper()
	for _, p := range st.gw.Catalog() {
		if p.Coin.Symbol == coin && p.Network.Name == network {
			return p.ID
		}
	}
	require.Fail(st.t, "no such pair")
	return ""
}

// asMerchant logs in.
func (v *visitor) asMerchant(server string) *visitor {
	v.t.Helper()
	a := v.post(server+"/admin/login", "name", "Anna", "password", testPassword)
	require.Equal(v.t, http.StatusSeeOther, a.status, a.text)
	return v
}

// hiddenPrice is the price that a page of offers says it was of.
var hiddenPrice = regexp.MustCompile(`name="price" value="([^"]*)"`)

var tags = regexp.MustCompile(`<[^>]*>`)

// words are what a page says, without its tags.
func (a answer) words() string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(a.text, " ")), " ")
}

// eventually asks until a condition holds.
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
			require.Fail(t, "it never came: "+what)
		}
	}
}
