package main

import (
	"crypto/rand"
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

// loses orders a product with a response that is lost, and returns the address of the order.
func (h *harness) loses(server string) string {
	h.t.Helper()
	order := h.order(server, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	require.Equal(h.t, "We are checking your order", h.pay(order, "LTC").heading())
	return order
}

// record records a finding about the first order to look up, and returns its form. Without a margin it reads the
// order again until the clocks, which count milliseconds, have advanced.
func (h *harness) record(server, found, invoice string) (url.Values, page) {
	h.t.Helper()
	for range 10_000 {
		token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(h.do("GET", server+"/admin/unknown", nil, asMerchant).text)
		require.NotNil(h.t, token)
		form := url.Values{"token": {token[1]}, "found": {found}, "invoice": {invoice}, "note": {"by phone"}}
		p := h.do("POST", server+"/admin/unknown", form, asMerchant)
		if h.margin > time.Nanosecond || !strings.Contains(p.text, "still be making") {
			return form, p
		}
	}
	require.Fail(h.t, "the clocks do not advance")
	return nil, page{}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	const invoice = ` {"address":"found-address","amount":"0.2532358"} `
	tests := []struct {
		name    string
		margin  time.Duration
		found   string
		invoice string
		status  int
		says    string // the response to the merchant
		buyer   string // the heading of the buyer's page afterwards
		again   string // after the buyer has pressed the button again
		sent    int    // after that
	}{
		{"an invoice with its text", 1, "exists", invoice, 200, "Recorded", "Pay your order", "Pay your order", 1},
		{"an invoice without its text", 1, "exists", "", 200, "Recorded", "Your order is saved", "Your order is saved", 1},
		{"no invoice", 1, "absent", "", 200, "Recorded", "How would you like to pay?", "Pay your order", 2},
		{"no invoice yet", time.Hour, "absent", "", 422, "still be making", "We are checking your order", "We are checking your order", 1},
		{"no invoice, with the text of one", 1, "absent", invoice, 422, "Nothing was recorded", "We are checking your order", "We are checking your order", 1},
		{"a text that is not JSON", 1, "exists", "no", 422, "Nothing was recorded", "We are checking your order", "We are checking your order", 1},
		{"the invoice of another order", 1, "exists", `{"orderId":"another"}`, 422, "Nothing was recorded", "We are checking your order", "We are checking your order", 1},
		{"nothing selected", 1, "", "", 422, "Please select", "We are checking your order", "We are checking your order", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.margin = test.margin
			server, s := h.open()
			order := h.loses(server)
			_, p := h.record(server, test.found, test.invoice)
			assert.Equal(t, test.status, p.status)
			p.has(t, test.says)
			assert.Equal(t, test.buyer, h.do("GET", order, nil, nothing).heading())
			if test.status == 200 {
				status, err := s.guard.Order(t.Context(), "", path.Base(order))
				require.NoError(t, err)
				assert.Equal(t, "anna: by phone", status.Finding.By+": "+status.Finding.Note)
			}
			assert.Equal(t, test.again, h.pay(order, "LTC").heading())
			assert.Equal(t, test.sent, h.sent())
		})
	}
}

// A finding is about the attempt that the page has shown, and is recorded once.
func TestResolve_outdated(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, _ := h.open()
	order := h.loses(server)
	form, p := h.record(server, "absent", "")
	assert.Equal(t, 200, p.status)
	address := server + "/admin/unknown"
	assert.Equal(t, 200, h.do("POST", address, form, asMerchant).status, "the same finding once more")
	form.Set("found", "exists")
	assert.Equal(t, 409, h.do("POST", address, form, asMerchant).status, "it is not unknown")
	form.Set("found", "absent")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	assert.Equal(t, "We are checking your order", h.pay(order, "LTC").heading())
	assert.Equal(t, 409, h.do("POST", address, form, asMerchant).status, "it was sent again")
	form.Set("token", form.Get("token")[1:])
	assert.Equal(t, 422, h.do("POST", address, form, asMerchant).status, "the token is not whole")
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
		path.Base(order), "ida@shop.example", "18 usd as 0.2532358 LTC on Litecoin", "status 500", `value="absent" required disabled`, `&lt;script&gt;`,
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
	h.loses(server)
	paid := h.order(server, "lamp")
	h.pay(paid, "BTC")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "no"))
	h.pay(h.order(server, "print"), "BTC")
	p := h.do("GET", server+"/admin", nil, asMerchant)
	p.has(t, "1 to look up at the gateway")
	assert.Equal(t, []string{"Not ordered", "To look up", "Waiting for payment"}, labels(p))
	p = h.do("POST", server+"/admin/paid", url.Values{"order": {path.Base(paid)}, "paid": {"true"}}, asMerchant)
	assert.Equal(t, []string{"Not ordered", "Paid", "To look up"}, labels(p))
	assert.Equal(t, "Your payment has arrived", h.do("GET", paid, nil, nothing).heading())
	p = h.do("POST", server+"/admin/paid", url.Values{"order": {path.Base(paid)}, "paid": {"false"}}, asMerchant)
	assert.Equal(t, []string{"Not ordered", "To look up", "Waiting for payment"}, labels(p))
}

// labels returns the states in a list of orders, sorted.
func labels(p page) (all []string) {
	for _, found := range regexp.MustCompile(`<span class="state [a-z]+">([^<]+)</span>`).FindAllStringSubmatch(p.text, -1) {
		all = append(all, found[1])
	}
	slices.Sort(all)
	return all
}

// The list of orders has pages.
func TestShowOrders_pages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server, s := h.open()
	for range pageSize + 1 {
		id := rand.Text()
		require.NoError(t, s.orders.insert(t.Context(), id, "mug"))
		require.NoError(t, s.orders.setEmail(t.Context(), id, "ida@shop.example"))
	}
	assert.Len(t, labels(h.do("GET", server+"/admin", nil, asMerchant)), pageSize)
	assert.Len(t, labels(h.do("GET", server+"/admin?page=2", nil, asMerchant)), 1)
}
