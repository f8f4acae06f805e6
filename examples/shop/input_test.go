package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

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

// badRequests are the cases for an open order and a merchant who is logged
// in.
func badRequests(path string) map[string]badRequest {
	huge := formOf("product", strings.Repeat("x", maxForm))
	return map[string]badRequest{
		"unknown product":             {"POST", "/orders", formOf("product", "yacht"), nil, 422, "The shop does not sell this product."},
		"no product":                  {"POST", "/orders", formOf(), nil, 422, "The shop does not sell this product."},
		"body too large":              {"POST", "/orders", huge, nil, 413, "Request too large"},
		"body too large for an order": {"POST", path + "/pay", huge, nil, 413, "Request too large"},
		"login too large":             {"POST", "/admin/login", huge, nil, 413, "Request too large"},
		"wrong content type":          {"POST", "/orders", formOf("a", "b"), []string{"Content-Type", "multipart/form-data"}, 422, "The shop does not sell this product."},
		"malformed form":              {"POST", "/orders?a=%zz", formOf("product", "mug"), nil, 400, "Invalid form"},
		"cross-site form":             {"POST", "/orders", formOf("product", "mug"), []string{"Sec-Fetch-Site", "cross-site"}, 403, "Request from another site"},
		"cross-site origin":           {"POST", path + "/pay", formOf(), []string{"Origin", "https://evil.example"}, 403, "Request from another site"},
		"cross-site resolution":       {"POST", "/admin" + path, formOf("found", "none"), []string{"Sec-Fetch-Site", "same-site"}, 403, "Request from another site"},
		"unsupported method":          {"DELETE", path, nil, nil, 405, "Method not allowed"},
		"GET instead of POST":         {"GET", "/orders", nil, nil, 405, "Method not allowed"},
		"unknown page":                {"GET", "/nothing", nil, nil, 404, "Page not found"},
		"escaped path traversal":      {"GET", "/static/..%2f..%2fgo.mod", nil, nil, 404, "Page not found"},
		"path traversal":              {"GET", "/static/%2e%2e/%2e%2e/go.mod", nil, nil, 404, "Page not found"},
		"directory":                   {"GET", "/static/", nil, nil, 404, "Page not found"},
		"invalid order ID":            {"GET", "/orders/..%2fadmin", nil, nil, 404, "Page not found"},
		"unknown order":               {"GET", "/orders/" + strings.Repeat("A", 26), nil, nil, 404, "Page not found"},
		"order ID in lower case":      {"GET", strings.ToLower(path), nil, nil, 404, "Page not found"},
		"unknown record":              {"GET", "/admin/orders/" + strings.Repeat("A", 26), nil, nil, 404, "Page not found"},
		"record ID with a quote":      {"GET", "/admin/orders/'%20OR%201=1", nil, nil, 404, "Page not found"},
		"unknown state":               {"GET", "/admin?state=lost", nil, nil, 422, "Unknown order state."},
		"resolution without a result": {"POST", "/admin" + path, formOf("attempts", "0"), nil, 422, "Please select whether"},
		"resolution of an open order": {"POST", "/admin" + path, formOf("attempts", "0", "found", "none"), nil, 409, "The order has changed"},
		"withdrawal ID with a slash":  {"POST", "/admin/withdrawals", formOf("id", "a/b"), nil, 422, "This is not a withdrawal request ID."},
		"missing withdrawal ID":       {"POST", "/admin/withdrawals", formOf("id", " \x00 "), nil, 422, "This is not a withdrawal request ID."},
		"unknown withdrawal":          {"POST", "/admin/withdrawals", formOf("id", "abc"), nil, 422, "The gateway has no withdrawal with this ID."},
		"login without a name":        {"POST", "/admin/login", formOf("password", testPassword), nil, 403, "Please enter a name"},
		"wrong password":              {"POST", "/admin/login", formOf("name", "Eve", "password", "guess"), nil, 403, "Wrong password."},
	}
}

func TestBadRequest_errorPage(t *testing.T) {
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
			assert.Len(t, res.header.Get("X-Request-Id"), 12)
			assert.NotContains(t, res.text, h.gw.APIKey)
		})
	}
	t.Cleanup(func() { assert.Zero(t, h.sent()) })
}

func TestMethodNotAllowed_allowHeader(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	res, err := newVisitor(t).do(http.MethodPut, server.URL+"/orders", nil)
	require.NoError(t, err)
	assert.Equal(t, "POST", res.header.Get("Allow"))
}

func TestOrder_missingCookie(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	res := newVisitor(t).post(server.URL+"/orders", "product", "mug")
	assert.Equal(t, http.StatusBadRequest, res.status)
	assert.Contains(t, res.visibleText(), "A cookie is required")
	forged := newVisitor(t)
	forged.cookies[buyerCookie] = "' OR 1=1 --"
	assert.Equal(t, http.StatusBadRequest, forged.post(server.URL+"/orders", "product", "mug").status)
}

func TestCookies_attributes(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	first := newVisitor(t).get(server.URL + "/").header.Get("Set-Cookie")
	login := newVisitor(t).post(server.URL+"/admin/login", "name", "Anna", "password", testPassword).header.Get("Set-Cookie")
	for _, cookie := range []string{first, login} {
		assert.Regexp(t, `^__Host-[a-z]+=[^;]+; Path=/; Max-Age=\d+; HttpOnly; Secure; SameSite=(Lax|Strict)$`, cookie)
	}
}

func TestPanic_errorPage(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	s.pages["products"] = nil // rendering it panics
	res := newVisitor(t).get(server.URL + "/")
	assert.Equal(t, http.StatusInternalServerError, res.status)
	assert.Contains(t, res.visibleText(), "Internal error")
}

func TestStatic_contentType(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	for name, kind := range map[string]string{
		"shop.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "mark.svg": "image/svg+xml",
	} {
		res := newVisitor(t).get(server.URL + "/static/" + name)
		assert.Equal(t, http.StatusOK, res.status, name)
		assert.Equal(t, kind, res.header.Get("Content-Type"))
	}
}
