package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// An order becomes unknown and is ended by what a person has found, with the command alone.
func TestLife(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		want(t, w.run("pending"), cli.ExitDone, "No order is unknown.")
		w.loses(t, "A-17")
		want(t, w.run("pending"), exitLeft, "A-17", "TRIED", "once", "10.50 USDT on Tron", "502: no message in the response",
			"1 order is unknown, the oldest since 20", "gateway-orders evidence ORDER")
		want(t, w.run("show A-17"), cli.ExitDone, "unknown since", "R-A-17", "502", "<html>\uFFFD[31mBad Gateway</html>")

		page := w.run("evidence A-17")
		want(t, page, cli.ExitDone, "Order id A-17", "X-Request-Id R-A-17", "10.50 USD\n", "HTTP status 502", "Bad Gateway",
			"Does an invoice for this order exist?", "--exists --by NAME")
		token := regexp.MustCompile(`--token (\S+) --exists`).FindStringSubmatch(page.err)[1]
		if strings.Contains(page.stdout, token) {
			t.Error("the page for the gateway has a token of ours")
		}

		file := filepath.Join(t.TempDir(), "4711.json")
		check(t, os.WriteFile(file, []byte(`{"orderId": "A-17", "id": "4711"}`+"\n"), 0o600))
		found := []string{"resolve", "--token", token, "--exists", "--by", "anna", "--note", "4711", "--invoice", file}
		want(t, w.runIn(t.Context(), "", append(found, "--dry-run")...), cli.ExitDone, "order A-17 would be created, found by anna", "nothing was changed")
		want(t, w.run("pending"), exitLeft, "A-17")
		want(t, w.runIn(t.Context(), "", found...), cli.ExitDone, "order A-17 is created, found by anna")
		want(t, w.run("pending"), cli.ExitDone)
		want(t, w.run("show A-17"), cli.ExitDone, "state created", "found exists", "anna", "4711")

		known, err := w.guard.Begin(t.Context(), requestOf("", "A-17"))
		if err != nil || known.State != gateway.OrderCreated || string(known.Known.Invoice) != `{"orderId": "A-17", "id": "4711"}` {
			t.Errorf("%+v, %v", known, err)
		}
		want(t, w.runIn(t.Context(), "", found...), cli.ExitFailed, "there is nothing to resolve", "it is created")
	})
}

// What does not exist is sent again; not before its request can have been delivered.
func TestLife_absent(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		want(t, w.run("resolve A-17 --absent --by anna"), cli.ExitFailed, "may still be in transit", "of lookups from 20", "--margin")
		want(t, w.run("pending"), exitLeft)
		w.ages(t, "A-17", 20*time.Minute)
		got := w.run("resolve A-17 --absent --by anna -o json")
		want(t, got, cli.ExitDone)
		if o := decode[orderJSON](t, got.stdout); o.State != "free" || o.Resolution != foundAbsent || o.ResolvedBy != "anna" || o.Token != "" {
			t.Errorf("%+v", o)
		}
		w.sends(t, requestOf("", "A-17"), gateway.OutcomeSucceeded)
		want(t, w.run("show A-17"), cli.ExitDone, `{"orderId":"A-17","id":"inv-1"}`)
	})
}

// A finding about an order that was sent again since it was listed is refused.
func TestLife_sentAgain(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		token := decode[pendingJSON](t, w.run("pending -o json").stdout).Pending[0].Token
		again := requestOf("", "A-17")
		again.Resubmit = true
		w.sends(t, again, gateway.OutcomeUnknown)
		for _, end := range []string{"--exists", "--exists --dry-run", "--absent --margin 0s"} {
			want(t, w.run("resolve "+end+" --by anna --token "+token), cli.ExitFailed, "the order was sent again since it was listed", "look it up again")
		}
		want(t, w.run("pending"), exitLeft, "2 times")
	})
}

// A list of any length is read in pages, also while its orders are ended.
func TestPending_pages(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-1", "A-2", "A-3", "A-4", "A-5")
		for i, id := range []string{"A-1", "A-2", "A-3", "A-4", "A-5"} {
			w.ages(t, id, time.Duration(9-i)*time.Hour)
		}
		var ids []string
		next := ""
		for {
			page := decode[pendingJSON](t, w.run("pending -n 2 -o json"+next).stdout)
			for _, o := range page.Pending {
				ids = append(ids, o.OrderID)
				want(t, w.run("resolve --exists --by anna --token "+o.Token), cli.ExitDone)
			}
			if page.Next == "" {
				break
			}
			next = " --after " + page.Next
		}
		if got := strings.Join(ids, " "); got != "A-1 A-2 A-3 A-4 A-5" {
			t.Error(got)
		}
		want(t, w.run("pending -n 2"+next), cli.ExitDone, "No order is unknown.")
	})
}

