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

// lose makes an order whose answer is lost, and returns its number.
func (st *stage) lose(v *visitor, server, product string, trouble gatewaytest.Fault) string {
	st.t.Helper()
	path := v.order(server, product)
	st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, trouble)
	v.pay(server, path, st.pair("BTC", "Bitcoin"))
	return strings.TrimPrefix(path, "/orders/")
}

func TestUnknown_isResolvedBothWays(t *testing.T) {
	t.Parallel()
	for found, test := range map[string]struct {
		trouble gatewaytest.Fault
		heading string
		says    string
		pays    int // invoices once the buyer has gone on
	}{
		"exists": {gatewaytest.CommitThenDrop(), "Pay your order", "an invoice exists. number 7", 1},
		"none":   {gatewaytest.Reset(), "No invoice was made", "no invoice exists. number 7", 1},
	} {
		t.Run(found, func(t *testing.T) {
			t.Parallel()
			st := newStage(t)
			_, server := st.open()
			_, other := st.open()
			v, anna := newVisitor(t), newVisitor(t).asMerchant(server.URL)
			id := st.lose(v, server.URL, "mug", test.trouble)
			assert.Contains(t, anna.get(other.URL+"/admin").words(), "1 to look up at the gateway")
			record := anna.get(server.URL + "/admin/orders/" + id)
			assert.Contains(t, record.words(), "Last status no answer")
			assert.Contains(t, record.words(), "may exist, look it up")
			assert.Contains(t, record.text, `name="attempts" value="1"`)

			resolve := func(attempts string) answer {
				return anna.post(server.URL+"/admin/orders/"+id, "attempts", attempts, "found", found, "note", " number\n7 ")
			}
			assert.Equal(t, http.StatusConflict, resolve("2").status, "another attempt than the one that was seen")
			require.Equal(t, http.StatusSeeOther, resolve("1").status)
			assert.Contains(t, anna.get(server.URL+"/admin/orders/"+id).words(), "by Anna at "+time.Now().UTC().Format("2 Jan 2006"))
			assert.Contains(t, anna.get(server.URL+"/admin/orders/"+id).words(), test.says)
			assert.Equal(t, http.StatusConflict, resolve("1").status, "it is resolved")
			assert.NotContains(t, anna.get(other.URL+"/admin").words(), "to look up")
			assert.Contains(t, v.get(server.URL+"/orders/"+id).words(), test.heading)
			v.pay(server.URL, "/orders/"+id, "")
			assert.Contains(t, v.get(server.URL+"/orders/"+id).words(), "Pay your order")
			assert.Len(t, st.gw.InvoicesFor(id), test.pays)
		})
	}
}

// The invoice was recorded and the guard was not told, for the database was
// away just then: there is nothing to look up.
func TestUnknown_isResolvedWhereTheInvoiceIsAtHand(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		s, server := st.open()
		v, anna := newVisitor(t), newVisitor(t).asMerchant(server.URL)
		path := v.order(server.URL, "mug")
		v.pay(server.URL, path, st.pair("BTC", "Bitcoin"))
		_, err := s.db.change(t.Context(), `UPDATE gateway_orders SET token = $1, lease_until = begun_at, ended_at = NULL, outcome = NULL, created_at = NULL`, "of who began it")
		require.NoError(t, err)
		known, err := s.guard.Pending(t.Context())
		require.NoError(t, err)
		require.Len(t, known, 1)
		assert.NotContains(t, anna.get(server.URL+"/admin").words(), "to look up")
		assert.Contains(t, anna.get(server.URL+"/admin"+path).words(), "by the shop at")
		known, err = s.guard.Pending(t.Context())
		require.NoError(t, err)
		assert.Empty(t, known)
	})
}

func TestUnknown_keepsWhatTheGatewaySaid(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, server := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	id := st.lose(newVisitor(t), server.URL, "mug", gatewaytest.BadGateway())
	record := anna.get(server.URL + "/admin/orders/" + id)
	assert.Contains(t, record.words(), "Last status 502")
	assert.Contains(t, record.text, "Last body")
	assert.Contains(t, record.text, "&lt;html&gt;", "as a text, not as a page")
}

func TestOverview_listsByState(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v, anna := newVisitor(t), newVisitor(t).asMerchant(server.URL)
	require.NoError(t, s.rates.Refresh(t.Context()))
	for range 3 {
		(&standIn{st.gw}).moveRates()
		require.NoError(t, s.rates.Refresh(t.Context()))
		rates, err := s.rates.Get(t.Context())
		require.NoError(t, err)
		s.history.add(rates)
	}
	open := strings.TrimPrefix(v.order(server.URL, "mug"), "/orders/")
	refused := st.lose(v, server.URL, "lamp", gatewaytest.Refuse(400, "no"))
	created := st.lose(v, server.URL, "print", gatewaytest.Fault{})
	all := anna.get(server.URL + "/admin")
	assert.Contains(t, all.text, `aria-label="Orders by state: open 1, sending 0, created 1, unknown 0, refused 1, unsent 0, "`)
	assert.Contains(t, all.text, "<polyline points=\"0,")
	for of, id := range map[state]string{stateOpen: open, stateRefused: refused, stateCreated: created} {
		a := anna.get(server.URL + "/admin?state=" + string(of))
		for _, other := range []string{open, refused, created} {
			assert.Equal(t, other == id, strings.Contains(a.text, other), "%s in %s", other, of)
		}
	}
}

