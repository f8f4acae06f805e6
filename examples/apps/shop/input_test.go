package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A badRequest is a request that must be refused, and the text of its page.
type badRequest struct {
	method, path string
	form         url.Values
	header       []string
	status       int
	visibleText  string
}

// badRequests are the cases for an open order and a merchant who is logged in.
func badRequests(at string) map[string]badRequest {
	huge := formOf("order", strings.Repeat("x", maxForm))
	id := strings.Repeat("A", 26)
	return map[string]badRequest{
		"unknown product":             {"POST", "/orders", formOf("order", id+"-yacht"), nil, 422, "The shop does not sell this."},
		"no order":                    {"POST", "/orders", formOf(), nil, 422, "The shop does not sell this."},
		"order in lower case":         {"POST", "/orders", formOf("order", strings.ToLower(id)+"-mug"), nil, 422, "The shop does not sell this."},
		"body too large":              {"POST", "/orders", huge, nil, 413, "Too large"},
		"login too large":             {"POST", "/admin/login", huge, nil, 413, "Too large"},
		"malformed form":              {"POST", "/orders?a=%zz", formOf(), nil, 422, "The form cannot be read."},
		"cross-site form":             {"POST", "/orders", formOf(), []string{"Sec-Fetch-Site", "cross-site"}, 403, "A request from another site"},
		"cross-site origin":           {"POST", at + "/pay", formOf(), []string{"Origin", "https://evil.example"}, 403, "A request from another site"},
		"cross-site resolution":       {"POST", "/admin" + at + "/resolve", formOf("found", "none"), []string{"Sec-Fetch-Site", "same-site"}, 403, "A request from another site"},
		"unsupported method":          {"DELETE", at, nil, nil, 405, "Not possible"},
		"GET instead of POST":         {"GET", "/orders", nil, nil, 405, "Not possible"},
		"unknown page":                {"GET", "/nothing", nil, nil, 404, "Page not found"},
		"unknown order":               {"GET", "/orders/" + id + "-mug", nil, nil, 404, "Page not found"},
		"unknown record":              {"GET", "/admin/orders/" + id + "-mug", nil, nil, 404, "Page not found"},
		"record ID with a quote":      {"GET", "/admin/orders/'%20OR%201=1", nil, nil, 404, "Page not found"},
		"unknown state":               {"GET", "/admin?state=lost", nil, nil, 422, "There is no such state"},
		"malformed date":              {"GET", "/admin?from=yesterday", nil, nil, 422, "A date must be written"},
		"resolution without a result": {"POST", "/admin" + at + "/resolve", formOf("token", ""), nil, 422, "Please select whether"},
		"resolution of an open order": {"POST", "/admin" + at + "/resolve", formOf("token", "", "found", "none"), nil, 409, "The order has changed"},
		"resolution with a long note": {"POST", "/admin" + at + "/resolve", formOf("token", "", "found", "none", "note", strings.Repeat("€", 401)), nil, 422, "The note is too long."},
		"page that is not one":        {"GET", "/admin/pending?after=x&since=y", nil, nil, 422, "This is not the address of a page."},
		"export that is no upload":    {"POST", "/admin/reconcile", formOf("file", "x"), nil, 422, "The form cannot be read."},
		"unknown mark":                {"POST", "/admin" + at + "/mark", formOf("from", "open", "to", "sending"), nil, 409, "The order has changed"},
		"withdrawal ID with a slash":  {"POST", "/admin/money", formOf("id", "a/b"), nil, 422, "This is not the number of a withdrawal."},
		"unknown withdrawal":          {"POST", "/admin/money", formOf("id", "abc"), nil, 422, "The gateway has no withdrawal with this number."},
		"unknown merchant":            {"POST", "/admin/login", formOf("name", "Eve", "password", testPassword), nil, 403, "The name or the password is wrong."},
		"wrong password":              {"POST", "/admin/login", formOf("name", "Anna", "password", "guess"), nil, 403, "The name or the password is wrong."},
		"demo switch in a real shop":  {"POST", at + "/lose", formOf(), nil, 404, "Page not found"},
	}
}

func TestBadRequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	v := newVisitor(t).logIn(server.URL)
	for name, test := range badRequests(v.order(server.URL, "mug")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := v.do(test.method, server.URL+test.path, test.form, test.header...)
			require.NoError(t, err)
			assert.Equal(t, test.status, res.status)
			assert.Contains(t, res.visibleText(), test.visibleText)
			assert.Contains(t, res.text, "<html lang=\"en\">", "a page of the shop")
			assert.Contains(t, res.header.Get("Content-Security-Policy"), "default-src 'none'")
			assert.NotContains(t, res.text, h.gw.APIKey)
		})
	}
	t.Cleanup(func() { assert.Zero(t, h.sent()) })
}

func TestCookies(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	v := newVisitor(t)
	assert.Equal(t, http.StatusBadRequest, v.post(server.URL+"/orders", "order", strings.Repeat("A", 26)+"-mug").status, "no cookie")
	for _, header := range []http.Header{v.get(server.URL + "/").header, v.post(server.URL+"/admin/login", "name", "Anna", "password", testPassword).header} {
		require.NotEmpty(t, header["Set-Cookie"])
		for _, cookie := range header["Set-Cookie"] {
			assert.Regexp(t, `^__Host-[a-z]+=[^;]+; Path=/; (Expires=[^;]+; )?Max-Age=\d+; HttpOnly; Secure; SameSite=(Lax|Strict)$`, cookie)
		}
	}
}

// A panic of a handler is an error of that request only, with a page that has a number
// for questions.
func TestPanic(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	v, db := newVisitor(t), s.db
	at := v.order(server.URL, "mug")
	s.db = nil // asking it panics
	res := v.get(server.URL + at)
	assert.Equal(t, http.StatusInternalServerError, res.status)
	assert.Regexp(t, `Something went wrong .* for questions: [A-Z2-7]{26} `, res.visibleText())
	s.db = db
	assert.Equal(t, http.StatusOK, v.get(server.URL+at).status)
}

// A response that fails after its beginning is cut off, instead of being taken for a
// complete one.
func TestPage_cutOff(t *testing.T) {
	t.Parallel()
	s, _ := newHarness(t).open()
	handler := s.page(func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.Write([]byte("order,made\n"))
		return errors.New("no database")
	})
	w := httptest.NewRecorder()
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { handler(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)) })
	assert.Equal(t, "order,made\n", w.Body.String())
}

// loggedIn reports for each server whether the visitor is logged in.
func (v *visitor) loggedIn(servers ...*httptest.Server) (in []bool) {
	v.t.Helper()
	for _, server := range servers {
		in = append(in, v.get(server.URL+"/admin/money").status == http.StatusOK)
	}
	return in
}

func TestMerchantPages_requireLogin(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	forged := newVisitor(t)
	forged.cookies["__Host-merchant"] = strings.Repeat("A", 43)
	record := "/admin/orders/" + strings.Repeat("A", 26) + "-mug"
	for _, v := range []*visitor{newVisitor(t), forged} {
		for _, path := range []string{"/admin", "/admin/pending", "/admin/money", "/admin/coins", "/admin/orders.csv", record} {
			assert.Equal(t, "/admin/login", v.get(server.URL+path).location, path)
		}
		for _, path := range []string{"/admin/money", "/admin/reconcile", record + "/resolve", record + "/mark"} {
			res := v.post(server.URL+path, "id", "abc")
			assert.Equal(t, http.StatusForbidden, res.status, path)
			assert.Contains(t, res.visibleText(), "Nothing was changed.")
		}
	}
}

