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
		{"none", netHTTP.String(), cut}:                              1,
		{"a loop", netHTTP.String(), cut}:                            2,
		{"a loop", stripeGo(ofTheOrder, true).String(), cut}:         1,
		{"a loop", stripeGo(ofTheOrder, false).String(), cut}:        2,
		{"a loop", awsSDK(ofTheOrder, true).String(), deploy}:        1,
		{"a loop", binanceOrder(ofTheCall, true).String(), cut}:      2,
		{"a loop", binanceOrder(ofTheOrder, true).String(), cut}:     1,
		{"a loop", hcloudServer(true).String(), cut}:                 1,
		{"a loop", gatewayRepeatable.String(), cut}:                  1,
		{"River", netHTTP.String(), badGateway}:                      2,
		{"River", netHTTP.String(), deploy}:                          2,
		{"River", gatewayInMemory.String(), badGateway}:              1,
		{riverStop, netHTTP.String(), deploy}:                        1,
		{"River, other processes", gatewayInMemory.String(), cut}:    2,
		{"Temporal", netHTTP.String(), badGateway}:                   2,
		{"Temporal", gatewayUnguarded.String(), badGateway}:          2,
		{"Temporal", gatewayInMemory.String(), cut}:                  1,
		{"Temporal, other processes", gatewayInMemory.String(), cut}: 2,
	}
}

// check fails when a control has another figure, or when an order of the row with
// sqlguard is not pending.
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
// there are of which no response has come.
func (r results) listed(pending map[string]bool) (listed, all int) {
	for at := range r {
		if at.client == gatewaySQLGuard.String() && at != (position{riverStop, at.client, deploy}) {
			all++
			if pending[at.order()] {
				listed++
			}
		}
	}
	return listed, all
}

// markdown returns the table: the faults that double an order, by client and engine.
func (r results) markdown(rows []client, columns []engine, pending map[string]bool) string {
	var b strings.Builder
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	header := []string{"the faults that double an order"}
	for _, e := range columns {
		header = append(header, e.name)
	}
	line(header...)
	b.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, c := range rows {
		cells := []string{c.String()}
		for _, e := range columns {
			cells = append(cells, r.cell(e, c))
		}
		line(cells...)
	}
	listed, all := r.listed(pending)
	fmt.Fprintf(&b, "\nOf the %d orders of the row with sqlguard of which no response came, `Pending` lists %d.\n\n", all, listed)
	for _, e := range columns {
		b.WriteString("- **" + e.name + "**: " + e.does + ".\n")
	}
	b.WriteString("\n" + madeFor(rows))
	return b.String()
}

// cell names the faults after which an order has another number of invoices than one,
// with the number if it is not two.
func (r results) cell(e engine, c client) string {
	var wrong []string
	doubled := 0
	for _, f := range faults {
		switch n := r[position{e.name, c.String(), f}]; n {
		case 1:
		case 2:
			doubled++
			wrong = append(wrong, string(f))
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %d", f, n))
		}
	}
	switch {
	case len(wrong) == 0:
		return "–"
	case doubled == len(faults):
		return "**all**"
	}
	return strings.Join(wrong, ", ")
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
