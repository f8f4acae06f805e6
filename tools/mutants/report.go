package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const heading = `# Changes that no test notices: file, function, change, result, and why where somebody has found it out.
# "bash .ci/mutants -update" writes this file, and keeps the last column.
`

// row returns the line of a mutant in the baseline, up to its result.
func (m mutant) row() string {
	return m.file + "\t" + m.function + "\t" + m.code
}

// read returns the reasons in the baseline by row.
func read(baseline string, missing bool) (map[string]string, error) {
	content, err := os.ReadFile(baseline)
	if missing && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	known := map[string]string{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 5 {
			return nil, fmt.Errorf("%s: %q has not five columns", baseline, line)
		}
		known[strings.Join(cells[:3], "\t")] = cells[4]
	}
	return known, err
}

// report prints the counts, and compares the survivors with those that are known
// or writes them.
func report(o options, all, chosen []mutant, outcomes []result, known map[string]string) error {
	var rows, unlisted, noticed []string
	for i, m := range chosen {
		reason, listed := known[m.row()]
		switch {
		case outcomes[i] == survived && !listed:
			unlisted = append(unlisted, m.row())
		case outcomes[i] == killed && listed:
			noticed = append(noticed, m.row())
		}
		if outcomes[i] != killed && outcomes[i] != notViable {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\n", m.row(), outcomes[i], reason))
		}
	}
	for row := range maps.Keys(known) {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.row() == row }) {
			noticed = append(noticed, row)
		}
	}
	table, err := counted(o, chosen, outcomes)
	fmt.Fprint(o.out, "\n", table)
	if o.update {
		return errors.Join(err, write(o, rows))
	}
	list(o.out, "to be removed from "+o.baseline+": the tests notice it, or it is no more:", noticed)
	list(o.out, "not in "+o.baseline+":", unlisted)
	if len(unlisted) > 0 && o.sample == 0 { // a sample lists them, and the run over all fails
		err = errors.Join(err, fmt.Errorf("%d survivors are not in %s", len(unlisted), o.baseline))
	}
	return err
}

func list(out io.Writer, title string, rows []string) {
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n%s\n%s\n", title, strings.Join(slices.Sorted(slices.Values(rows)), "\n"))
	}
}

// counted returns a table of the counts of each package, and of each file of the root.
// It returns an error when fewer are killed than the floor, of all or, when all mutants
// were tried, of a file in o.each. What takes all time or memory counts as not killed, so
// that a slow machine does not pass.
func counted(o options, chosen []mutant, outcomes []result) (string, error) {
	var total [results]int
	counts := map[string]*[results]int{}
	for i, m := range chosen {
		place := path.Dir(m.file)
		if place == "." {
			place = m.file
		}
		if counts[place] == nil {
			counts[place] = &[results]int{}
		}
		counts[place][outcomes[i]]++
		total[outcomes[i]]++
	}
	table := fmt.Sprintf("%-22s %8s %8s %9s %13s %10s %7s\n", "", killed, survived, timedOut, outOfMemory, notViable, "")
	var wrong []error
	line := func(name string, n [results]int, judged bool) {
		table += fmt.Sprintf("%-22s %8d %8d %9d %13d %10d %5.1f %%\n", name, n[0], n[1], n[2], n[3], n[4], killedOf(n))
		if judged && killedOf(n) < float64(o.floor) {
			wrong = append(wrong, fmt.Errorf("%s: less than %d %% are killed", name, o.floor))
		}
	}
	each := strings.Fields(o.each)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		line(name, *counts[name], o.sample == 0 && slices.Contains(each, name))
	}
	for _, name := range each {
		if o.sample == 0 && counts[name] == nil {
			wrong = append(wrong, fmt.Errorf("%s is not among the files", name))
		}
	}
	line("all that compile", total, true)
	return table, errors.Join(wrong...)
}

// killedOf returns the per cent that are killed of all that compile.
func killedOf(n [results]int) float64 {
	tried := n[killed] + n[survived] + n[timedOut] + n[outOfMemory]
	return 100 * float64(n[killed]) / float64(max(tried, 1))
}

func write(o options, rows []string) error {
	slices.Sort(rows)
	return os.WriteFile(filepath.Join(o.root, o.baseline), []byte(heading+strings.Join(rows, "")), 0o644)
}
