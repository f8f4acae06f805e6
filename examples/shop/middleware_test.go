package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An answer that has begun when its handler panics does not look like a whole
// one, and has its line in the log.
func TestPanic_inTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	s, _ := newStage(t).open()
	var log bytes.Buffer
	s.logger = slog.New(slog.NewTextHandler(&log, nil))
	server := httptest.NewServer(s.logged(s.recovered(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, "half of a page")
		assert.NoError(t, err)
		assert.NoError(t, http.NewResponseController(w).Flush())
		panic("a mistake")
	}))))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "half of a page", string(text))
	assert.NoError(t, resp.Body.Close())
	server.Close()
	assert.Contains(t, log.String(), `msg="a handler panicked" panic="a mistake"`)
	assert.Contains(t, log.String(), "msg=request method=GET path=/ status=200")
}

// Whoever leaves in the middle of an answer is no failure of ours, and gets no
// second page on top of the first.
func TestAnswer_thatBreaksOff(t *testing.T) {
	t.Parallel()
	s, _ := newStage(t).open()
	var log bytes.Buffer
	s.logger = slog.New(slog.NewTextHandler(&log, nil))
	var leave context.CancelFunc
	for name, h := range map[string]handlerFunc{
		"it has begun": func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "half of a page")
			return errors.New("broken pipe")
		},
		"nobody is there": func(_ http.ResponseWriter, r *http.Request) error {
			leave()
			return r.Context().Err()
		},
	} {
		var ctx context.Context
		ctx, leave = context.WithCancel(t.Context())
		defer leave()
		w := httptest.NewRecorder()
		s.handle(h).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		assert.NotContains(t, w.Body.String(), "<html", name)
		assert.Contains(t, log.String(), `level=INFO msg="a visitor has left" path=/`, name)
		assert.NotContains(t, log.String(), "level=ERROR", name)
		log.Reset()
	}
}

// A database that answers nothing at all does not keep a page for ever.
func TestDatabase_thatHangs(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.database, st.cfg.page = newPostgres(t).database(t), time.Second
	s, server := st.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE shop_orders IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	a := v.get(server.URL + at)
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	assert.Contains(t, a.words(), "Nothing that you did is lost.")
	assert.Equal(t, http.StatusServiceUnavailable, v.post(server.URL+at+"/pay").status)
}

// A page of the merchant's that can not be shown still leads to the others.
func TestProblem_ofTheMerchantKeepsTheWayOn(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	path := "/orders/" + strings.Repeat("A", secretLength)
	a := newVisitor(t).asMerchant(server.URL).get(server.URL + "/admin" + path)
	assert.Equal(t, http.StatusNotFound, a.status)
	assert.Contains(t, a.text, `<a href="/admin">Orders</a>`)
	assert.NotContains(t, newVisitor(t).get(server.URL+path).text, `<a href="/admin">Orders</a>`)
}
