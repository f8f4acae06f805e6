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

// copied is somebody who has got hold of a merchant's cookie.
func (v *visitor) copied() *visitor {
	thief := newVisitor(v.t)
	thief.cookies[merchantCookie] = v.cookies[merchantCookie]
	return thief
}

// isIn asks the servers whether a visitor is logged in.
func (v *visitor) isIn(servers ...string) (in []bool) {
	v.t.Helper()
	for _, server := range servers {
		a := v.get(server + "/admin/money")
		if a.status != http.StatusOK {
			require.Equal(v.t, "/admin/login", a.location, a.text)
		}
		in = append(in, a.status == http.StatusOK)
	}
	return in
}

func TestMerchantsPages_needThePassword(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	made, odd := newVisitor(t), newVisitor(t)
	made.cookies[merchantCookie] = strings.Repeat("A", secretLength)
	odd.cookies[merchantCookie] = "' OR 1=1 --"
	for _, v := range []*visitor{newVisitor(t), made, odd} {
		for _, path := range []string{"/admin", "/admin/money", "/admin/metrics", "/admin/withdrawals/live", "/admin/orders/" + strings.Repeat("A", 26)} {
			a := v.get(server.URL + path)
			assert.Equal(t, http.StatusSeeOther, a.status, path)
			assert.Equal(t, "/admin/login", a.location)
		}
		for _, path := range []string{"/admin/withdrawals", "/admin/orders/" + strings.Repeat("A", 26)} {
			a := v.post(server.URL+path, "id", "abc")
			assert.Equal(t, http.StatusForbidden, a.status, path)
			assert.Contains(t, a.words(), "What you have just sent was not recorded.")
			assert.Contains(t, a.text, `action="/admin/login"`)
		}
	}
}

func TestSession_endsEverywhereWithLogout(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, one := st.open()
	_, two := st.open()
	servers := []string{one.URL, two.URL}
	anna, bob := newVisitor(t).asMerchant(one.URL), newVisitor(t).asMerchant(two.URL)
	thief := anna.copied()
	for _, v := range []*visitor{anna, bob, thief} {
		require.Equal(t, []bool{true, true}, v.isIn(servers...))
	}
	a := anna.post(one.URL + "/admin/logout")
	assert.Equal(t, "/", a.location)
	assert.Contains(t, a.header.Get("Set-Cookie"), "Max-Age=0")
	assert.Equal(t, []bool{false, false}, thief.isIn(servers...))
	assert.Equal(t, []bool{true, true}, bob.isIn(servers...), "a session of somebody else")
	assert.Equal(t, "/", anna.post(one.URL+"/admin/logout").location, "nobody is logged in")
}

func TestSession_endsWithTheNextLogin(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	anna := newVisitor(t).asMerchant(server.URL)
	thief := anna.copied()
	anna.asMerchant(server.URL)
	assert.Equal(t, []bool{true}, anna.isIn(server.URL))
	assert.Equal(t, []bool{false}, thief.isIn(server.URL))
}

