package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withCopiedCookie returns a visitor with a copy of the merchant's cookie.
func (v *visitor) withCopiedCookie() *visitor {
	attacker := newVisitor(v.t)
	attacker.cookies[merchantCookie] = v.cookies[merchantCookie]
	return attacker
}

// loggedIn reports for each server whether the visitor is logged in.
func (v *visitor) loggedIn(servers ...string) (in []bool) {
	v.t.Helper()
	for _, server := range servers {
		res := v.get(server + "/admin/money")
		if res.status != http.StatusOK {
			require.Equal(v.t, "/admin/login", res.location, res.text)
		}
		in = append(in, res.status == http.StatusOK)
	}
	return in
}

func TestMerchantPages_requireLogin(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	forged, malformed := newVisitor(t), newVisitor(t)
	forged.cookies[merchantCookie] = strings.Repeat("A", randomTextLength)
	malformed.cookies[merchantCookie] = "' OR 1=1 --"
	for _, v := range []*visitor{newVisitor(t), forged, malformed} {
		for _, path := range []string{"/admin", "/admin/money", "/admin/metrics", "/admin/withdrawals/live", "/admin/orders/" + strings.Repeat("A", 26)} {
			res := v.get(server.URL + path)
			assert.Equal(t, http.StatusSeeOther, res.status, path)
			assert.Equal(t, "/admin/login", res.location)
		}
		for _, path := range []string{"/admin/withdrawals", "/admin/orders/" + strings.Repeat("A", 26)} {
			res := v.post(server.URL+path, "id", "abc")
			assert.Equal(t, http.StatusForbidden, res.status, path)
			assert.Contains(t, res.visibleText(), "Your last request was not processed.")
			assert.Contains(t, res.text, `action="/admin/login"`)
		}
	}
}

func TestSession_logout(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, one := h.open()
	_, two := h.open()
	servers := []string{one.URL, two.URL}
	anna, bob := newVisitor(t).logIn(one.URL), newVisitor(t).logIn(two.URL)
	attacker := anna.withCopiedCookie()
	for _, v := range []*visitor{anna, bob, attacker} {
		require.Equal(t, []bool{true, true}, v.loggedIn(servers...))
	}
	res := anna.post(one.URL + "/admin/logout")
	assert.Equal(t, "/", res.location)
	assert.Contains(t, res.header.Get("Set-Cookie"), "Max-Age=0")
	assert.Equal(t, []bool{false, false}, attacker.loggedIn(servers...))
	assert.Equal(t, []bool{true, true}, bob.loggedIn(servers...), "another session")
	assert.Equal(t, "/", anna.post(one.URL+"/admin/logout").location, "not logged in")
}

func TestSession_nextLogin(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	anna := newVisitor(t).logIn(server.URL)
	attacker := anna.withCopiedCookie()
	anna.logIn(server.URL)
	assert.Equal(t, []bool{true}, anna.loggedIn(server.URL))
	assert.Equal(t, []bool{false}, attacker.loggedIn(server.URL))
}

