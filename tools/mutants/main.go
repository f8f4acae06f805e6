// Command mutants makes one small change at a time to Go files and runs the tests
// of their package against each. It fails when the tests do not pass without a
// change, when they notice less of the changes than -floor, of all or of one of the
// files in -each, and when one that they do not notice is not in the baseline.
//
//	mutants [flags] DIR|FILE[=TESTS]...
//
// DIR stands for all files of a package, and TESTS is a pattern of the tests that a
// mutant of the file is tried on first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

type options struct {
	root, baseline, last, seed, changed, each string
	floor, sample, workers, memory            int
	update                                    bool
	patience                                  time.Duration
	out                                       io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.root, "root", ".", "the directory of the module")
	flag.StringVar(&o.baseline, "baseline", "tools/mutants/survivors.txt", "the survivors that are known")
	flag.StringVar(&o.each, "each", "", "files of which the floor must be killed too, unless a sample is tried")
	flag.StringVar(&o.last, "last", "", "a pattern of the tests of the root that take long and run after all others")
	flag.StringVar(&o.seed, "seed", "", "chooses the sample")
	flag.StringVar(&o.changed, "changed", "", "files, and directories with a slash, whose mutants the sample begins with")
	flag.IntVar(&o.floor, "floor", 90, "the per cent that must be killed, of all mutants that compile")
	flag.IntVar(&o.sample, "sample", 0, "how many mutants to try, where one of the root counts as eight; 0 is all")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many to try at a time")
	flag.IntVar(&o.memory, "memory", 3_000_000, "the address space of the tests, in KiB")
	flag.DurationVar(&o.patience, "patience", 15*time.Second, "the least timeout of the tests; else it is five times what they take")
	flag.BoolVar(&o.update, "update", false, "write the baseline, keeping the reasons that it gives")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, targets []string) error {
	if o.update && o.sample > 0 {
		return errors.New("the baseline needs all mutants and not a sample")
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	o.root = root
	known, err := read(filepath.Join(o.root, o.baseline), o.update)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	suites, all, err := plan(o, work, targets)
	if err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(suites)) {
		if err := suites[dir].baseline(ctx, o.patience); err != nil {
			return err
		}
	}
	chosen := choose(all, o)
	if len(chosen) == 0 {
		return errors.New("the sample is empty")
	}
	fmt.Fprintf(o.out, "%d of %d mutants, %d at a time\n", len(chosen), len(all), o.workers)
	outcomes, err := try(ctx, o, suites, chosen, work)
	if err != nil {
		return err
	}
	return report(o, all, chosen, outcomes, known)
}

// builtHere reports whether the constraints of a file permit the machine that runs its tests.
func builtHere(root, file string) bool {
	matches, err := build.Default.MatchFile(filepath.Join(root, path.Dir(file)), path.Base(file))
	return matches || err != nil // which parsing it reports
}

// plan returns the suite of each package and all mutants of the targets.
func plan(o options, work string, targets []string) (map[string]*suite, []mutant, error) {
	suites, all := map[string]*suite{}, []mutant(nil)
	for _, target := range targets {
		name, first, _ := strings.Cut(target, "=")
		files := []string{name}
		if path.Ext(name) != ".go" {
			found, _ := fs.Glob(os.DirFS(o.root), path.Join(name, "*.go"))
			files = slices.DeleteFunc(found, func(file string) bool { return strings.HasSuffix(file, "_test.go") || !builtHere(o.root, file) })
		}
		if len(files) == 0 {
			return nil, nil, fmt.Errorf("%s has no files", name)
		}
		for _, file := range files {
			found, err := mutantsOf(o.root, file)
			if err != nil || len(found) == 0 {
				return nil, nil, errors.Join(err, fmt.Errorf("%s has no mutants", file))
			}
			all = append(all, found...)
			dir := path.Dir(file)
			if suites[dir] == nil {
				suites[dir] = &suite{root: o.root, dir: dir, work: work, first: map[string]string{}, memory: o.memory}
			}
			suites[dir].first[file] = first
			if dir == "." {
				suites[dir].last = o.last
			}
		}
	}
	if len(all) == 0 {
		return nil, nil, errors.New("no DIR and no FILE is given")
	}
	return suites, all, nil
}

// A mutant of the root takes about as long as ofRoot of a package in internal/.
const ofRoot = 8

// choose returns the sample: mutants of the changed files, then of all others.
func choose(all []mutant, o options) []mutant {
	if o.sample <= 0 {
		return all
	}
	hash := fnv.New64a()
	hash.Write([]byte(o.seed))
	random := rand.New(rand.NewPCG(hash.Sum64(), 0)) // #nosec G404 -- the sample of a commit is the same each time
	var changed, others []mutant
	for _, i := range random.Perm(len(all)) {
		if slices.ContainsFunc(strings.Fields(o.changed), func(c string) bool { return strings.HasPrefix(all[i].file, c) }) {
			changed = append(changed, all[i])
		} else {
			others = append(others, all[i])
		}
	}
	var sample []mutant
	left := o.sample
	for _, m := range append(changed, others...) {
		if path.Dir(m.file) == "." {
			left -= ofRoot - 1
		}
		if left--; left < 0 {
			break
		}
		sample = append(sample, m)
	}
	return sample
}

// try builds and runs each mutant, and returns what becomes of them.
func try(ctx context.Context, o options, suites map[string]*suite, mutants []mutant, work string) ([]result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outcomes, next := make([]result, len(mutants)), make(chan int)
	var group sync.WaitGroup
	for worker := range o.workers {
		group.Go(func() {
			binary := filepath.Join(work, fmt.Sprint(worker))
			for i := range next {
				m := mutants[i]
				s := suites[path.Dir(m.file)]
				r, err := s.build(ctx, binary, &m)
				if err == nil && r != notViable {
					r, _, err = s.run(ctx, binary, m.file)
				}
				if err != nil {
					cancel(fmt.Errorf("%s: %s: %w", m.file, m.code, err))
					return
				}
				if outcomes[i] = r; r != killed && r != notViable {
					fmt.Fprintf(o.out, "%-12s %s: %s: %s\n", r, m.file, m.function, m.code)
				}
				os.Remove(binary)
			}
		})
	}
	for i := range mutants {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	return outcomes, context.Cause(ctx)
}
