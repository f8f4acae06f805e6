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

func TestCharts_bounds(t *testing.T) {
	t.Parallel()
	bars := newBars(map[state]int{stateCreated: 1000, stateOpen: 1})
	assert.Equal(t, barWidth, bars[2].Width)
	assert.Equal(t, 0, bars[1].Width)
	low, high := products()[4].Price, products()[3].Price
	assert.EqualValues(t, lineHeight, chartY(low, low, high))
	assert.EqualValues(t, 0, chartY(high, low, high))
	assert.EqualValues(t, lineHeight/2, chartY(low, low, low))
}

func TestCharts_formatRate(t *testing.T) {
	t.Parallel()
	for usd, want := range map[string]string{
		"64000.129": "64000.13", "100": "100.00", "99.99": "99.9900", "0.5": "0.5000", "0": "0.0000",
		"0.00001234": "0.00001234", "0.000000000000000001": "0.000000000000",
	} {
		assert.Equal(t, want, formatRate(decimal.RequireFromString(usd)))
	}
}

// newRates returns rates of the given number of coins.
func newRates(at time.Time, coins int) *gateway.ExchangeRates {
	rates := &gateway.ExchangeRates{FetchedAt: at, Raw: []byte("[]")}
	for i := range coins {
		rates.Rates = append(rates.Rates, gateway.Rate{CoinSymbol: fmt.Sprint("COIN", i), USD: decimal.NewNullDecimal(decimal.New(int64(i), 0))})
	}
	return rates
}

func TestHistory_size(t *testing.T) {
	t.Parallel()
	h, started := &rateHistory{}, time.Now()
	for i := range 2 * maxSamples {
		h.add(newRates(started.Add(time.Duration(i)*time.Millisecond), 3*lineCoins))
	}
	require.Len(t, h.samples, maxSamples)
	for _, s := range h.samples {
		require.Len(t, s.prices, lineCoins)
	}
	lines, since := h.sparklines()
	assert.Len(t, lines, lineCoins)
	assert.Equal(t, "COIN5", lines[5].Coin)
	assert.Equal(t, "5.0000", lines[5].Last)
	assert.False(t, since.Before(started.Add(maxSamples*time.Millisecond)), "since is the time of the first sample")
	h.add(newRates(started, 1))
	assert.Len(t, h.samples[maxSamples-1].prices, lineCoins, "older rates are ignored")
}

func TestHistory_window(t *testing.T) {
	t.Parallel()
	h, now := &rateHistory{}, time.Now()
	for _, ago := range []time.Duration{2 * time.Hour, historyWindow + time.Minute, historyWindow - time.Minute, 0} {
		h.add(newRates(now.Add(-ago), 1))
	}
	require.Len(t, h.samples, 2)
	assert.Equal(t, now.Add(time.Minute-historyWindow), h.samples[0].at)
}

// The history does not retain responses or long symbols.
func TestHistory_releasesResponses(t *testing.T) {
	t.Parallel()
	h := &rateHistory{}
	rates := newRates(time.Now(), 3)
	rates.Rates[1].CoinSymbol = "A-SYMBOL-THAT-IS-LONG"
	released := weak.Make(rates)
	h.add(rates)
	rates = nil
	runtime.GC()
	assert.Nil(t, released.Value())
	lines, _ := h.sparklines()
	require.Len(t, lines, 2)
	assert.Equal(t, "COIN2", lines[1].Coin)
}

func TestOverview_rates(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	anna := newVisitor(t).logIn(server.URL)
	none := anna.get(server.URL + "/admin")
	assert.Equal(t, http.StatusOK, none.status)
	assert.Contains(t, none.visibleText(), "No rates yet.")
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	s.history.add(newRates(at, 1))
	assert.Contains(t, anna.get(server.URL+"/admin").visibleText(),
		"Since 6 May 2024, 07:08:09 UTC, at most one hour, recorded by this process.")
}
