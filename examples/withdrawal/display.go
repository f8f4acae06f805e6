package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cryptogw/gateway"
)

// A display shows the progress of a withdrawal. It is also an observer of the
// client, because the client does not yield unchanged withdrawals.
type display interface {
	gateway.Observer
	start() (stop func())
	changed(w *gateway.Withdrawal)
}

// displayOn returns the display for a writer.
func displayOn(out io.Writer) display {
	if isTerminal(out) {
		return &statusLine{out: out}
	}
	return lines{out: out}
}

// isTerminal reports whether w is a character device, as terminals are.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// lines is a display for files and pipes: a line for each change.
type lines struct {
	gateway.NopObserver
	out io.Writer
}

func (l lines) start() func() { return func() {} }

func (l lines) changed(w *gateway.Withdrawal) { fmt.Fprintln(l.out, describe(w)) }

// Attempt implements [gateway.Observer].
func (l lines) Attempt(context.Context, gateway.Attempt) {}

// Drift implements [gateway.Observer].
func (l lines) Drift(context.Context, gateway.Drift) {}

func describe(w *gateway.Withdrawal) string {
	return printable(fmt.Sprintf("%s: %s %s, fee %s, on %s to %s", w.Status, w.Amount, w.Coin, w.Fee, w.Network, w.Destination))
}

// printable replaces characters that are not printable.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return unicode.ReplacementChar
		}
		return char
	}, text)
}

// lineWidth is the width of the status line in columns: few enough that it never
// wraps, because a wrapped line could not be overwritten.
const lineWidth = 64

// A statusLine is a display for a terminal: a line that is rewritten every second.
type statusLine struct {
	gateway.NopObserver
	out io.Writer

	mu     sync.Mutex // guards the fields below and the line
	begun  time.Time
	asked  time.Time // of the last inquiry; zero before the first
	failed bool      // whether the last inquiry failed
	last   *gateway.Withdrawal
}

// start shows the line until stop is called, which replaces it by the last known
// withdrawal and puts the cursor below.
func (s *statusLine) start() (stop func()) {
	s.begun = time.Now()
	s.write()
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		s.tick(done)
	}()
	return func() {
		close(done)
		<-over
		s.end()
	}
}

// tick rewrites the line every second.
func (s *statusLine) tick(done <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.write()
		case <-done:
			return
		}
	}
}

func (s *statusLine) changed(w *gateway.Withdrawal) {
	s.mu.Lock()
	s.last = w
	s.mu.Unlock()
	s.write()
}

// Attempt implements [gateway.Observer].
func (s *statusLine) Attempt(_ context.Context, a gateway.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.failed = time.Now(), a.Err != nil
}

// Drift implements [gateway.Observer].
func (s *statusLine) Drift(context.Context, gateway.Drift) {}

func (s *statusLine) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\r%-*.*s", lineWidth, lineWidth, s.text())
}

// text returns the line: the status, the duration of the wait, and the time since
// the last inquiry. The lock is held.
func (s *statusLine) text() string {
	status := "not seen yet"
	if s.last != nil {
		status = printable(string(s.last.Status))
	}
	text := fmt.Sprintf("%.24s, waited %s", status, since(s.begun))
	if !s.asked.IsZero() {
		text += fmt.Sprintf(", asked %s ago", since(s.asked))
	}
	if s.failed {
		text += " (failed)"
	}
	return text
}

// since returns the time since then in whole seconds.
func since(then time.Time) time.Duration { return time.Since(then).Truncate(time.Second) }

// end clears the line and the ^C that a terminal prints after it.
func (s *statusLine) end() {
	fmt.Fprintf(s.out, "\r%*s\r", lineWidth+len("^C"), "")
	if s.last != nil {
		fmt.Fprintln(s.out, describe(s.last))
	}
}
