package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/sqlguard"
)

func (s *session) pendingCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "pending", Short: "The orders that are unknown, the oldest first",
		Long: `Prints the orders that were sent and whose invoice may exist or not. The exit code is 6 if there
is one, and 0 if not. With --merchant it is about those of one merchant, otherwise about all.`,
		Example: `  gateway-orders pending
  gateway-orders pending -n 20 -o json`,
	}
	most := c.Flags().IntP("most", "n", 100, "how `many` are printed at most")
	after := c.Flags().String("after", "", "those after this `place`, which an earlier run or a token names")
	return s.uses(c, traits{timeout: 30 * time.Second, early: unchanged, single: true}, func(ctx context.Context, _ []string) error {
		if *most < 1 {
			return cli.Usage(c, "--most must be at least 1")
		}
		return s.pending(ctx, c, *most, *after)
	})
}

// pendingJSON is the result of pending.
type pendingJSON struct {
	Count   int         `json:"count"` // how many orders are unknown, of all merchants
	Oldest  time.Time   `json:"oldest,omitzero"`
	Pending []orderJSON `json:"pending"`
	Next    string      `json:"next,omitempty"` // for --after; left out if there are no more
}

func (s *session) pending(ctx context.Context, c *cobra.Command, most int, after string) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	place, err := s.place(ctx, c, after)
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
	if s.format == cli.FormatJSON {
		err = s.WriteJSON(result)
	} else {
		err = s.printPending(orders, result)
	}
	if err == nil && len(orders) > 0 || err == nil && s.merchant == "" && summary.Count > 0 {
		return errLeft
	}
	return err
}

// page reads pending orders, of one merchant if --merchant names it, and whether there are more.
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
	var rows [][]string
	for _, o := range orders {
		rows = append(rows, []string{
			o.ID, cmp.Or(o.Merchant, "-"), timeText(o.Since), times(o.Attempts), cmp.Or(amountOf(o.Record.Request), "-"),
			cli.Shortened(what(o), 50), o.Token(),
		})
	}
	if err := s.WriteTable([]string{"ORDER", "MERCHANT", "UNKNOWN SINCE", "TRIED", "AMOUNT", "WHAT HAPPENED", "TOKEN"}, rows); err != nil {
		return err
	}
	s.note("%s, the oldest since %s. What to ask about one: gateway-orders evidence ORDER", unknown(result.Count), timeText(result.Oldest))
	if result.Next != "" {
		s.note("There are more: gateway-orders pending --after %s", result.Next)
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
func (s *session) place(ctx context.Context, c *cobra.Command, text string) (o sqlguard.Order, err error) {
	if text == "" {
		return o, nil
	}
	at, token, both := strings.Cut(text, "/")
	if !both {
		token = text
	}
	if o, err = sqlguard.ParseToken(token); err != nil {
		return o, cli.Usage(c, "--after is not a place: copy it again from the last line of pending")
	}
	if both {
		if o.Since, err = time.Parse(time.RFC3339Nano, at); err != nil || o.Since.IsZero() {
			return o, cli.Usage(c, "--after is not a place: it does not begin with a time")
		}
		return o, nil
	}
	o, err = s.guard.Order(ctx, o.Merchant, o.ID)
	if err == nil && o.State != sqlguard.StateUnknown {
		err = fmt.Errorf("--after: the order is %s by now: list the pending orders from the first one", o.State)
	}
	return o, err
}

func (s *session) showCommand() *cobra.Command {
	return s.uses(&cobra.Command{
		Use: "show ORDER", Short: "All that is known of one order", Args: cli.Args(1, 1, "the ORDER to show"),
		Long: "Prints what the table has of an order, whatever its state is.",
		Example: `  gateway-orders show A-17
  gateway-orders show A-17 -o json`,
	}, traits{timeout: 30 * time.Second, early: unchanged, single: true}, s.show)
}

func (s *session) show(ctx context.Context, args []string) error {
	o, err := s.order(ctx, s.merchant, args[0])
	if err != nil {
		return err
	}
	if s.format == cli.FormatJSON {
		return s.WriteJSON(toJSON(o))
	}
	j := toJSON(o)
	return s.printFields([][]string{
		{"order", o.ID},
		{"merchant", o.Merchant},
		{"gateway", o.Gateway},
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
		{"more invoices", textOf(j.Others)},
		{"earlier attempts", textOf(j.Earlier)},
		{"resolved", timeText(o.Resolved)},
		{"found", j.Resolution},
		{"by", o.Resolution.By},
		{"note", o.Resolution.Note},
		{"token", j.Token},
	})
}

// textOf is a list as JSON; "" for none.
func textOf[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	text, _ := json.Marshal(list) // of texts, times and JSON
	return string(text)
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
	return s.WriteRows(rows)
}

// order reads an order that the table has.
func (s *session) order(ctx context.Context, merchant, id string) (o sqlguard.Order, err error) {
	if err := s.open(ctx); err != nil {
		return o, err
	}
	o, err = s.guard.Order(ctx, merchant, id)
	if err == nil && o.Attempts == 0 {
		where := "; if its calls name a merchant, give --merchant, or its --token"
		if merchant != "" {
			where = " of that merchant"
		}
		err = errors.New("the table has no such order" + where)
	}
	return o, err
}
