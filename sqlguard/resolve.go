package sqlguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/orders"
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
//   - [gateway.ErrTriedAgain] if the order was sent again since it was read;
//   - [gateway.ErrNotUnknown] if there is nothing to resolve; a finding that says what the last one says is no error, and changes nothing;
//   - [gateway.ErrTooEarly] if no invoice is said to exist, and the order was read before the Margin after SentUntil
//     had passed, by the clock of the database and by the clock of this process.
//
// It is the [*gateway.ArgumentError] of [gateway.Finding.Validate] for an invalid finding.
func (g *Guard) Resolve(ctx context.Context, o gateway.OrderStatus, f gateway.Finding) error {
	r := Resolution{o, f}
	if err := r.check(); err != nil {
		return err
	}
	var answer orders.Answer
	err := g.onConn(ctx, isRefused, func(ctx context.Context, h handle) (err error) {
		_, answer, err = g.changeIn(ctx, h, r.key(), stored{}, r.apply)
		return err
	})
	if err = cmp.Or(err, answer.Err); err != nil {
		return r.key().error(err)
	}
	return nil
}

// ResolveAll records findings about different orders as Resolve does, all of them or none, in one transaction.
// If Resolve would refuse some of them, the error joins a [*RefusedError] for each, and nothing was changed. A finding that says
// what the last one says is no error.
// After an error that matches [ErrUnanswered] the findings may have been recorded: read the orders again.
func (g *Guard) ResolveAll(ctx context.Context, all []Resolution) error {
	if err := checkResolutions(all); err != nil || len(all) == 0 {
		return err
	}
	err := g.writeAll(ctx, func() ([]change, error) { return g.decideAll(ctx, all) })
	if _, refused := errors.AsType[*RefusedError](err); refused || err == nil {
		return err
	}
	return fmt.Errorf("sqlguard: resolving %d orders: %w", len(all), advised(err))
}

// CheckAll returns the error with which ResolveAll would refuse the findings now, and changes nothing.
func (g *Guard) CheckAll(ctx context.Context, all []Resolution) error {
	if err := checkResolutions(all); err != nil {
		return err
	}
	_, err := g.decideAll(ctx, all)
	return err
}

// decideAll reads the orders and returns the changes that the findings make, or why some are refused.
func (g *Guard) decideAll(ctx context.Context, all []Resolution) (changes []change, err error) {
	var refusals []error
	for i, r := range all {
		c, answer, err := g.step(ctx, r.key(), r.apply)
		if err != nil {
			return nil, r.key().error(err)
		}
		if answer.Err != nil {
			refusals = append(refusals, &RefusedError{i, r.key().error(answer.Err)})
		}
		if answer.Changed {
			changes = append(changes, c)
		}
	}
	return changes, errors.Join(refusals...)
}

// A change is a row as it was read, and as it shall be.
type change struct {
	key    key
	before stored
	after  row
}

// step reads the row of an order and makes a transition of it, without writing it.
func (g *Guard) step(ctx context.Context, k key, transition func(row, int64) (row, orders.Answer)) (change, orders.Answer, error) {
	has, err := g.read(ctx, g.db, k)
	if err != nil {
		return change{}, orders.Answer{}, err
	}
	after, answer := transition(has.row, has.now)
	return change{k, has, after}, answer, nil
}

// writeAll writes the changes that decide returns in one transaction, all of them or none. If one of the rows has changed
// meanwhile, it asks decide again.
func (g *Guard) writeAll(ctx context.Context, decide func() ([]change, error)) error {
	failure := errors.New("other processes keep changing the orders")
	for range mostTries {
		changes, err := decide()
		if err != nil || len(changes) == 0 {
			return err
		}
		slices.SortFunc(changes, func(a, b change) int { // so that all transactions lock rows in the same order
			return cmp.Or(cmp.Compare(a.key.merchant, b.key.merchant), cmp.Compare(a.key.order, b.key.order))
		})
		written := false
		err = g.onConn(ctx, isRefused, func(ctx context.Context, h handle) error {
			tx, err := h.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			for _, c := range changes {
				if written, err = g.write(ctx, tx, c.key, c.before, c.after, randomName()); err != nil || !written {
					return err
				}
			}
			return g.sql.unanswered(tx.Commit())
		})
		switch {
		case err == nil && written:
			return nil
		case err != nil && !g.sql.isTransient(err):
			return err
		case err != nil:
			failure = err
		}
	}
	return failure
}

// checkResolutions checks the findings before anything is read.
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

// check returns why a resolution is refused, whatever the table has.
func (r Resolution) check() error {
	k := r.key()
	if err := k.check(); err != nil {
		return err
	}
	return r.Finding.Validate(r.Order)
}

func (r Resolution) apply(has row, now int64) (row, orders.Answer) {
	o, f := r.Order, r.Finding
	sent := orders.TimeAt(cmp.Or(has.Begun, has.Lease))
	if open := has.Unsettled(); len(open) > 0 && !open[len(open)-1].Record.SentAt.IsZero() {
		sent = open[len(open)-1].Record.SentAt // by the clock of the process that sent it
	}
	resolve := orders.ResolveOf(&has, orders.Finding{Exists: f.Exists, By: f.By, Note: f.Note}, f.Invoice)
	resolve.Attempt, resolve.Read, resolve.ReadAt = orders.AttemptOf(o.Attempt), o.GuardReadAt.UnixMicro(), o.ReadAt
	resolve.Waited, resolve.Margin = o.ReadAt.Sub(sent).Microseconds(), cmp.Or(f.Margin, gateway.DefaultMargin).Microseconds()
	return has.Resolve(resolve, now)
}

