package sqlguard

import (
	"context"
	"fmt"
	"time"
)

// leastAge is the least age of an order that Prune deletes: the longest lease. By then a
// process that was slower than its lease has reported.
const leastAge = mostLease

// Prune deletes the orders of every merchant that are created or free and have not
// changed for longer than age, by the clock of the database, and returns how many. It
// deletes no order that is unknown or in flight, however old it is. The age is at
// least 24 hours; the error for a shorter one is a [*gateway.ArgumentError].
//
// A deleted order is forgotten, with its invoice and its findings: if it is sent again, it has a second
// invoice. Choose an age after which no order is sent again.
//
// Prune deletes about 1,000 orders at a time, the oldest first, each time in a statement
// of its own, so that no Begin waits for long. Several processes may call it at once. If it returns an
// error, for example because ctx has ended, the orders that it counts are deleted; about 1,000
// others may be if the error matches [ErrUnanswered].
func (g *Guard) Prune(ctx context.Context, age time.Duration) (int, error) {
	if age < leastAge {
		return 0, badArgument("age", "must be at least 24 hours")
	}
	pruned, err := g.prune(ctx, age)
	if err != nil {
		return pruned, fmt.Errorf("sqlguard: pruning: %w", advised(err))
	}
	return pruned, nil
}

// Prunable returns how many orders [Guard.Prune] would delete. The age is at least 24 hours, as for Prune.
func (g *Guard) Prunable(ctx context.Context, age time.Duration) (count int, err error) {
	if age < leastAge {
		return 0, badArgument("age", "must be at least 24 hours")
	}
	now, err := g.clock(ctx)
	if err == nil {
		err = g.db.QueryRowContext(ctx, g.queries.prunable, now-age.Microseconds()).Scan(&count)
	}
	if err != nil {
		return 0, fmt.Errorf("sqlguard: what can be pruned: %w", advised(err))
	}
	return count, nil
}

const isPrunable = "open_since = 0 AND changed_at < ?"

// prune deletes the orders that have not changed since a time in the past. That time is the same
// for all batches: otherwise they would go on for as long as orders reach the age.
func (g *Guard) prune(ctx context.Context, age time.Duration) (pruned int, err error) {
	now, err := g.clock(ctx)
	if err != nil {
		return 0, err
	}
	for before := now - age.Microseconds(); ; {
		start, until := time.Now(), before
		rows, err := g.db.QueryContext(ctx, g.queries.batchEnd, before)
		if err := readRows(rows, err, func() error { return rows.Scan(&until) }); err != nil {
			return pruned, err
		}
		isLast := until == before
		if !isLast {
			until++ // with the last of the batch
		}
		result, err := g.db.ExecContext(ctx, g.queries.prune, until)
		if err != nil {
			return pruned, g.sql.unanswered(err)
		}
		count, err := result.RowsAffected()
		pruned += int(count)
		if err != nil || isLast {
			return pruned, err
		}
		if g.cfg.dialect == SQLite { // other writers poll for its lock, and would rarely find it free
			if err := wait(ctx, time.Since(start)); err != nil {
				return pruned, err
			}
		}
	}
}

func (g *Guard) clock(ctx context.Context) (now int64, err error) {
	return now, g.db.QueryRowContext(ctx, g.queries.now).Scan(&now)
}
