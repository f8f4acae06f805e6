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

// merchantCookie holds a random ID known only to the merchant's browser.
const merchantCookie = "__Host-merchant"

// sessionLifetime is how long a login lasts.
const sessionLifetime = 8 * time.Hour

// sessionsTable stores the sessions of all servers. A session that ends
// there has ended on every server and for every copy of its cookie. Its ID
// is a hash, which cannot be used to log in.
const sessionsTable = `CREATE TABLE IF NOT EXISTS shop_sessions (
	id text NOT NULL PRIMARY KEY,
	name text NOT NULL,
	ends text NOT NULL
)`

// sessions checks the password and stores who is logged in. Servers with the
// same password accept each other's sessions; a new password invalidates all
// of them, because the hashes change.
type sessions struct {
	db         *database
	key        []byte
	iterations int           // of the password hash
	slot       chan struct{} // admits one password check at a time
	queue      chan struct{} // has a slot for each waiting password check
}

// passwordIterations makes a password check take about 0.2 s.
const passwordIterations = 600_000

// A password check in the queue gets its slot before loginTimeout; one that
// finds the queue full is refused immediately. The queue is shared, so a
// flood of logins still blocks others: all clients have the address of the
// proxy, and the shop cannot tell them apart. The proxy can, and should
// limit the rate per client.
const (
	maxLogins    = 16
	loginTimeout = 5 * time.Second
)

// errLoginBusy reports that the password was not checked.
var errLoginBusy = errors.New("too many password checks")

func newSessions(db *database, password string, iterations int) (*sessions, error) {
	s := &sessions{db: db, iterations: iterations, slot: make(chan struct{}, 1), queue: make(chan struct{}, maxLogins)}
	var err error
	s.key, err = s.derive(password)
	return s, err
}

func (s *sessions) derive(password string) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, []byte("the merchant's pages of the shop"), s.iterations, 32)
}

// checkPassword reports whether a password is right. Checks run one at a
// time. One whose slot is not free before ctx ends returns errLoginBusy.
func (s *sessions) checkPassword(ctx context.Context, password string) (bool, error) {
	select {
	case s.queue <- struct{}{}:
	default:
		return false, errLoginBusy
	}
	defer func() { <-s.queue }()
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return false, errLoginBusy
	}
	defer func() { <-s.slot }()
	key, err := s.derive(password)
	return err == nil && subtle.ConstantTimeCompare(key, s.key) == 1, err
}

// idOf returns the session ID that the database uses for a cookie.
func (s *sessions) idOf(secret string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// create stores a new session and returns its cookie. Expired sessions are
// deleted.
func (s *sessions) create(ctx context.Context, name string) (*http.Cookie, error) {
	if _, err := s.db.change(ctx, `DELETE FROM shop_sessions WHERE ends <= $1`, timestampNow().text()); err != nil {
		return nil, err
	}
	secret, ends := rand.Text(), timestamp{time.Now().Add(sessionLifetime)}
	_, err := s.db.change(ctx, `INSERT INTO shop_sessions (id, name, ends) VALUES ($1, $2, $3)`, s.idOf(secret), name, ends.text())
	return newMerchantCookie(secret, int(sessionLifetime.Seconds())), err
}

func newMerchantCookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: merchantCookie, Value: value, Path: "/", MaxAge: maxAge,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// merchantName returns the name of the merchant who is logged in, "" for
// none.
func (s *sessions) merchantName(r *http.Request) (name string, err error) {
	cookie, err := r.Cookie(merchantCookie)
	if err != nil || !isRandomText(cookie.Value) {
		return "", nil
	}
	err = s.db.QueryRowContext(r.Context(), s.db.text(`SELECT name FROM shop_sessions WHERE id = $1 AND ends > $2`),
		s.idOf(cookie.Value), timestampNow().text()).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}

// delete ends the session of a request, if it has one.
func (s *sessions) delete(r *http.Request) error {
	cookie, err := r.Cookie(merchantCookie)
	if err != nil {
		return nil
	}
	_, err = s.db.change(r.Context(), `DELETE FROM shop_sessions WHERE id = $1`, s.idOf(cookie.Value))
	return err
}

type merchantKey struct{}

// merchant returns the name of the merchant who sent the request, "" for a
// buyer.
func merchant(ctx context.Context) string {
	name, _ := ctx.Value(merchantKey{}).(string)
	return name
}

// requireMerchant admits only a merchant who is logged in. If the database
// is unavailable, the page reports that and does not ask for a password.
func (s *shop) requireMerchant(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := s.sessions.merchantName(r)
		switch {
		case err != nil:
			return err
		case name == "" && r.Method == http.MethodPost:
			return s.loginForm(w, r, http.StatusForbidden, loginPage{Problem: "You are no longer logged in. Your last request was not processed."})
		case name == "":
			http.Redirect(w, r, "/admin/login", http.StatusSeeOther)
			return nil
		}
		s.handle(h).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), merchantKey{}, name)))
		return nil
	}
}

// loginPage is the login form and the problem with the last attempt.
type loginPage struct{ Name, Problem string }

func (s *shop) loginForm(w http.ResponseWriter, r *http.Request, status int, page loginPage) error {
	return s.render(w, r, status, "login", "Merchant's login", page)
}

func (s *shop) showLogin(w http.ResponseWriter, r *http.Request) error {
	return s.loginForm(w, r, http.StatusOK, loginPage{})
}

// login checks the password and takes a name, which is recorded with the
// merchant's decisions.
func (s *shop) login(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	name := singleLine(r.PostForm.Get("name"), 64)
	if name == "" {
		return s.loginForm(w, r, http.StatusForbidden, loginPage{Problem: "Please enter a name of at most 64 characters. It is recorded with your decisions."})
	}
	ctx, cancel := context.WithTimeout(r.Context(), loginTimeout)
	defer cancel()
	right, err := s.sessions.checkPassword(ctx, r.PostForm.Get("password"))
	switch {
	case errors.Is(err, errLoginBusy):
		w.Header().Set("Retry-After", "5")
		return s.loginForm(w, r, http.StatusServiceUnavailable, loginPage{name, "Too many logins at the moment. Please try again."})
	case err != nil:
		return err
	case !right:
		return s.loginForm(w, r, http.StatusForbidden, loginPage{name, "Wrong password."})
	}
	return s.startSession(w, r, name)
}

// startSession creates a session and ends the browser's previous one.
func (s *shop) startSession(w http.ResponseWriter, r *http.Request, name string) error {
	if err := s.sessions.delete(r); err != nil {
		return err
	}
	cookie, err := s.sessions.create(r.Context(), name)
	if err != nil {
		return err
	}
	s.logger.InfoContext(r.Context(), "merchant logged in", "name", name)
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/admin", http.StatusSeeOther)
	return nil
}

// logout keeps the cookie if the session could not be deleted, because the
// session is still valid.
func (s *shop) logout(w http.ResponseWriter, r *http.Request) error {
	if err := s.sessions.delete(r); err != nil {
		return err
	}
	http.SetCookie(w, newMerchantCookie("", -1))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// singleLine returns a text as one printable line, or "" if it has more than
// most characters.
func singleLine(text string, most int) string {
	if len(text) > maxPrintable { // printable would truncate it
		return ""
	}
	text = strings.Join(strings.Fields(printable(text)), " ")
	if utf8.RuneCountInString(text) > most {
		return ""
	}
	return text
}
