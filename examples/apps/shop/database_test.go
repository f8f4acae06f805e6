package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No order is lost in a database outage, and the pages report the outage.
func TestDatabase_outage(t *testing.T) {
	h := newHarness(t)
	server := newPostgres(t)
	h.database = server.DSN("postgres")
	_, web := h.open()
	v := newVisitor(t)
	path, lamp := v.order(web.URL, "mug"), v.buyForm(web.URL, "lamp")
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/healthz").status)

	server.Kill()
	assert.Equal(t, http.StatusServiceUnavailable, v.get(web.URL+"/healthz").status)
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/").status, "products need no database")
	for _, res := range []response{v.get(web.URL + path), v.post(web.URL+"/orders", "order", lamp), v.pay(web.URL, path, h.pair("BTC", "Bitcoin"))} {
		assert.Equal(t, http.StatusServiceUnavailable, res.status)
		assert.Contains(t, res.visibleText(), "No order is lost. Please try again in a moment.")
		assert.NotContains(t, res.text, "connect", "the error is in the log only")
		assert.Equal(t, "5", res.header.Get("Retry-After"))
	}
	assert.Zero(t, h.sent(), "an invoice that cannot be recorded is not sent")

	require.NoError(t, server.Restart("INT"))
	eventually(t, "the database is back", func() bool { return v.get(web.URL+"/healthz").status == http.StatusOK })
	require.Equal(t, path, v.pay(web.URL, path, h.pair("BTC", "Bitcoin")).location)
	assert.Contains(t, v.get(web.URL+path).visibleText(), "Pay your order")
	assert.Len(t, h.gw.Invoices(), 1)
}

// Without settings the shop starts on a stand-in and a SQLite file.
func TestRun_defaultSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"GATEWAY_BASE_URL", "DATABASE_URL", "SHOP_MERCHANTS"} {
		t.Setenv(name, "")
	}
	t.Setenv("SHOP_ADDR", "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	readOrder, writer := io.Pipe()
	runErr := make(chan error)
	go func() { runErr <- run(ctx, writer, io.Discard) }()
	line, err := bufio.NewReader(readOrder).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+ is ready \(gateway: a stand-in in this process with invented data; orders: SQLite, demo\.db; merchant: /admin, name demo, password [A-Z2-7]{26}\)\n$`, line)
	url := strings.Fields(line)[0]
	v := newVisitor(t)
	assert.Contains(t, v.get(url+"/").visibleText(), "Demo.")
	assert.Contains(t, v.get(url+v.order(url, "mug")).visibleText(), "How would you like to pay?")
	resp, err := http.Get(url + v.order(url, "lamp")) //nolint:noctx // a request without cookies
	require.NoError(t, err)
	assert.NoError(t, resp.Body.Close())
	stop()
	assert.NoError(t, <-runErr)
	assert.FileExists(t, "demo.db")
}
