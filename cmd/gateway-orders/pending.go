package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
)

func pendingCommand() command {
	return command{
		name: "pending", synopsis: "[-n COUNT] [-after PLACE]", short: "the orders that are unknown, the oldest first",
		text: `
Prints the orders that were sent and whose invoice may exist or not. The exit code is 6 if there
is one, and 0 if not. With -merchant it is about those of one merchant, otherwise about all.

  gateway-orders pending
  gateway-orders pending -n 20 -o json`,
		timeout: 30 * time.Second, early: unchanged, formats: tableOrJSON(), single: true,
		define: func(s *session, flags *flag.FlagSet) action {
			most := flags.Int("n", 100, "how `many` are printed at most")
			after := flags.String("after", "", "those after this `place`, which an earlier run or a token names")
			return func(ctx context.Context) error {
				if *most < 1 {
					return badFlag("pending", "n", "must be at least 1")
				}
				return s.pending(ctx, *most, *after)
			}
		},
	}
}

// pendingJSON is the result of pending.
type pendingJSON struct {
	Count   int         `json:"count"` // how many orders are unknown, of all merchants
	Oldest  time.Time   `json:"oldest,omitzero"`
	Pending []orderJSON `json:"pending"`
	Next    string      `json:"next,omitempty"` // for -after; left out if there are no more
}

func (s *session) pending(ctx context.Context, most int, after string) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	place, err := s.place(ctx, after)
	if err != nil {
		return err
	}
	summary, err := s.guard.PendingSummary(ctx)
	if err != nil {
		return err
	}
	orders, more, err := s.page(ctx, most, place)
	if err != nil {
		return err
	}
	result := pendingJSON{Count: summary.Count, Oldest: summary.Oldest, Pending: []orderJSON{}}
	for _, o := range orders {
		result.Pending = append(result.Pending, toJSON(o))
	}
	if more {
		result.Next = placeOf(orders[len(orders)-1])
	}
	if s.format == formatJSON {
		err = s.writeJSON(s.out, result)
	} else {
		err = s.printPending(orders, result)
	}
	if err == nil && len(orders) > 0 || err == nil && s.merchant == "" && summary.Count > 0 {
		return errLeft
	}
	return err
}

// page reads pending orders, of one merchant if -merchant names it, and whether there are more.
func (s *session) page(ctx context.Context, most int, after sqlguard.Order) (orders []sqlguard.Order, more bool, err error) {
	size := min(max(100, most), 1000) + 1
	for {
		batch, err := s.guard.Pending(ctx, sqlguard.PendingQuery{Most: size, After: after})
		if err != nil {
			return nil, false, err
		}
		for _, o := range batch {
			if s.merchant != "" && o.Merchant != s.merchant {
				continue
			}
			if len(orders) == most {
				return orders, true, nil
			}
			orders = append(orders, o)
		}
		if len(batch) < size {
			return orders, false, nil
		}
		after = batch[len(batch)-1]
	}
}

func (s *session) printPending(orders []sqlguard.Order, result pendingJSON) error {
	if len(orders) == 0 {
		if result.Count == 0 {
			s.note("No order is unknown.")
		} else {
			s.note("None here; %s in all.", unknown(result.Count))
		}
		return nil
	}
	rows := [][]string{{"ORDER", "MERCHANT", "UNKNOWN SINCE", "TRIED", "AMOUNT", "WHAT HAPPENED", "TOKEN"}}
	for _, o := range orders {
		rows = append(rows, []string{
			o.ID, cmp.Or(o.Merchant, "-"), timeText(o.Since), times(o.Attempts), cmp.Or(amountOf(o.Record.Request), "-"),
			shortened(what(o), 50), o.Token(),
		})
	}
	if err := s.printRows(rows); err != nil {
		return err
	}
	s.note("%s, the oldest since %s. What to ask about one: gateway-orders evidence ORDER", unknown(result.Count), timeText(result.Oldest))
	if result.Next != "" {
		s.note("There are more: gateway-orders pending -after %s", result.Next)
	}
	return nil
}

