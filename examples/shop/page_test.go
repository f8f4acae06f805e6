package main

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The invoice is created although the buyer disconnects while it is being
// sent.
func TestInvoice_buyerDisconnects(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cfg.invoiceTimeout = 10 * time.Second
	s, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.SlowBody(2*time.Millisecond))
	ctx, disconnect := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path+"/pay", strings.NewReader(formOf("pair", h.pair("BTC", "Bitcoin"), "price", "$18.00").Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	requestErr := make(chan error)
	go func() {
		resp, err := (&http.Client{Jar: v}).Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		requestErr <- err
	}()
	eventually(t, "the invoice is committed", func() bool { return len(h.gw.Invoices()) == 1 })
	disconnect()
	require.ErrorIs(t, <-requestErr, context.Canceled)
	eventually(t, "the invoice is recorded", func() bool {
		o, err := s.orders.byID(t.Context(), strings.TrimPrefix(path, "/orders/"))
		return err == nil && o.State == stateCreated && o.Invoice != ""
	})
	assert.Contains(t, v.get(server.URL+path).visibleText(), "Pay your order")
}

func TestRecord_keepsCreatedState(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	id := strings.TrimPrefix(v.order(server.URL, "mug"), "/orders/")
	for _, o := range []order{{ID: id, State: stateCreated, Invoice: "{}"}, {ID: id, State: stateRefused}, {ID: id, State: stateCreated, Invoice: "[]"}} {
		require.NoError(t, s.orders.record(t.Context(), o))
		stored, err := s.orders.byID(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, stateCreated, stored.State)
		assert.Equal(t, "{}", stored.Invoice)
	}
}

func TestStreams_overallLimit(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	for range maxStreams {
		s.buyerStreams <- struct{}{}
	}
	res := v.get(server.URL + path + "/live")
	assert.Equal(t, http.StatusServiceUnavailable, res.status)
	assert.Contains(t, res.visibleText(), "The page works without live updates, too.")
}

func TestOrderPage_details(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		invoice, qr, link string
		details           []detail
	}{
		"address":                      {`{"invoice":{"address":"bc1q"}}`, "bc1q", "", []detail{{"Address", "bc1q"}}},
		"payment page":                 {`{"url":"https://pay.example/1"}`, "https://pay.example/1", "https://pay.example/1", nil},
		"payment page without https":   {`{"url":"http://pay.example/1"}`, "1 BTC on Bitcoin for order A", "", nil},
		"payment page with javascript": {`{"url":"javascript:alert(1)"}`, "1 BTC on Bitcoin for order A", "", nil},
		"unknown fields":               {`{"x":[1]}`, "1 BTC on Bitcoin for order A", "", nil},
		"empty response":               {``, "1 BTC on Bitcoin for order A", "", nil},
		"unprintable characters":       {`{"memo":"a\u0000\u001bb","id":7}`, "1 BTC on Bitcoin for order A", "", []detail{{"Memo or tag", "ab"}, {"Invoice", "7"}}},
		"initial status":               {`{"status":"WAITING"}`, "1 BTC on Bitcoin for order A", "", []detail{{"Initial status", "WAITING"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := order{ID: "A", Coin: "BTC", Network: "Bitcoin", Invoice: test.invoice}
			o.Amount = products()[0].Price.Div(products()[0].Price)
			p := o.page(stateCreated)
			assert.Equal(t, test.qr, p.QR)
			assert.Equal(t, test.link, p.Link)
			assert.Equal(t, test.details, p.Details)
		})
	}
}

func TestStreams_offers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path+"/live", nil)
	require.NoError(t, err)
	client := http.Client{Jar: v}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	readUntil := func(text string) bool {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return true
			}
		}
		return false
	}
	require.True(t, readUntil(`"amount":"145.80001196"`), "DOGE at its initial rate")
	h.gw.SetRate("DOGE", "0.09", "0.09")
	require.True(t, readUntil(`"amount":"200"`))
	h.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.BadGateway())
	s.closeStreams()
	assert.False(t, readUntil("nothing"), "the stream ends with the shop")
}
