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
// Resolve, also because it comes too early: a later ResolvePending accepts it.
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
		batch, err := g.Pending(ctx, q)
		if err != nil {
			return report, errors.Join(append(failures, err)...)
		}
		if len(batch) == 0 {
			return report, errors.Join(failures...)
		}
		q.After = batch[len(batch)-1]
		report.Asked += len(batch)
		findings, err := ask(ctx, r, batch, o.Timeout)
		if err != nil {
			failures = append(failures, err)
		} else if err := g.apply(ctx, &report, batch, findings, o); err != nil {
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
func (g *Guard) apply(ctx context.Context, report *ResolveReport, batch []Order, findings []Finding, options ResolveOptions) error {
	passed, found := map[key]Order{}, map[key][]Finding{}
	for _, o := range batch {
		passed[key{o.Merchant, o.ID}] = o
	}
	for _, f := range findings {
		k := key{f.Order.Merchant, f.Order.ID}
		if o, ok := passed[k]; !ok || o.attempt != f.Order.attempt {
			report.Refused = append(report.Refused, k.error(errors.New("the finding is about an order that was not passed: return the Order as it was passed")))
			continue
		}
		f.Resolution.By, f.Resolution.Margin = cmp.Or(f.Resolution.By, options.By), cmp.Or(f.Resolution.Margin, options.Margin)
		found[k] = append(found[k], f)
	}
	for _, o := range batch {
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
	return invalid || errors.Is(err, ErrTriedAgain) || errors.Is(err, ErrNotUnknown) || errors.Is(err, ErrTooEarly)
}