// Forget deletes a created order whose invoice can no longer be paid, such as an expired one. The next call for the
// order then sends another invoice: first ask the operator of the gateway what a repeated orderId does. Forget
// refuses an order that was sent again since it was read ([gateway.ErrTriedAgain]), that is not created, or that has an
// attempt of unknown outcome ([gateway.ErrNotCreated]). After an error that matches [ErrUnanswered] the order may have been
// forgotten: read it again.
func (g *Guard) Forget(ctx context.Context, o gateway.OrderStatus) error {
	k := key{o.Merchant, idOf(o.OrderID)}
	if err := k.check(); err != nil {
		return err
	}
	has, err := g.read(ctx, g.db, k)
	if err == nil {
		err = has.Forget(orders.AttemptOf(o.Attempt), has.now)
	}
	if err != nil {
		return k.error(err)
	}
	result, err := g.db.ExecContext(ctx, g.queries.forget, []byte(k.merchant), []byte(k.order), has.version)
	if err != nil {
		return k.error(g.sql.unanswered(err))
	}
	count, err := result.RowsAffected()
	if err == nil && count == 0 {
		err = fmt.Errorf("%w, or somebody else has changed it: read it again", gateway.ErrTriedAgain)
	}
	if err != nil {
		return k.error(err)
	}
	return nil
}

// markedAtOnce is how many orders Mark writes in one transaction.
const markedAtOnce = 200

// markedCause is the Cause of an order that Mark has made unknown.
const markedCause = "marked as unknown: it may have been sent before the database was restored"

// Mark makes orders unknown that the table does not have, or has as free, and returns how many: after the database
// was restored from a backup, for every order that can have been sent since. Created, unknown and in-flight orders
// stay as they are. Of each order the OrderID and the Merchant are used.
//
// The orderIds and the merchants are checked as the client and the guard check them, see [WithMerchants]. The error then
// joins a [*RefusedError] for each order that is refused, and nothing was changed. Nor was it if the error is a
// [*gateway.ArgumentError]: the table has orders of the other kind. After any other error some orders may have been marked:
// call Mark again.
func (g *Guard) Mark(ctx context.Context, all []gateway.OrderStatus) (marked int, err error) {
	if err := g.checkMarks(ctx, all); err != nil {
		return 0, err
	}
	for some := range slices.Chunk(all, markedAtOnce) {
		count := 0
		err := g.writeAll(ctx, func() (changes []change, err error) {
			changes, err = g.marks(ctx, some)
			count = len(changes)
			return changes, err
		})
		if err != nil {
			return marked, fmt.Errorf("sqlguard: marking orders: %w", advised(err))
		}
		marked += count
	}
	return marked, nil
}

// CheckMark reports how many orders [Guard.Mark] would mark, or returns its error, and changes nothing.
func (g *Guard) CheckMark(ctx context.Context, all []gateway.OrderStatus) (marked int, err error) {
	if err := g.checkMarks(ctx, all); err != nil {
		return 0, err
	}
	changes, err := g.marks(ctx, all)
	if err != nil {
		return 0, fmt.Errorf("sqlguard: marking orders: %w", advised(err))
	}
	return len(changes), nil
}

// checkMarks returns why orders must not be marked.
func (g *Guard) checkMarks(ctx context.Context, all []gateway.OrderStatus) error {
	if err := g.checkKind(ctx); err != nil {
		return fmt.Errorf("sqlguard: marking orders: %w", advised(err))
	}
	var refusals []error
	for i, o := range all {
		k := key{o.Merchant, idOf(o.OrderID)}
		reason, unnameable := endpoint.Identifier(o.OrderID, maxOrder), endpoint.Identifier(o.Merchant, maxMerchant)
		err := k.check()
		switch {
		case reason != "":
			err = badArgument("orderId", reason)
		case err == nil && unnameable != "":
			err = badArgument("WithMerchant", unnameable)
		case err == nil:
			err = g.checkMerchant(o.Merchant)
		}
		if err != nil {
			refusals = append(refusals, &RefusedError{i, k.error(err)})
		}
	}
	return errors.Join(refusals...)
}

func (g *Guard) marks(ctx context.Context, all []gateway.OrderStatus) (changes []change, err error) {
	seen := map[key]bool{}
	for _, o := range all {
		k := key{o.Merchant, idOf(o.OrderID)}
		record := gateway.OrderRecord{Outcome: gateway.OutcomeUnknown, Cause: markedCause}
		c, answer, err := g.step(ctx, k, func(has row, now int64) (row, orders.Answer) { return has.Mark(randomName(), record, now) })
		if err != nil {
			return nil, k.error(err)
		}
		if answer.Changed && !seen[k] {
			changes = append(changes, c)
		}
		seen[k] = true
	}
	return changes, nil
}
