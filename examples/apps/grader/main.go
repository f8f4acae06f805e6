// Command grader grades a program that does the task of README.md: it starts the program over a
// gateway with faults, sends the requests of buyers, kills the program and starts it again, and
// prints 48 checks.
//
//	go run -C examples/apps ./grader [-database URL] [-forms] PROGRAM [ARGUMENT]...
//
// It exits with 0 if all of them pass, with 1 if any fails, and with 2 if it cannot grade.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"
)

// total is the number of checks.
const total = 48

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// A candidate is a program to grade.
type candidate struct {
	command  []string
	database string   // the DATABASE_URL; empty for a file of SQLite of each group
	settings []string // further ones of its environment
	shop     func(addr string) shop
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("grader", flag.ContinueOnError)
	flags.SetOutput(stderr)
	c := candidate{shop: newPlainShop}
	flags.StringVar(&c.database, "database", "", "the DATABASE_URL of the program; a new file of SQLite for each group of checks if it is empty")
	forms := flags.Bool("forms", false, "the program is examples/apps/shop: its pages and forms are used instead of the routes of the task")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *forms {
		c.shop, c.settings = newFormShop, formSettings()
	}
	if c.command = flags.Args(); len(c.command) == 0 {
		_, _ = fmt.Fprintln(stderr, "grader: name the program that it is to start")
		return 2
	}
	groups, err := grade(c)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "grader:", err)
		return 2
	}
	if printTable(stdout, groups) < total {
		return 1
	}
	return 0
}

// grade runs all groups, beside each other.
func grade(c candidate) ([]*group, error) {
	groups := []*group{
		{title: "no fault", run: plain},
		{title: "later clicks", run: later},
		{title: "refusals", run: refusals},
		{title: "lost responses", run: losses},
		{title: "other responses", run: oddities},
		{title: "clicks at once", run: clicks},
		{title: "closed pages", run: departures},
		{title: "deploy", run: deploy},
		{title: "reconciliation", run: reconciliation},
		{title: "kill -9", run: kills},
	}
	errs := make(chan error, len(groups))
	var grading sync.WaitGroup
	for _, g := range groups {
		grading.Go(func() {
			if err := g.grade(c); err != nil {
				errs <- fmt.Errorf("%s: %w", g.title, err)
			}
		})
	}
	grading.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return nil, err
	}
	key := &group{title: "the key"}
	var found leaks
	for _, g := range groups {
		found = leaks{first(found.answers, g.leaks.answers), first(found.files, g.leaks.files)}
	}
	key.is("the key of the gateway is in no response to a buyer", found.answers)
	key.is("the key of the gateway is in no log and not in the database", found.files)
	return append(groups, key), nil
}

// printTable prints the checks, and returns how many of them passed.
func printTable(w io.Writer, groups []*group) (passed int) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range groups {
		for _, r := range g.results {
			verdict := "FAIL"
			if r.passed {
				verdict = "ok"
				passed++
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", verdict, g.title, r.name)
			if r.why != "" {
				_, _ = fmt.Fprintf(table, "\t\t  %s\n", r.why)
			}
		}
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(w, "%d of %d\n", passed, total)
	return passed
}
