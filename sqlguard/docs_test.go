package sqlguard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
)

var update = flag.Bool("update", false, "write the table of docs/money.md")

const (
	moneyPage  = "../docs/money.md"
	tableBegin = "<!-- two calls for one order: made by go test ./sqlguard -run TwoCalls -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// TestTwoCalls makes the table of docs/money.md: what a second call for an order does,
// by the outcome of the first, by the guard, and by where the second is made.
func TestTwoCalls(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		table := twoCallsTable(t, w)
		text, err := os.ReadFile(moneyPage)
		check(t, err)
		before, rest, begun := strings.Cut(string(text), tableBegin)
		old, after, ended := strings.Cut(rest, tableEnd)
		if !begun || !ended {
			t.Fatalf("%s has no place for the table", moneyPage)
		}
		switch {
		case *update:
			page := before + tableBegin + table + tableEnd + after
			check(t, os.WriteFile(moneyPage, []byte(page), 0o644))
		case old != table:
			t.Errorf("the table in %s is another; -update writes it:\n%s", moneyPage, table)
		}
	})
}

// Where the second call is made.
const (
	sameProcess    = "the same process"
	anotherProcess = "another process"
	afterRestart   = "after a restart"
)

// firstCalls are the rows of the table.
var firstCalls = []struct {
	name    string
	respond func(s *service, req *http.Request) (*http.Response, error)
	dies    bool // before the outcome is recorded
	expired bool // so has its lease
	places  []string
}{
	{"in flight", nil, false, false, []string{sameProcess, anotherProcess}},
	{"succeeded", statusOf(http.StatusCreated), false, false, []string{sameProcess, anotherProcess, afterRestart}},
	{"not sent", nothingSent, false, false, []string{sameProcess, anotherProcess, afterRestart}},
	{"rejected", statusOf(http.StatusUnprocessableEntity), false, false, []string{sameProcess, anotherProcess, afterRestart}},
	{"unknown", statusOf(http.StatusInternalServerError), false, false, []string{sameProcess, anotherProcess, afterRestart}},
	{"process died, within its lease", statusOf(http.StatusCreated), true, false, []string{anotherProcess, afterRestart}},
	{"process died, after its lease", statusOf(http.StatusCreated), true, true, []string{anotherProcess, afterRestart}},
}

func statusOf(status int) func(*service, *http.Request) (*http.Response, error) {
	return func(s *service, req *http.Request) (*http.Response, error) { return s.status(req, status) }
}

func nothingSent(*service, *http.Request) (*http.Response, error) {
	return nil, errors.New("cannot connect")
}

// guards are the columns of the table: each makes the guard of one process.
var guards = []struct {
	name string
	open func(t *testing.T, w testDB) gateway.OrderGuard
}{
	{"guard in memory", func(*testing.T, testDB) gateway.OrderGuard {
		return new(gateway.MemoryGuard)
	}},
	{"sqlguard", func(t *testing.T, w testDB) gateway.OrderGuard { return w.guard(t) }},
	{"no guard", func(*testing.T, testDB) gateway.OrderGuard { return nil }},
}

// twoCallsTable makes all pairs of calls.
func twoCallsTable(t *testing.T, w testDB) string {
	text := "| first call | second call |"
	for _, g := range guards {
		text += " " + g.name + " |"
	}
	text += "\n" + strings.Repeat("|---", 2+len(guards)) + "|\n"
	for i := range firstCalls {
		for j, place := range firstCalls[i].places {
			name := ""
			if j == 0 {
				name = "**" + firstCalls[i].name + "**"
			}
			text += fmt.Sprintf("| %s | %s |", name, place)
			for k := range guards {
				text += " " + cell(pair{t: t, w: w, first: i, place: place, guard: k}) + " |"
			}
			text += "\n"
		}
	}
	return text
}

// A pair is two calls for one order.
type pair struct {
	t     *testing.T
	w     testDB
	first int // of firstCalls
	place string
	guard int  // of guards
	other bool // the second call has another request
}

// cell is what the second call does without and with AllowResubmit, and with another request.
func cell(p pair) string {
	var plain, allowed, other string
	name := fmt.Sprintf("%s, %s, %s", firstCalls[p.first].name, p.place, guards[p.guard].name)
	p.t.Run(name, func(t *testing.T) { // closes the handles
		p.t = t
		plain, allowed = p.second(), p.second(gateway.AllowResubmit())
		p.other = true
		other = p.second()
	})
	if plain != other {
		return plain + "; another request " + other
	}
	if plain != allowed {
		return plain + "; with `AllowResubmit` " + allowed
	}
	return plain
}

// second makes both calls, and returns what the second did.
func (p pair) second(opts ...gateway.CallOption) string {
	if _, err := p.w.guard(p.t).db.Exec(`DELETE FROM ` + p.w.table); err != nil {
		p.t.Fatal(err)
	}
	guard, s, first := guards[p.guard].open(p.t, p.w), &service{}, firstCalls[p.first]
	other := guard
	if p.place != sameProcess {
		other = guards[p.guard].open(p.t, p.w)
	}
	if other != nil {
		other = impatient{other}
	}
	second, result := s.client(p.t, other), ""
	s.respond = func(req *http.Request) (*http.Response, error) {
		if first.respond == nil { // in flight
			s.respond = nil
			result = s.result(p, second, opts)
			return s.status(req, http.StatusCreated)
		}
		return first.respond(s, req)
	}
	if first.dies && guard != nil {
		guard = dyingGuard{guard}
	}
	_, _ = s.client(p.t, guard).CreateInvoice(p.t.Context(), invoice)
	if first.expired {
		check(p.t, p.w.guard(p.t).endLeases(p.t.Context()))
	}
	if s.respond = nil; result == "" {
		result = s.result(p, second, opts)
	}
	return result
}

// result makes a call, and returns what it did.
func (s *service) result(p pair, c *gateway.Client, opts []gateway.CallOption) string {
	sent, request := s.sent, invoice
	if p.other {
		request.CoinSymbol = "BTC"
	}
	ctx, cancel := withoutWait(p.t.Context())
	defer cancel()
	created, err := c.CreateInvoice(ctx, request, opts...)
	switch {
	case err == nil && created.Replayed && s.sent == sent && len(created.Raw) > 0:
		return "its invoice"
	case err == nil && s.sent == sent+1:
		return "sent"
	case errors.Is(err, gateway.ErrOrderInFlight) && p.other && s.sent == sent:
		return "`ErrOrderInFlight`"
	}
	for name, refusal := range map[string]error{
		"waits for it": gateway.ErrOrderInFlight, "`ErrOrderOutcomeUnknown`": gateway.ErrOrderOutcomeUnknown,
		"`ErrOrderConflict`": gateway.ErrOrderConflict,
	} {
		if errors.Is(err, refusal) && s.sent == sent {
			return name
		}
	}
	p.t.Errorf("%v, and %d were sent", err, s.sent-sent)
	return "?"
}

// A dyingGuard is that of a process which dies before it records an outcome.
type dyingGuard struct{ gateway.OrderGuard }

func (dyingGuard) End(context.Context, gateway.Order, gateway.OrderRecord) error { return nil }
