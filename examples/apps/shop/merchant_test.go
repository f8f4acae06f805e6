package main

import (
	"encoding/csv"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orderWithFault makes an order whose invoice meets a fault.
func (h *harness) orderWithFault(s *shop, v *visitor, server string, fault gatewaytest.Fault) (at string) {
	h.t.Helper()
	at = v.order(server, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault)
	v.pay(server, at, h.pair("BTC", "Bitcoin"))
	h.awaitResult(s, at)
	return at
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

func TestResolve(t *testing.T) {
	t.Parallel()
	for found, test := range map[string]struct {
		fault    gatewaytest.Fault
		heading  string
		history  string
		invoices int // the number of invoices after the buyer's next request
	}{
		"exists": {gatewaytest.FaultCommitThenDrop(), "Your order is saved", "Anna found the invoice at the gateway: number 7", 1},
		"none":   {gatewaytest.FaultReset(), "the payment service has made no invoice", "Anna found no invoice at the gateway: number 7", 1},
	} {
		t.Run(found, func(t *testing.T) {
			t.Parallel()
			onBothDatabases(t, func(t *testing.T, h *harness) {
				s, server := h.open()
				_, other := h.open()
				v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
				at := h.orderWithFault(s, v, server.URL, test.fault)
				record := server.URL + "/admin" + at
				assert.Contains(t, anna.get(other.URL+"/admin").visibleText(), "1 to look up at the gateway")
				assert.Contains(t, anna.get(record).visibleText(), "X-Request-Id of the last one "+h.lastRequestID())
				token := tokenField.FindStringSubmatch(anna.get(record).text)
				require.NotNil(t, token)
				resolve := func(token string) response {
					return anna.post(record+"/resolve", "token", token, "found", found, "note", " number\n7 ")
				}
				another := sqlguard.Order{ID: path.Base(at), State: sqlguard.StateUnknown}
				assert.Equal(t, http.StatusConflict, resolve(another.Token()).status, "not the attempt of the page")
				another = sqlguard.Order{ID: "another", State: sqlguard.StateUnknown}
				assert.Equal(t, http.StatusConflict, resolve(another.Token()).status, "not the order of the page")
				assert.Equal(t, "/admin/pending?done="+path.Base(at), resolve(token[1]).location, "back to the list")
				assert.Contains(t, anna.get(record).visibleText(), test.history)
				assert.Equal(t, http.StatusConflict, resolve(token[1]).status, "already resolved")
				assert.NotContains(t, anna.get(other.URL+"/admin").visibleText(), "to look up at the gateway")
				assert.Contains(t, v.get(server.URL+at).visibleText(), test.heading)
				v.post(server.URL+at+"/pay", "pair", h.pair("BTC", "Bitcoin"), "price", "$18.00")
				assert.Len(t, h.gw.InvoicesFor(path.Base(at)), test.invoices)
			})
		})
	}
}

// That there is no invoice cannot be found while the request may still be on its way.
func TestResolve_tooEarly(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		h.cfg.transit = 15 * time.Minute
		s, server := h.open()
		v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
		at := h.orderWithFault(s, v, server.URL, gatewaytest.FaultReset())
		record := server.URL + "/admin" + at
		token := tokenField.FindStringSubmatch(anna.get(record).text)
		require.NotNil(t, token)
		refused := anna.post(record+"/resolve", "token", token[1], "found", "none", "note", "")
		assert.Equal(t, http.StatusUnprocessableEntity, refused.status)
		assert.Contains(t, refused.visibleText(), "look again 15m0s after it was sent last")
		assert.Equal(t, stateUnknown, h.readOrder(s, at).State)
	})
}

// The merchant records payment and shipping with name and time, and the buyer's page
// follows.
func TestMark(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
		at := v.order(server.URL, "mug")
		v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
		mark := func(from, to state) response {
			return anna.post(server.URL+"/admin"+at+"/mark", "from", string(from), "to", string(to))
		}
		assert.Equal(t, http.StatusConflict, mark(stateCreated, stateShipped).status, "not paid")
		for _, step := range []struct {
			from, to state
			heading  string
		}{
			{stateCreated, statePaid, "Your payment has arrived"},
			{statePaid, stateShipped, "Your order is on its way"},
			{stateShipped, statePaid, "Your payment has arrived"},
			{statePaid, stateCancelled, "This order is cancelled"},
		} {
			assert.Equal(t, http.StatusSeeOther, mark(step.from, step.to).status)
			assert.Contains(t, v.get(server.URL+at).visibleText(), step.heading)
		}
		history, err := s.db.history(t.Context(), path.Base(at))
		require.NoError(t, err)
		assert.Len(t, history, 4)
		assert.Regexp(t, `2\d{3}, \d\d:\d\d UTC : Anna marked the order as: Shipped`, anna.get(server.URL+"/admin"+at).visibleText())
	})
}

