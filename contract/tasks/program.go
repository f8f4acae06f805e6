package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is the bound of each wait for something that the program must do.
const patience = 30 * time.Second

// most is how much of what a program prints is read.
const most = 1 << 20

// A line is what the program says of an order.
type line struct {
	Order   string          `json:"order"`
	State   string          `json:"state"`
	Invoice json.RawMessage `json:"invoice"`
}

// A trial is one task for one program.
type trial struct {
	*front
	program string
	dir     string
	within  time.Duration // how long pending may take to list an order

	mu       sync.Mutex
	said     map[string]line // the last of each order
	exported map[string]bool // orders whose invoice the program has from a file
	problems []string
}

// A run is one process of the program.
type run struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	lines  chan line // closed at the end of its output
	ended  chan struct{}
	err    error // after ended
}

// start starts the program with these arguments and this input.
func (t *trial) start(input string, args ...string) *run {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	cmd := exec.CommandContext(ctx, t.program, args...) // #nosec G204 -- the program that is graded
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GATEWAY_") })
	cmd.Env = append(cmd.Env, "GATEWAY_BASE_URL="+t.url(), "GATEWAY_API_KEY="+t.gw.APIKey, "DATABASE="+filepath.Join(t.dir, "orders.db"))
	r := &run{cmd: cmd, lines: make(chan line, 1000), ended: make(chan struct{})}
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &bounded{&r.stderr}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		r.err = err
		close(r.lines)
		close(r.ended)
		return r
	}
	go func() {
		defer cancel()
		defer close(r.ended)
		t.listen(io.LimitReader(out, most), r.lines)
		r.err = cmd.Wait()
	}()
	return r
}

// listen judges each line when it comes.
func (t *trial) listen(out io.Reader, lines chan<- line) {
	defer close(lines)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, most)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			t.wrong("not a line of the contract: %.200q", scanner.Text())
			continue
		}
		t.judge(l)
		select {
		case lines <- l:
		default:
			t.wrong("more than 1000 lines")
			return
		}
	}
}

// A bounded writer drops what is too much.
type bounded struct{ *bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), most-b.Len())])
	return len(p), nil
}

// end waits for the end of a run that is to end by itself, and returns its lines.
func (t *trial) end(r *run) []line {
	<-r.ended // within twice the patience, or it is killed
	if r.err != nil {
		t.wrong("it fails: %s: %v: %.300s", strings.Join(r.cmd.Args[1:], " "), r.err, r.stderr.String())
	}
	return r.said()
}

// said are the lines of a run that has ended.
func (r *run) said() (lines []line) {
	for l := range r.lines {
		lines = append(lines, l)
	}
	return lines
}

// do runs the program.
func (t *trial) do(input string, args ...string) []line { return t.end(t.start(input, args...)) }

// pay runs it for these orders, each of which must get a line.
func (t *trial) pay(orders ...string) {
	t.answered(t.do(input(orders...), "pay"), orders...)
}

func (t *trial) answered(lines []line, orders ...string) {
	for i, order := range orders {
		if i >= len(lines) || lines[i].Order != order {
			t.wrong("no answer: pay has no line %d for order %s", i+1, order)
			return
		}
	}
}

// kill kills the run, as kill -9 does, and waits for its end.
func (r *run) kill() { r.signal(syscall.SIGKILL) }

// stop asks it to end, and waits for its end.
func (r *run) stop() { r.signal(syscall.SIGTERM) }

func (r *run) signal(s os.Signal) {
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(s)
	}
	<-r.ended
}

// reached waits until something has happened, and reports whether it has before the run ended.
func (t *trial) reached(r *run, event <-chan struct{}, what string) bool {
	select {
	case <-event:
		return true
	case <-r.ended:
	case <-time.After(patience):
	}
	t.wrong("it does not ask the gateway: %s: %v: %.300s", what, r.err, r.stderr.String())
	return false
}

// input is the orders as pay reads them.
func input(orders ...string) string {
	var b strings.Builder
	for _, order := range orders {
		_, _ = fmt.Fprintf(&b, `{"order":%q,"price":"10.50"}`+"\n", order)
	}
	return b.String()
}

// wrong notes a problem, once.
func (t *trial) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.problems, text) {
		t.problems = append(t.problems, text)
	}
}
