package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/shopspring/decimal"
	"golang.org/x/sync/errgroup"
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
			switch status := gateway.WithdrawalStatusOf(err); {
			case errors.Is(err, gateway.ErrNotFound):
				all[i].Problem = "The gateway does not know it."
			case status != "":
				all[i].Problem = "It is " + string(status) + ". The rest of the response cannot be read."
			case err != nil:
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
	Why         string           // it is not
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
		page.Why = singleLine(printable(err.Error()), maxPrintable)
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
	case err != nil && gateway.WithdrawalStatusOf(err) == "":
		return err
	}
	if err := s.follow(r.Context(), id, merchant(r.Context())); err != nil {
		return err
	}
	s.withdrawals.Expire()
	return redirect(w, r, "/admin/money")
}

// showCoins shows the catalog, with the reason why buyers do not see a coin, and the rates.
func (s *shop) showCoins(w http.ResponseWriter, r *http.Request) error {
	q, err := s.quote(r.Context(), product{Price: decimal.NewFromInt(100), Currency: "usd"}) // any price
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "coins", "Coins", q)
}
