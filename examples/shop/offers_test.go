package main

import (
	"net/http"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alter changes what the database has of all orders.
func (st *stage) alter(s *shop, set string) {
	st.t.Helper()
	_, err := s.db.change(st.t.Context(), `UPDATE shop_orders SET `+set)
	require.NoError(st.t, err)
}

// An order on which nothing is chosen yet has the price of the shop, whatever
// it was when it was opened. Once it is chosen it stays.
func TestPrice_isThatOfNowUntilACoinIsChosen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		s, server := st.open()
		v := newVisitor(t)
		at := v.order(server.URL, "mug")
		st.alter(s, `price = '17', currency = 'eur'`)
		a := v.get(server.URL + at)
		assert.Contains(t, a.words(), "Stoneware mug $18.00")
		assert.Contains(t, a.text, `name="price" value="$18.00"`)
		o := st.read(s, at)
		assert.Equal(t, "18 usd", o.Price.String()+" "+o.Currency)

		v.pay(server.URL, at, st.pair("BTC", "Bitcoin"))
		st.alter(s, `price = '17'`)
		require.NoError(t, s.orders.reprice(t.Context(), o.ID, products()[0]))
		assert.Contains(t, v.get(server.URL+at).words(), "Invoice made for Stoneware mug, $17.00.")
	})
}

// Nobody pays a price that they have not seen.
func TestPrice_thatChangesOnTheWayIsShownFirst(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v := newVisitor(t)
	at, btc := v.order(server.URL, "mug"), st.pair("BTC", "Bitcoin")
	isShown := func(a answer, why string) {
		t.Helper()
		assert.Equal(t, http.StatusUnprocessableEntity, a.status, why)
		assert.Contains(t, a.words(), "The price has changed since you opened this page.")
		assert.Contains(t, a.words(), "Stoneware mug $18.00")
		assert.Zero(t, st.sent())
	}
	st.alter(s, `price = '17'`)
	isShown(v.post(server.URL+at+"/pay", "pair", btc), "no price was seen")
	isShown(v.post(server.URL+at+"/pay", "pair", btc, "price", "$17.00"), "the page was older than the order's price")
	require.Equal(t, at, v.post(server.URL+at+"/pay", "pair", btc, "price", "$18.00").location)
	assert.Equal(t, "18", decimal.RequireFromString(st.gw.Invoices()[0].Price).String())
}

func TestAmount_isFixedForItsPriceOnly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, st *stage) {
		s, server := st.open()
		at := newVisitor(t).order(server.URL, "mug")
		o := st.read(s, at)
		for _, change := range []string{`price = '17'`, `price = '18', currency = 'eur'`} {
			st.alter(s, change)
			now, problem, err := s.choose(t.Context(), o, formOf("pair", st.pair("BTC", "Bitcoin"), "price", "$18.00"))
			require.NoError(t, err)
			assert.Equal(t, repriced, problem, change)
			assert.Equal(t, stateOpen, now.State)
		}
		st.alter(s, `currency = 'usd'`)
		now, problem, err := s.choose(t.Context(), o, formOf("pair", st.pair("BTC", "Bitcoin"), "price", "$18.00"))
		require.NoError(t, err)
		assert.Empty(t, problem)
		assert.Equal(t, stateUnsent, now.State)
	})
}

func TestOrder_ofWhatIsNotSoldAnyMore(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v := newVisitor(t)
	at := v.order(server.URL, "mug")
	st.alter(s, `product = 'yacht'`)
	for _, a := range []answer{v.get(server.URL + at), v.pay(server.URL, at, st.pair("BTC", "Bitcoin"))} {
		assert.Equal(t, http.StatusGone, a.status)
		assert.Contains(t, a.words(), "This is not sold any more")
		assert.Contains(t, a.words(), "nothing is to be paid")
	}
	assert.Zero(t, st.sent())
}
