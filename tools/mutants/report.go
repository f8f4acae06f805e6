package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const preface = `# Changes that no test notices

` + "`make mutants`" + ` makes one small change at a time to the files where a mistake costs most (a comparison turned round
or moved by one, an operator exchanged, a ` + "`break` for a `continue`" + `) and runs the tests of their package against it.
It wrote this page on %s with %s, as ` + "`bash .ci/mutants -update`" + `, and keeps the last column.
` + "`bash .ci/mutants`" + ` fails when a change that is not listed here is not noticed. What takes all time or memory counts
as not noticed, so that a slow machine does not pass.

`

// row returns the line of a mutant in the document, up to its result.
func (m mutant) row() string {
	return fmt.Sprintf("| %s | `%s` | `` %s `` |", m.file, m.function, strings.ReplaceAll(m.code, "|", `\|`))
}

// read returns the reasons in the document by row.
func read(document string, missing bool) (map[string]string, error) {
	content, err := os.ReadFile(document)
	if missing && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	known := map[string]string{}
	for line := range strings.Lines(string(content)) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), " |"), " | ")
		if n := len(cells); n >= 5 && strings.HasSuffix(cells[n-3], " ``") {
			known[strings.Join(cells[:n-2], " | ")+" |"] = strings.TrimSpace(cells[n-1])
		}
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
			rows = append(rows, fmt.Sprintf("%s %s | %s |\n", m.row(), outcomes[i], reason))
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
		return errors.Join(err, write(o, table, rows))
	}
	list(o.out, "to be removed from "+o.document+": the tests notice it, or it is no more:", noticed)
	list(o.out, "not in "+o.document+":", unlisted)
	if len(unlisted) > 0 && o.sample == 0 { // a sample lists them, and the run over all fails
		err = errors.Join(err, fmt.Errorf("%d survivors are not in %s", len(unlisted), o.document))
	}
	return err
}

func list(out io.Writer, title string, rows []string) {
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n%s\n%s\n", title, strings.Join(slices.Sorted(slices.Values(rows)), "\n"))
	}
}

// counted returns a table of the counts of each package, and of each file of the
// root, and an error when fewer are killed than the floor.
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
	table := fmt.Sprintf("| %-22s | %6s | %8s | %9s | %13s | %10s |\n|---|---|---|---|---|---|\n", "", killed, survived, timedOut, outOfMemory, notViable)
	line := func(name string, n [results]int) {
		table += fmt.Sprintf("| %-22s | %6d | %8d | %9d | %13d | %10d |\n", name, n[0], n[1], n[2], n[3], n[4])
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		line(name, *counts[name])
	}
	line("all", total)
	tried := len(chosen) - total[notViable]
	percent := 100 * float64(total[killed]) / float64(max(tried, 1))
	table += fmt.Sprintf("\nKilled, of all %d that compile: %.1f %%.\n", tried, percent)
	if percent < float64(o.floor) {
		return table, fmt.Errorf("that is less than %d %%", o.floor)
	}
	return table, nil
}

func write(o options, table string, rows []string) error {
	var page strings.Builder
	fmt.Fprintf(&page, preface, time.Now().UTC().Format(time.DateOnly), runtime.Version())
	page.WriteString(table + "\n| File | Function | Change | Result | Why |\n|---|---|---|---|---|\n" + strings.Join(rows, ""))
	return os.WriteFile(filepath.Join(o.root, o.document), []byte(page.String()), 0o644)
}
