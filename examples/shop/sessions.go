package main

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// merchantCookie says who is logged in, until when, with a proof that only
// this password could have made. Two servers with the same password know each
// other's; a new password ends them all.
const merchantCookie = "__Host-merchant"

// sessionFor is how long a login lasts.
const sessionFor = 8 * time.Hour

// sessions know the password.
type sessions struct {
	key    []byte
	rounds int           // how slow a guess is
	guess  chan struct{} // lets one guess at a time through
}

// A session is what a cookie says.
type session struct {
	Name string    `json:"name"`
	Ends time.Time `json:"ends"`
}

// guessRounds make a guess slow on purpose: a fifth of a second or so.
const guessRounds = 600_000

func newSessions(password string, rounds int) (*sessions, error) {
	s := &sessions{rounds: rounds, guess: make(chan struct{}, 1)}
	var err error
	s.key, err = s.derive(password)
	return s, err
}

func (s *sessions) derive(password string) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, []byte("the merchant's pages of the shop"), s.rounds, 32)
}

// allows reports whether a password is right. Guesses wait for each other, so
// that there are few of them, until ctx ends.
func (s *sessions) allows(ctx context.Context, password string) bool {
	select {
	case s.guess <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s.guess }()
	key, err := s.derive(password)
	return err == nil && subtle.ConstantTimeCompare(key, s.key) == 1
}

func (s *sessions) sign(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// cookie is that of somebody who has just shown the password.
func (s *sessions) cookie(name string) (*http.Cookie, error) {
	text, err := json.Marshal(session{name, time.Now().Add(sessionFor)})
	said := base64.RawURLEncoding.EncodeToString(text)
	return merchantsCookie(said+"."+s.sign(said), int(sessionFor.Seconds())), err
}

func merchantsCookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: merchantCookie, Value: value, Path: "/", MaxAge: maxAge,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// who returns the name of who is logged in.
func (s *sessions) who(r *http.Request) (name string, ok bool) {
	cookie, err := r.Cookie(merchantCookie)
	if err != nil {
		return "", false
	}
	said, proof, _ := strings.Cut(cookie.Value, ".")
	if !hmac.Equal([]byte(proof), []byte(s.sign(said))) {
		return "", false
	}
	var in session
	text, err := base64.RawURLEncoding.DecodeString(said)
	if err != nil || json.Unmarshal(text, &in) != nil || time.Now().After(in.Ends) {
		return "", false
	}
	return in.Name, true
}

type merchantKey struct{}

// merchant returns the name of the merchant whose request this is, "" for a
// buyer's.
func merchant(ctx context.Context) string {
	name, _ := ctx.Value(merchantKey{}).(string)
	return name
}

// asMerchant lets only the merchant through.
func (s *shop) asMerchant(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, ok := s.sessions.who(r)
		if !ok {
			http.Redirect(w, r, "/admin/login", http.StatusSeeOther)
			return nil
		}
		return h(w, r.WithContext(context.WithValue(r.Context(), merchantKey{}, name)))
	}
}

// loginPage is the form, and what was wrong with the last one.
type loginPage struct{ Name, Problem string }

func (s *shop) showLogin(w http.ResponseWriter, r *http.Request) error {
	return s.render(w, r, http.StatusOK, "login", "Merchant's login", loginPage{})
}

// login takes a name, which is recorded with what its owner decides, and the
// password.
func (s *shop) login(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	name, problem := line(r.PostForm.Get("name"), 64), ""
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	switch {
	case name == "":
		problem = "Please give a name of at most 64 characters: it is recorded with what you decide."
	case !s.sessions.allows(ctx, r.PostForm.Get("password")):
		problem = "That is not the password."
	}
	if problem != "" {
		return s.render(w, r, http.StatusForbidden, "login", "Merchant's login", loginPage{name, problem})
	}
	cookie, err := s.sessions.cookie(name)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/admin", http.StatusSeeOther)
	return nil
}

func (s *shop) logout(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, merchantsCookie("", -1))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// line returns a text of one line as it can be stored and shown, or "" when it
// is longer than most, in bytes.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	if len(text) > most {
		return ""
	}
	return text
}
