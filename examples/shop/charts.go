package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
)

// rateHistory stores the rates that this process received in the last hour.
type rateHistory struct {
	mu      sync.Mutex
	samples []sample
}

// A sample holds the part of a rates response that the charts need. The
// response itself may be large and is not retained.
type sample struct {
	at     time.Time
	prices []price // at most lineCoins, in the gateway's order
}

// A price is the price of one unit of a coin in US dollars.
type price struct {
	coin string
	usd  decimal.Decimal
}

// Limits of the history: its time window, the number of samples, and the
// length of a coin symbol.
const (
	historyWindow = time.Hour
	maxSamples    = 720 // one every five seconds
	maxSymbol     = 16
)

// add stores rates that are newer than the latest sample.
func (h *rateHistory) add(rates *gateway.ExchangeRates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.samples); n > 0 && !rates.FetchedAt.After(h.samples[n-1].at) {
		return
	}
	h.samples = append(h.samples, newSample(rates))
	old := max(len(h.samples)-maxSamples, 0)
	for old < len(h.samples)-1 && time.Since(h.samples[old].at) > historyWindow {
		old++
	}
	h.samples = slices.Delete(h.samples, 0, old)
}

func newSample(rates *gateway.ExchangeRates) sample {
	s := sample{at: rates.FetchedAt, prices: make([]price, 0, lineCoins)}
	for _, rate := range rates.Rates {
		if usd, ok := rate.In("usd"); ok && len(s.prices) < lineCoins && len(rate.CoinSymbol) <= maxSymbol {
			s.prices = append(s.prices, price{strings.Clone(rate.CoinSymbol), usd})
		}
	}
	return s
}

// priceOf returns the price of a coin.
func (s sample) priceOf(coin string) (usd decimal.Decimal, ok bool) {
	for _, p := range s.prices {
		if p.coin == coin {
			return p.usd, true
		}
	}
	return usd, false
}

// sampleRates records rates until ctx ends.
func (s *shop) sampleRates(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.ratesTTL)
	defer ticker.Stop()
	for {
		if rates, err := s.rates.Get(ctx); err == nil {
			s.history.add(rates)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// A sparkline is the chart of one coin's rate.
type sparkline struct {
	Coin            string
	Points          string // of a polyline in a box of lineWidth × lineHeight
	Low, High, Last string // in US dollars
}

// The size of a sparkline, and the number of coins and points drawn.
const (
	lineWidth, lineHeight = 240, 56
	lineCoins             = 6
	linePoints            = 120
)

// sparklines draws the coins that the gateway lists first. since is the time
// of the first sample.
func (h *rateHistory) sparklines() (lines []sparkline, since timestamp) {
	h.mu.Lock()
	samples := downsample(h.samples)
	h.mu.Unlock()
	if len(samples) == 0 {
		return nil, timestamp{}
	}
	for _, p := range samples[len(samples)-1].prices {
		lines = append(lines, newSparkline(p.coin, samples))
	}
	return lines, timestamp{samples[0].at}
}

// downsample reduces the samples to about linePoints and keeps the last one.
func downsample(samples []sample) []sample {
	step := len(samples)/linePoints + 1
	var result []sample
	for i := (len(samples) - 1) % step; i >= 0 && i < len(samples); i += step {
		result = append(result, samples[i])
	}
	return result
}

func newSparkline(coin string, samples []sample) sparkline {
	var low, high, last decimal.Decimal
	prices, times := []decimal.Decimal{}, []time.Time{}
	for _, s := range samples {
		usd, ok := s.priceOf(coin)
		if !ok {
			continue
		}
		last = usd
		if len(prices) == 0 {
			low, high = last, last
		}
		low, high = decimal.Min(low, last), decimal.Max(high, last)
		prices, times = append(prices, last), append(times, s.at)
	}
	var points strings.Builder
	span := max(samples[len(samples)-1].at.Sub(samples[0].at), 1)
	for i, usd := range prices {
		x := times[i].Sub(samples[0].at) * lineWidth / span
		fmt.Fprintf(&points, "%d,%d ", x, chartY(usd, low, high))
	}
	return sparkline{coin, strings.TrimSpace(points.String()), formatRate(low), formatRate(high), formatRate(last)}
}

// maxRateScale limits the decimal places of a formatted rate.
const maxRateScale = 12

// formatRate formats a rate for a chart. It is for display only and shows
// four significant digits, however small the rate is.
func formatRate(usd decimal.Decimal) string {
	if usd.GreaterThanOrEqual(decimal.NewFromInt(100)) {
		return usd.StringFixed(2)
	}
	places := int32(4)
	for usd.IsPositive() && usd.LessThan(decimal.New(1, 3-places)) && places < maxRateScale {
		places++
	}
	return usd.StringFixed(places)
}

// chartY returns the y coordinate of a price: low is at the bottom of the
// box and high at its top.
func chartY(price, low, high decimal.Decimal) int64 {
	if high.Equal(low) {
		return lineHeight / 2
	}
	return high.Sub(price).Mul(decimal.NewFromInt(lineHeight)).Div(high.Sub(low)).IntPart()
}

// A bar shows the number of orders in one state.
type bar struct {
	State       state
	Count       int
	Y, TextY    int
	Width, EndX int
}

// The sizes of the bars.
const (
	barHeight, barGap = 22, 10
	barLeft, barWidth = 80, 260
)

func newBars(counts map[state]int) []bar {
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	var bars []bar
	for i, of := range states() {
		y, width := i*(barHeight+barGap), counts[of]*barWidth/most
		bars = append(bars, bar{of, counts[of], y, y + barHeight - 6, width, barLeft + width + 8})
	}
	return bars
}
