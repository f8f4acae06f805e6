package main

import (
	"errors"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// What a new base URL means is said once: that it is the same gateway, or another one.
func TestGateway(t *testing.T) {
	for flag, state := range map[string]gateway.OrderState{"--same": gateway.OrderCreated, "--another": gateway.OrderFree} {
		inEach(t, func(t *testing.T, w *shop) {
			const from, to = "https://test.gateway.example", "https://gateway.example/v1"
			o := requestOf("", "A-17")
			o.Gateway = from
			w.sends(t, o, gateway.OutcomeSucceeded)
			want(t, w.run("gateway"), cli.ExitDone, "GATEWAY ORDERS\n", from+" 1\n")
			o.Gateway = to
			if _, err := w.guard.Begin(t.Context(), o); !errors.Is(err, gateway.ErrOtherGateway) {
				t.Error(err)
			}
			want(t, w.run("gateway https://another.example "+to+" "+flag), cli.ExitFailed, "the table has no order of https://another.example")
			want(t, w.run("gateway https://TEST.gateway.example:443/ https://gateway.example/v1/ "+flag), cli.ExitDone, "1 orders ")
			if lease, err := w.guard.Begin(t.Context(), o); err != nil || lease.State != state {
				t.Errorf("%s: %+v, %v", flag, lease, err)
			}
			want(t, w.run("gateway -o json"), cli.ExitDone, `"gateway": "`+to+`"`)
		})
	}
}

// What a restored table has forgotten is marked, and the rest stays as it is.
func TestLost(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "unknown")
		w.sends(t, requestOf("", "created"), gateway.OutcomeSucceeded)
		w.sends(t, requestOf("", "free"), gateway.OutcomeRejected)
		file := writeFile(t, "forgotten\r\n\nunknown\ncreated\nfree\n")
		want(t, w.run("lost --since 2026-11-22T03:00:00Z --file "+file), cli.ExitDone, "marked as unknown: 2; left, as created, unknown or in flight: 2\n")
		want(t, w.run("lost --since 2026-11-22T03:00:00Z --file "+file), cli.ExitDone, "marked as unknown: 0; left, as created, unknown or in flight: 4")
		want(t, w.run("pending"), exitLeft, "3 orders are unknown", "its row was lost with a backup")
		want(t, w.run("evidence forgotten"), cli.ExitDone, "Search from 2026-11-22 02:45:00 UTC", "create with this order id")
		if lease, err := w.guard.Begin(t.Context(), requestOf("", "forgotten")); err != nil || lease.State != gateway.OrderUnknown {
			t.Errorf("it is sent again: %+v, %v", lease, err)
		}
		want(t, w.run("show created"), cli.ExitDone, "state created")
		want(t, w.run("resolve forgotten --exists --by anna"), cli.ExitDone)
	})
}

// The invoice of an order that exists can be added later, if it names this order and none is known.
func TestResolve_addsInvoice(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		want(t, w.run("resolve A-17 --exists --by anna"), cli.ExitDone, "without the gateway's response")
		want(t, w.run("resolve A-17 --exists --by anna"), cli.ExitFailed, "there is nothing to resolve")
		want(t, w.run("resolve A-17 --exists --by bob --invoice "+writeFile(t, `{"orderId":"A-18"}`)), cli.ExitFailed, `names the order "A-18", and not "A-17"`)
		want(t, w.run("resolve A-17 --exists --by bob --invoice "+writeFile(t, `{"orderId":"A-17","id":"4711"}`)), cli.ExitDone, "later calls get its invoice")
		want(t, w.run("show A-17"), cli.ExitDone, `invoice {"orderId":"A-17","id":"4711"}`, "by bob")
		want(t, w.run("resolve A-17 --exists --by bob --invoice "+writeFile(t, `{"orderId":"A-17"}`)), cli.ExitFailed, "there is nothing to resolve")
	})
}

// How long a request may be in transit is what --margin says.
func TestResolve_margin(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	want(t, w.run("resolve A-17 --absent --by anna --margin 1h --dry-run"), cli.ExitDone, "would be free", "it is accepted from 20", "nothing was changed")
	want(t, w.run("resolve A-17 --absent --by anna --margin 1h"), cli.ExitFailed, "the margin of 1h0m0s")
	want(t, w.run("resolve A-17 --absent --by anna --margin 0s"), cli.ExitDone, "order A-17 is free")
}

// Orders may be pending although a page has none.
func TestPending_emptyPage(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	token := decode[pendingJSON](t, w.run("pending -o json").stdout).Pending[0].Token
	want(t, w.run("pending --after "+token), exitLeft, "None here; 1 order is unknown in all.")
}

// Further invoices of an order, and earlier attempts, are shown wherever the order is.
func TestShow_all(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		first := requestOf("", "A-17")
		first.RequestID = "R-first"
		w.sends(t, first, gateway.OutcomeUnknown)
		again := requestOf("", "A-17")
		again.Resubmit = true
		w.sends(t, again, gateway.OutcomeUnknown)
		for _, line := range []string{"show A-17", "evidence A-17", "export"} {
			want(t, w.run(line), cli.ExitDone, "R-first")
		}
		for _, id := range []string{"inv-1", "inv-2"} {
			_, err := w.guard.End(t.Context(), again, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: again.Request, Invoice: []byte(`{"id":"` + id + `"}`)})
			check(t, err)
		}
		for _, line := range []string{"show A-17", "evidence A-17", "export -o json"} {
			want(t, w.run(line), cli.ExitDone, "inv-1", "inv-2")
		}
	})
}

// No cell of CSV is a formula, and its id is read as it was.
func TestExport_formulas(t *testing.T) {
	for cell, want := range map[string]string{"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=1": "'\t=1", "＝1": "'＝1", "a=1": "a=1", "'=1": "'=1", "": ""} {
		if got := asData(cell); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w := newSQLite(t)
	w.loses(t, "=A-17")
	file := writeFile(t, w.run("export").stdout)
	want(t, w.run("reconcile --order-column orderId --file "+file), exitLeft, "=A-17 unknown: it exists")
}