// A session is valid on all servers until it is logged out, replaced or its password
// changes, for every copy of its cookie.
func TestSession(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, one := h.open()
		_, two := h.open()
		h.cfg.merchants = merchants{"Anna": "another hash"}
		_, newPassword := h.open()
		anna := newVisitor(t).logIn(one.URL)
		copied := newVisitor(t)
		copied.cookies["__Host-merchant"] = anna.cookies["__Host-merchant"]
		assert.Equal(t, []bool{true, true, false}, copied.loggedIn(one, two, newPassword))
		var id string
		require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT id FROM shop_sessions`).Scan(&id))
		assert.NotContains(t, id, anna.cookies["__Host-merchant"], "the database does not have the cookie")

		anna.logIn(one.URL)
		assert.Equal(t, []bool{false}, copied.loggedIn(one), "replaced")
		copied.cookies["__Host-merchant"] = anna.cookies["__Host-merchant"]
		assert.Equal(t, "/", anna.post(two.URL+"/admin/logout").location)
		assert.Equal(t, []bool{false, false}, copied.loggedIn(one, two), "logged out")
	})
}

// A database that may lose an order is refused.
func TestDatabase_refused(t *testing.T) {
	t.Chdir(t.TempDir())
	postgres := newDatabase(t)
	for address, problem := range map[string]string{
		"file:":                                 "DATABASE_URL: must be file: and the name of a file",
		"file::memory:":                         `PRAGMA journal_mode is "memory", not "wal"`,
		"file:shop.db?_pragma=synchronous(off)": "DATABASE_URL: must be file: and the name of a file",
		"file:shop.db#?_sync=0":                 "DATABASE_URL: must be file: and the name of a file",
		"mysql://shop":                          "DATABASE_URL: must be a postgres:// or file: address",
		"postgres://u:SECRET@PASSWORD@127.0.0.1:1/db":                 "DATABASE_URL: has more than one @",
		postgres + "&synchronous_commit=off":                          `SHOW synchronous_commit is "off", not "on"`,
		postgres + "&default_transaction_isolation=repeatable%20read": `SHOW default_transaction_isolation is "repeatable read"`,
	} {
		_, err := openDatabase(t.Context(), address)
		require.ErrorContains(t, err, problem)
		assert.NotContains(t, err.Error(), "SECRET")
		assert.NoFileExists(t, "shop.db")
	}
}

// A writerFunc calls a function on every write and discards the data.
type writerFunc func()

func (do writerFunc) Write(p []byte) (int, error) { do(); return len(p), nil }

// runShop starts a shop for a gateway, nil for the demo, and stops it once it is ready.
func runShop(t *testing.T, gw *gatewaytest.Server, database string) error {
	t.Helper()
	base, key := "", ""
	if gw != nil {
		base, key = gw.URL, gw.APIKey
	}
	for name, value := range map[string]string{
		"GATEWAY_BASE_URL": base, "GATEWAY_API_KEY": key, "DATABASE_URL": database,
		"SHOP_ADDR": "127.0.0.1:0", "SHOP_METRICS_ADDR": "127.0.0.1:0", "SHOP_MERCHANTS": testMerchants(),
	} {
		t.Setenv(name, value)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return run(ctx, writerFunc(stop), io.Discard)
}

// Orders of the demo and of a gateway never share a database, and a key without a
// gateway does not start the demo.
func TestRun_settings(t *testing.T) {
	t.Chdir(t.TempDir())
	gw := newHarness(t).gw
	require.NoError(t, runShop(t, nil, ""))
	require.NoError(t, runShop(t, gw, ""), "separate default databases")
	assert.ErrorContains(t, runShop(t, gw, "file:demo.db"), "has the orders of the demo, and this shop uses the gateway at 127.0.0.1")
	gw.APIKey = ""
	assert.ErrorContains(t, runShop(t, gw, ""), "GATEWAY_BASE_URL is set, but GATEWAY_API_KEY is not")
	gw.URL, gw.APIKey = "", "key"
	assert.ErrorContains(t, runShop(t, gw, ""), "GATEWAY_BASE_URL is not set, but a key or GATEWAY_PROFILE is")
	for name, value := range map[string]string{"SHOP_MERCHANTS": "Anna:secret", "SHOP_INVOICE_TIMEOUT": "1h", "SHOP_INVOICE_LINK": "url"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := configFromEnv(true)
			assert.ErrorContains(t, err, name)
		})
	}
	assert.FileExists(t, filepath.Join(".", "demo.db"))
}
