// Package daemon runs the servers of databases for tests.
package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Daemon is a server on a loopback port, with its files in a directory. It stops, and the directory is
// removed, when it is stopped or this process ends, however it ends. It is safe for concurrent use.
type Daemon struct {
	Dir, Port string

	account *syscall.SysProcAttr
	command func(dir, port string) []string
	end     string // the signal that ends it
	ready   string // what it logs then

	mu   sync.Mutex
	halt func(signal string) // nil if it has been stopped
}

// New makes the directory of a server that a command starts, that logs ready, and that a signal ends. The
// account runs it if this process is root's, as which servers refuse to run.
func New(account, end, ready string, command func(dir, port string) []string) (d *Daemon, err error) {
	d = &Daemon{command: command, end: end, ready: ready}
	if d.Dir, err = os.MkdirTemp("", account+"-"); err != nil {
		return nil, err
	}
	if d.account, err = accountFor(account, d.Dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.Dir))
	}
	return d, nil
}

// Run runs a command to its end, as the account of the server.
func (d *Daemon) Run(name string, args ...string) error {
	cmd := exec.Command(name, args...) // #nosec G204 -- a test's
	cmd.Dir, cmd.SysProcAttr = "/", d.account
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Start starts the server on a port that no other process has. The system gives none of
// them to a client while the server restarts: those begin at 32768.
func (d *Daemon) Start() (err error) {
	for range 10 {
		d.Port = strconv.Itoa(20000 + rand.IntN(12000)) // #nosec G404 -- any port will do
		if err = d.run(); err == nil {
			break
		}
	}
	return err
}

// Restart ends the server by a signal and starts it on the same data and port.
func (d *Daemon) Restart(signal string) error {
	d.quit(signal)
	return d.run()
}

// Stop ends the server and removes its files.
func (d *Daemon) Stop() {
	d.quit("")
	_ = os.RemoveAll(d.Dir)
}

// quit ends the server by a signal; by none also removes its files.
func (d *Daemon) quit(signal string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.halt != nil {
		d.halt(signal)
		d.halt = nil
	}
}

// script runs the server until it reads a signal for it. At the end of its input, which is
// when this process ends, it removes the files too.
const script = `dir=$1 end=$2; shift 2; exec 3<&0; "$@" </dev/null & exec 2>/dev/null
read -r signal <&3; kill -"${signal:-$end}" $!; wait $!; [ -n "$signal" ] || rm -rf "$dir"`

// run starts the server and waits until it logs that it is ready.
func (d *Daemon) run() error {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh", d.Dir, d.end}, d.command(d.Dir, d.Port)...)...) // #nosec G204 -- a test chooses the settings
	cmd.Dir, cmd.SysProcAttr = "/", d.account
	cmd.Env = append(os.Environ(), "LC_ALL=C") // the language of the log
	input, err1 := cmd.StdinPipe()
	log, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	var drained sync.WaitGroup
	halt := func(signal string) {
		if signal != "" {
			_, _ = io.WriteString(input, signal+"\n")
		}
		_ = input.Close()
		drained.Wait()
		_ = cmd.Wait()
	}
	overdue := time.AfterFunc(time.Minute, func() { _ = input.Close() })
	defer overdue.Stop()
	lines, logged := bufio.NewScanner(log), ""
	for lines.Scan() {
		logged += lines.Text() + "\n"
		if strings.Contains(logged, d.ready) {
			drained.Go(func() { _, _ = io.Copy(io.Discard, log) })
			d.mu.Lock()
			defer d.mu.Unlock()
			d.halt = halt
			return nil
		}
	}
	halt(d.end)
	return fmt.Errorf("the server has not started:\n%s", logged)
}
