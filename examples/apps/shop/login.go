package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"golang.org/x/crypto/bcrypt"
)

// merchants are the bcrypt hashes of the merchants' passwords by name.
type merchants map[string]string

// parseMerchants reads SHOP_MERCHANTS: lines as htpasswd writes them, separated by
// spaces or new lines.
func parseMerchants(text string) (merchants, error) {
	all := merchants{}
	for _, line := range strings.Fields(text) {
		name, hash, _ := strings.Cut(line, ":")
		if _, err := bcrypt.Cost([]byte(hash)); err != nil || name == "" {
			return nil, errors.New("SHOP_MERCHANTS must have a name, a colon and a bcrypt hash for each merchant, as htpasswd -nB prints them")
		}
		all[name] = hash
	}
	return all, nil
}

// newSessions returns the merchants' sessions, which last for a working day.
func newSessions(db *database, onError func(http.ResponseWriter, *http.Request, error)) *scs.SessionManager {
	m := scs.New()
	m.Store, m.HashTokenInStore, m.Lifetime, m.ErrorFunc = sessionStore{db: db}, true, 8*time.Hour, onError
	m.Cookie.Name, m.Cookie.Secure, m.Cookie.SameSite = "__Host-merchant", true, http.SameSiteStrictMode
	return m
}

// A sessionStore implements [scs.CtxStore]. The methods without a context are those of a
// nil [scs.Store]: they are never called.
type sessionStore struct {
	scs.Store
	db *database
}

func (s sessionStore) FindCtx(ctx context.Context, id string) (data []byte, found bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT data FROM shop_sessions WHERE id = $1 AND ends > $2`, id, utcNow()).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, err
}

func (s sessionStore) CommitCtx(ctx context.Context, id string, data []byte, ends time.Time) error {
	_, err := s.db.change(ctx, `INSERT INTO shop_sessions (id, data, ends) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, ends = excluded.ends`, id, data, ends.UTC())
	return err
}

func (s sessionStore) DeleteCtx(ctx context.Context, id string) error {
	_, err := s.db.change(ctx, `DELETE FROM shop_sessions WHERE id = $1 OR ends <= $2`, id, utcNow())
	return err
}

type merchantKey struct{}

// merchant returns the name of the merchant who is logged in, "" for a buyer.
func merchant(ctx context.Context) string {
	name, _ := ctx.Value(merchantKey{}).(string)
	return name
}

// requireMerchant admits only a merchant who is logged in. A new password ends the
// sessions of its merchant.
func (s *shop) requireMerchant(next http.Handler) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request) error {
		name, hash := s.sessions.GetString(r.Context(), "name"), s.sessions.GetString(r.Context(), "hash")
		switch {
		case name != "" && s.cfg.merchants[name] == hash:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), merchantKey{}, name)))
		case r.Method == http.MethodPost:
			return s.loginForm(w, r, http.StatusForbidden, "You are not logged in any more. Nothing was changed.")
		default:
			return redirect(w, r, "/admin/login")
		}
		return nil
	})
}

func (s *shop) loginForm(w http.ResponseWriter, r *http.Request, status int, problem string) error {
	return s.render(w, r, status, "login", "Log in", map[string]string{"Name": r.PostFormValue("name"), "Problem": problem})
}

// login checks the name and the password. The name is recorded with what the merchant
// does. A name that is not known takes as long as a wrong password.
func (s *shop) login(w http.ResponseWriter, r *http.Request) error {
	name := r.PostFormValue("name")
	hash, known := s.cfg.merchants[name]
	if !known {
		for _, hash = range s.cfg.merchants {
			break
		}
	}
	if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(r.PostFormValue("password"))); err != nil || !known {
		s.logger.WarnContext(r.Context(), "login failed", "name", singleLine(name, 64))
		return s.loginForm(w, r, http.StatusForbidden, "The name or the password is wrong.")
	}
	if err := s.sessions.RenewToken(r.Context()); err != nil {
		return err
	}
	s.sessions.Put(r.Context(), "name", name)
	s.sessions.Put(r.Context(), "hash", hash)
	s.logger.InfoContext(r.Context(), "merchant logged in", "name", name)
	return redirect(w, r, "/admin")
}

func (s *shop) logout(w http.ResponseWriter, r *http.Request) error {
	if err := s.sessions.Destroy(r.Context()); err != nil {
		return err
	}
	return redirect(w, r, "/")
}
