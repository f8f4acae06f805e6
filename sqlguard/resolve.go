package sqlguard

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
	"github.com/cryptogw/gateway/internal/validate"
)

const (
	defaultMargin = 15 * time.Minute
	maxKept       = 64 << 10 // bytes of an invoice, and of a text, that a person may record
)

// A Resolution is a finding about one order, for [Guard.ResolveAll].
type Resolution struct {
	Order   gateway.OrderStatus // as it was read before it was looked up
	Finding gateway.Finding
}

// A RefusedError says why one of the orders that were passed to [Guard.ResolveAll] or [Guard.Mark] is refused.
type RefusedError struct {
	Index int // of the order in the argument
	Err   error
}

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// Resolve records a finding about an order of unknown outcome, with who found it and when. If an invoice
// exists, the order is created from then on. If none does, the order is free: the next call sends it.
// For a created order whose invoice is not known, a finding with an Invoice adds the invoice.
//
// Pass the order as [Guard.Pending] or [Guard.Order] returned it before the lookup. Resolve changes nothing
// and returns an error that matches
//
//   - [ErrTriedAgain] if the order was sent again since it was read;
//   - [ErrNotUnknown] if there is nothing to resolve;
//   - [ErrTooEarly] if no invoice is said to exist, and the order was read before the Margin after SentUntil
//     had passed, by the clock of the database and by the clock of this process.
//
// It is a [*gateway.ArgumentError] for a Finding without By, with an Invoice that is not JSON of at most 64 KiB,
// that names another order, or is given without Exists, and with a text of more than 64 KiB, with a NUL or
// that is not valid UTF-8.
func (g *Guard) Resolve(ctx context.Context, o gateway.OrderStatus, f gateway.Finding) error {
	r := Resolution{o, f}
	if err := r.check(); err != nil {
		return err
	}
	_, answer, err := g.change(ctx, r.key(), stored{}, r.apply)
	if err = cmp.Or(err, answer.Err); err != nil {
		return r.key().error(err)
	}
	return nil
}

// ResolveAll records findings about different orders as Resolve does, all of them or none, in one transaction.
// If Resolve would refuse some of them, the error joins a [*RefusedError] for each, and nothing was changed.
// If the database fails while it commits, the findings may have been recorded: read the orders again.
func (g *Guard) ResolveAll(ctx context.Context, all []Resolution) error {
	if err := checkResolutions(all); err != nil || len(all) == 0 {
		return err
	}
	failure := errors.New("the orders are changed by others all the time")
	for range mostTries {
		written, err := g.resolveAll(ctx, all)
		if _, refused := errors.AsType[*RefusedError](err); refused || written {
			return err
		}
		if err == nil {
			continue
		}
		if failure = err; !g.sql.isTransient(err) {
			break
		}
	}
	return fmt.Errorf("sqlguard: resolving %d orders: %w", len(all), explained(failure))
}

// resolveAll decides about all orders, and then writes them unless one of them has changed meanwhile.
func (g *Guard) resolveAll(ctx context.Context, all []Resolution) (written bool, err error) {
	before, after := make([]stored, len(all)), make([]row, len(all))
	var refusals []error
	for i, r := range all {
		if before[i], err = g.read(ctx, g.db, r.key()); err != nil {
			return false, err
		}
		var answer orders.Answer
		if after[i], answer = r.apply(before[i].row, before[i].now); answer.Err != nil {
			refusals = append(refusals, &RefusedError{i, r.key().error(answer.Err)})
		}
	}
	if len(refusals) > 0 {
		return false, errors.Join(refusals...)
	}
	inOrder := make([]int, len(all)) // which every transaction locks the rows in
	for i := range inOrder {
		inOrder[i] = i
	}
	slices.SortFunc(inOrder, func(i, j int) int {
		a, b := all[i].key(), all[j].key()
		return cmp.Or(cmp.Compare(a.merchant, b.merchant), cmp.Compare(a.order, b.order))
	})
	err = g.withBusyTimeout(ctx, func(h handle) error {
		tx, err := h.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, i := range inOrder {
			if written, err = g.write(ctx, tx, all[i].key(), before[i], after[i], randomName()); err != nil || !written {
				return err
			}
		}
		return tx.Commit()
	})
	return written && err == nil, err
}