func TestDrift_isShownAndCounted(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.gw.InjectFault(gatewaytest.OpCoinNetworks, 2, gatewaytest.DriftFields())
	s, server := st.open()
	require.NoError(t, s.catalog.Refresh(t.Context()))
	require.NoError(t, s.catalog.Refresh(t.Context()))
	v, anna := newVisitor(t), newVisitor(t).asMerchant(server.URL)
	v.get(server.URL + v.order(server.URL, "mug"))
	assert.Contains(t, anna.get(server.URL+"/admin").words(), "coin_networks unknown field /result/0/undocumented 2 ")
	assert.Contains(t, anna.get(server.URL+"/admin").words(), "The first 50 places are listed.")
	var metrics struct {
		Attempts map[string]int `json:"gateway_attempts"`
		Drifts   int            `json:"gateway_drifts"`
	}
	require.NoError(t, json.Unmarshal([]byte(anna.get(server.URL+"/admin/metrics").text), &metrics))
	assert.Equal(t, 2, metrics.Attempts["coin_networks 200"])
	assert.Positive(t, metrics.Drifts)
}

func TestMoney_showsBalancesAndWithdrawalsThatMove(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.cfg.tick = 20 * time.Millisecond
	_, server := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	id := st.gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "T-somewhere", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	require.Equal(t, http.StatusSeeOther, anna.post(server.URL+"/admin/withdrawals", "id", id).status)
	first := st.gw.Balances()[0]
	page := anna.get(server.URL + "/admin/money")
	assert.Contains(t, page.text, `aria-live="polite" aria-atomic="true"`, "changes are read out")
	words := page.words()
	assert.Contains(t, words, "The 20 that were added last are shown.")
	assert.Contains(t, words, first.CoinSymbol+" on "+first.NetworkName+" "+first.Balance)
	assert.Contains(t, words, "PENDING 50 USDT on Tron T-somewhere "+id)

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
			require.NoError(t, st.gw.SetWithdrawalStatus(id, "COMPLETED"))
		}
	}
	require.Len(t, events, 6, "%q", events)
	assert.Contains(t, events[1], `"status":"PENDING"`)
	assert.Contains(t, events[3], `"status":"COMPLETED"`)
	assert.Equal(t, "event: end", events[4])

	st.gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.Refuse(403, "no"))
	assert.Contains(t, anna.get(server.URL+"/admin/money").words(), "can not be asked for just now")
}

// The page waits for the gateway a little, not as long as that takes to give up.
func TestMoney_isShownWhenTheGatewayHangs(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	s.glance = 50 * time.Millisecond
	anna := newVisitor(t).asMerchant(server.URL)
	const followed = 9
	for i := range followed {
		require.NoError(t, s.watched.add(t.Context(), strconv.Itoa(i), "Anna"))
	}
	st.gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.Stall())
	a := anna.get(server.URL + "/admin/money")
	assert.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, followed, strings.Count(a.words(), "can not be asked for just now"))
	assert.Contains(t, a.words(), "The gateway does not say just now.")
	assert.LessOrEqual(t, len(st.gw.Requests()), 5, "none is asked for twice, and none after the first")
}

// Whatever was recorded last, the order guard knows better.
func TestOverview_marksWhatIsUnknown(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	id := st.lose(newVisitor(t), server.URL, "mug", gatewaytest.Reset())
	for _, late := range []state{stateRefused, stateUnsent} {
		require.NoError(t, s.orders.settle(t.Context(), id, stateUnknown, late))
		assert.Contains(t, anna.get(server.URL+"/admin").text, "unknown 1, refused 0, unsent 0")
	}
}

func TestOverview_listsThoseThatHaveWaitedLongest(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	id := st.lose(newVisitor(t), server.URL, "mug", gatewaytest.Reset())
	for i := range maxListed {
		other := "another program's " + strconv.Itoa(i)
		require.NoError(t, s.guard.Begin(t.Context(), other, false))
		require.NoError(t, s.guard.End(t.Context(), other, gateway.OutcomeUnknown))
	}
	a := anna.get(server.URL + "/admin")
	assert.Contains(t, a.words(), "51 to look up at the gateway")
	assert.Contains(t, a.words(), "These 50 have waited longest; the others follow.")
	assert.Contains(t, a.text, `<a href="/admin/orders/`+id+`">`)
	assert.Equal(t, maxListed-1, strings.Count(a.text, "(not of this shop)"))
	assert.NotContains(t, a.text, `/admin/orders/another`, "there is no page of it")
}

func TestResolution_keepsTheWholeNote(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, server := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	id := st.lose(newVisitor(t), server.URL, "mug", gatewaytest.Reset())
	resolve := func(note string) answer {
		return anna.post(server.URL+"/admin/orders/"+id, "attempts", "1", "found", "none", "note", note)
	}
	for _, long := range []string{strings.Repeat("€", 401), "6" + strings.Repeat(" ", 2048) + "7"} {
		a := resolve(long)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status)
		assert.Contains(t, a.words(), "The note is too long. Nothing was recorded.")
	}
	note := strings.Repeat("€", 400)
	require.Equal(t, http.StatusSeeOther, resolve(note).status)
	assert.Contains(t, anna.get(server.URL+"/admin/orders/"+id).words(), note)
}
