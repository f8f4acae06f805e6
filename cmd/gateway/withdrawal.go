package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// waitTimeout is how long a wait may take.
const waitTimeout = 10 * time.Minute

// ids is for commands that take identifiers of withdrawals.
func ids() cobra.PositionalArgs { return cli.Args(1, manyArguments, "the ID of a withdrawal") }

func (s *session) withdrawalGetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "get ID...", Short: "The status of withdrawals", Args: ids(),
		Long: "Prints the withdrawals with these identifiers. The exit code is 0 whatever their status.",
		Example: `  gateway withdrawal get c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10
  gateway withdrawal get w-1 w-2 -o json`,
	}
	return s.asks(c, readTimeout, func(ctx context.Context, ids []string) error {
		client, err := s.client()
		if err != nil {
			return err
		}
		var found []gateway.Withdrawal
		var failed []error
		for _, id := range ids {
			w, err := client.Withdrawal(ctx, id)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			found = append(found, *w)
		}
		return errors.Join(append(failed, s.printWithdrawals(found))...)
	})
}

func (s *session) withdrawalWaitCommand() *cobra.Command {
	return s.follow(false, &cobra.Command{
		Use: "wait ID...", Short: "Waits until withdrawals are COMPLETED or FAILED", Args: ids(),
		Long: `Waits until all withdrawals with these identifiers are COMPLETED or FAILED, and prints them
then. On a terminal it shows the progress. The exit code is 6 if one FAILED, or has ended with a
status of --final or of the profile in GATEWAY_PROFILE.`,
		Example: `  gateway withdrawal wait w-1 w-2
  gateway withdrawal wait w-1 --timeout 1h --every 5s -o json`,
	})
}

func (s *session) withdrawalWatchCommand() *cobra.Command {
	return s.follow(true, &cobra.Command{
		Use: "watch ID...", Short: "Prints every change of withdrawals until they have ended", Args: ids(),
		Long: `Prints a line for every change of the withdrawals with these identifiers, until all are
COMPLETED or FAILED; with -o json each line is an object. On a terminal it shows the
progress. The exit code is 6 if one FAILED, or has ended with a status of --final or of the
profile in GATEWAY_PROFILE.`,
		Example: `  gateway withdrawal watch w-1
  gateway withdrawal watch w-1 w-2 --timeout 0`,
	})
}

// follow makes a command one that waits. With each it prints every change.
func (s *session) follow(each bool, c *cobra.Command) *cobra.Command {
	every := c.Flags().Duration("every", 2*time.Second, "the minimum `time` between two inquiries; the maximum is ten times as long")
	final := c.Flags().StringSlice("final", nil, "a further `status` that ends the wait, such as CANCELED; may be repeated")
	return s.asks(c, waitTimeout, func(ctx context.Context, ids []string) error {
		if n := duplicate(ids); n > 0 {
			return cli.Usage(c, fmt.Sprintf("identifier %d is the same as an earlier one", n))
		}
		f := &follower{session: s, each: each, shown: newProgress(s.Console, len(ids))}
		client, err := s.client(gateway.WithObserver(f.shown.observer()))
		if err != nil {
			return err
		}
		wait := gateway.WaitOptions{MinInterval: *every, MaxInterval: 10 * *every}
		for _, status := range *final {
			wait.Final = append(wait.Final, gateway.WithdrawalStatus(status))
		}
		return f.run(withdrawals(ctx, client, ids, wait, each))
	})
}

// duplicate returns the position, from 1, of the first text that repeats an earlier one, or
// 0 if none does.
func duplicate(texts []string) int {
	seen := map[string]bool{}
	for i, text := range texts {
		if seen[text] {
			return i + 1
		}
		seen[text] = true
	}
	return 0
}

