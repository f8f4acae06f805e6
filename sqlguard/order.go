package sqlguard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

func (s *stored) status(k key, readAt time.Time) gateway.OrderStatus {
	return gateway.OrderStatus(orders.StatusOf[gateway.OrderState, gateway.RecordedFinding](&s.row, k.merchant, k.order, s.now, readAt))
}

// Order returns an order. The merchant is the name that [gateway.WithMerchant] sets; empty for the
// client's own. An order that was never begun is free, with no attempts.
func (g *Guard) Order(ctx context.Context, merchant, orderID string) (gateway.OrderStatus, error) {
	k := key{merchant, idOf(orderID)}
	if err := k.check(); err != nil {
		return gateway.OrderStatus{}, err
	}
	readAt := g.now()
	has, err := g.read(ctx, g.db, k)
	if err != nil {
		return gateway.OrderStatus{}, k.error(err)
	}
	return has.status(k, readAt), nil
}

// Pending returns the orders that a person must look up at the gateway: those of unknown outcome, of
// every merchant, including the orders of crashed processes whose lease has expired. The order that has
// been unknown longest comes first. After a long failure of the gateway there may be very many: read
// them in pages. The error is a [*gateway.ArgumentError] for a negative Most, and for an After that
// Pending has not returned.
func (g *Guard) Pending(ctx context.Context, q gateway.PendingQuery) ([]gateway.OrderStatus, error) {
	switch {
	case q.Most < 0:
		return nil, badArgument("q.Most", "must not be negative")
	case q.After.OrderID != "" && q.After.Since.IsZero():
		return nil, badArgument("q.After", "has no Since: pass an order that Pending has returned, not one of Order or ParseToken")
	}
	since := int64(0)
	if !q.After.Since.IsZero() {
		since = q.After.Since.UnixMicro()
	}
	readAt := g.now()
	var all []gateway.OrderStatus
	rows, err := g.db.QueryContext(ctx, g.queries.pending, since, []byte(q.After.Merchant), []byte(q.After.OrderID), cmp.Or(q.Most, math.MaxInt32))
	err = readRows(rows, err, func() error {
		k, has, err := scan(rows)
		all = append(all, has.status(k, readAt))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sqlguard: pending orders: %w", advised(err))
	}
	return all, nil
}

// A PendingSummary counts the orders that [Guard.Pending] returns.
type PendingSummary struct {
	Count  int       // how many there are
	Oldest time.Time // the Since of the first, in UTC by the clock of the database; zero if there is none
}

// PendingSummary returns how many orders are pending, and since when, without reading
// them into memory: for an alarm.
func (g *Guard) PendingSummary(ctx context.Context) (PendingSummary, error) {
	var s PendingSummary
	var oldest int64
	if err := g.db.QueryRowContext(ctx, g.queries.pendingSummary).Scan(&s.Count, &oldest); err != nil {
		return PendingSummary{}, fmt.Errorf("sqlguard: pending orders: %w", advised(err))
	}
	s.Oldest = orders.TimeAt(oldest)
	return s, nil
}

// queries are the texts that read the table.
type queries struct {
	order, pending, pendingSummary, otherKind, now, batchEnd, prunable, prune, forget string
}

const isPending = "open_since > 0 AND created_at = 0 AND lease_until <= {now}"

func (s *schema) queries(merchants bool) queries {
	otherKind := "merchant > ''"
	if merchants {
		otherKind = "merchant = ''"
	}
	return queries{
		order:          s.selects("WHERE merchant = {id} AND order_id = {id}"),
		pending:        s.selects("WHERE " + isPending + " AND (open_since, merchant, order_id) > (?, {id}, {id}) ORDER BY open_since, merchant, order_id LIMIT ?"),
		pendingSummary: s.fill("SELECT count(*), coalesce(min(open_since), 0) FROM {table} WHERE " + isPending),
		otherKind:      s.fill("SELECT 1 FROM {table} WHERE " + otherKind + " AND (open_since > 0 OR created_at > 0) ORDER BY merchant, order_id LIMIT 1"),
		now:            s.fill("SELECT {now}"),
		batchEnd:       s.fill("SELECT changed_at FROM {table} WHERE " + isPrunable + " ORDER BY changed_at LIMIT 1 OFFSET 999"),
		prunable:       s.fill("SELECT count(*) FROM {table} WHERE " + isPrunable),
		forget:         s.fill("DELETE FROM {table} WHERE merchant = {id} AND order_id = {id} AND version = ?"),
		prune:          s.fill("DELETE FROM {table} WHERE " + isPrunable),
	}
}
