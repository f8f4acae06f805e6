// Package stranger runs programs that others have written, for as long as a test
// takes.
package stranger

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

// startTimeout is how long a program may take until it is ready.
const startTimeout = 2 * time.Minute

// Start runs a program until the test ends. It returns what the first group of
// ready matches in a line of the program's output, which is how the program says
// that it can be used, and fails the test when there is no such line.
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // it is killed in the end
		_ = in.Close()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		reading.Wait()
	})
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case found := <-o.found:
		return found
	case <-ended:
		reading.Wait()
		t.Fatalf("%s ended: %s", command, o.text())
	case <-timeout.C:
		t.Fatalf("%s does not get ready: %s", command, o.text())
	}
	return ""
}

// An output is what a program has printed.
type output struct {
	found chan string

	mu      sync.Mutex
	printed bytes.Buffer
}

// read takes lines until there are no more.
func (o *output) read(from io.Reader, ready *regexp.Regexp) {
	lines := bufio.NewReader(from)
	for said := false; ; {
		line, err := lines.ReadString('\n')
		o.mu.Lock()
		o.printed.WriteString(line)
		o.mu.Unlock()
		if match := ready.FindStringSubmatch(line); match != nil && !said {
			o.found <- match[1]
			said = true
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
