package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
