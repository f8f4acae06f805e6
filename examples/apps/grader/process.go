package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is the candidate: a program that is started, killed and started again with the
// same settings.
type process struct {
	command []string
	env     []string
	addr    string

	mu     sync.Mutex
	output bytes.Buffer // of all its runs
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the run has ended
}

// newProcess returns a process that is not started. It gets no setting of a gateway from the
// environment but those in env.
func newProcess(command []string, addr string, env ...string) *process {
	p := &process{command: command, addr: addr}
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "GATEWAY_") {
			p.env = append(p.env, setting)
		}
	}
	p.env = append(p.env, env...)
	return p
}

// Write implements [io.Writer]: it keeps the output.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(text)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// start starts the program, and waits until it takes connections.
func (p *process) start() error {
	cmd := exec.Command(p.command[0], p.command[1:]...) // #nosec G204 -- the program that is graded
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p, p
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended = cmd, ended
	p.mu.Unlock()
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	listening := poll(30*time.Second, func() bool {
		conn, err := net.DialTimeout("tcp", p.addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil || hasEnded(ended)
	})
	if !listening || hasEnded(ended) {
		return fmt.Errorf("the program does not listen on %s; it wrote:\n%s", p.addr, p.log())
	}
	return nil
}

func hasEnded(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// kill ends the program by SIGKILL, and waits for its end.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// stop ends the program by SIGTERM, and by SIGKILL if it does not end within ten seconds.
func (p *process) stop() {
	timer := time.AfterFunc(10*time.Second, p.kill)
	defer timer.Stop()
	p.end(syscall.SIGTERM)
}

func (p *process) end(signal os.Signal) {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal)
	<-ended
}

// poll asks again and again until something is true, and reports whether it was in time.
func poll(bound time.Duration, isTrue func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !isTrue() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// listen listens on a port of this machine that systems give to no outgoing connection: a program
// that is started again finds it free.
func listen() (listener net.Listener, err error) {
	for range 100 {
		port := 20_000 + rand.IntN(12_000) // #nosec G404 -- any port will do
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return listener, nil
		}
	}
	return nil, err
}

// freeAddress returns an address of this machine on which nobody listens.
func freeAddress() (string, error) {
	listener, err := listen()
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
