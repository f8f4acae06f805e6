package main

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// record records a finding about the first order to look up, and returns its form. Without a margin it reads the
// order again until the clocks, which count milliseconds, have advanced.
func (h *harness) record(server, found, invoice string) (url.Values, page) {
	h.t.Helper()
	for {
		token := h.do("GET", server+"/admin/unknown", nil, asMerchant).find(`name="token" value="([^"]+)"`)
		form := url.Values{"token": {token}, "found": {found}, "invoice": {invoice}, "note": {"by phone"}}
		p := h.do("POST", server+"/admin/unknown", form, asMerchant)
		if h.margin > time.Microsecond || !strings.Contains(p.text, "still be making") {
			return form, p
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	const invoice = ` {"address":"found-address","amount":"0.2532358"} `
	for name, test := range map[string]struct {
		margin  time.Duration
		found   string
		invoice string
		status  int
		says    string // the response to the merchant
		buyer   string // the heading of the buyer's page afterwards
		again   string // after the buyer has pressed the button again
		sent    int    // after that
	}{
		"an invoice with its text":         {time.Microsecond, "exists", invoice, 200, "Recorded", paying, paying, 1},
		"an invoice without its text":      {time.Microsecond, "exists", "", 200, "Recorded", saved, saved, 1},
		"no invoice":                       {time.Microsecond, "absent", "", 200, "Recorded", choosing, paying, 2},
		"no invoice yet":                   {time.Hour, "absent", "", 422, "still be making", checking, checking, 1},
		"no invoice, with the text of one": {time.Microsecond, "absent", invoice, 422, "Nothing was recorded", checking, checking, 1},
		"the invoice of another order":     {time.Microsecond, "exists", `{"orderId":"another"}`, 422, "Nothing was recorded", checking, checking, 1},
		"nothing selected":                 {time.Microsecond, "", "", 422, "Please select", checking, checking, 1},
	} {
		h := newHarness(t)
		h.margin = test.margin
		server, s := h.open()
		order := h.order(server, "mug")
		h.loses()
		require.Equal(t, checking, h.pay(order, "LTC").heading())
		_, p := h.record(server, test.found, test.invoice)
		assert.Equal(t, test.status, p.status, name)
		p.has(t, test.says)
		assert.Equal(t, test.buyer, h.get(order).heading(), name)
		if test.status == 200 {
			status, err := s.guard.Order(t.Context(), "", path.Base(order))
			require.NoError(t, err)
			assert.Equal(t, "anna: by phone", status.Findings[0].By+": "+status.Findings[0].Note)
		}
		assert.Equal(t, test.again, h.pay(order, "LTC").heading(), name)
		assert.Equal(t, test.sent, h.sent(), name)
	}
}

// A finding is about the attempt that the page has shown.
func TestResolve_outdated(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, _ := h.open()
	order := h.order(server, "mug")
	h.loses()
	h.pay(order, "LTC")
	form, p := h.record(server, "absent", "")
	assert.Equal(t, 200, p.status)
	h.loses()
	assert.Equal(t, checking, h.pay(order, "LTC").heading())
	assert.Equal(t, 409, h.do("POST", server+"/admin/unknown", form, asMerchant).status, "it was sent again")
	form.Set("token", form.Get("token")[1:])
	assert.Equal(t, 422, h.do("POST", server+"/admin/unknown", form, asMerchant).status, "the token is not whole")
	assert.Equal(t, checking, h.get(order).heading())
}

// The page shows what was sent and what came back. A text of the gateway is no part of the page.
func TestShowUnknown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.margin = time.Hour
	server, _ := h.open()
	order := h.order(server, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(500, `<script>alert("x")</script>`))
	h.pay(order, "LTC")
	p := h.do("GET", server+"/admin/unknown", nil, asMerchant)
	for _, text := range []string{
		path.Base(order), "ida@shop.example", "$18.00 as 0.2532358 LTC on Litecoin", "status 500", `value="absent" required disabled`, `&lt;script&gt;`,
	} {
		p.has(t, text)
	}
	assert.NotContains(t, p.text, "<script>")
}

func TestShowOrders(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, _ := h.open()
	h.do("GET", server+"/admin", nil, asMerchant).has(t, "No orders.")
	h.order(server, "mug") // nothing was ordered
	h.loses()
	h.pay(h.order(server, "mug"), "LTC")
	paid := h.order(server, "lamp")
	h.pay(paid, "BTC")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "no"))
	h.pay(h.order(server, "print"), "BTC")
	p := h.do("GET", server+"/admin", nil, asMerchant)
	p.has(t, "1 to look up at the gateway")
	assert.Equal(t, []string{"Refused", "To look up", "Waiting for payment"}, labels(p))
	p = h.do("POST", server+"/admin/paid", url.Values{"order": {path.Base(paid)}, "paid": {"true"}}, asMerchant)
	assert.Equal(t, []string{"Paid", "Refused", "To look up"}, labels(p))
	assert.Equal(t, "Your payment has arrived", h.get(paid).heading())
	p = h.do("POST", server+"/admin/paid", url.Values{"order": {path.Base(paid)}, "paid": {"false"}}, asMerchant)
	assert.Equal(t, []string{"Refused", "To look up", "Waiting for payment"}, labels(p))
}

// labels returns the states in a list of orders, sorted.
func labels(p page) (all []string) {
	for _, found := range regexp.MustCompile(`<span class="state [a-z]+">([^<]+)</span>`).FindAllStringSubmatch(p.text, -1) {
		all = append(all, found[1])
	}
	slices.Sort(all)
	return all
}
