package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway"
)

func (s *session) withdrawalCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "withdrawal ID", Short: "Print a withdrawal, now or at its end", Args: cobra.ExactArgs(1),
		Long: `Prints the withdrawal with this identifier. With --wait it waits until the withdrawal is COMPLETED
or FAILED: on a terminal stderr shows the progress, and otherwise a line for each change. The exit
code after a wait is 6 if the withdrawal FAILED.`,
		Example: `  gateway withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10
  gateway withdrawal c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10 --wait --timeout 1h -o json`,
	}
	wait := c.Flags().Bool("wait", false, "wait until the withdrawal is COMPLETED or FAILED")
	every := c.Flags().Duration("every", 2*time.Second, "the minimum `time` between two inquiries of a wait; the maximum is ten times as long")
	return s.asks(c, 10*time.Minute, func(ctx context.Context, args []string) error {
		p := &progress{session: s, begun: time.Now()}
		client, err := s.client(gateway.WithObserver(gateway.Observer{Attempt: p.attempt}))
		if err != nil {
			return err
		}
		if *wait {
			return s.follow(ctx, client, args[0], gateway.WaitOptions{MinInterval: *every, MaxInterval: 10 * *every}, p)
		}
		w, err := client.Withdrawal(ctx, args[0])
		if err != nil {
			return err
		}
		return s.printFields(w)
	})
}

// follow waits until a withdrawal has ended, and prints it as it was last seen.
func (s *session) follow(ctx context.Context, client *gateway.Client, id string, wait gateway.WaitOptions, p *progress) error {
	p.waits = true
	var last *gateway.Withdrawal
	wait.Changed = func(w *gateway.Withdrawal) {
		last = w
		p.changed(w)
	}
	_, failed := client.WaitWithdrawal(ctx, id, wait)
	p.end()
	if last == nil {
		return failed
	}
	return errors.Join(failed, s.printFields(last))
}

// lineWidth is the width of the progress line in columns: so few that it never wraps, because a wrapped line could not
// be overwritten.
const lineWidth = 64

// A progress shows on stderr how a wait goes on: on a terminal as a line that every inquiry rewrites, otherwise as a line
// for each change. The wait and its observer are one goroutine.
type progress struct {
	*session
	waits  bool
	begun  time.Time
	status string // the last one
	failed bool   // whether the last inquiry failed
}

// changed shows a withdrawal that has changed.
func (p *progress) changed(w *gateway.Withdrawal) {
	p.status = printable(string(w.Status))
	if p.terminal {
		p.rewrite()
	} else {
		p.tell("%s %s: %s", time.Now().UTC().Format(time.RFC3339), w.WithdrawRequestID, w.Status)
	}
}

// attempt shows that an inquiry has ended.
func (p *progress) attempt(_ context.Context, a gateway.Attempt) {
	p.failed = a.Err != nil
	if p.waits && p.terminal {
		p.rewrite()
	}
}

func (p *progress) rewrite() {
	text := fmt.Sprintf("%.24s, waited %s", cmp.Or(p.status, "not seen yet"), time.Since(p.begun).Truncate(time.Second))
	if p.failed {
		text += ", the last inquiry failed"
	}
	_, _ = fmt.Fprintf(p.err, "\r%-*.*s", lineWidth, lineWidth, text) // there is nowhere left to report it
}

// end removes the line, and the ^C that a terminal prints after it.
func (p *progress) end() {
	if p.terminal {
		_, _ = fmt.Fprintf(p.err, "\r%*s\r", lineWidth+len("^C"), "")
	}
}
