package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// lineWidth is the width of the progress line in columns: few enough that it never
// wraps, because a wrapped line could not be overwritten.
const lineWidth = 64

// A progress is a line on a terminal that is rewritten every second while a command
// waits. Without a terminal it writes nothing. It observes the client, because the client
// does not yield unchanged withdrawals.
type progress struct {
	out   io.Writer // nil without a terminal
	total int       // how many withdrawals are waited for

	mu     sync.Mutex // guards the fields below and the line
	begun  time.Time
	asked  time.Time // of the last inquiry; zero before the first
	failed bool      // whether the last inquiry failed
	ended  int       // how many withdrawals have ended
	last   string    // the status that was seen last
}

func newProgress(c cli.Console, total int) *progress {
	p := &progress{total: total}
	if c.ErrTerminal {
		p.out = c.Err
	}
	return p
}

// start shows the line until stop is called, which removes it.
func (p *progress) start() (stop func()) {
	if p.out == nil {
		return func() {}
	}
	p.begun = time.Now()
	p.rewrite()
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		p.tick(done)
	}()
	return func() {
		close(done)
		<-over
		p.clear()
	}
}

// tick rewrites the line every second.
func (p *progress) tick(done <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.rewrite()
		case <-done:
			return
		}
	}
}

// changed is called with each withdrawal that has changed.
func (p *progress) changed(w *gateway.Withdrawal) {
	p.mu.Lock()
	p.last = cli.Printable(string(w.Status))
	if w.Status.Terminal() {
		p.ended++
	}
	p.mu.Unlock()
	p.rewrite()
}

// above calls write while the line is removed, so that both can have one terminal.
func (p *progress) above(write func() error) error {
	if p.out == nil {
		return write()
	}
	p.clear()
	defer p.rewrite()
	return write()
}

// observer returns what notes each inquiry.
func (p *progress) observer() gateway.Observer { return gateway.Observer{Attempt: p.attempt} }

func (p *progress) attempt(_ context.Context, a gateway.Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.failed = time.Now(), a.Err != nil
}

func (p *progress) rewrite() {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "\r%-*.*s", lineWidth, lineWidth, p.text())
}

// text returns the line: the status, the duration of the wait, and the time since
// the last inquiry. The lock is held.
func (p *progress) text() string {
	status := p.last
	switch {
	case p.total > 1:
		status = fmt.Sprintf("%d of %d have ended", p.ended, p.total)
	case status == "":
		status = "not seen yet"
	}
	text := fmt.Sprintf("%.24s, waited %s", status, since(p.begun))
	if !p.asked.IsZero() {
		text += fmt.Sprintf(", asked %s ago", since(p.asked))
	}
	if p.failed {
		text += " (failed)"
	}
	return text
}

// since returns the time since then in whole seconds.
func since(then time.Time) time.Duration { return time.Since(then).Truncate(time.Second) }

// clear removes the line and the ^C that a terminal prints after it.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "\r%*s\r", lineWidth+len("^C"), "")
}
