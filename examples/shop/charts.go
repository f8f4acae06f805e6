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

// rateHistory keeps the rates of the last hour, as this process has seen them
// since it started.
type rateHistory struct {
	mu   sync.Mutex
	seen []sample
}

// A sample is what the charts need of the rates of one time. The answer that
// they came in may be large, and is not kept.
type sample struct {
	at     time.Time
	prices []price // of lineCoins at most, in the order of the gateway
}

// A price is what one unit of a coin costs in US dollars.
type price struct {
	coin string
	usd  decimal.Decimal
}

// How far back samples are kept, how many of them, and how long the name of a
// coin is in one.
const (
	historyFor = time.Hour
	maxSamples = 720 // one for every five seconds
	maxSymbol  = 16
)

// add keeps rates that are newer than those before.
func (h *rateHistory) add(rates *gateway.ExchangeRates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.seen); n > 0 && !rates.FetchedAt.After(h.seen[n-1].at) {
		return
	}
	h.seen = append(h.seen, sampleOf(rates))
	old := max(len(h.seen)-maxSamples, 0)
	for old < len(h.seen)-1 && time.Since(h.seen[old].at) > historyFor {
		old++
	}
	h.seen = slices.Delete(h.seen, 0, old)
}

func sampleOf(rates *gateway.ExchangeRates) sample {
	s := sample{at: rates.FetchedAt, prices: make([]price, 0, lineCoins)}
	for _, rate := range rates.Rates {
		if len(s.prices) < lineCoins && len(rate.CoinSymbol) <= maxSymbol {
			s.prices = append(s.prices, price{strings.Clone(rate.CoinSymbol), rate.USD})
		}
	}
	return s
}

// of returns what a coin cost.
func (s sample) of(coin string) (usd decimal.Decimal, ok bool) {
	for _, p := range s.prices {
		if p.coin == coin {
			return p.usd, true
		}
	}
	return usd, false
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
	for _, p := range seen[len(seen)-1].prices {
		lines = append(lines, lineOf(p.coin, seen))
	}
	return lines, stamp{seen[0].at}
}

// thin leaves out what would not be seen, but not the last.
func thin(seen []sample) []sample {
	step := len(seen)/linePoints + 1
	var kept []sample
	for i := (len(seen) - 1) % step; i >= 0 && i < len(seen); i += step {
		kept = append(kept, seen[i])
	}
	return kept
}

func lineOf(coin string, seen []sample) sparkline {
	var low, high, last decimal.Decimal
	prices, times := []decimal.Decimal{}, []time.Time{}
	for _, s := range seen {
		usd, ok := s.of(coin)
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
	span := max(seen[len(seen)-1].at.Sub(seen[0].at), 1)
	for i, usd := range prices {
		x := times[i].Sub(seen[0].at) * lineWidth / span
		fmt.Fprintf(&points, "%d,%d ", x, heightOf(usd, low, high))
	}
	return sparkline{coin, strings.TrimSpace(points.String()), shortly(low), shortly(high), shortly(last)}
}

// maxShort bounds how many places a price of a chart has.
const maxShort = 12

// shortly is a price as a chart needs it: nobody pays by it. Four digits
// of it are seen, however small it is.
func shortly(usd decimal.Decimal) string {
	if usd.GreaterThanOrEqual(decimal.NewFromInt(100)) {
		return usd.StringFixed(2)
	}
	places := int32(4)
	for usd.IsPositive() && usd.LessThan(decimal.New(1, 3-places)) && places < maxShort {
		places++
	}
	return usd.StringFixed(places)
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
