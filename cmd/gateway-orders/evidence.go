package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

// inTransit is how long a request may be under way, and how far clocks may differ.
const inTransit = 15 * time.Minute

func (s *session) evidenceCommand() *cobra.Command {
	return s.uses(&cobra.Command{
		Use: "evidence ORDER", Short: "One page for the support of the gateway: what was sent, and what to ask",
		Args: cli.Args(1, 1, "the ORDER to ask about"),
		Long: `Prints a page that you can send to the operator of the gateway. It has no key. Below it, on stderr,
are the commands that record the answer.`,
		Example: "  gateway-orders evidence A-17 >A-17.txt",
	}, traits{timeout: 30 * time.Second, early: unchanged, single: true}, s.evidence)
}

// evidenceJSON is the page as JSON.
type evidenceJSON struct {
	Order       orderJSON `json:"order"`
	SearchFrom  time.Time `json:"searchFrom"`
	SearchUntil time.Time `json:"searchUntil"`
	Question    string    `json:"question"`
}

func (s *session) evidence(ctx context.Context, args []string) error {
	o, err := s.order(ctx, s.merchant, args[0])
	if err != nil {
		return err
	}
	if o.State != sqlguard.StateUnknown && o.State != sqlguard.StateCreated {
		return fmt.Errorf("the order is %s: there is nothing to ask", o.State)
	}
	page := evidenceOf(o)
	if s.format == cli.FormatJSON {
		return s.WriteJSON(page)
	}
	if err := s.printFields(page.fields(o)); err != nil {
		return err
	}
	if err := s.Write("\n" + page.Question + "\n"); err != nil {
		return err
	}
	if o.State == sqlguard.StateUnknown {
		command := "\n  gateway-orders resolve --token " + o.Token()
		s.note("\nWhen you know the answer:\n%s --exists --by NAME%s --absent --by NAME", command, command)
	}
	return nil
}

// evidenceOf is the page about an order.
func evidenceOf(o sqlguard.Order) evidenceJSON {
	first, last := o.Since, o.Begun
	times := []time.Time{o.Begun, o.Record.SentAt}
	for _, earlier := range o.Earlier {
		times = append(times, earlier.SentAt)
	}
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	page := evidenceJSON{Order: toJSON(o), SearchFrom: first.Add(-inTransit), SearchUntil: last.Add(inTransit)}
	page.Order.Token = "" // for the merchant only
	search := "Please search your log for a POST to /api/invoice/create with this order id, in the time above."
	if o.Record.RequestID != "" {
		search = `Please search your log for a POST to /api/invoice/create with this X-Request-Id,
or else with this order id, in the time above.`
	}
	if o.State == sqlguard.StateCreated {
		page.Question = "We know of an invoice for this order.\n" + search + `
Does it still exist, once? Please send its identifier, the time of its creation and its amount.`
	} else {
		page.Question = "We do not know whether this request has created an invoice.\n" + search + `
1. Does an invoice for this order exist? If so, please send its identifier, the time of its
   creation, its amount, and the body of your response.
2. If not: did the request arrive, and is it certain that it will not create an invoice later?`
	}
	return page
}

func (page evidenceJSON) fields(o sqlguard.Order) [][]string {
	r := o.Record
	title, response := "An invoice whose outcome is unknown", string(r.Body)
	switch {
	case o.State == sqlguard.StateCreated:
		title = "An invoice that was created"
		response = string(r.Invoice)
	case r.StatusCode == 0 && response == "":
		response = "none"
	}
	attempts := ""
	if o.Attempts > 1 {
		attempts = "at most " + strconv.Itoa(o.Attempts) + "; what follows is of the last that is known"
	}
	return [][]string{
		{"Subject", title},
		{"Order id", o.ID},
		{"Requests", attempts},
		{"X-Request-Id", r.RequestID},
		{"Sent at", preciseTime(r.SentAt)},
		{"Search from", timeText(page.SearchFrom)},
		{"Search until", timeText(page.SearchUntil)},
		{"Price", priceOf(r.Request)},
		{"Amount", amountOf(r.Request)},
		{"HTTP status", zeroIsNone(r.StatusCode)},
		{"Earlier requests", textOf(page.Order.Earlier)},
		{"More invoices", textOf(page.Order.Others)},
		{"Response", cli.Shortened(strings.TrimSpace(response), 500)},
		{"What happened", r.Cause},
	}
}

// preciseTime is a time in UTC to the millisecond, for a search in a log.
func preciseTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05.000 UTC")
}
