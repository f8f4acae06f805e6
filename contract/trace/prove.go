package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A proof changes the code and runs the tests that should notice.
type proof struct {
	root    string
	code    *index
	needs   map[part]graph
	workers int
	log     io.Writer
}

func newProof(root string, code *index, workers int, log io.Writer) (*proof, error) {
	p := &proof{root, code, map[part]graph{}, workers, log}
	for _, part := range parts() {
		needs, err := newGraph(root, part)
		if err != nil {
			return nil, err
		}
		p.needs[part] = needs
	}
	return p, nil
}

// changes are the claims with each change once, and with all tests of it.
func changes(sections []section) []claim {
	var all []claim
	index := map[[4]string]int{}
	for _, s := range sections {
		for _, statement := range s.statements {
			for _, c := range statement.claims {
				key := [4]string{string(c.part), c.symbol, c.old, c.new}
				at, ok := index[key]
				if !ok {
					at = len(all)
					index[key] = at
					all = append(all, claim{c.part, c.symbol, c.old, c.new, nil})
				}
				all[at].tests = union(all[at].tests, c.tests)
			}
		}
	}
	return all
}

func union(a, b []string) []string {
	for _, text := range b {
		if !slices.Contains(a, text) {
			a = append(a, text)
		}
	}
	return a
}

// run proves that all tests pass on the code as it is, and that each fails on the
// changes that it is named for.
func (p *proof) run(sections []section) error {
	all, begun := changes(sections), time.Now()
	var jobs []func() error
	for _, part := range parts() {
		jobs = append(jobs, func() error { return p.unchanged(part, all) })
	}
	for _, c := range all {
		jobs = append(jobs, func() error { return p.noticed(c) })
	}
	if err := together(p.workers, jobs); err != nil {
		return err
	}
	fmt.Fprintf(p.log, "%d changes, each noticed by every test that is named for it, in %v\n", len(all), time.Since(begun).Round(time.Second))
	return nil
}

// together runs all jobs, so many at a time.
func together(workers int, jobs []func() error) error {
	queue := make(chan func() error)
	var group sync.WaitGroup
	var mu sync.Mutex
	var wrong []error
	for range workers {
		group.Go(func() {
			for job := range queue {
				if err := job(); err != nil {
					mu.Lock()
					wrong = append(wrong, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	group.Wait()
	return errors.Join(wrong...)
}

// unchanged proves that the tests of a part pass, and so that all are there.
func (p *proof) unchanged(part part, all []claim) error {
	var tests []string
	for _, c := range all {
		if c.part == part {
			tests = union(tests, c.tests)
		}
	}
	dir, err := p.build(part, tests, nil)
	if err != nil {
		return fmt.Errorf("the tests of %s do not compile: %w", part, err)
	}
	defer os.RemoveAll(dir)
	var wrong []error
	for _, test := range tests {
		if verdict, output := verdict(filepath.Join(dir, string(part)), test); verdict != "PASS" {
			wrong = append(wrong, fmt.Errorf("%s: %s does not pass on the code as it is: %s", part, test, output))
		}
	}
	return errors.Join(wrong...)
}

// noticed proves that the tests of a change fail with it.
func (p *proof) noticed(c claim) error {
	symbol := p.code.symbols[c.part][c.symbol]
	source, err := symbol.changed(c.old, c.new)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %q for %q", c.symbol, c.new, c.old)
	dir, err := p.build(c.part, c.tests, map[string][]byte{symbol.file: source})
	if err != nil {
		return fmt.Errorf("%s: does not compile: %w", name, err)
	}
	defer os.RemoveAll(dir)
	var wrong []error
	for _, test := range c.tests {
		if verdict, output := verdict(filepath.Join(dir, string(c.part)), test); verdict != "FAIL" {
			wrong = append(wrong, fmt.Errorf("%s: %s does not fail: %s", name, test, output))
		}
	}
	return errors.Join(wrong...)
}

// build copies the code without the test files that are not needed, puts the
// changed files in, and compiles the tests of a part there.
func (p *proof) build(part part, tests []string, changed map[string][]byte) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "trace"); err != nil {
		return "", err
	}
	err = p.copy(dir, part, tests)
	for file, source := range changed {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), source, 0o600))
	}
	if err == nil {
		err = compile(filepath.Join(dir, string(part)))
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

func (p *proof) copy(dir string, part part, tests []string) error {
	if err := os.Mkdir(filepath.Join(dir, string(standIn)), 0o700); err != nil {
		return err
	}
	var needed []string
	for _, test := range tests {
		name, _, _ := strings.Cut(test, "/")
		needed = append(needed, p.code.tests[part][name])
	}
	skipped := p.needs[part].without(needed)
	var wrong []error
	for _, pattern := range []string{"go.mod", "go.sum", "*.go", string(standIn) + "/*.go"} {
		files, _ := fs.Glob(os.DirFS(p.root), pattern) // a good pattern
		for _, file := range files {
			if !slices.Contains(skipped, file) {
				source, err := os.ReadFile(filepath.Join(p.root, file))
				wrong = append(wrong, err, os.WriteFile(filepath.Join(dir, file), source, 0o600))
			}
		}
	}
	return errors.Join(wrong...)
}

// binary is what the tests are compiled into.
const binary = "compiled.test"

// compile is not hindered by where it is, so that what does not change is
// compiled once, and does not optimise what runs for a moment.
func compile(dir string) error {
	command := exec.Command("go", "test", "-c", "-trimpath", "-vet=off", "-gcflags=-l", "-ldflags=-s -w", "-o", binary, ".")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOGC=off") // a compiler does not live long
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// verdict runs one test, and returns what is said of it: PASS, FAIL or nothing.
func verdict(dir, test string) (verdict, output string) {
	test = strings.ReplaceAll(test, " ", "_")
	var pattern []string
	for name := range strings.SplitSeq(test, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	command := exec.Command("./"+binary, "-test.v", "-test.timeout=2m", "-test.run", strings.Join(pattern, "/"))
	command.Dir = dir
	said, err := command.CombinedOutput()
	found := regexp.MustCompile(`(?m)^ *--- ([A-Z]+): ` + regexp.QuoteMeta(test) + ` \(`).FindSubmatch(said)
	if found == nil || (err == nil) != (string(found[1]) == "PASS") {
		return "", string(said)
	}
	return string(found[1]), string(said)
}