func TestSession_endsWithItsTimeAndItsPassword(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	st.cfg.password = "a new password"
	_, renewed := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	assert.Equal(t, []bool{true, false}, anna.isIn(server.URL, renewed.URL))

	_, err := s.db.change(t.Context(), `UPDATE shop_sessions SET ends = $1`, stamp{time.Now().Add(-time.Second)}.text())
	require.NoError(t, err)
	assert.Equal(t, []bool{false}, anna.copied().isIn(server.URL), "over")
	bob := newVisitor(t).asMerchant(server.URL)
	var id, ends string
	require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT max(id), max(ends) FROM shop_sessions HAVING count(*) = 1`).Scan(&id, &ends), "those that are over are removed")
	assert.NotContains(t, id, bob.cookies[merchantCookie], "the database can not be used to log in")
	assert.Greater(t, stamp{time.Now().Add(sessionFor + time.Second)}.text(), ends)
	assert.Less(t, stamp{time.Now().Add(sessionFor - time.Minute)}.text(), ends)
}

// Without the database nobody is asked for a password, and no session is lost.
func TestSession_whenTheDatabaseGoesAway(t *testing.T) {
	st := newStage(t)
	server := newPostgres(t)
	st.database = server.database(t)
	_, web := st.open()
	anna := newVisitor(t).asMerchant(web.URL)
	require.Equal(t, []bool{true}, anna.isIn(web.URL))
	server.stop()
	for _, a := range []answer{
		anna.get(web.URL + "/admin"), anna.post(web.URL + "/admin/withdrawals"), anna.post(web.URL + "/admin/logout"),
		anna.post(web.URL+"/admin/login", "name", "Anna", "password", testPassword),
	} {
		assert.Equal(t, http.StatusServiceUnavailable, a.status)
		assert.Equal(t, "5", a.header.Get("Retry-After"))
		assert.Contains(t, a.words(), "That does not work just now")
		assert.NotContains(t, a.text, `name="password"`)
		assert.Empty(t, a.header.Get("Set-Cookie"), "the cookie is kept")
	}
	server.start(t)
	eventually(t, "the database is back", func() bool { return anna.get(web.URL+"/healthz").status == http.StatusOK })
	assert.Equal(t, []bool{true}, anna.isIn(web.URL))
	anna.post(web.URL + "/admin/logout")
	assert.Equal(t, []bool{false}, anna.copied().isIn(web.URL))
}

// A password that was not looked at is not called wrong.
func TestLogin_inAFloodOfGuesses(t *testing.T) {
	t.Parallel()
	s, server := newStage(t).open()
	for range maxGuesses {
		s.sessions.queue <- struct{}{}
	}
	v := newVisitor(t)
	a := v.post(server.URL+"/admin/login", "name", "Anna", "password", testPassword)
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	assert.Equal(t, "5", a.header.Get("Retry-After"))
	assert.Contains(t, a.words(), "Too many people are trying to log in just now. Please try again.")
	assert.NotContains(t, a.words(), "That is not the password")
	assert.Contains(t, a.text, `value="Anna"`)
	assert.Empty(t, a.header.Get("Set-Cookie"))
	<-s.sessions.queue
	v.asMerchant(server.URL)
	assert.Len(t, s.sessions.queue, maxGuesses-1, "a place is given back")
}

func TestGuesses_areMadeOneAtATime(t *testing.T) {
	t.Parallel()
	s, err := newSessions(nil, testPassword, 1)
	require.NoError(t, err)
	s.turn <- struct{}{} // somebody guesses
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.allows(over, testPassword)
	require.ErrorIs(t, err, errNoTurn)
	assert.Empty(t, s.queue)

	type verdict struct {
		right bool
		err   error
	}
	said := make(chan verdict, 2)
	for range 2 {
		go func() {
			right, err := s.allows(t.Context(), testPassword)
			said <- verdict{right, err}
		}()
	}
	eventually(t, "both wait", func() bool { return len(s.queue) == 2 })
	assert.Empty(t, said)
	<-s.turn
	assert.Equal(t, verdict{true, nil}, <-said)
	assert.Equal(t, verdict{true, nil}, <-said)
	right, err := s.allows(t.Context(), "another password")
	assert.NoError(t, err)
	assert.False(t, right)
	assert.Empty(t, s.queue)
}

func TestLine_isOfCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Anna\t\nB ":                         "Anna B",
		strings.Repeat("ü", 64):               strings.Repeat("ü", 64),
		strings.Repeat("ü", 65):               "",
		"\u202e\x00":                          "",
		"a" + strings.Repeat(" ", 64):         "a",
		"a" + strings.Repeat(" ", 2048) + "b": "", // not the half that would be left of it
	} {
		assert.Equal(t, want, line(text, 64), "%q", text)
	}
}
