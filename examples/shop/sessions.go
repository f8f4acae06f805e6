package main

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// merchantCookie holds a random text that only the merchant's browser knows.
const merchantCookie = "__Host-merchant"

// sessionFor is how long a login lasts.
const sessionFor = 8 * time.Hour

// sessionsTable keeps who is logged in, for all servers. What ends there has
// ended everywhere, and for every copy of a cookie. It names a session by a
// hash, with which nobody can be that merchant.
const sessionsTable = `CREATE TABLE IF NOT EXISTS shop_sessions (
	id text NOT NULL PRIMARY KEY,
	name text NOT NULL,
	ends text NOT NULL
)`

// sessions know the password, and with the database who is logged in. Two
// servers with the same password know each other's; a new password ends them
// all, for it makes other hashes.
type sessions struct {
	db     *database
	key    []byte
	rounds int           // how slow a guess is
	turn   chan struct{} // lets one guess at a time through
	queue  chan struct{} // has a place for each guess that waits for its turn
}

// guessRounds make a guess slow on purpose: a fifth of a second or so.
const guessRounds = 600_000

// Whoever finds a place in the queue has a turn before guessFor is over, and
// whoever does not is told at once. The queue is one for all, so a flood of
// guesses still keeps others out: the shop can not tell guessers apart, who
// all have the address of its proxy. The proxy can, and limit each.
const (
	maxGuesses = 16
	guessFor   = 5 * time.Second
)

// errNoTurn is of a password that was not looked at.
var errNoTurn = errors.New("too many guesses at once")

func newSessions(db *database, password string, rounds int) (*sessions, error) {
	s := &sessions{db: db, rounds: rounds, turn: make(chan struct{}, 1), queue: make(chan struct{}, maxGuesses)}
	var err error
	s.key, err = s.derive(password)
	return s, err
}

func (s *sessions) derive(password string) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, []byte("the merchant's pages of the shop"), s.rounds, 32)
}

// allows reports whether a password is right. Guesses wait for each other, so
// that there are few of them; one whose turn does not come before ctx ends is
// errNoTurn, and says nothing of the password.
func (s *sessions) allows(ctx context.Context, password string) (bool, error) {
	select {
	case s.queue <- struct{}{}:
	default:
		return false, errNoTurn
	}
	defer func() { <-s.queue }()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return false, errNoTurn
	}
	defer func() { <-s.turn }()
	key, err := s.derive(password)
	return err == nil && subtle.ConstantTimeCompare(key, s.key) == 1, err
}

// idOf is how the database names the session of a cookie.
func (s *sessions) idOf(secret string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// begin makes a session for somebody who has just shown the password, and
// returns its cookie. Sessions that are over are removed.
func (s *sessions) begin(ctx context.Context, name string) (*http.Cookie, error) {
	if _, err := s.db.change(ctx, `DELETE FROM shop_sessions WHERE ends <= $1`, stampNow().text()); err != nil {
		return nil, err
	}
	secret, ends := rand.Text(), stamp{time.Now().Add(sessionFor)}
	_, err := s.db.change(ctx, `INSERT INTO shop_sessions (id, name, ends) VALUES ($1, $2, $3)`, s.idOf(secret), name, ends.text())
	return merchantsCookie(secret, int(sessionFor.Seconds())), err
}

func merchantsCookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: merchantCookie, Value: value, Path: "/", MaxAge: maxAge,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// who returns the name of who is logged in, "" for nobody.
func (s *sessions) who(r *http.Request) (name string, err error) {
	cookie, err := r.Cookie(merchantCookie)
	if err != nil || !isSecret(cookie.Value) {
		return "", nil
	}
	err = s.db.QueryRowContext(r.Context(), s.db.text(`SELECT name FROM shop_sessions WHERE id = $1 AND ends > $2`),
		s.idOf(cookie.Value), stampNow().text()).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}

// end ends the session of a request, if it has one.
func (s *sessions) end(r *http.Request) error {
	cookie, err := r.Cookie(merchantCookie)
	if err != nil {
		return nil
	}
	_, err = s.db.change(r.Context(), `DELETE FROM shop_sessions WHERE id = $1`, s.idOf(cookie.Value))
	return err
}

type merchantKey struct{}

// merchant returns the name of the merchant whose request this is, "" for a
// buyer's.
func merchant(ctx context.Context) string {
	name, _ := ctx.Value(merchantKey{}).(string)
	return name
}

// asMerchant lets only the merchant through. Without the database nobody knows
// who that is: then the page says so, and asks for no password.
func (s *shop) asMerchant(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := s.sessions.who(r)
		switch {
		case err != nil:
			return err
		case name == "" && r.Method == http.MethodPost:
			return s.loginForm(w, r, http.StatusForbidden, loginPage{Problem: "You are not logged in any more. What you have just sent was not recorded."})
		case name == "":
			http.Redirect(w, r, "/admin/login", http.StatusSeeOther)
			return nil
		}
		s.handle(h).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), merchantKey{}, name)))
		return nil
	}
}

// loginPage is the form, and what was wrong with the last one.
type loginPage struct{ Name, Problem string }

func (s *shop) loginForm(w http.ResponseWriter, r *http.Request, status int, page loginPage) error {
	return s.render(w, r, status, "login", "Merchant's login", page)
}

func (s *shop) showLogin(w http.ResponseWriter, r *http.Request) error {
	return s.loginForm(w, r, http.StatusOK, loginPage{})
}

// login takes a name, which is recorded with what its owner decides, and the
// password.
func (s *shop) login(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	name := line(r.PostForm.Get("name"), 64)
	if name == "" {
		return s.loginForm(w, r, http.StatusForbidden, loginPage{Problem: "Please give a name of at most 64 characters: it is recorded with what you decide."})
	}
	ctx, cancel := context.WithTimeout(r.Context(), guessFor)
	defer cancel()
	right, err := s.sessions.allows(ctx, r.PostForm.Get("password"))
	switch {
	case errors.Is(err, errNoTurn):
		w.Header().Set("Retry-After", "5")
		return s.loginForm(w, r, http.StatusServiceUnavailable, loginPage{name, "Too many people are trying to log in just now. Please try again."})
	case err != nil:
		return err
	case !right:
		return s.loginForm(w, r, http.StatusForbidden, loginPage{name, "That is not the password."})
	}
	return s.enter(w, r, name)
}

// enter begins a session and ends the one that the browser had before.
func (s *shop) enter(w http.ResponseWriter, r *http.Request, name string) error {
	if err := s.sessions.end(r); err != nil {
		return err
	}
	cookie, err := s.sessions.begin(r.Context(), name)
	if err != nil {
		return err
	}
	s.logger.InfoContext(r.Context(), "merchant logged in", "name", name)
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/admin", http.StatusSeeOther)
	return nil
}

// logout keeps the cookie when the session could not be ended: it still is one.
func (s *shop) logout(w http.ResponseWriter, r *http.Request) error {
	if err := s.sessions.end(r); err != nil {
		return err
	}
	http.SetCookie(w, merchantsCookie("", -1))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// line returns a text of one line as it can be stored and shown, or "" when it
// has more characters than most.
func line(text string, most int) string {
	if len(text) > maxPrintable { // it would be cut
		return ""
	}
	text = strings.Join(strings.Fields(printable(text)), " ")
	if utf8.RuneCountInString(text) > most {
		return ""
	}
	return text
}