func unknown(count int) string {
	if count == 1 {
		return "1 order is unknown"
	}
	return fmt.Sprintf("%d orders are unknown", count)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// what is what is known of the last attempt, in a line.
func what(o sqlguard.Order) string {
	cause := strings.TrimPrefix(o.Record.Cause, "gateway: ")
	if status := zeroIsNone(o.Record.StatusCode); !strings.Contains(cause, status) {
		return joined("status", status, cause)
	}
	return cause
}

// placeOf is a place in the list that stays when the order is ended: its time and its token.
func placeOf(o sqlguard.Order) string {
	return o.Since.UTC().Format(time.RFC3339Nano) + "/" + o.Token()
}

// place reads what placeOf has written, or the token of an order that is pending.
func (s *session) place(ctx context.Context, text string) (o sqlguard.Order, err error) {
	if text == "" {
		return o, nil
	}
	at, token, both := strings.Cut(text, "/")
	if !both {
		token = text
	}
	if o, err = sqlguard.ParseToken(token); err != nil {
		return o, badFlag("pending", "after", "is not a place: copy it again from the last line of pending")
	}
	if both {
		if o.Since, err = time.Parse(time.RFC3339Nano, at); err != nil || o.Since.IsZero() {
			return o, badFlag("pending", "after", "is not a place: it does not begin with a time")
		}
		return o, nil
	}
	o, err = s.guard.Order(ctx, o.Merchant, o.ID)
	if err == nil && o.State != sqlguard.StateUnknown {
		err = fmt.Errorf("-after: order %q is %s by now: list the pending orders from the first one", o.ID, o.State)
	}
	return o, err
}

func showCommand() command {
	return command{
		name: "show", synopsis: "ORDER", short: "all that is known of one order",
		text: `
Prints what the table has of an order, whatever its state is.

  gateway-orders show A-17
  gateway-orders show A-17 -o json`,
		timeout: 30 * time.Second, early: unchanged, formats: tableOrJSON(), single: true,
		least: 1, most: 1, argument: "the ORDER to show",
		define: func(s *session, _ *flag.FlagSet) action { return s.show },
	}
}

func (s *session) show(ctx context.Context) error {
	o, err := s.order(ctx, s.merchant, s.args[0])
	if err != nil {
		return err
	}
	if s.format == formatJSON {
		return s.writeJSON(s.out, toJSON(o))
	}
	j := toJSON(o)
	return s.printFields([][]string{
		{"order", o.ID},
		{"merchant", o.Merchant},
		{"state", string(o.State)},
		{"tried", times(o.Attempts)},
		{"unknown since", timeText(o.Since)},
		{"last begun", timeText(o.Begun)},
		{"outcome recorded", timeText(o.Ended)},
		{"created", timeText(o.Created)},
		{"price", priceOf(o.Record.Request)},
		{"amount", amountOf(o.Record.Request)},
		{"X-Request-Id", o.Record.RequestID},
		{"sent at", timeText(o.Record.SentAt)},
		{"HTTP status", zeroIsNone(o.Record.StatusCode)},
		{"what happened", o.Record.Cause},
		{"response", string(o.Record.Body)},
		{"invoice", string(o.Record.Invoice)},
		{"resolved", timeText(o.Resolved)},
		{"found", j.Resolution},
		{"by", o.Resolution.By},
		{"note", o.Resolution.Note},
		{"token", j.Token},
	})
}

func zeroIsNone(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// printFields prints names and values, without those that are empty.
func (s *session) printFields(fields [][]string) error {
	var rows [][]string
	for _, field := range fields {
		if field[1] != "" {
			rows = append(rows, field)
		}
	}
	return s.printRows(rows)
}

// order reads an order that the table has.
func (s *session) order(ctx context.Context, merchant, id string) (o sqlguard.Order, err error) {
	if err := s.open(ctx); err != nil {
		return o, err
	}
	o, err = s.guard.Order(ctx, merchant, id)
	if err == nil && o.Attempts == 0 {
		where := "; if its calls name a merchant, give -merchant, or its -token"
		if merchant != "" {
			where = fmt.Sprintf(" of the merchant %q", merchant)
		}
		err = fmt.Errorf("the table %s has no order %q%s", s.table, id, where)
	}
	return o, err
}
