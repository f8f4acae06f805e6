package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orderWithFault makes an order whose invoice meets a fault, and returns its
// ID.
func (h *harness) orderWithFault(v *visitor, server, product string, fault gatewaytest.Fault) string {
	h.t.Helper()
	path := v.order(server, product)
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault)
	v.pay(server, path, h.pair("BTC", "Bitcoin"))
	return strings.TrimPrefix(path, "/orders/")
}

func TestResolve_existsAndNone(t *testing.T) {
	t.Parallel()
	for found, test := range map[string]struct {
		fault      gatewaytest.Fault
		heading    string
		resolution string
		invoices   int // the number of invoices after the buyer's next request
	}{
		"exists": {gatewaytest.CommitThenDrop(), "Pay your order", "an invoice exists. number 7", 1},
		"none":   {gatewaytest.Reset(), "No invoice was created", "no invoice exists. number 7", 1},
	} {
		t.Run(found, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			_, server := h.open()
			_, other := h.open()
			v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
			id := h.orderWithFault(v, server.URL, "mug", test.fault)
			assert.Contains(t, anna.get(other.URL+"/admin").visibleText(), "1 to look up at the gateway")
			record := anna.get(server.URL + "/admin/orders/" + id)
			assert.Contains(t, record.visibleText(), "Last status no response")
			assert.Contains(t, record.visibleText(), "may exist, look it up")
			assert.Contains(t, record.text, `name="attempts" value="1"`)

			resolve := func(attempts string) response {
				return anna.post(server.URL+"/admin/orders/"+id, "attempts", attempts, "found", found, "note", " number\n7 ")
			}
			assert.Equal(t, http.StatusConflict, resolve("2").status, "not the attempt of the page")
			require.Equal(t, http.StatusSeeOther, resolve("1").status)
			assert.Contains(t, anna.get(server.URL+"/admin/orders/"+id).visibleText(), "by Anna at "+time.Now().UTC().Format("2 Jan 2006"))
			assert.Contains(t, anna.get(server.URL+"/admin/orders/"+id).visibleText(), test.resolution)
			assert.Equal(t, http.StatusConflict, resolve("1").status, "already resolved")
			assert.NotContains(t, anna.get(other.URL+"/admin").visibleText(), "to look up")
			assert.Contains(t, v.get(server.URL+"/orders/"+id).visibleText(), test.heading)
			v.pay(server.URL, "/orders/"+id, "")
			assert.Contains(t, v.get(server.URL+"/orders/"+id).visibleText(), "Pay your order")
			assert.Len(t, h.gw.InvoicesFor(id), test.invoices)
		})
	}
}

// The invoice is recorded, but the order guard has no outcome because the
// database was unavailable: there is nothing to look up.
func TestResolve_recordedInvoice(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
		path := v.order(server.URL, "mug")
		v.pay(server.URL, path, h.pair("BTC", "Bitcoin"))
		_, err := s.db.change(t.Context(), `UPDATE gateway_orders SET token = $1, lease_until = begun_at, ended_at = NULL, outcome = NULL, created_at = NULL`, "of who began it")
		require.NoError(t, err)
		pending, err := s.guard.Pending(t.Context())
		require.NoError(t, err)
		require.Len(t, pending, 1)
		assert.NotContains(t, anna.get(server.URL+"/admin").visibleText(), "to look up")
		assert.Contains(t, anna.get(server.URL+"/admin"+path).visibleText(), "by the shop at")
		pending, err = s.guard.Pending(t.Context())
		require.NoError(t, err)
		assert.Empty(t, pending)
	})
}

func TestRecord_showsLastResponse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.orderWithFault(newVisitor(t), server.URL, "mug", gatewaytest.BadGateway())
	record := anna.get(server.URL + "/admin/orders/" + id)
	assert.Contains(t, record.visibleText(), "Last status 502")
	assert.Contains(t, record.text, "Last body")
	assert.Contains(t, record.text, "&lt;html&gt;", "escaped")
}

func TestOverview_filtersByState(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	require.NoError(t, s.rates.Refresh(t.Context()))
	for range 3 {
		(&standIn{h.gw}).randomizeRates()
		require.NoError(t, s.rates.Refresh(t.Context()))
		rates, err := s.rates.Get(t.Context())
		require.NoError(t, err)
		s.history.add(rates)
	}
	open := strings.TrimPrefix(v.order(server.URL, "mug"), "/orders/")
	refused := h.orderWithFault(v, server.URL, "lamp", gatewaytest.Refuse(400, "no"))
	created := h.orderWithFault(v, server.URL, "print", gatewaytest.Fault{})
	all := anna.get(server.URL + "/admin")
	assert.Contains(t, all.text, `aria-label="Orders by state: open 1, sending 0, created 1, unknown 0, refused 1, unsent 0, "`)
	assert.Contains(t, all.text, "<polyline points=\"0,")
	for of, id := range map[state]string{stateOpen: open, stateRefused: refused, stateCreated: created} {
		res := anna.get(server.URL + "/admin?state=" + string(of))
		for _, other := range []string{open, refused, created} {
			assert.Equal(t, other == id, strings.Contains(res.text, other), "%s in %s", other, of)
		}
	}
}

