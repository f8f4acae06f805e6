package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// judge compares a line with what is at the gateway when it comes.
func (t *trial) judge(l line) {
	invoices := t.gw.InvoicesFor(l.Order)
	t.mu.Lock()
	t.said[l.Order] = l
	exported := t.exported[l.Order]
	t.mu.Unlock()
	switch l.State {
	case "created":
		switch {
		case len(invoices) == 0:
			t.wrong("invented: order %s is said to be created, and the gateway has no invoice", l.Order)
		case !exported && !slices.ContainsFunc(invoices, func(i gatewaytest.Invoice) bool { return same(i, l.Invoice) }):
			t.wrong("other invoice: order %s is shown with %.200s, which is not the gateway's", l.Order, l.Invoice)
		}
	case "refused", "not_sent":
		if len(invoices) > 0 {
			t.wrong("denied: order %s is said to be %s, and has an invoice", l.Order, l.State)
		}
	case "unknown":
	default:
		t.wrong("order %s has a state that is not in the contract: %.100q", l.Order, l.State)
	}
}

// same reports whether the text is the JSON of the stand-in's invoice.
func same(invoice any, text json.RawMessage) bool {
	want, err := json.Marshal(invoice)
	if err != nil {
		return false
	}
	var a, b any
	return json.Unmarshal(want, &a) == nil && json.Unmarshal(text, &b) == nil && reflect.DeepEqual(a, b)
}

func (t *trial) last(order string) line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said[order]
}

// created requires that the last word about these orders is that they are created.
func (t *trial) created(orders ...string) {
	for _, order := range orders {
		if l := t.last(order); l.State != "created" {
			t.wrong("not created: order %s met no fault and is said to be %q", order, l.State)
		}
	}
}

// judgeEnd compares what all orders have at the end: at most one invoice, and one that is not
// created, but may exist, is pending.
func (t *trial) judgeEnd(orders ...string) {
	if n := t.astray(); n > 0 {
		t.wrong("astray: %d requests with the key went to another host", n)
	}
	var open []string
	for _, order := range orders {
		invoices := len(t.gw.InvoicesFor(order))
		if invoices > 1 {
			t.wrong("doubled: order %s has %d invoices", order, invoices)
		}
		if state := t.last(order).State; state == "unknown" || invoices > 0 && state != "created" {
			open = append(open, order)
		}
	}
	if t.failed() {
		return // nothing is waited for
	}
	for _, order := range t.missing(open) {
		t.wrong("hidden: order %s is open, and is not in pending", order)
	}
}

// missing returns which of the orders are not in pending, when it has had time to list them.
func (t *trial) missing(open []string) []string {
	deadline := time.After(t.within)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		var listed []string
		for _, l := range t.do("", "pending") {
			listed = append(listed, l.Order)
		}
		lacks := slices.DeleteFunc(slices.Clone(open), func(o string) bool { return slices.Contains(listed, o) })
		if len(lacks) == 0 {
			return lacks
		}
		select {
		case <-deadline:
			return lacks
		case <-tick.C:
		}
	}
}

// failed reports whether a problem is known.
func (t *trial) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.problems) > 0
}
