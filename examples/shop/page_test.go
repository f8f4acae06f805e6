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

// A buyer who leaves while the invoice is sent finds it when they come back.
func TestInvoice_isMadeForABuyerWhoLeaves(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.cfg.patience = 10 * time.Second
	s, server := st.open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.SlowBody(2*time.Millisecond))
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path+"/pay", strings.NewReader(formOf("pair", st.pair("BTC", "Bitcoin"), "price", "$18.00").Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	left := make(chan error)
	go func() {
		resp, err := (&http.Client{Jar: v}).Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		left <- err
	}()
	eventually(t, "the invoice is committed", func() bool { return len(st.gw.Invoices()) == 1 })
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	eventually(t, "the invoice is recorded", func() bool {
		o, err := s.orders.byID(t.Context(), strings.TrimPrefix(path, "/orders/"))
		return err == nil && o.State == stateCreated && o.Invoice != ""
	})
	assert.Contains(t, v.get(server.URL+path).words(), "Pay your order")
}

func TestRecord_keepsWhatWasCreated(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v := newVisitor(t)
	id := strings.TrimPrefix(v.order(server.URL, "mug"), "/orders/")
	for _, o := range []order{{ID: id, State: stateCreated, Invoice: "{}"}, {ID: id, State: stateRefused}, {ID: id, State: stateCreated, Invoice: "[]"}} {
		require.NoError(t, s.orders.record(t.Context(), o))
		kept, err := s.orders.byID(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, stateCreated, kept.State)
		assert.Equal(t, "{}", kept.Invoice)
	}
}

func TestStreams_areBounded(t *testing.T) {
	t.Parallel()
	s, server := newStage(t).open()
	v := newVisitor(t)
	path := v.order(server.URL, "mug")
	for range maxStreams {
		s.streams <- struct{}{}
	}
	a := v.get(server.URL + path + "/live")
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	assert.Contains(t, a.words(), "The page works without live numbers, too.")
}

func TestInvoice_isShownAsFarAsItIsUnderstood(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		invoice, qr, link string
		details           []detail
	}{
		"an address":                        {`{"invoice":{"address":"bc1q"}}`, "bc1q", "", []detail{{"Address", "bc1q"}}},
		"a page to pay on":                  {`{"url":"https://pay.example/1"}`, "https://pay.example/1", "https://pay.example/1", nil},
		"a page that others can read":       {`{"url":"http://pay.example/1"}`, "1 BTC on Bitcoin for order A", "", nil},
		"a page that is no place to go to":  {`{"url":"javascript:alert(1)"}`, "1 BTC on Bitcoin for order A", "", nil},
		"nothing that is known":             {`{"x":[1]}`, "1 BTC on Bitcoin for order A", "", nil},
		"nothing at all":                    {``, "1 BTC on Bitcoin for order A", "", nil},
		"what can not be shown is left out": {`{"memo":"a\u0000\u001bb","id":7}`, "1 BTC on Bitcoin for order A", "", []detail{{"Memo or tag", "ab"}, {"Invoice", "7"}}},
		"a status is one of the past":       {`{"status":"WAITING"}`, "1 BTC on Bitcoin for order A", "", []detail{{"Status when it was made", "WAITING"}}},
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

func TestLiveNumbers_follow(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
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
	said := func(text string) bool {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return true
			}
		}
		return false
	}
	require.True(t, said(`"amount":"145.80001196"`), "DOGE at its first rate")
	st.gw.SetRate("DOGE", "0.09", "0.09")
	require.True(t, said(`"amount":"200"`))
	st.gw.InjectFault(gatewaytest.OpExchangeRates, -1, gatewaytest.BadGateway())
	s.closeStreams()
	assert.False(t, said("nothing"), "the stream ends with the shop")
}
