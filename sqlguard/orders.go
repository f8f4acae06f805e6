package sqlguard

import (
	"cmp"
	"context"
	"fmt"
	"math"
)

// An OrdersQuery selects what [Guard.Orders] returns. The zero query selects all.
type OrdersQuery struct {
	Most  int   // how many at most; 0 for all
	After Order // those after this one, of which Merchant and ID are used; the zero order for the first ones
}

// Orders returns the orders of the table by merchant and ID, whatever their state is: for an export, in
// pages. One that is begun between two pages may be missing; none is returned twice. The error for a
// negative Most is a [*gateway.ArgumentError].
func (g *Guard) Orders(ctx context.Context, q OrdersQuery) ([]Order, error) {
	if q.Most < 0 {
		return nil, badArgument("q.Most", "must not be negative")
	}
	const after = orderText + `WHERE (merchant, order_id) > ($1, $2) ORDER BY merchant, order_id LIMIT $3`
	text := g.cfg.dialect.fill(g.cfg.table, after)[0]
	orders, err := g.read(ctx, text, q.After.Merchant, q.After.ID, cmp.Or(q.Most, math.MaxInt))
	if err != nil {
		return nil, fmt.Errorf("sqlguard: orders: %w", explained(err))
	}
	return orders, nil
}
