package main

import (
	"context"
	"errors"
	"image/color"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/shopspring/decimal"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// maxFollowed limits the number of withdrawals on the page.
const maxFollowed = 20

func (s *shop) follow(ctx context.Context, id, by string) error {
	_, err := s.db.change(ctx, `INSERT INTO shop_withdrawals (id, added_by, added_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
		id, by, utcNow())
	return err
}

// A withdrawalRow is a withdrawal that the merchant follows, or why it cannot be shown.
type withdrawalRow struct {
	ID, Problem string
	*gateway.Withdrawal
}

// loadWithdrawals requests the withdrawals that were added last, a few at a time.
func (s *shop) loadWithdrawals(ctx context.Context) ([]withdrawalRow, error) {
	var all []withdrawalRow
	if err := sqlscan.Select(ctx, s.db, &all, `SELECT id FROM shop_withdrawals ORDER BY added_at DESC, id LIMIT $1`, maxFollowed); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.pageTimeout/2)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(4)
	for i := range all {
		group.Go(func() (err error) {
			all[i].Withdrawal, err = s.client.Withdrawal(ctx, all[i].ID)
			if errors.Is(err, gateway.ErrNotFound) {
				all[i].Problem = "The gateway does not know it."
			} else if err != nil {
				all[i].Problem = "Not available at the moment."
			}
			return nil
		})
	}
	_ = group.Wait() // a withdrawal that is not available does not hide the others
	return all, nil
}

// A moneyPage holds the merchant's balance and withdrawals.
type moneyPage struct {
	Balance     *gateway.Balance // nil if it is not available
	Age         time.Duration    // of the balance
	Withdrawals []withdrawalRow
	Most        int    // the number of withdrawals on the page, at most
	ID, Problem string // of the form
}

func (s *shop) renderMoney(w http.ResponseWriter, r *http.Request, status int, id, problem string) (err error) {
	page := moneyPage{ID: id, Problem: problem, Most: maxFollowed}
	if page.Withdrawals, _, err = s.withdrawals.Get(r.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.pageTimeout/2)
	defer cancel()
	if page.Balance, page.Age, err = s.balance.Get(ctx); err != nil {
		s.logger.WarnContext(ctx, "no balance", "error", err)
	}
	page.Age = page.Age.Truncate(time.Second)
	return s.render(w, r, status, "money", "Money", page)
}

// followWithdrawal adds a withdrawal to the list if the gateway knows it.
func (s *shop) followWithdrawal(w http.ResponseWriter, r *http.Request) error {
	id := singleLine(r.PostFormValue("id"), 256)
	switch _, err := s.client.Withdrawal(r.Context(), id); {
	case errors.Is(err, gateway.ErrInvalidArgument):
		return s.renderMoney(w, r, http.StatusUnprocessableEntity, id, "This is not the number of a withdrawal.")
	case errors.Is(err, gateway.ErrNotFound):
		return s.renderMoney(w, r, http.StatusUnprocessableEntity, id, "The gateway has no withdrawal with this number.")
	case err != nil:
		return err
	}
	if err := s.follow(r.Context(), id, merchant(r.Context())); err != nil {
		return err
	}
	s.withdrawals.Expire()
	return redirect(w, r, "/admin/money")
}

// A rateHistory has the rates that this process received in the last hour.
type rateHistory struct {
	mu      sync.Mutex
	samples []gateway.ExchangeRates // what the charts need of them
}

// maxCharts limits the number of coins with a chart.
const maxCharts = 6

// add stores rates that are newer than the latest sample.
func (h *rateHistory) add(rates *gateway.ExchangeRates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.samples); n > 0 && !rates.FetchedAt.After(h.samples[n-1].FetchedAt) {
		return
	}
	few := slices.Clone(rates.Rates[:min(len(rates.Rates), maxCharts)])
	h.samples = append(h.samples, gateway.ExchangeRates{Rates: few, FetchedAt: rates.FetchedAt})
	h.samples = slices.DeleteFunc(h.samples, func(s gateway.ExchangeRates) bool { return time.Since(s.FetchedAt) > time.Hour })
}

// sampleRates adds the current rates to the history.
func (s *shop) sampleRates(ctx context.Context) {
	if rates, err := s.rates.Get(ctx); err == nil {
		s.history.add(rates)
	}
}

// ratesOfCoin are the rates of a coin in US dollars.
type ratesOfCoin struct {
	Low, High, Last decimal.Decimal
	points          plotter.XYs
}

// coins returns the rates by coin, and the time of the first.
func (h *rateHistory) coins() (all map[string]ratesOfCoin, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all = map[string]ratesOfCoin{}
	for _, s := range h.samples {
		for _, rate := range s.Rates {
			usd, ok := rate.In("usd")
			if !ok {
				continue
			}
			c, known := all[rate.CoinSymbol]
			if !known {
				c = ratesOfCoin{Low: usd, High: usd}
			}
			c.Low, c.High, c.Last = decimal.Min(c.Low, usd), decimal.Max(c.High, usd), usd
			c.points = append(c.points, plotter.XY{X: float64(s.FetchedAt.Unix()), Y: usd.InexactFloat64()}) // of a drawing, not of an amount
			all[rate.CoinSymbol] = c
		}
	}
	if len(h.samples) > 0 {
		since = h.samples[0].FetchedAt
	}
	return all, since
}

// showCoins shows the catalog, with the reason why buyers do not see a coin, and the
// rates of the last hour.
func (s *shop) showCoins(w http.ResponseWriter, r *http.Request) error {
	q, err := s.quote(r.Context(), product{Price: decimal.NewFromInt(100), Currency: "usd"}) // any price
	if err != nil {
		return err
	}
	rates, since := s.history.coins()
	return s.render(w, r, http.StatusOK, "coins", "Coins", map[string]any{"Offers": q.All, "Rates": rates, "Since": since})
}

// showChart draws the rates of a coin. The page has the numbers as text.
func (s *shop) showChart(w http.ResponseWriter, r *http.Request) error {
	rates, _ := s.history.coins()
	coin, known := rates[r.PathValue("coin")]
	if !known {
		return notFound()
	}
	line, err := plotter.NewLine(coin.points)
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
