package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
)

// rateHistory keeps the rates of the last hour, as this process has seen them.
type rateHistory struct {
	mu   sync.Mutex
	seen []*gateway.ExchangeRates
}

// historyFor is how far back rates are kept.
const historyFor = time.Hour

// add keeps rates that are newer than those before.
func (h *rateHistory) add(rates *gateway.ExchangeRates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.seen); n > 0 && !rates.FetchedAt.After(h.seen[n-1].FetchedAt) {
		return
	}
	h.seen = append(h.seen, rates)
	for len(h.seen) > 1 && time.Since(h.seen[0].FetchedAt) > historyFor {
		h.seen = h.seen[1:]
	}
}

// sampleRates keeps the rates of the last hour until ctx ends.
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

// The box of a sparkline, and how much is drawn in it.
const (
	lineWidth, lineHeight = 240, 56
	lineCoins             = 6
	linePoints            = 120
)

// lines draws the coins that the gateway lists first, and says since when.
func (h *rateHistory) lines() (lines []sparkline, since stamp) {
	h.mu.Lock()
	seen := thin(h.seen)
	h.mu.Unlock()
	if len(seen) == 0 {
		return nil, stamp{}
	}
	for _, rate := range seen[len(seen)-1].Rates {
		if len(lines) < lineCoins {
			lines = append(lines, lineOf(rate.CoinSymbol, seen))
		}
	}
	return lines, stamp{seen[0].FetchedAt}
}

// thin leaves out what would not be seen, but not the last.
func thin(seen []*gateway.ExchangeRates) []*gateway.ExchangeRates {
	step := len(seen)/linePoints + 1
	var kept []*gateway.ExchangeRates
	for i := (len(seen) - 1) % step; i >= 0 && i < len(seen); i += step {
		kept = append(kept, seen[i])
	}
	return kept
}

func lineOf(coin string, seen []*gateway.ExchangeRates) sparkline {
	var low, high, last decimal.Decimal
	prices, times := []decimal.Decimal{}, []time.Time{}
	for _, rates := range seen {
		rate, ok := rates.Rate(coin)
		if !ok {
			continue
		}
		last = rate.USD
		if len(prices) == 0 {
			low, high = last, last
		}
		low, high = decimal.Min(low, last), decimal.Max(high, last)
		prices, times = append(prices, last), append(times, rates.FetchedAt)
	}
	var points strings.Builder
	span := max(seen[len(seen)-1].FetchedAt.Sub(seen[0].FetchedAt), 1)
	for i, price := range prices {
		x := times[i].Sub(seen[0].FetchedAt) * lineWidth / span
		fmt.Fprintf(&points, "%d,%d ", x, heightOf(price, low, high))
	}
	return sparkline{coin, strings.TrimSpace(points.String()), shortly(low), shortly(high), shortly(last)}
}

// shortly is a price as a chart needs it: nobody pays by it.
func shortly(price decimal.Decimal) string {
	if price.LessThan(decimal.NewFromInt(100)) {
		return price.StringFixed(4)
	}
	return price.StringFixed(2)
}

// heightOf is where a price lies between the lowest, at the bottom of the box,
// and the highest, at its top.
func heightOf(price, low, high decimal.Decimal) int64 {
	if high.Equal(low) {
		return lineHeight / 2
	}
	return high.Sub(price).Mul(decimal.NewFromInt(lineHeight)).Div(high.Sub(low)).IntPart()
}

// A bar is how many orders there are of a state.
type bar struct {
	State       state
	Count       int
	Y, TextY    int
	Width, EndX int
}

// The boxes of the bars.
const (
	barHeight, barGap = 22, 10
	barLeft, barWidth = 80, 260
)

func barsOf(counts map[state]int) []bar {
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