func TestDrift_shownAndCounted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gw.InjectFault(gatewaytest.OpCoinNetworks, 2, gatewaytest.DriftFields())
	s, server := h.open()
	require.NoError(t, s.catalog.Refresh(t.Context()))
	require.NoError(t, s.catalog.Refresh(t.Context()))
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	v.get(server.URL + v.order(server.URL, "mug"))
	assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "coin_networks unknown field /result/0/undocumented 2 ")
	assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "At most 50 are listed.")
	var metrics struct {
		Attempts map[string]int `json:"gateway_attempts"`
		Drifts   int            `json:"gateway_drifts"`
	}
	require.NoError(t, json.Unmarshal([]byte(anna.get(server.URL+"/admin/metrics").text), &metrics))
	assert.Equal(t, 2, metrics.Attempts["coin_networks 200"])
	assert.Positive(t, metrics.Drifts)
}

func TestMoney_balancesAndLiveWithdrawals(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cfg.liveInterval = 20 * time.Millisecond
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	require.Equal(t, http.StatusSeeOther, anna.post(server.URL+"/admin/withdrawals", "id", id).status)
	first := h.gw.Balances()[0]
	page := anna.get(server.URL + "/admin/money")
	assert.Contains(t, page.text, `aria-live="polite" aria-atomic="true"`, "changes are announced")
	visibleText := page.visibleText()
	assert.Contains(t, visibleText, "The last 20 added are shown.")
	assert.Contains(t, visibleText, first.CoinSymbol+" on "+first.NetworkName+" "+first.Balance)
	assert.Contains(t, visibleText, "PENDING 50 USDT on Tron T-somewhere "+id)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/admin/withdrawals/live", nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Jar: anna}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var events []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if lines.Text() == "" {
			continue
		}
		if events = append(events, lines.Text()); len(events) == 2 {
			require.NoError(t, h.gw.SetWithdrawalStatus(id, "COMPLETED"))
		}
	}
	require.Len(t, events, 6, "%q", events)
	assert.Contains(t, events[1], `"status":"PENDING"`)
	assert.Contains(t, events[3], `"status":"COMPLETED"`)
	assert.Equal(t, "event: end", events[4])

	h.gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.Refuse(403, "no"))
	assert.Contains(t, anna.get(server.URL+"/admin/money").visibleText(), "temporarily unavailable")
}

// The page waits for the gateway only briefly, not until the client gives
// up.
func TestMoney_gatewayDoesNotRespond(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	s.gatewayWait = 50 * time.Millisecond
	anna := newVisitor(t).logIn(server.URL)
	const watchedCount = 9
	for i := range watchedCount {
		require.NoError(t, s.watched.add(t.Context(), strconv.Itoa(i), "Anna"))
	}
	h.gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.Stall())
	res := anna.get(server.URL + "/admin/money")
	assert.Equal(t, http.StatusOK, res.status)
	assert.Equal(t, watchedCount, strings.Count(res.visibleText(), "temporarily unavailable"))
	assert.Contains(t, res.visibleText(), "The balance is not available at the moment.")
	assert.LessOrEqual(t, len(h.gw.Requests()), 5, "no request is repeated")
}

// The order guard has precedence over the recorded state.
func TestOverview_guardHasPrecedence(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.orderWithFault(newVisitor(t), server.URL, "mug", gatewaytest.Reset())
	for _, stale := range []state{stateRefused, stateUnsent} {
		require.NoError(t, s.orders.updateState(t.Context(), id, stateUnknown, stale))
		assert.Contains(t, anna.get(server.URL+"/admin").text, "unknown 1, refused 0, unsent 0")
	}
}

func TestOverview_listsOldestUnknown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.orderWithFault(newVisitor(t), server.URL, "mug", gatewaytest.Reset())
	for i := range maxListed {
		other := "another program's " + strconv.Itoa(i)
		require.NoError(t, s.guard.Begin(t.Context(), other, false))
		require.NoError(t, s.guard.End(t.Context(), other, gateway.OutcomeUnknown))
	}
	res := anna.get(server.URL + "/admin")
	assert.Contains(t, res.visibleText(), "51 to look up at the gateway")
	assert.Contains(t, res.visibleText(), "The oldest 50 are shown.")
	assert.Contains(t, res.text, `<a href="/admin/orders/`+id+`">`)
	assert.Equal(t, maxListed-1, strings.Count(res.text, "(not of this shop)"))
	assert.NotContains(t, res.text, `/admin/orders/another`, "not linked")
}

func TestResolve_noteLength(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.orderWithFault(newVisitor(t), server.URL, "mug", gatewaytest.Reset())
	resolve := func(note string) response {
		return anna.post(server.URL+"/admin/orders/"+id, "attempts", "1", "found", "none", "note", note)
	}
	for _, long := range []string{strings.Repeat("€", 401), "6" + strings.Repeat(" ", 2048) + "7"} {
		res := resolve(long)
		assert.Equal(t, http.StatusUnprocessableEntity, res.status)
		assert.Contains(t, res.visibleText(), "The note is too long. Nothing was recorded.")
	}
	note := strings.Repeat("€", 400)
	require.Equal(t, http.StatusSeeOther, resolve(note).status)
	assert.Contains(t, anna.get(server.URL+"/admin/orders/"+id).visibleText(), note)
}
