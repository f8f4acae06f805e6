package main

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func TestCharts_showWhatSmallCoinsCost(t *testing.T) {
	t.Parallel()
	for usd, want := range map[string]string{
		"64000.129": "64000.13", "100": "100.00", "99.99": "99.9900", "0.5": "0.5000", "0": "0.0000",
		"0.00001234": "0.00001234", "0.000000000000000001": "0.000000000000",
	} {
		assert.Equal(t, want, shortly(decimal.RequireFromString(usd)))
	}
}

// ratesAt are rates of so many coins.
func ratesAt(at time.Time, coins int) *gateway.ExchangeRates {
	rates := &gateway.ExchangeRates{FetchedAt: at, Raw: []byte("[]")}
	for i := range coins {
		rates.Rates = append(rates.Rates, gateway.Rate{CoinSymbol: fmt.Sprint("COIN", i), USD: decimal.New(int64(i), 0)})
	}
	return rates
}

func TestHistory_isBounded(t *testing.T) {
	t.Parallel()
	h, begun := &rateHistory{}, time.Now()
	for i := range 2 * maxSamples {
		h.add(ratesAt(begun.Add(time.Duration(i)*time.Millisecond), 3*lineCoins))
	}
	require.Len(t, h.seen, maxSamples)
	for _, s := range h.seen {
		require.Len(t, s.prices, lineCoins)
	}
	lines, since := h.lines()
	assert.Len(t, lines, lineCoins)
	assert.Equal(t, "COIN5", lines[5].Coin)
	assert.Equal(t, "5.0000", lines[5].Last)
	assert.False(t, since.Before(begun.Add(maxSamples*time.Millisecond)), "it says since when there are some")
	h.add(ratesAt(begun, 1))
	assert.Len(t, h.seen[maxSamples-1].prices, lineCoins, "older rates that come late")
}

func TestHistory_isOfAnHour(t *testing.T) {
	t.Parallel()
	h, now := &rateHistory{}, time.Now()
	for _, ago := range []time.Duration{2 * time.Hour, historyFor + time.Minute, historyFor - time.Minute, 0} {
		h.add(ratesAt(now.Add(-ago), 1))
	}
	require.Len(t, h.seen, 2)
	assert.Equal(t, now.Add(time.Minute-historyFor), h.seen[0].at)
}

// What is long, or not needed, is not kept for an hour.
func TestHistory_keepsNoAnswers(t *testing.T) {
	t.Parallel()
	h := &rateHistory{}
	rates := ratesAt(time.Now(), 3)
	rates.Rates[1].CoinSymbol = "A-SYMBOL-THAT-IS-LONG"
	answer := weak.Make(rates)
	h.add(rates)
	rates = nil
	runtime.GC()
	assert.Nil(t, answer.Value())
	lines, _ := h.lines()
	require.Len(t, lines, 2)
	assert.Equal(t, "COIN2", lines[1].Coin)
}

func TestOverview_saysOfWhatTheRatesAre(t *testing.T) {
	t.Parallel()
	s, server := newStage(t).open()
	anna := newVisitor(t).asMerchant(server.URL)
	none := anna.get(server.URL + "/admin")
	assert.Equal(t, http.StatusOK, none.status)
	assert.Contains(t, none.words(), "There are none yet.")
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	s.history.add(ratesAt(at, 1))
	assert.Contains(t, anna.get(server.URL+"/admin").words(),
		"Since 6 May 2024, 07:08:09 UTC, as this process has seen them: those of an hour at most, and none from before it started.")
}
