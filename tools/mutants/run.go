package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

type result int

const (
	killed result = iota
	survived
	timedOut
	outOfMemory
	notViable // does not compile
	results
)

func (r result) String() string {
	return [...]string{"killed", "survived", "timed out", "out of memory", "not viable"}[r]
}

// A suite is the tests of one package, and how they run.
type suite struct {
	root, dir, work string
	first           map[string]string // the tests to start with, by file
	last            string            // the tests that take long; for every file
	memory          int               // KiB of address space
	timeout         time.Duration     // of each stage
}

var (
	diagnostic = regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: `)
	noMemory   = regexp.MustCompile(`fatal error: .*(memory|cannot map pages|newosproc)|pthread_create failed`)
	failure    = regexp.MustCompile(`(?m)^\s*--- FAIL: |^panic: |^fatal error: `)
)

// build compiles the tests to a file. A mutant is laid over its file.
func (s suite) build(ctx context.Context, binary string, m *mutant) (result, error) {
	arguments := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}
	if m != nil {
		file := filepath.Join(s.root, m.file)
		source, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{file: binary + ".go"}})
		if err := errors.Join(os.WriteFile(binary+".go", m.apply(source), 0o600), os.WriteFile(binary+".json", overlay, 0o600)); err != nil {
			return 0, err
		}
		arguments = append(arguments, "-overlay", binary+".json")
	}
	command := exec.CommandContext(ctx, "go", append(arguments, "./"+s.dir)...)
	command.Dir, command.Env = s.root, append(os.Environ(), "GOGC=off")
	output, err := command.CombinedOutput()
	if _, missing := os.Stat(binary); err == nil && missing != nil {
		return 0, fmt.Errorf("%s: there are no tests", s.dir)
	}
	if err != nil && (m == nil || !diagnostic.Match(output)) {
		return 0, fmt.Errorf("%s: the tests do not compile: %w\n%s", s.dir, err, output)
	}
	if err != nil {
		return notViable, nil
	}
	return survived, nil
}

// run runs the tests of a binary in stages, until one fails.
func (s suite) run(ctx context.Context, binary, file string) (result, string, error) {
	first := s.first[file]
	stages := [][]string{{"-test.skip", alternatives(first, s.last)}}
	if first != "" {
		stages = append([][]string{{"-test.run", first, "-test.skip", s.last}}, stages...)
	}
	if s.last != "" {
		stages = append(stages, []string{"-test.run", s.last})
	}
	for _, stage := range stages {
		// A test that never ends is stopped by itself, or else from here.
		limited, cancel := context.WithTimeout(ctx, s.timeout+10*time.Second)
		command := exec.CommandContext(limited, "sh", append([]string{
			"-c", fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, s.memory),
			binary, "-test.failfast", "-test.timeout", s.timeout.String(),
		}, stage...)...)
		command.Dir, command.Env = filepath.Join(s.root, s.dir), append(os.Environ(), "GOGC=400")
		var output head
		command.Stdout, command.Stderr = &output, &output
		start := time.Now()
		err := command.Run()
		cancel()
		if err != nil {
			r, err := verdict(err, string(output), time.Since(start) >= s.timeout)
			return r, string(output), err
		}
	}
	return survived, "", nil
}

// verdict returns what the end of a failed run means. A run counts as killed only
// when a test or the program reports a failure.
func verdict(err error, output string, late bool) (result, error) {
	var exit *exec.ExitError
	switch {
	case late:
		return timedOut, nil
	case noMemory.MatchString(output):
		return outOfMemory, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0 && failure.MatchString(output):
		return killed, nil
	}
	return 0, fmt.Errorf("the tests end without a result: %w\n%s", err, output)
}

// baseline runs the tests without a change, as they run with one, and sets the
// timeout from the time that they take. Each of the patterns must match a test.
func (s *suite) baseline(ctx context.Context, patience time.Duration) error {
	binary := filepath.Join(s.work, "baseline")
	defer os.Remove(binary)
	if _, err := s.build(ctx, binary, nil); err != nil {
		return err
	}
	list, err := exec.CommandContext(ctx, binary, "-test.list", ".").Output()
	if err != nil || len(list) == 0 {
		return fmt.Errorf("%s: there are no tests: %v", s.dir, err)
	}
	patterns := []string{s.last}
	for _, first := range s.first {
		patterns = append(patterns, first)
	}
	for _, name := range strings.FieldsFunc(strings.Join(patterns, "|"), func(r rune) bool { return r == '|' }) {
		if match, err := regexp.Match("(?m)"+name, list); err != nil || !match {
			return fmt.Errorf("%s: no test matches %q", s.dir, name)
		}
	}
	start := time.Now()
	s.timeout = 10 * time.Minute
	if r, output, err := s.run(ctx, binary, ""); err != nil || r != survived {
		return fmt.Errorf("%s: the tests do not pass without a change: %v\n%s", s.dir, errors.Join(err, errors.New(r.String())), output)
	}
	s.timeout = max(patience, 5*time.Since(start))
	return ctx.Err()
}

// head is the start of an output. A mutant may write without end.
type head []byte

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), 1<<20-len(*h))]...)
	return len(p), nil
}

func alternatives(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "|" + b
}
