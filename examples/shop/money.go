package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// A watchList keeps which withdrawals the merchant follows: the gateway does
// not list them.
type watchList struct{ db *database }

// A watchedWithdrawal is a row of shop_withdrawals.
type watchedWithdrawal struct {
	ID, AddedBy string
	AddedAt     stamp
}

// maxWatched bounds how many withdrawals are followed on the page.
const maxWatched = 20

func (l watchList) add(ctx context.Context, id, by string) error {
	_, err := l.db.change(ctx, `INSERT INTO shop_withdrawals (id, added_by, added_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
		id, by, stampNow().text())
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

// A moneyPage is what the merchant has, and what is on its way.
type moneyPage struct {
	Balance     *gateway.Balance // nil when it can not be had
	Age         time.Duration
	Withdrawals []progress
	Most        int    // how many withdrawals are shown
	ID, Problem string // of the form
}

// progress is where a withdrawal stands.
type progress struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Amount      string `json:"amount"`
	Destination string `json:"destination"`
}

func (s *shop) showMoney(w http.ResponseWriter, r *http.Request) error {
	return s.money(w, r, http.StatusOK, "", "")
}

// money shows the page within s.glance, with what the gateway has said by then.
func (s *shop) money(w http.ResponseWriter, r *http.Request, status int, id, problem string) error {
	watched, err := s.watched.newest(r.Context())
	if err != nil {
		return err
	}
	page := moneyPage{ID: id, Problem: problem, Most: maxWatched}
	ctx, cancel := context.WithTimeout(r.Context(), s.glance)
	defer cancel()
	var looking sync.WaitGroup
	looking.Go(func() { page.Withdrawals = s.look(ctx, watched) })
	if page.Balance, err = s.balance.Get(ctx); err != nil {
		s.logger.WarnContext(ctx, "no balance", "error", err)
	}
	looking.Wait()
	page.Age = s.balance.Age().Truncate(time.Second)
	return s.render(w, r, status, "money", "Money", page)
}

// look asks where withdrawals stand, a few at a time, until ctx ends.
func (s *shop) look(ctx context.Context, watched []watchedWithdrawal) []progress {
	all, asking := make([]progress, len(watched)), make(chan struct{}, 4)
	var done sync.WaitGroup
	for i, row := range watched {
		done.Go(func() {
			asking <- struct{}{}
			defer func() { <-asking }()
			all[i] = progressOf(row.ID)(s.client.Withdrawal(ctx, row.ID))
		})
	}
	done.Wait()
	return all
}

// progressOf puts what was seen of a withdrawal, or why it was not, in words.
func progressOf(id string) func(*gateway.Withdrawal, error) progress {
	return func(seen *gateway.Withdrawal, err error) progress {
		switch {
		case errors.Is(err, gateway.ErrNotFound):
			return progress{ID: id, Status: "not known to the gateway"}
		case err != nil:
			return progress{ID: id, Status: "can not be asked for just now"}
		}
		return progress{
			id, printable(string(seen.Status)), coins(seen.Amount) + " " + printable(seen.Coin) + " on " + printable(seen.Network),
			printable(seen.Destination),
		}
	}
}

// addWithdrawal follows one more withdrawal, if the gateway knows it.
func (s *shop) addWithdrawal(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	id := line(r.PostForm.Get("id"), 256)
	switch _, err := s.client.Withdrawal(r.Context(), id); {
	case errors.Is(err, gateway.ErrInvalidArgument):
		return s.money(w, r, http.StatusUnprocessableEntity, id, "That is not the number of a withdrawal.")
	case errors.Is(err, gateway.ErrNotFound):
		return s.money(w, r, http.StatusUnprocessableEntity, id, "The gateway knows no withdrawal of that number.")
	case err != nil:
		return err
	}
	if err := s.watched.add(r.Context(), id, merchant(r.Context())); err != nil {
		return err
	}
	http.Redirect(w, r, "/admin/money", http.StatusSeeOther)
	return nil
}

// streamWithdrawals sends every change of every withdrawal on the page, until
// all of them have ended, or the session of the merchant has.
func (s *shop) streamWithdrawals(w http.ResponseWriter, r *http.Request) error {
	watched, err := s.watched.newest(r.Context())
	if err != nil {
		return err
	}
	leave, err := place(s.desks)
	if err != nil {
		return err
	}
	defer leave()
	st, err := s.openStream(w, r)
	if err != nil {
		return err
	}
	defer st.close()
	changes := make(chan progress)
	var watches sync.WaitGroup
	for _, row := range watched {
		watches.Go(func() { s.watch(st, row.ID, changes) })
	}
	go func() { watches.Wait(); close(changes) }()
	for change := range changes {
		if name, err := s.sessions.who(r); err != nil || name == "" || st.send("withdrawal", change) != nil {
			st.cancel() // nobody reads, or nobody may: let the watches end
		}
	}
	if st.Err() == nil {
		_ = st.send("end", nil) // the page shall not open the stream again
	}
	return nil
}

// watch passes on what becomes of a withdrawal.
func (s *shop) watch(ctx context.Context, id string, changes chan<- progress) {
	for seen, err := range s.client.WatchWithdrawal(ctx, id, gateway.WaitOptions{MinInterval: s.cfg.tick}) {
		if ctx.Err() != nil {
			return
		}
		select {
		case changes <- progressOf(id)(seen, err):
		case <-ctx.Done():
			return
		}
	}
}
