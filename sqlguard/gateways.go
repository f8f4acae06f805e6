package sqlguard

import (
	"cmp"
	"context"
	"fmt"
)

// GatewayOrders is how many orders of the table are of a gateway.
type GatewayOrders struct {
	Gateway string `json:"gateway"` // the base URL, as [gateway.Order] has it; empty if it is not known
	Count   int    `json:"orders"`
}

// Gateways returns the gateways of the table, in the order of their base URLs.
func (g *Guard) Gateways(ctx context.Context) (all []GatewayOrders, err error) {
	rows, err := g.db.QueryContext(ctx, g.queries.gateways)
	err = readRows(rows, err, func() error {
		var one GatewayOrders
		err := rows.Scan(&one.Gateway, &one.Count)
		all = append(all, one)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sqlguard: the gateways: %w", explained(err))
	}
	return all, nil
}

// GatewayMoved records that a gateway has another base URL: the orders of the one are those of the other from then on.
// It returns how many there are. An order is one of a gateway: until this or [Guard.GatewayReplaced] has been called, Begin
// refuses the orders of the table to a client with another base URL. The base URLs are as [Order.Gateway] has them.
func (g *Guard) GatewayMoved(ctx context.Context, from, to string) (int, error) {
	return g.changeGateway(ctx, g.queries.moved, from, to)
}

// GatewayReplaced records that a gateway has taken the place of another one. It may have orders with the identifiers of those
// of the other, and what is known of these is kept beside them. An order that is unknown or in flight at the other one is refused
// until it is resolved. It returns how many orders the other one has.
func (g *Guard) GatewayReplaced(ctx context.Context, from, to string) (int, error) {
	return g.changeGateway(ctx, g.queries.replaced, from, to)
}

func (g *Guard) changeGateway(ctx context.Context, query, from, to string) (int, error) {
	if err := cmp.Or(checkStorable("from", from, maxGateway), checkStorable("to", to, maxGateway)); err != nil {
		return 0, err
	}
	if to == "" || from == to {
		return 0, badArgument("to", "must be the base URL of another gateway")
	}
	result, err := g.db.ExecContext(ctx, query, []byte(to), []byte(from))
	if err != nil {
		return 0, fmt.Errorf("sqlguard: the gateway of the orders: %w", explained(err))
	}
	count, err := result.RowsAffected()
	return int(count), err
}
