package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lose makes an order whose answer is lost, and returns its number.
func (st *stage) lose(v *visitor, server, product string, trouble gatewaytest.Trouble) string {
	st.t.Helper()
	path := v.order(server, product)
	st.gw.Inject(gatewaytest.OpCreateInvoice, 1, trouble)
	v.pay(server, path, st.pair("BTC", "Bitcoin"))
	return strings.TrimPrefix(path, "/orders/")
}

func TestMerchantsPages_needThePassword(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	forged := newVisitor(t)
	forged.cookies[merchantCookie] = "eyJuYW1lIjoiRXZlIiwiZW5kcyI6IjIwOTktMDEtMDFUMDA6MDA6MDBaIn0.AAAA"
	for _, v := range []*visitor{newVisitor(t), forged} {
		for _, path := range []string{"/admin", "/admin/money", "/admin/metrics", "/admin/withdrawals/live", "/admin/orders/" + strings.Repeat("A", 26)} {
			a := v.get(server.URL + path)
			assert.Equal(t, http.StatusSeeOther, a.status, path)
			assert.Equal(t, "/admin/login", a.location)
		}
		for _, path := range []string{"/admin/withdrawals", "/admin/orders/" + strings.Repeat("A", 26)} {
			assert.Equal(t, "/admin/login", v.post(server.URL+path).location, path)
		}
	}
	v := newVisitor(t).asMerchant(server.URL)
	assert.Equal(t, http.StatusOK, v.get(server.URL+"/admin").status)
	assert.Contains(t, v.post(server.URL+"/admin/logout").header.Get("Set-Cookie"), "Max-Age=0")
}

func TestSession_endsWithItsTimeAndItsPassword(t *testing.T) {
	t.Parallel()
	one, err := newSessions("the first password", 1)
	require.NoError(t, err)
	two, err := newSessions("the second password", 1)
	require.NoError(t, err)
	cookie, err := one.cookie("Anna")
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	require.NoError(t, err)
	r.AddCookie(cookie)
	name, ok := one.who(r)
	assert.True(t, ok)
	assert.Equal(t, "Anna", name)
	_, ok = two.who(r)
	assert.False(t, ok, "another password")

	said := `{"name":"Anna","ends":"` + time.Now().Add(-time.Second).Format(time.RFC3339) + `"}`
	text := strings.TrimRight(jsonBase64(said), "=")
	r.Header.Set("Cookie", merchantCookie+"="+text+"."+one.sign(text))
	_, ok = one.who(r)
	assert.False(t, ok, "over")
}

func TestUnknown_isResolvedBothWays(t *testing.T) {
	t.Parallel()
	for found, test := range map[string]struct {
		trouble gatewaytest.Trouble
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
	created := st.lose(v, server.URL, "print", gatewaytest.Trouble{})
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
	st.gw.Inject(gatewaytest.OpCoinNetworks, 2, gatewaytest.DriftFields())
	s, server := st.open()
	require.NoError(t, s.catalog.Refresh(t.Context()))
	require.NoError(t, s.catalog.Refresh(t.Context()))
	v, anna := newVisitor(t), newVisitor(t).asMerchant(server.URL)
	v.get(server.URL + v.order(server.URL, "mug"))
	assert.Contains(t, anna.get(server.URL+"/admin").words(), "coin_networks unknown field /result/0/undocumented 2 ")
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
	words := anna.get(server.URL + "/admin/money").words()
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
			require.NoError(t, st.gw.AdvanceWithdrawal(id))
		}
	}
	require.Len(t, events, 6, "%q", events)
	assert.Contains(t, events[1], `"status":"PENDING"`)
	assert.Contains(t, events[3], `"status":"COMPLETED"`)
	assert.Equal(t, "event: end", events[4])

	st.gw.Inject(gatewaytest.AnyOperation, -1, gatewaytest.Refuse(403, "no"))
	assert.Contains(t, anna.get(server.URL+"/admin/money").words(), "can not be asked for just now")
}

func TestCharts_stayInTheirBox(t *testing.T) {
	t.Parallel()
	bars := barsOf(map[state]int{stateCreated: 1000, stateOpen: 1})
	assert.Equal(t, barWidth, bars[2].Width)
	assert.Equal(t, 0, bars[1].Width)
	low, high := products()[4].Price, products()[3].Price
	assert.EqualValues(t, lineHeight, heightOf(low, low, high))
	assert.EqualValues(t, 0, heightOf(high, low, high))
	assert.EqualValues(t, lineHeight/2, heightOf(low, low, low))
}
