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

// A response that has started when its handler panics is aborted, and is
// logged.
func TestPanic_partialResponse(t *testing.T) {
	t.Parallel()
	s, _ := newHarness(t).open()
	var log bytes.Buffer
	s.logger = slog.New(slog.NewTextHandler(&log, nil))
	server := httptest.NewServer(s.withLogging(s.withRecovery(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, "partial page")
		assert.NoError(t, err)
		assert.NoError(t, http.NewResponseController(w).Flush())
		panic("a bug")
	}))))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "partial page", string(text))
	assert.NoError(t, resp.Body.Close())
	server.Close()
	assert.Contains(t, log.String(), `msg="handler panicked" panic="a bug"`)
	assert.Contains(t, log.String(), "msg=request method=GET path=/ status=200")
}

// A client that disconnects is not logged as an error, and no error page is
// appended to a partial response.
func TestHandle_disconnectedClient(t *testing.T) {
	t.Parallel()
	s, _ := newHarness(t).open()
	var log bytes.Buffer
	s.logger = slog.New(slog.NewTextHandler(&log, nil))
	var disconnect context.CancelFunc
	for name, h := range map[string]handlerFunc{
		"response started": func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "partial page")
			return errors.New("broken pipe")
		},
		"request canceled": func(_ http.ResponseWriter, r *http.Request) error {
			disconnect()
			return r.Context().Err()
		},
	} {
		var ctx context.Context
		ctx, disconnect = context.WithCancel(t.Context())
		defer disconnect()
		w := httptest.NewRecorder()
		s.handle(h).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		assert.NotContains(t, w.Body.String(), "<html", name)
		assert.Contains(t, log.String(), `level=INFO msg="client disconnected" path=/`, name)
		assert.NotContains(t, log.String(), "level=ERROR", name)
		log.Reset()
	}
}

// A database that does not respond does not block a page forever.
func TestDatabase_timeout(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.database, h.cfg.pageTimeout = newPostgres(t).database(t), time.Second
	s, server := h.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE shop_orders IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	res := v.get(server.URL + at)
	assert.Equal(t, http.StatusServiceUnavailable, res.status)
	assert.Contains(t, res.visibleText(), "No order has been lost.")
	assert.Equal(t, http.StatusServiceUnavailable, v.post(server.URL+at+"/pay").status)
}

// An error page of the merchant keeps the merchant's navigation.
func TestProblem_merchantNavigation(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	path := "/orders/" + strings.Repeat("A", randomTextLength)
	res := newVisitor(t).logIn(server.URL).get(server.URL + "/admin" + path)
	assert.Equal(t, http.StatusNotFound, res.status)
	assert.Contains(t, res.text, `<a href="/admin">Orders</a>`)
	assert.NotContains(t, newVisitor(t).get(server.URL+path).text, `<a href="/admin">Orders</a>`)
}
