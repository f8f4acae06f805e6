// Package process runs an external program for as long as a test takes.
package process

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds how long a program may take until it is ready.
const startTimeout = 2 * time.Minute

// Start runs a program until the test ends. It returns what the first group of
// ready matches in a line of the program's output, by which the program reports
// that it is ready, and fails the test when there is no such line.
func Start(t *testing.T, ready *regexp.Regexp, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	out, in := io.Pipe()
	command.Stdout, command.Stderr = in, in
	if err := command.Start(); err != nil {
		t.Fatalf("%v; `bash contract/ci-strangers.sh` installs it", err)
	}
	o := &output{found: make(chan string, 1)}
	var reading sync.WaitGroup
	reading.Go(func() { o.read(out, ready) })
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = command.Wait() // it is killed at the end of the test
		_ = in.Close()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-exited
		reading.Wait()
	})
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case found := <-o.found:
		return found
	case <-exited:
		reading.Wait()
		t.Fatalf("%s exited: %s", command, o.text())
	case <-timeout.C:
		t.Fatalf("%s is not ready in time: %s", command, o.text())
	}
	return ""
}

// An output is the text that a program has printed.
type output struct {
	found chan string

	mu      sync.Mutex
	printed bytes.Buffer
}

// read keeps all lines and sends the first match.
func (o *output) read(from io.Reader, ready *regexp.Regexp) {
	lines := bufio.NewReader(from)
	for reported := false; ; {
		line, err := lines.ReadString('\n')
		o.mu.Lock()
		o.printed.WriteString(line)
		o.mu.Unlock()
		if match := ready.FindStringSubmatch(line); match != nil && !reported {
			o.found <- match[1]
			reported = true
		}
		if err != nil {
			return
		}
	}
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.printed.String()
}