// A page that was opened while the buyer had not paid does not cancel an order that is paid.
func TestMark_oldPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	at := v.order(server.URL, "mug")
	v.pay(server.URL, at, h.pair("BTC", "Bitcoin"))
	mark := func(from, to string) int {
		return anna.post(server.URL+"/admin"+at+"/mark", "from", from, "to", to).status
	}
	require.Equal(t, http.StatusSeeOther, mark("created", "paid"))
	for _, from := range []string{"created", "", "shipped"} {
		assert.Equal(t, http.StatusConflict, mark(from, "cancelled"), "the page shows %q", from)
		assert.Equal(t, statePaid, h.readOrder(s, at).State)
	}
	assert.Equal(t, http.StatusSeeOther, mark("paid", "cancelled"), "a new page")
}

// A cancelled order is not sent.
func TestMark_cancelledBeforePayment(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	at := v.order(server.URL, "mug")
	require.Equal(t, http.StatusSeeOther, anna.post(server.URL+"/admin"+at+"/mark", "from", "open", "to", "cancelled").status)
	v.post(server.URL+at+"/pay", "pair", h.pair("BTC", "Bitcoin"), "price", "$18.00")
	assert.Zero(t, h.sent())
	assert.Equal(t, stateCancelled, h.readOrder(s, at).State)
}

func TestOrders_searchPagesAndExport(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		anna, v := newVisitor(t).logIn(server.URL), newVisitor(t)
		at := v.order(server.URL, "mug")
		v.pay(server.URL, at, h.pair("USDT", "Tron"))
		require.NoError(t, s.db.setContact(t.Context(), path.Base(at), "=Ida_1"))
		for i := range pageSize {
			id := strings.Repeat("A", 24) + "A" + string(rune('A'+i%26)) + "-lamp" + strconv.Itoa(i)
			require.NoError(t, s.db.insertOrder(t.Context(), order{ID: id, Buyer: "b", Product: "lamp"}))
		}
		list := func(query string) string { return anna.get(server.URL + "/admin" + query).visibleText() }
		first := list("")
		assert.Contains(t, first, "51 orders")
		assert.Contains(t, first, "USDT 17.996401 0 ", "totals per coin")
		assert.Contains(t, first, "Next page")
		assert.NotContains(t, first, "Previous page")
		assert.Contains(t, list("?page=2"), "Previous page")
		assert.Contains(t, list("?page=2"), path.Base(at))
		for query, count := range map[string]string{
			"?text=" + strings.ToLower(path.Base(at)): "1 order", "?text=ida_1": "1 order", "?text=ida%25": "0 orders", "?state=created": "1 order",
			"?state=paid": "0 orders", "?from=2000-01-01&to=2000-01-02": "0 orders", "?from=2000-01-01&to=2999-01-02": "51 orders",
		} {
			assert.Contains(t, list(query), " "+count+" ", query)
		}
		rows, err := csv.NewReader(strings.NewReader(anna.get(server.URL + "/admin/orders.csv?state=created").text)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 2)
		assert.Equal(t, []string{"mug", "18", "usd", "17.996401", "USDT", "Tron", "'=Ida_1"}, rows[1][3:])
	})
}

func TestCoins(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	page := anna.get(server.URL + "/admin/coins")
	assert.Contains(t, page.visibleText(), "USDT on Tron can choose it 1 20 10 to 100000 1 0.5")
	assert.Contains(t, page.visibleText(), "ADA on Cardano hidden: depositable: is false")
	assert.Contains(t, page.visibleText(), "XMR on Monero hidden: coin.isActive: is false")
	assert.Contains(t, page.visibleText(), "BTC 64,250.18")
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"0": "0", "999": "999", "1000": "1,000", "18.00": "18.00", "64250.18": "64,250.18", "123456": "123,456", "1234567.0001": "1,234,567.0001",
	} {
		assert.Equal(t, want, grouped(number))
	}
	for rate, want := range map[string]string{"0.08123": "0.08123", "1": "1.00", "64253.03346428": "64,253.03"} {
		assert.Equal(t, want, formatRate(decimal.RequireFromString(rate)))
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	require.Equal(t, http.StatusSeeOther, anna.post(server.URL+"/admin/money", "id", id).status)
	require.NoError(t, s.follow(t.Context(), "gone", "Anna"))
	s.withdrawals.Expire()
	page := anna.get(server.URL + "/admin/money").visibleText()
	assert.Contains(t, page, "PENDING 50 USDT on Tron 1 USDT T-somewhere "+id)
	assert.Contains(t, page, "The gateway does not know it. gone")
	assert.Contains(t, page, "BTC on Bitcoin 0.48215003")
	h.gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultRefuse(403, "no"))
	s.withdrawals.Expire()
	assert.Contains(t, anna.get(server.URL+"/admin/money").visibleText(), "Not available at the moment.")
}
