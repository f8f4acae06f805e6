package main

import (
	"context"
	"image/color"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A rateHistory has the rates that this process received in the last hour.
type rateHistory struct {
	mu      sync.Mutex
	samples []sample
}

// A sample is the part of a response that the charts need.
type sample struct {
	at  time.Time
	usd map[string]decimal.Decimal
}

// Limits of the history.
const (
	historyWindow = time.Hour
	maxSamples    = 720
	maxCharts     = 6
)

// add stores rates that are newer than the latest sample.
func (h *rateHistory) add(rates *gateway.ExchangeRates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.samples); n > 0 && !rates.FetchedAt.After(h.samples[n-1].at) {
		return
	}
	s := sample{rates.FetchedAt, map[string]decimal.Decimal{}}
	for _, rate := range rates.Rates {
		if usd, ok := rate.In("usd"); ok && len(s.usd) < maxCharts {
			s.usd[strings.Clone(rate.CoinSymbol)] = usd
		}
	}
	h.samples = append(h.samples, s)
	h.samples = slices.DeleteFunc(h.samples, func(s sample) bool { return time.Since(s.at) > historyWindow })
	h.samples = slices.Delete(h.samples, 0, max(len(h.samples)-maxSamples, 0))
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

// ratesOfCoin are the rates of a coin in US dollars.
type ratesOfCoin struct {
	Coin            string
	Low, High, Last decimal.Decimal
	points          plotter.XYs
}

// coins returns the rates of all coins by symbol, and the time of the first.
func (h *rateHistory) coins() (all []ratesOfCoin, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	byCoin := map[string]*ratesOfCoin{}
	for _, s := range h.samples {
		for coin, usd := range s.usd {
			c, ok := byCoin[coin]
			if !ok {
				c = &ratesOfCoin{Coin: coin, Low: usd, High: usd}
				byCoin[coin] = c
			}
			c.Low, c.High, c.Last = decimal.Min(c.Low, usd), decimal.Max(c.High, usd), usd
			c.points = append(c.points, plotter.XY{X: float64(s.at.Unix()), Y: usd.InexactFloat64()}) // of a drawing, not of an amount
		}
	}
	for _, c := range byCoin {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b ratesOfCoin) int { return strings.Compare(a.Coin, b.Coin) })
	if len(h.samples) > 0 {
		since = h.samples[0].at
	}
	return all, since
}

// A coinsPage holds everything that the gateway lists, and the rates of the last hour.
type coinsPage struct {
	Offers []offer
	Rates  []ratesOfCoin
	Since  time.Time // the time of the first rate
}

// showCoins shows the catalog, with the reason why buyers do not see a coin.
func (s *shop) showCoins(w http.ResponseWriter, r *http.Request) error {
	catalog, err := s.catalog.Snapshot(r.Context())
	if err != nil {
		return err
	}
	rates, err := s.rates.Get(r.Context())
	if err != nil {
		return err
	}
	page := coinsPage{}
	page.Rates, page.Since = s.history.coins()
	hundred := product{Price: decimal.NewFromInt(100), Currency: "usd"} // a price for which to compute amounts
	for pair := range catalog.All() {
		page.Offers = append(page.Offers, newOffer(pair, catalog, rates, hundred))
	}
	return s.render(w, r, http.StatusOK, "coins", "Coins", page)
}

// showChart draws the rates of a coin. The page has the numbers as text.
func (s *shop) showChart(w http.ResponseWriter, r *http.Request) error {
	coins, _ := s.history.coins()
	i := slices.IndexFunc(coins, func(c ratesOfCoin) bool { return c.Coin == r.PathValue("coin") })
	if i < 0 {
		return notFound()
	}
	line, err := plotter.NewLine(coins[i].points)
	if err != nil {
		return err
	}
	line.Width, line.Color = vg.Points(2), color.RGBA{R: 0x2a, G: 0x8f, B: 0x86, A: 0xff} // seen on white and on black
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.HideAxes()
	p.Add(line)
	image, err := p.WriterTo(vg.Points(240), vg.Points(56), "svg")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, err = image.WriteTo(w)
	return err
}
