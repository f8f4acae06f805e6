package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A mistake is a request that can not be served, and what its page says.
type mistake struct {
	method, path string
	form         url.Values
	header       []string
	status       int
	words        string
}

// mistakes are those that can be made with an order that is open, by somebody
// who is logged in.
func mistakes(path string) map[string]mistake {
	huge := formOf("product", strings.Repeat("x", maxForm))
	return map[string]mistake{
		"an unknown product":           {"POST", "/orders", formOf("product", "yacht"), nil, 422, "The shop does not sell that."},
		"no product":                   {"POST", "/orders", formOf(), nil, 422, "The shop does not sell that."},
		"a huge body":                  {"POST", "/orders", huge, nil, 413, "That is too much"},
		"a huge body for an order":     {"POST", path + "/pay", huge, nil, 413, "That is too much"},
		"a huge login":                 {"POST", "/admin/login", huge, nil, 413, "That is too much"},
		"a broken form":                {"POST", "/orders", formOf("a", "b"), []string{"Content-Type", "multipart/form-data"}, 422, "The shop does not sell that."},
		"a form that is not one":       {"POST", "/orders?a=%zz", formOf("product", "mug"), nil, 400, "That is not a form"},
		"another site's form":          {"POST", "/orders", formOf("product", "mug"), []string{"Sec-Fetch-Site", "cross-site"}, 403, "That came from another site"},
		"another site's origin":        {"POST", path + "/pay", formOf(), []string{"Origin", "https://evil.example"}, 403, "That came from another site"},
		"another site's resolution":    {"POST", "/admin" + path, formOf("found", "none"), []string{"Sec-Fetch-Site", "same-site"}, 403, "That came from another site"},
		"a method that is not there":   {"DELETE", path, nil, nil, 405, "That can not be done here"},
		"GET instead of POST":          {"GET", "/orders", nil, nil, 405, "That can not be done here"},
		"an unknown page":              {"GET", "/nothing", nil, nil, 404, "There is no such page"},
		"a path out of the files":      {"GET", "/static/..%2f..%2fgo.mod", nil, nil, 404, "There is no such page"},
		"a path that climbs":           {"GET", "/static/%2e%2e/%2e%2e/go.mod", nil, nil, 404, "There is no such page"},
		"a folder":                     {"GET", "/static/", nil, nil, 404, "There is no such page"},
		"an order that can not be":     {"GET", "/orders/..%2fadmin", nil, nil, 404, "There is no such page"},
		"an order of nobody":           {"GET", "/orders/" + strings.Repeat("A", 26), nil, nil, 404, "There is no such page"},
		"an order in lower case":       {"GET", strings.ToLower(path), nil, nil, 404, "There is no such page"},
		"a record of nobody":           {"GET", "/admin/orders/" + strings.Repeat("A", 26), nil, nil, 404, "There is no such page"},
		"a record with a quote":        {"GET", "/admin/orders/'%20OR%201=1", nil, nil, 404, "There is no such page"},
		"an unknown state":             {"GET", "/admin?state=lost", nil, nil, 422, "There is no such state."},
		"a resolution without finding": {"POST", "/admin" + path, formOf("attempts", "0"), nil, 422, "Please say whether"},
		"a resolution of what is open": {"POST", "/admin" + path, formOf("attempts", "0", "found", "none"), nil, 409, "The order has moved on"},
		"a withdrawal with a slash":    {"POST", "/admin/withdrawals", formOf("id", "a/b"), nil, 422, "That is not the number of a withdrawal."},
		"a withdrawal without number":  {"POST", "/admin/withdrawals", formOf("id", " \x00 "), nil, 422, "That is not the number of a withdrawal."},
		"an unknown withdrawal":        {"POST", "/admin/withdrawals", formOf("id", "abc"), nil, 422, "The gateway knows no withdrawal of that number."},
		"a login without a name":       {"POST", "/admin/login", formOf("password", testPassword), nil, 403, "Please give a name"},
		"a login with a wrong one":     {"POST", "/admin/login", formOf("name", "Eve", "password", "guess"), nil, 403, "That is not the password."},
	}
}

func TestBadInput_hasAClearPage(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, server := st.open()
	v := newVisitor(t).asMerchant(server.URL)
	for name, test := range mistakes(v.order(server.URL, "mug")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := v.do(test.method, server.URL+test.path, test.form, test.header...)
			require.NoError(t, err)
			assert.Equal(t, test.status, a.status)
			assert.Contains(t, a.words(), test.words)
			assert.Contains(t, a.text, "<html lang=\"en\">", "it is a page of the shop")
			assert.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
			assert.Len(t, a.header.Get("X-Request-Id"), 12)
			assert.NotContains(t, a.text, st.gw.APIKey)
		})
	}
	t.Cleanup(func() { assert.Zero(t, st.sent()) })
}

func TestMethodNotAllowed_saysWhichIs(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	a, err := newVisitor(t).do(http.MethodPut, server.URL+"/orders", nil)
	require.NoError(t, err)
	assert.Equal(t, "POST", a.header.Get("Allow"))
}

func TestOrder_needsACookie(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	a := newVisitor(t).post(server.URL+"/orders", "product", "mug")
	assert.Equal(t, http.StatusBadRequest, a.status)
	assert.Contains(t, a.words(), "This needs a cookie")
	forged := newVisitor(t)
	forged.cookies[buyerCookie] = "' OR 1=1 --"
	assert.Equal(t, http.StatusBadRequest, forged.post(server.URL+"/orders", "product", "mug").status)
}

func TestCookies_areForThisSiteAndNotForScripts(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	first := newVisitor(t).get(server.URL + "/").header.Get("Set-Cookie")
	login := newVisitor(t).post(server.URL+"/admin/login", "name", "Anna", "password", testPassword).header.Get("Set-Cookie")
	for _, cookie := range []string{first, login} {
		assert.Regexp(t, `^__Host-[a-z]+=[^;]+; Path=/; Max-Age=\d+; HttpOnly; Secure; SameSite=(Lax|Strict)$`, cookie)
	}
}

func TestPanic_hasAPage(t *testing.T) {
	t.Parallel()
	s, server := newStage(t).open()
	s.pages["products"] = nil // showing it panics
	a := newVisitor(t).get(server.URL + "/")
	assert.Equal(t, http.StatusInternalServerError, a.status)
	assert.Contains(t, a.words(), "Something is broken here")
}

func TestStatic_isServedWithItsType(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	for name, kind := range map[string]string{
		"shop.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "mark.svg": "image/svg+xml",
	} {
		a := newVisitor(t).get(server.URL + "/static/" + name)
		assert.Equal(t, http.StatusOK, a.status, name)
		assert.Equal(t, kind, a.header.Get("Content-Type"))
	}
}
