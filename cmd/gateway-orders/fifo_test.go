//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// A command that waits for a file which nobody writes ends with its context.
func TestInput_waits(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	fifo := filepath.Join(t.TempDir(), "f.csv")
	check(t, syscall.Mkfifo(fifo, 0o600))
	for _, line := range []string{
		"reconcile --file " + fifo, "reconcile --file - --format csv", "reconcile --file - --format jsonl",
		"resolve A-17 --exists --by anna --invoice " + fifo, "resolve A-17 --exists --by anna --invoice -",
	} {
		t.Run(line, func(t *testing.T) {
			in, nobody, err := os.Pipe()
			check(t, err)
			t.Cleanup(func() { check(t, nobody.Close()) })
			t.Cleanup(func() { release(fifo) })
			var stderr bytes.Buffer
			code := run(t.Context(), append(strings.Fields(line), "--db", w.url, "--timeout", "1ms"), cli.Console{In: in, Out: &bytes.Buffer{}, Err: &stderr})
			want(t, outcome{code, "", stderr.String()}, cli.ExitFailed, "the time of --timeout, 1ms, is over: nothing was changed (context deadline exceeded)")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			stderr.Reset()
			code = run(ctx, append(strings.Fields(line), "--db", w.url), cli.Console{In: in, Out: &bytes.Buffer{}, Err: &stderr})
			want(t, outcome{code, "", stderr.String()}, cli.ExitFailed, "interrupted: nothing was changed")
		})
	}
	want(t, w.run("pending"), exitLeft)
}

// release ends what waits for a writer of a FIFO.
func release(fifo string) {
	if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		_ = f.Close()
	}
}

// A FIFO that somebody writes, such as that of process substitution, is read as a file.
func TestInput_fifo(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	fifo := filepath.Join(t.TempDir(), "f.csv")
	check(t, syscall.Mkfifo(fifo, 0o600))
	go func() { _ = os.WriteFile(fifo, []byte("order_id\nA-17\n"), 0o600) }()
	want(t, w.run("reconcile --apply --by anna --file "+fifo), cli.ExitDone, "1 of 1 orders were ended.")
}