func TestSession_expiryAndNewPassword(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	h.cfg.password = "a new password"
	_, newPassword := h.open()
	anna := newVisitor(t).logIn(server.URL)
	assert.Equal(t, []bool{true, false}, anna.loggedIn(server.URL, newPassword.URL))

	_, err := s.db.change(t.Context(), `UPDATE shop_sessions SET ends = $1`, timestamp{time.Now().Add(-time.Second)}.text())
	require.NoError(t, err)
	assert.Equal(t, []bool{false}, anna.withCopiedCookie().loggedIn(server.URL), "expired")
	bob := newVisitor(t).logIn(server.URL)
	var id, ends string
	require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT max(id), max(ends) FROM shop_sessions HAVING count(*) = 1`).Scan(&id, &ends), "expired sessions are deleted")
	assert.NotContains(t, id, bob.cookies[merchantCookie], "the ID in the database is not the cookie")
	assert.Greater(t, timestamp{time.Now().Add(sessionLifetime + time.Second)}.text(), ends)
	assert.Less(t, timestamp{time.Now().Add(sessionLifetime - time.Minute)}.text(), ends)
}

// While the database is unavailable, no page asks for a password, and no
// session is lost.
func TestSession_databaseOutage(t *testing.T) {
	h := newHarness(t)
	server := newPostgres(t)
	h.database = server.database(t)
	_, web := h.open()
	anna := newVisitor(t).logIn(web.URL)
	require.Equal(t, []bool{true}, anna.loggedIn(web.URL))
	server.stop()
	for _, res := range []response{
		anna.get(web.URL + "/admin"), anna.post(web.URL + "/admin/withdrawals"), anna.post(web.URL + "/admin/logout"),
		anna.post(web.URL+"/admin/login", "name", "Anna", "password", testPassword),
	} {
		assert.Equal(t, http.StatusServiceUnavailable, res.status)
		assert.Equal(t, "5", res.header.Get("Retry-After"))
		assert.Contains(t, res.visibleText(), "Temporarily unavailable")
		assert.NotContains(t, res.text, `name="password"`)
		assert.Empty(t, res.header.Get("Set-Cookie"), "the cookie stays")
	}
	server.start(t)
	eventually(t, "the database is back", func() bool { return anna.get(web.URL+"/healthz").status == http.StatusOK })
	assert.Equal(t, []bool{true}, anna.loggedIn(web.URL))
	anna.post(web.URL + "/admin/logout")
	assert.Equal(t, []bool{false}, anna.withCopiedCookie().loggedIn(web.URL))
}

// A login whose password was not checked does not report a wrong password.
func TestLogin_fullQueue(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	for range maxLogins {
		s.sessions.queue <- struct{}{}
	}
	v := newVisitor(t)
	res := v.post(server.URL+"/admin/login", "name", "Anna", "password", testPassword)
	assert.Equal(t, http.StatusServiceUnavailable, res.status)
	assert.Equal(t, "5", res.header.Get("Retry-After"))
	assert.Contains(t, res.visibleText(), "Too many logins at the moment. Please try again.")
	assert.NotContains(t, res.visibleText(), "Wrong password")
	assert.Contains(t, res.text, `value="Anna"`)
	assert.Empty(t, res.header.Get("Set-Cookie"))
	<-s.sessions.queue
	v.logIn(server.URL)
	assert.Len(t, s.sessions.queue, maxLogins-1, "the slot is released")
}

func TestCheckPassword_oneAtATime(t *testing.T) {
	t.Parallel()
	s, err := newSessions(nil, testPassword, 1)
	require.NoError(t, err)
	s.slot <- struct{}{} // a check is running
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.checkPassword(canceled, testPassword)
	require.ErrorIs(t, err, errLoginBusy)
	assert.Empty(t, s.queue)

	type result struct {
		right bool
		err   error
	}
	results := make(chan result, 2)
	for range 2 {
		go func() {
			right, err := s.checkPassword(t.Context(), testPassword)
			results <- result{right, err}
		}()
	}
	eventually(t, "both wait", func() bool { return len(s.queue) == 2 })
	assert.Empty(t, results)
	<-s.slot
	assert.Equal(t, result{true, nil}, <-results)
	assert.Equal(t, result{true, nil}, <-results)
	right, err := s.checkPassword(t.Context(), "another password")
	assert.NoError(t, err)
	assert.False(t, right)
	assert.Empty(t, s.queue)
}

func TestSingleLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Anna\t\nB ":                         "Anna B",
		strings.Repeat("ü", 64):               strings.Repeat("ü", 64),
		strings.Repeat("ü", 65):               "",
		"\u202e\x00":                          "",
		"a" + strings.Repeat(" ", 64):         "a",
		"a" + strings.Repeat(" ", 2048) + "b": "", // not the part that truncation would leave
	} {
		assert.Equal(t, want, singleLine(text, 64), "%q", text)
	}
}
