package main

import (
	"context"
	"database/sql"
	"time"
)

// The shop keeps what it must know of an order beside the order guard, which knows the invoice and what was
// sent. Nothing is stored twice, so that a crash leaves no contradiction.
const schema = `CREATE TABLE IF NOT EXISTS shop_orders (
	id      text PRIMARY KEY,
	product text NOT NULL,
	email   text NOT NULL DEFAULT '', -- empty until the buyer orders
	made_at integer NOT NULL,         -- in seconds since 1970
	paid    integer NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS shop_orders_made ON shop_orders (made_at);`

// An order is a row of shop_orders.
type order struct {
	ID, Product, Email string
	MadeAt             time.Time
	Paid               bool // the merchant has seen the payment
}

// orderLifetime is how long an order can be invoiced and paid, unless the gateway's invoice expires sooner.
const orderLifetime = 24 * time.Hour

// ends returns when the order can no longer be invoiced or paid.
func (o order) ends() time.Time { return o.MadeAt.Add(orderLifetime) }

// A store is the shop's table.
type store struct{ db *sql.DB }

func newStore(ctx context.Context, db *sql.DB) (store, error) {
	_, err := db.ExecContext(ctx, schema)
	return store{db}, err
}

// insert stores an order, unless there is one with its identifier.
func (s store) insert(ctx context.Context, id, product string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO shop_orders (id, product, made_at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		id, product, time.Now().Unix())
	return err
}

func (s store) setEmail(ctx context.Context, id, email string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE shop_orders SET email = ? WHERE id = ?`, email, id)
	return err
}

func (s store) setPaid(ctx context.Context, id string, paid bool) error {
	_, err := s.db.ExecContext(ctx, `UPDATE shop_orders SET paid = ? WHERE id = ?`, paid, id)
	return err
}

const orderColumns = `SELECT id, product, email, made_at, paid FROM shop_orders `

// order returns an order, or [sql.ErrNoRows].
func (s store) order(ctx context.Context, id string) (order, error) {
	return scanOrder(s.db.QueryRowContext(ctx, orderColumns+`WHERE id = ?`, id))
}

// ordered returns what buyers have ordered, newest first.
func (s store) ordered(ctx context.Context, most int) (all []order, err error) {
	rows, err := s.db.QueryContext(ctx, orderColumns+`WHERE email <> '' ORDER BY made_at DESC, id LIMIT ?`, most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		o, err := scanOrder(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

func scanOrder(row interface{ Scan(dest ...any) error }) (o order, err error) {
	var made int64
	err = row.Scan(&o.ID, &o.Product, &o.Email, &made, &o.Paid)
	o.MadeAt = time.Unix(made, 0).UTC()
	return o, err
}
