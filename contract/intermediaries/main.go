// Command intermediaries sends invoices through real proxies to a gateway whose first response to
// each is lost, and prints which of the proxies deliver one twice. With -update it writes the
// table into docs/production.md, with -check it fails if the page has another one.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	begin = "<!-- made by go run -C contract ./intermediaries -update -->\n"
	end   = "<!-- end -->\n"
)

func main() {
	page := flag.String("page", "../docs/production.md", "the `file` with the table")
	update := flag.Bool("update", false, "write the table")
	check := flag.Bool("check", false, "fail if the table is another one")
	flag.Parse()
	if err := run(*page, *update, *check); err != nil {
		fmt.Fprintln(os.Stderr, "intermediaries:", err)
		os.Exit(1)
	}
}

func run(page string, update, check bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	found, err := tryAll(ctx)
	if err != nil {
		return err
	}
	made := table(found)
	fmt.Print(made)
	if !update && !check {
		return nil
	}
	text, err := os.ReadFile(page) // #nosec G304 -- whoever runs it chooses the file
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !ok || !ends {
		return fmt.Errorf("%s has no place for the table", page)
	}
	whole := []byte(before + begin + made + end + after)
	switch {
	case bytes.Equal(text, whole):
		return nil
	case check:
		return fmt.Errorf("the table of %s is another one", page)
	}
	return os.WriteFile(page, whole, 0o644) // #nosec G306 -- a document
}

// A finding is what became of one invoice behind each fault.
type finding struct {
	name       string
	deliveries []int    // by fault
	outcomes   []string // of the client
}

// tryAll sends through all proxies at once: most of the time is spent in timeouts.
func tryAll(ctx context.Context) ([]finding, error) {
	found, failed := make([]finding, len(proxies)), make([]error, len(proxies))
	var all sync.WaitGroup
	for i, p := range proxies {
		all.Go(func() { found[i], failed[i] = p.try(ctx) })
	}
	all.Wait()
	return found, errors.Join(failed...)
}

// table has a row for the proxies that deliver everything once, and one for each other.
func table(found []finding) string {
	var once []string
	var twice strings.Builder
	for _, f := range found {
		doubled, told := f.doubled(false)
		if _, limited := f.doubled(true); len(limited) > 0 {
			told = append(told, strings.Join(limited, ", ")+" if the second gets a 429")
		}
		if len(told) == 0 {
			once = append(once, f.name)
			continue
		}
		fmt.Fprintf(&twice, "| %s | %s | %s |\n", f.name, strings.Join(doubled, ", "), strings.Join(told, "; "))
	}
	return "| between the client and the gateway | delivers an invoice twice after | the client reports |\n|---|---|---|\n" +
		"| " + strings.Join(once, "; ") + " | nothing | unknown |\n" + twice.String()
}

// doubled returns the faults after which an invoice was delivered twice, and the outcomes that the
// client reported then.
func (f finding) doubled(limited bool) (names, told []string) {
	for i, n := range f.deliveries {
		if n > 1 && faults[i].limited == limited {
			names, told = append(names, faults[i].name), append(told, f.outcomes[i])
		}
	}
	slices.Sort(told)
	return names, slices.Compact(told)
}
