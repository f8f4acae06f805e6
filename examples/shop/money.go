package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// A watchList stores the withdrawals that the merchant follows, because the
// gateway does not list them.
type watchList struct{ db *database }

// A watchedWithdrawal is a row of shop_withdrawals.
type watchedWithdrawal struct {
	ID, AddedBy string
	AddedAt     timestamp
}

// maxWatched limits the number of withdrawals on the page.
const maxWatched = 20

func (l watchList) add(ctx context.Context, id, by string) error {
	_, err := l.db.change(ctx, `INSERT INTO shop_withdrawals (id, added_by, added_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
		id, by, timestampNow().text())
	return err
}

// newest returns the withdrawals that were added last.
func (l watchList) newest(ctx context.Context) (all []watchedWithdrawal, err error) {
	rows, err := l.db.QueryContext(ctx, l.db.text(`SELECT id, added_by, added_at FROM shop_withdrawals ORDER BY added_at DESC, id LIMIT $1`), maxWatched)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var row watchedWithdrawal
		if err := rows.Scan(&row.ID, &row.AddedBy, &row.AddedAt); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// A moneyPage holds the merchant's balance and withdrawals.
type moneyPage struct {
	Balance     *gateway.Balance // nil if it is not available
	Age         time.Duration
	Withdrawals []withdrawalRow
	Most        int    // the maximum number of withdrawals shown
	ID, Problem string // of the form
}

// A withdrawalRow holds the current state of a withdrawal.
type withdrawalRow struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Amount      string `json:"amount"`
	Destination string `json:"destination"`
}

func (s *shop) showMoney(w http.ResponseWriter, r *http.Request) error {
	return s.renderMoney(w, r, http.StatusOK, "", "")
}

// renderMoney renders the page with what the gateway returns within
// s.gatewayWait.
func (s *shop) renderMoney(w http.ResponseWriter, r *http.Request, status int, id, problem string) error {
	watched, err := s.watched.newest(r.Context())
	if err != nil {
		return err
	}
	page := moneyPage{ID: id, Problem: problem, Most: maxWatched}
	ctx, cancel := context.WithTimeout(r.Context(), s.gatewayWait)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { page.Withdrawals = s.loadWithdrawals(ctx, watched) })
	if page.Balance, err = s.balance.Get(ctx); err != nil {
		s.logger.WarnContext(ctx, "no balance", "error", err)
	}
	wg.Wait()
	page.Age = s.balance.Age().Truncate(time.Second)
	return s.render(w, r, status, "money", "Money", page)
}

// loadWithdrawals requests the withdrawals, a few at a time, until ctx ends.
func (s *shop) loadWithdrawals(ctx context.Context, watched []watchedWithdrawal) []withdrawalRow {
	all, slots := make([]withdrawalRow, len(watched)), make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, row := range watched {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i] = newWithdrawalRow(row.ID)(s.client.Withdrawal(ctx, row.ID))
		})
	}
	wg.Wait()
	return all
}

// newWithdrawalRow formats a withdrawal, or the reason why it is not
// available.
func newWithdrawalRow(id string) func(*gateway.Withdrawal, error) withdrawalRow {
	return func(withdrawal *gateway.Withdrawal, err error) withdrawalRow {
		switch {
		case errors.Is(err, gateway.ErrNotFound):
			return withdrawalRow{ID: id, Status: "unknown to the gateway"}
		case err != nil:
			return withdrawalRow{ID: id, Status: "temporarily unavailable"}
		}
		return withdrawalRow{
			id, printable(string(withdrawal.Status)), formatAmount(withdrawal.Amount) + " " + printable(withdrawal.Coin) + " on " + printable(withdrawal.Network),
			printable(withdrawal.Destination),
		}
	}
}

// addWithdrawal adds a withdrawal to the list if the gateway knows it.
func (s *shop) addWithdrawal(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	id := singleLine(r.PostForm.Get("id"), 256)
	switch _, err := s.client.Withdrawal(r.Context(), id); {
	case errors.Is(err, gateway.ErrInvalidArgument):
		return s.renderMoney(w, r, http.StatusUnprocessableEntity, id, "This is not a withdrawal request ID.")
	case errors.Is(err, gateway.ErrNotFound):
		return s.renderMoney(w, r, http.StatusUnprocessableEntity, id, "The gateway has no withdrawal with this ID.")
	case err != nil:
		return err
	}
	if err := s.watched.add(r.Context(), id, merchant(r.Context())); err != nil {
		return err
	}
	http.Redirect(w, r, "/admin/money", http.StatusSeeOther)
	return nil
}

// streamWithdrawals sends every change of the withdrawals on the page until
// all of them are final or the merchant's session ends.
func (s *shop) streamWithdrawals(w http.ResponseWriter, r *http.Request) error {
	watched, err := s.watched.newest(r.Context())
	if err != nil {
		return err
	}
	release, err := acquireSlot(s.merchantStreams)
	if err != nil {
		return err
	}
	defer release()
	st, err := s.openStream(w, r)
	if err != nil {
		return err
	}
	defer st.close()
	changes := make(chan withdrawalRow)
	var watches sync.WaitGroup
	for _, row := range watched {
		watches.Go(func() { s.watch(st, row.ID, changes) })
	}
	go func() { watches.Wait(); close(changes) }()
	for change := range changes {
		if name, err := s.sessions.merchantName(r); err != nil || name == "" || st.send("withdrawal", change) != nil {
			st.cancel() // the client or the session is gone: end the watches
		}
	}
	if st.Err() == nil {
		_ = st.send("end", nil) // the page must not reconnect
	}
	return nil
}

// watch sends every change of a withdrawal to changes.
func (s *shop) watch(ctx context.Context, id string, changes chan<- withdrawalRow) {
	for withdrawal, err := range s.client.WatchWithdrawal(ctx, id, gateway.WaitOptions{MinInterval: s.cfg.liveInterval}) {
		if ctx.Err() != nil {
			return
		}
		select {
		case changes <- newWithdrawalRow(id)(withdrawal, err):
		case <-ctx.Done():
			return
		}
	}
}