// checkResolutions checks what is passed before anything is read.
func checkResolutions(all []Resolution) error {
	var refusals []error
	seen := map[key]bool{}
	for i, r := range all {
		err := r.check()
		if err == nil && seen[r.key()] {
			err = r.key().error(badArgument("all", "has the order twice"))
		}
		if err != nil {
			refusals = append(refusals, &RefusedError{i, err})
		}
		seen[r.key()] = true
	}
	return errors.Join(refusals...)
}

func (r Resolution) key() key { return key{r.Order.Merchant, idOf(r.Order.OrderID)} }

// check returns what is wrong with a resolution, whatever the table has.
func (r Resolution) check() error {
	k := r.key()
	if err := k.check(); err != nil {
		return err
	}
	const storable = "must be valid UTF-8 of at most 64 KiB without NUL"
	f := r.Finding
	wrong := func(name, reason string) error { return k.error(badArgument("Finding."+name, reason)) }
	switch other := otherOrder(f.Invoice, k.order); {
	case !isStorable(f.By):
		return wrong("By", storable)
	case !isStorable(f.Note):
		return wrong("Note", storable)
	case strings.TrimSpace(f.By) == "":
		return wrong("By", "is required")
	case f.Margin < 0:
		return wrong("Margin", "must not be negative")
	case len(f.Invoice) > 0 && !f.Exists:
		return wrong("Invoice", "must be empty without Exists: an order with an invoice exists")
	case len(f.Invoice) > maxKept || len(f.Invoice) > 0 && !json.Valid(f.Invoice):
		return wrong("Invoice", "must be JSON of at most 64 KiB")
	case other != "":
		return wrong("Invoice", fmt.Sprintf("names the order %q", other))
	case r.Order.State != gateway.OrderUnknown && (r.Order.State != gateway.OrderCreated || len(f.Invoice) == 0):
		return k.error(fmt.Errorf("%w: it was %s when it was read", ErrNotUnknown, r.Order.State))
	}
	return nil
}

// apply records the finding in the row of its order.
func (r Resolution) apply(has row, now int64) (row, orders.Answer) {
	f, margin := r.Finding, cmp.Or(r.Finding.Margin, defaultMargin)
	sent := timeAt(has.Begun)
	if open := has.Unsettled(); len(open) > 0 && !open[len(open)-1].Record.SentAt.IsZero() {
		sent = open[len(open)-1].Record.SentAt // by the clock of the process that sent it
	}
	name, _ := strconv.ParseInt(r.Order.Attempt, 36, 64) // 0, which no attempt is, for another text
	after, answer := has.Resolve(orders.Resolve[gateway.OrderRecord]{
		Finding: orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note},
		Attempt: name, Read: r.Order.GuardReadAt.UnixMicro(), Waited: r.Order.ReadAt.Sub(sent).Microseconds(), Margin: margin.Microseconds(),
		Bare: len(f.Invoice) == 0, Record: foundOf(&has, f.Invoice),
	}, now)
	switch {
	case errors.Is(answer.Err, ErrTooEarly):
		over := margin + timeAt(has.Lease).Sub(timeAt(has.Begun)) // since it began
		left := max(over-r.Order.GuardReadAt.Sub(timeAt(has.Begun)), over-r.Order.ReadAt.Sub(sent))
		answer.Err = fmt.Errorf("%w: that no invoice exists is accepted if the order is read %v later than it was, at %s: read it again then, and look it up again",
			ErrTooEarly, left.Round(time.Second), textOf(r.Order.ReadAt.Add(left)))
	case errors.Is(answer.Err, ErrNotUnknown) && has.Resolved > 0:
		answer.Err = fmt.Errorf("%w, as %q found at %s", answer.Err, has.Found.By, textOf(timeAt(has.Resolved)))
	}
	return after, answer
}

func textOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// foundOf is the record of an invoice that a person has found. Where the attempts had different requests, nobody
// knows which of them the invoice is for.
func foundOf(has *row, invoice json.RawMessage) gateway.OrderRecord {
	attempts := has.Unsettled()
	if len(attempts) == 0 {
		attempts = has.Invoices
	}
	if len(attempts) == 0 {
		return gateway.OrderRecord{}
	}
	r := attempts[len(attempts)-1].Record
	for _, other := range attempts {
		if !other.Record.Request.Equal(r.Request) {
			r.Request = gateway.InvoiceRequest{}
		}
	}
	r.Outcome, r.Invoice, r.Body, r.Cause, r.StatusCode = gateway.OutcomeSucceeded, invoice, nil, "", 0
	return r
}

// markedCause is the Cause of an order that Mark has made unknown.
const markedCause = "marked as unknown: it may have been sent before the database was restored"

// Mark makes orders unknown that the table does not have, or has as free, and returns how many: after the database
// was restored from a backup, for every order that can have been sent since. Created, unknown and in-flight orders
// stay as they are. Of each order the OrderID and the Merchant are used.
//
// The orderIds are checked as the client checks them, and an order without a merchant is refused if all
// orders of the table have one, and the other way round. The error then joins a [*RefusedError] for each order that is
// refused, and nothing was changed. After any other error some orders may have been marked: call Mark again.
func (g *Guard) Mark(ctx context.Context, all []gateway.OrderStatus) (marked int, err error) {
	keyOf := func(o gateway.OrderStatus) key { return key{o.Merchant, idOf(o.OrderID)} }
	unnamed, named, err := g.merchants(ctx)
	if err != nil {
		return 0, err
	}
	var refusals []error
	for i, o := range all {
		reason := validate.Text(o.OrderID, maxOrder)
		err := keyOf(o).check()
		switch {
		case reason != "":
			err = badArgument("orderId", reason)
		case o.Merchant == "" && named && !unnamed:
			err = badArgument("merchant", "is required: every order of the table has one")
		case o.Merchant != "" && unnamed && !named:
			err = badArgument("merchant", "must be empty: no order of the table has one")
		}
		if err != nil {
			refusals = append(refusals, &RefusedError{i, keyOf(o).error(err)})
		}
	}
	if len(refusals) > 0 {
		return 0, errors.Join(refusals...)
	}
	for _, o := range all {
		record := gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, SentAt: g.now().UTC(), Cause: markedCause}
		name := randomName()
		_, answer, err := g.change(ctx, keyOf(o), stored{}, func(has row, now int64) (row, orders.Answer) { return has.Mark(name, record, now) })
		if err != nil {
			return marked, keyOf(o).error(err)
		}
		if answer.Changed {
			marked++
		}
	}
	return marked, nil
}

// merchants reports whether the table has orders without and with a merchant.
func (g *Guard) merchants(ctx context.Context) (unnamed, named bool, err error) {
	var without, with sql.NullBool // null for an empty table
	if err := g.db.QueryRowContext(ctx, g.queries.named).Scan(&without, &with); err != nil {
		return false, false, fmt.Errorf("sqlguard: the merchants of the table: %w", explained(err))
	}
	return without.Bool, with.Bool, nil
}

func isStorable(text string) bool {
	return len(text) <= maxKept && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// otherOrder returns the order that JSON names in the place of another one, or "".
func otherOrder(text json.RawMessage, orderID string) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return ""
	}
	other, named := "", false
	var walk func(value any, names []string)
	walk = func(value any, names []string) {
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				walk(member, append([]string{name}, names...))
			}
		case []any:
			for _, element := range value {
				walk(element, names)
			}
		case string, json.Number:
			if !validate.IsOrderName(slices.Values(names)) {
				return
			}
			if id := fmt.Sprint(value); idOf(id) == orderID {
				named = true
			} else if id != "" {
				other = id
			}
		}
	}
	walk(value, nil)
	if named {
		return ""
	}
	return other
}
