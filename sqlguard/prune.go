package sqlguard

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// leastAge is the least age of what Prune deletes: the longest lease. By then a process
// that was slower than its lease has reported.
const leastAge = mostLease

// Prune deletes the orders of every merchant that are created or free and have not
// changed for longer than age, by the clock of the database, and returns how many. It
// deletes no order that is unknown or in flight, however old it is. The age is at
// least 24 hours; the error for a shorter one is a [*gateway.ArgumentError].
//
// What is deleted is forgotten: an order that was created is no longer known to be, and if it
// is sent again, it has a second invoice. Who resolved it
// is forgotten too. Choose an age after which no order is sent again. An [Order] that
// was read longer ago than that must be read again before [Guard.Resolve].
//
// Prune deletes 1,000 orders at a time, the oldest first, each time in a transaction
// of its own, so that no Begin waits for long. In PostgreSQL it skips an order that
// another process is changing. Several processes may call it at once. If it returns an
// error, for example because ctx has ended, the orders that it counts are deleted, and
// up to 1,000 others may be.
func (g *Guard) Prune(ctx context.Context, age time.Duration) (int, error) {
	if age < leastAge {
		return 0, badArgument("age", "must be at least 24 hours")
	}
	pruned, err := g.prune(ctx, "-"+interval(age))
	if err != nil {
		return pruned, fmt.Errorf("sqlguard: pruning: %w", explained(err))
	}
	return pruned, nil
}

// prune deletes what has not changed since a time in the past. That time is the same
// for all batches: otherwise they would go on for as long as orders reach the age. Each
// batch begins where the last one ended, so that it does not read again what was deleted.
func (g *Guard) prune(ctx context.Context, ago string) (pruned int, err error) {
	before, err := g.queryText(ctx, g.stmts.cutoff, ago)
	if err != nil {
		return 0, err
	}
	for from := "0001-01-01T00:00:00Z"; ; {
		start := time.Now()
		changed, err := g.queryTexts(ctx, g.stmts.prune, from, before)
		if err != nil || len(changed) == 0 {
			return pruned, err
		}
		pruned += len(changed)
		from = slices.Max(changed)
		if err := g.letOthersWrite(ctx, time.Since(start)); err != nil {
			return pruned, err
		}
	}
}

// letOthersWrite pauses in SQLite, where other writers poll for the write lock and would
// rarely find it free between two batches.
func (g *Guard) letOthersWrite(ctx context.Context, pause time.Duration) error {
	if g.cfg.dialect != SQLite {
		return nil
	}
	return wait(ctx, pause)
}