// withdrawals yields withdrawals until all have ended: with each, or if there is only
// one, after every change.
func withdrawals(ctx context.Context, client *gateway.Client, ids []string, wait gateway.WaitOptions, each bool) iter.Seq2[*gateway.Withdrawal, error] {
	if !each && len(ids) > 1 {
		return client.WaitWithdrawals(ctx, ids, wait)
	}
	return func(yield func(*gateway.Withdrawal, error) bool) {
		type change struct {
			w   *gateway.Withdrawal
			err error
		}
		changes := make(chan change)
		var watching sync.WaitGroup
		for _, id := range ids {
			watching.Go(func() {
				for w, err := range client.WatchWithdrawal(ctx, id, wait) {
					changes <- change{w, err}
				}
			})
		}
		go func() {
			watching.Wait()
			close(changes)
		}()
		for c := range changes { // to the end: the follower never stops early
			_ = yield(c.w, c.err)
		}
	}
}

// A follower prints withdrawals as they change or end.
type follower struct {
	*session
	each   bool // whether every change is printed
	shown  *progress
	seen   []gateway.Withdrawal // what to print at the end
	failed []error
}

// run prints the withdrawals that the sequence yields.
func (f *follower) run(withdrawals iter.Seq2[*gateway.Withdrawal, error]) error {
	stop := f.shown.start()
	for w, err := range withdrawals {
		f.failed = append(f.failed, f.add(w, err))
	}
	stop()
	f.failed = append(f.failed, f.printWithdrawals(f.seen))
	return errors.Join(f.failed...)
}

// add takes one withdrawal or error from the sequence, and returns the error to report.
func (f *follower) add(w *gateway.Withdrawal, err error) error {
	if ended, ok := errors.AsType[*gateway.WithdrawalFailedError](err); ok {
		w, err = ended.Withdrawal, nil
	}
	if ended, ok := errors.AsType[*gateway.WaitError](err); ok && !f.each && ended.Last != nil {
		f.seen = append(f.seen, *ended.Last)
	}
	if w == nil {
		return err
	}
	if !f.each && w.Status.Terminal() {
		f.seen = append(f.seen, *w)
	}
	f.shown.changed(w)
	if f.each {
		err = errors.Join(err, f.shown.above(func() error { return f.printChange(w) }))
	}
	if w.Status == gateway.WithdrawalFailed {
		err = errors.Join(err, &gateway.WithdrawalFailedError{Withdrawal: w})
	}
	return err
}

// printChange prints a withdrawal in one line.
func (f *follower) printChange(w *gateway.Withdrawal) error {
	if f.format == cli.FormatJSON {
		return cli.EncodeJSON(f.Out, recordOf(w), "")
	}
	return f.Write(describe(w) + "\n")
}

func describe(w *gateway.Withdrawal) string {
	return cli.Printable(fmt.Sprintf("%s: %s, %s %s, fee %s, on %s to %s",
		w.WithdrawRequestID, w.Status, w.Amount, w.Coin, w.Fee, w.Network, w.Destination))
}

// A withdrawalRecord is a withdrawal as JSON.
type withdrawalRecord struct {
	WithdrawRequestID string                   `json:"withdrawRequestId"`
	Status            gateway.WithdrawalStatus `json:"status"`
	Amount            decimal.Decimal          `json:"amount"`
	Fee               decimal.Decimal          `json:"fee"`
	Coin              string                   `json:"coin"`
	Network           string                   `json:"network"`
	Destination       string                   `json:"destination"`
}

func recordOf(w *gateway.Withdrawal) withdrawalRecord {
	return withdrawalRecord{w.WithdrawRequestID, w.Status, w.Amount, w.Fee, w.Coin, w.Network, w.Destination}
}

// printWithdrawals prints withdrawals, or nothing if there are none.
func (s *session) printWithdrawals(all []gateway.Withdrawal) error {
	if len(all) == 0 {
		return nil
	}
	records := []withdrawalRecord{}
	var rows [][]string
	for _, w := range all {
		records = append(records, recordOf(&w))
		rows = append(rows, []string{w.WithdrawRequestID, string(w.Status), w.Amount.String(), w.Fee.String(), w.Coin, w.Network, w.Destination})
	}
	return s.printResult(records, []string{"ID", "STATUS", "AMOUNT", "FEE", "COIN", "NETWORK", "DESTINATION"}, rows)
}
