package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	page  = "../docs/doubling.md"
	begin = "<!-- made by go run -C doubling . -update -->\n"
	end   = "<!-- end -->\n"
)

// A position is the table, the row and the column of a figure.
type position struct {
	engine, client string
	fault          fault
}

// results are the invoices of one order each.
type results map[position]int

// order returns the name of the order whose invoices the figure counts.
func (p position) order() string {
	sum := sha256.Sum256(fmt.Append(nil, p))
	return "order-" + hex.EncodeToString(sum[:8])
}

// controls are the figures that must be as they are, or the others mean nothing: of
// clients that must double, of one that sends once, and of a key that is honoured.
func controls() results {
	return results{
		{"none", netHTTP.String(), cut}:                     1,
		{"a loop", netHTTP.String(), cut}:                   2,
		{"a loop", stripeOrderKey(true).String(), cut}:      1,
		{"a loop", stripeOrderKey(false).String(), cut}:     2,
		{"River", netHTTP.String(), badGateway}:             2,
		{"River", netHTTP.String(), deploy}:                 2,
		{"Temporal", netHTTP.String(), badGateway}:          2,
		{"Temporal", gatewayUnguarded.String(), badGateway}: 2,
	}
}

// check fails when a control has another figure, or when an order of the row with
// sqlguard, of which no response arrived, is not pending.
func (r results) check(pending map[string]bool) error {
	var errs []error
	for at, want := range controls() {
		if got := r[at]; got != want {
			errs = append(errs, fmt.Errorf("the control %q has %d invoices and must have %d", at, got, want))
		}
	}
	if listed, all := r.listed(pending); listed != all {
		errs = append(errs, fmt.Errorf("sqlguard lists %d of %d orders as pending", listed, all))
	}
	return errors.Join(errs...)
}

// listed returns how many orders of the row with sqlguard are pending, and how many
// there are.
func (r results) listed(pending map[string]bool) (listed, all int) {
	for at := range r {
		if at.client == gatewaySQLGuard.String() {
			all++
			if pending[at.order()] {
				listed++
			}
		}
	}
	return listed, all
}

// markdown returns the tables: the most invoices of each client and engine, then one
// table for each engine.
func (r results) markdown(rows []client, columns []engine, pending map[string]bool) string {
	var b strings.Builder
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	rule := func(n int) { b.WriteString(strings.Repeat("|---", n) + "|\n") }
	header := []string{"the most of all faults"}
	for _, e := range columns {
		header = append(header, e.name)
	}
	line(header...)
	rule(len(header))
	for _, c := range rows {
		cells := []string{c.String()}
		for _, e := range columns {
			most := 0
			for _, f := range faults {
				most = max(most, r[position{e.name, c.String(), f}])
			}
			cells = append(cells, figure(most))
		}
		line(cells...)
	}
	listed, all := r.listed(pending)
	fmt.Fprintf(&b, "\nOf the %d orders of the last row, `Pending` of sqlguard lists %d.\n", all, listed)
	for _, e := range columns {
		b.WriteString("\n**" + e.name + "**: " + e.does + ".\n\n")
		line(append([]string{e.name}, names(faults)...)...)
		rule(1 + len(faults))
		for _, c := range rows {
			cells := []string{c.String()}
			for _, f := range faults {
				cells = append(cells, figure(r[position{e.name, c.String(), f}]))
			}
			line(cells...)
		}
	}
	b.WriteString("\n" + madeFor(rows))
	return b.String()
}

// madeFor returns the table of what the libraries are made for, with their versions.
func madeFor(rows []client) string {
	text := "| library | version | made for |\n|---|---|---|\n"
	var seen []string
	for _, c := range rows {
		if !slices.Contains(seen, c.name) {
			seen = append(seen, c.name)
			text += fmt.Sprintf("| %s | %s | %s |\n", c.name, c.version(), c.madeFor)
		}
	}
	for _, e := range []client{{name: "River", module: "github.com/riverqueue/river"}, {name: "Temporal", module: "go.temporal.io/sdk"}} {
		text += fmt.Sprintf("| %s | %s | see [engines](engines.md) |\n", e.name, e.version())
	}
	return text
}

// figure prints a number of invoices, more than one in bold.
func figure(n int) string {
	if n > 1 {
		return fmt.Sprintf("**%d**", n)
	}
	return fmt.Sprint(n)
}

func names(all []fault) []string {
	var text []string
	for _, f := range all {
		text = append(text, string(f))
	}
	return text
}

// writePage writes the tables into the page, or compares them with it.
func writePage(page, tables string, update, check bool) error {
	if !update && !check {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), begin)
	old, after, ended := strings.Cut(rest, end)
	switch {
	case !begun || !ended:
		return errors.New(page + " has no marks for the tables")
	case update:
		return os.WriteFile(page, []byte(before+begin+tables+end+after), 0o644)
	case old != tables:
		return errors.New("the tables of " + page + " differ from those that were measured; -update writes them")
	}
	return nil
}
