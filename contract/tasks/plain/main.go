// Command plain does the tasks of ../TASKS.md with net/http and a table of its own: the control.
package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite"
)

type line struct {
	Order   string          `json:"order"`
	State   string          `json:"state"`
	Invoice json.RawMessage `json:"invoice,omitempty"`
}

func print(l line) error { return json.NewEncoder(os.Stdout).Encode(l) }

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	db, err := sql.Open("sqlite", "file:"+os.Getenv("DATABASE")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT NOT NULL, invoice TEXT NOT NULL)`); err != nil {
		return err
	}
	s := store{db}
	switch {
	case len(args) == 1 && args[0] == "pay":
		return s.pay(ctx)
	case len(args) == 2 && args[0] == "show":
		l, err := s.load(ctx, args[1])
		return errors.Join(err, print(l))
	case len(args) == 1 && args[0] == "pending":
		return s.pending(ctx)
	case len(args) == 1 && args[0] == "reconcile":
		return s.reconcile(ctx)
	}
	return errors.New("usage: plain pay | show ORDER | pending | reconcile")
}

type store struct{ db *sql.DB }

func (s store) load(ctx context.Context, order string) (line, error) {
	l := line{Order: order, State: "not_sent"}
	var invoice string
	err := s.db.QueryRowContext(ctx, `SELECT state, invoice FROM orders WHERE id = ?`, order).Scan(&l.State, &invoice)
	if errors.Is(err, sql.ErrNoRows) {
		return l, nil
	}
	l.Invoice = json.RawMessage(invoice)
	return l, err
}

func (s store) save(ctx context.Context, l line) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO orders VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, invoice = excluded.invoice`, l.Order, l.State, string(l.Invoice))
	return err
}

// pay sends what is not created yet.
func (s store) pay(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second}
	orders := bufio.NewScanner(os.Stdin)
	for ctx.Err() == nil && orders.Scan() {
		var order struct {
			Order string `json:"order"`
			Price string `json:"price"`
		}
		if err := json.Unmarshal(orders.Bytes(), &order); err != nil {
			return fmt.Errorf("order %q: %w", orders.Text(), err)
		}
		l, err := s.load(ctx, order.Order)
		if err != nil {
			return err
		}
		if l.State != "created" {
			l = send(ctx, client, order.Order, order.Price)
			if err := s.save(ctx, l); err != nil {
				return err
			}
		}
		if err := print(l); err != nil {
			return err
		}
	}
	return orders.Err()
}

// send asks the gateway for an invoice.
func send(ctx context.Context, client *http.Client, order, price string) line {
	body, err := json.Marshal(map[string]string{
		"apiKey": os.Getenv("GATEWAY_API_KEY"), "orderId": order, "price": price, "amount": price, "baseCurrency": "usd",
	})
	if err != nil {
		return line{order, "not_sent", nil}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("GATEWAY_BASE_URL")+"/api/invoice/create", bytes.NewReader(body))
	if err != nil {
		return line{order, "not_sent", nil}
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		log.Print(err)
		return line{order, "unknown", nil}
	}
	defer func() { _ = response.Body.Close() }()
	var envelope struct {
		Result json.RawMessage `json:"result"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&envelope)
	switch {
	case response.StatusCode >= 400 && response.StatusCode < 500:
		return line{order, "refused", nil}
	case response.StatusCode >= 300 || err != nil:
		log.Printf("order %s: %s: %v", order, response.Status, err)
		return line{order, "unknown", nil}
	default:
		return line{order, "created", envelope.Result}
	}
}

func (s store) pending(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, `SELECT id FROM orders WHERE state = 'unknown' ORDER BY id`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		l := line{State: "unknown"}
		if err := errors.Join(rows.Scan(&l.Order), print(l)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// reconcile takes the rows over. What is open and not in the file was not made.
func (s store) reconcile(ctx context.Context) error {
	rows, err := csv.NewReader(io.LimitReader(os.Stdin, 1<<20)).ReadAll()
	if err != nil {
		return err
	}
	for i, row := range rows {
		l, err := s.load(ctx, row[0])
		if err != nil {
			return err
		}
		if i == 0 || l.State == "created" { // the names of the columns, and what is known
			continue
		}
		invoice, err := json.Marshal(map[string]string{"id": row[1]})
		if err := errors.Join(err, s.save(ctx, line{row[0], "created", invoice})); err != nil {
			return err
		}
	}
	if _, err := s.db.ExecContext(ctx, `UPDATE orders SET state = 'not_sent' WHERE state = 'unknown'`); err != nil {
		return err
	}
	return s.pending(ctx)
}
