package sqlguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/cryptogw/gateway"
)

// A Resolver finds out what became of unknown orders, by whatever lookup a merchant has. It reports
// what it knows, and nothing of an order that it has merely not found: a lookup that shows an invoice
// late, or not to everyone, proves no absence.
type Resolver interface {
	// Resolve returns what it found about some of the orders, or about none. Findings beside an
	// error are ignored. It must return when its context ends.
	Resolve(ctx context.Context, unknown []Order) ([]Finding, error)
}

// A Finding is what became of an order.
type Finding struct {
	Order      Order      // as it was passed
	Resolution Resolution // its By is that of the options where it is empty
}

// ResolveOptions are the options of [Guard.ResolvePending].
type ResolveOptions struct {
	By      string        // required: who finds out, such as "resolver:ledger"
	Batch   int           // how many orders are passed at once; default 100
	Timeout time.Duration // of each call of Resolve; default 1 minute
	Margin  time.Duration // how long a request may be on its way; default 15 minutes
}

const (
	defaultBatch          = 100
	defaultResolveTimeout = time.Minute
	mostResolverErrors    = 10
)

// A ResolveReport is the result of [Guard.ResolvePending].
type ResolveReport struct {
	Asked    int       // how many orders were passed
	Resolved []Finding // what was ended
	Refused  []error   // why other findings were not applied, such as [ErrTriedAgain]
}

// ResolvePending asks a resolver about all pending orders, the oldest first and a batch at a time, and
// records what it found as [Guard.Resolve] does. A finding is refused, and the others are applied, if it
// is about an order that was not passed, differs from another about the same order, or is refused by
// Resolve. One that none exists is refused too for an order that can have been sent less than the Margin
// before it was passed, by the clock of the database: the request may still arrive. A later ResolvePending
// accepts it. The order can have been sent until its last attempt ended or, after a crash, until the lease.
//
// If the resolver fails for a batch, the next ones follow all the same, up to 10 failures.
//
// The report is of what was done, also beside an error: one of the resolver, of the database, or for
// an invalid argument a [*gateway.ArgumentError].
func (g *Guard) ResolvePending(ctx context.Context, r Resolver, o ResolveOptions) (report ResolveReport, err error) {
	if err := o.complete(r); err != nil {
		return report, err
	}
	var failures []error
	for q := (PendingQuery{Most: o.Batch}); ; {
		b, err := g.batch(ctx, q, o.Margin)
		if err != nil {
			return report, errors.Join(append(failures, err)...)
		}
		if len(b.orders) == 0 {
			return report, errors.Join(failures...)
		}
		q.After = b.orders[len(b.orders)-1]
		report.Asked += len(b.orders)
		findings, err := ask(ctx, r, b.orders, o.Timeout)
		if err != nil {
			failures = append(failures, err)
		} else if err := g.apply(ctx, &report, b, findings, o.By); err != nil {
			return report, errors.Join(append(failures, err)...)
		}
		if ctx.Err() != nil || len(failures) == mostResolverErrors {
			return report, errors.Join(failures...)
		}
	}
}

// complete sets the defaults, or returns what is wrong with the arguments of ResolvePending.
func (o *ResolveOptions) complete(r Resolver) error {
	o.Batch, o.Timeout, o.Margin = cmp.Or(o.Batch, defaultBatch), cmp.Or(o.Timeout, defaultResolveTimeout), cmp.Or(o.Margin, defaultMargin)
	switch {
	case r == nil:
		return badArgument("r", "must not be nil")
	case o.Batch < 0:
		return badArgument("o.Batch", "must not be negative")
	case o.Timeout < 0:
		return badArgument("o.Timeout", "must not be negative")
	case o.Margin < 0:
		return badArgument("o.Margin", "must not be negative")
	}
	return Resolution{By: o.By}.validate("o")
}

// A batch is the orders that are passed at once.
type batch struct {
	orders []Order
	decide map[key]time.Time // when nothing that was sent for an order is on its way any more
	now    time.Time         // by the clock of the database, before they are passed
}

// batch reads pending orders.
func (g *Guard) batch(ctx context.Context, q PendingQuery, margin time.Duration) (batch, error) {
	b := batch{decide: map[key]time.Time{}}
	err := g.each(ctx, g.stmts.pending, g.pendingArgs(q), func(o Order, latest time.Time) error {
		b.orders = append(b.orders, o)
		b.decide[key{o.Merchant, o.ID}] = sent(unknownOrder{o, latest}).until.Add(margin)
		return nil
	})
	if err == nil && len(b.orders) > 0 {
		b.now, err = g.clock(ctx)
	}
	if err != nil {
		return batch{}, fmt.Errorf("sqlguard: pending orders: %w", explained(err))
	}
	return b, nil
}

// early returns why a finding comes too early, or nil.
func (b batch) early(k key, r Resolution) error {
	if decide := b.decide[k]; !r.Exists && b.now.Before(decide) {
		return k.error(fmt.Errorf("its request may still be on its way: a finding that none exists is accepted of lookups from %s on, when the margin is over; it was %s", timeOf(decide), timeOf(b.now)))
	}
	return nil
}

// ask calls a resolver.
func ask(ctx context.Context, r Resolver, unknown []Order, timeout time.Duration) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	findings, err := r.Resolve(ctx, slices.Clone(unknown))
	if err != nil {
		return nil, fmt.Errorf("sqlguard: the resolver: %w", err)
	}
	return findings, nil
}

// apply records findings about orders that were passed. Its error is one of the database.
func (g *Guard) apply(ctx context.Context, report *ResolveReport, b batch, findings []Finding, by string) error {
	passed, found := map[key]Order{}, map[key][]Finding{}
	for _, o := range b.orders {
		passed[key{o.Merchant, o.ID}] = o
	}
	for _, f := range findings {
		k := key{f.Order.Merchant, f.Order.ID}
		if o, ok := passed[k]; !ok || o.Attempts != f.Order.Attempts {
			report.Refused = append(report.Refused, k.error(errors.New("the finding is about an order that was not passed: return the Order as it was passed")))
			continue
		}
		f.Resolution.By = cmp.Or(f.Resolution.By, by)
		found[k] = append(found[k], f)
	}
	for _, o := range b.orders {
		k := key{o.Merchant, o.ID}
		fs := found[k]
		if len(fs) == 0 {
			continue
		}
		differs := func(f Finding) bool { return !reflect.DeepEqual(f.Resolution, fs[0].Resolution) }
		if slices.ContainsFunc(fs, differs) {
			report.Refused = append(report.Refused, k.error(fmt.Errorf("there are %d findings about it, and they differ", len(fs))))
			continue
		}
		if err := b.early(k, fs[0].Resolution); err != nil {
			report.Refused = append(report.Refused, err)
			continue
		}
		err := g.Resolve(ctx, o, fs[0].Resolution)
		switch {
		case err == nil:
			report.Resolved = append(report.Resolved, Finding{o, fs[0].Resolution})
		case isRefusal(err):
			report.Refused = append(report.Refused, err)
		default:
			return err
		}
	}
	return nil
}

// isRefusal reports whether an error of Resolve is about the order or the finding, not of the database.
func isRefusal(err error) bool {
	_, invalid := errors.AsType[*gateway.ArgumentError](err)
	return invalid || errors.Is(err, ErrTriedAgain) || errors.Is(err, ErrNotUnknown)
}