// More than a page of them is said to be more, at any length of a page.
func TestPending_more(t *testing.T) {
	w := newSQLite(t)
	for i := range 101 {
		w.loses(t, fmt.Sprint("A-", i))
	}
	for line, most := range map[string]int{"pending": 100, "pending -n 99": 99, "pending -n 101": 101, "pending -n 200": 101} {
		got := w.run(line)
		want(t, got, exitLeft, "101 orders are unknown")
		if more := strings.Contains(got.err, "There are more"); strings.Count(got.stdout, "\n") != 1+most || more != (most < 101) {
			t.Errorf("%s: %t, %s", line, more, got.stdout)
		}
	}
}

// The orders of merchants are told apart.
func TestPending_merchants(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		w.sends(t, requestOf("north", "A-17"), gateway.OutcomeUnknown)
		want(t, w.run("pending"), exitLeft, "north", "2 orders are unknown")
		want(t, w.run("--merchant south pending"), cli.ExitDone, "None here; 2 orders are unknown in all.")
		got := decode[pendingJSON](t, w.run("pending --merchant north -o json").stdout)
		if len(got.Pending) != 1 || got.Pending[0].Merchant != "north" || got.Count != 2 {
			t.Errorf("%+v", got)
		}
		token := got.Pending[0].Token
		want(t, w.run("resolve B-1 --exists --by anna --token "+token), cli.ExitUsage, "--token is that of another order")
		want(t, w.run("resolve A-17 --merchant south --exists --by anna"), cli.ExitFailed, "the table has no such order of that merchant")
		want(t, w.run("resolve --merchant north A-17 --exists --by anna"), cli.ExitDone)
		want(t, w.run("pending --after "+token), cli.ExitFailed, "--after: the order is created by now")
		want(t, w.run("pending"), exitLeft, "1 order is unknown")
	})
}

// A file of --invoice that later calls could not use is refused, and nothing is recorded.
func TestResolve_invoice(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		for text, reason := range map[string]string{
			``:                             "--invoice is not a JSON object",
			`[1]`:                          "--invoice is not a JSON object",
			`{"a":1`:                       "--invoice is not a JSON object",
			`{"message":"ok","result":{}}`: `give its member "result" only`,
			`{"a":"` + strings.Repeat("x", mostInvoice) + `"}`: "more than 64 KiB",
		} {
			want(t, w.runIn(t.Context(), text, strings.Fields("resolve A-17 --exists --by anna --invoice -")...), cli.ExitUsage, reason)
		}
		want(t, w.run("resolve A-17 --exists --by anna --invoice /no/such/file"), cli.ExitFailed, "--invoice: no such file or directory")
		want(t, w.run("pending"), exitLeft)
	})
}

// A page for the gateway's support is about what was sent, and what was not is refused.
func TestEvidence(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.sends(t, requestOf("", "free"), gateway.OutcomeNotSent)
		w.sends(t, requestOf("", "created"), gateway.OutcomeSucceeded)
		_, err := w.guard.Begin(t.Context(), requestOf("", "flying"))
		check(t, err)
		want(t, w.run("evidence free"), cli.ExitFailed, "the order is free: there is nothing to ask")
		want(t, w.run("evidence flying"), cli.ExitFailed, "the order is in flight")
		want(t, w.run("evidence created"), cli.ExitDone, "An invoice that was created", "Does it still exist, once?")
		want(t, w.run("evidence other"), cli.ExitFailed, "the table has no such order; if its calls name a merchant, give --merchant")

		w.loses(t, "A-17")
		w.ages(t, "A-17", time.Hour)
		again := requestOf("", "A-17")
		again.Resubmit, again.RequestID = true, "R-again"
		w.sends(t, again, gateway.OutcomeUnknown)
		page := decode[evidenceJSON](t, w.run("evidence A-17 -o json").stdout)
		o := page.Order
		if page.SearchFrom.Add(14*time.Minute).After(o.UnknownSince) || page.SearchUntil.Add(-14*time.Minute).Before(o.SentAt) || o.RequestID != "R-again" || o.Token != "" {
			t.Errorf("the bounds do not have all requests: %+v", page)
		}
		want(t, w.run("evidence A-17"), cli.ExitDone, "Requests at most 2; what follows is of the last that is known")
	})
}
