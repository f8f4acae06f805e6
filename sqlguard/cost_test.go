package sqlguard

import (
	"database/sql/driver"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// An order costs PostgreSQL two transaction ids and one dead row, and a refusal nothing.
func TestCost(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	execute(t, g.db, `ALTER TABLE `+w.table+` SET (autovacuum_enabled = off)`)
	g.db.SetMaxOpenConns(1) // its session reports what it did
	const orders = 200
	number := func(query string, args ...any) (n int) {
		check(t, g.db.QueryRow(query, args...).Scan(&n))
		return n
	}
	ids := func() int {
		return number(`SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)`)
	}
	count := func(column string) int {
		execute(t, g.db, `SELECT pg_stat_force_next_flush()`)
		return number(`SELECT `+column+` FROM pg_stat_user_tables WHERE relname = $1`, w.table)
	}
	before := ids()
	for i := range orders {
		id := strconv.Itoa(i)
		check(t, errors.Join(g.begins(t.Context(), id), recorded(g.End(t.Context(), orderOf(id), successOf(id)))))
	}
	used := ids() - before
	before = ids()
	for i := range orders {
		wantError(t, g.begins(t.Context(), strconv.Itoa(i)), errCreated)
	}
	refused := ids() - before
	t.Logf("%d ids, %d of refusals, %d updates, %d of them HOT, %d dead rows", used, refused, count("n_tup_upd"), count("n_tup_hot_upd"), count("n_dead_tup"))
	if used < 2*orders || used > 2*orders+20 || refused > 20 { // a VACUUM of another table takes some
		t.Errorf("%d orders took %d transaction ids, and as many refusals %d", orders, used, refused)
	}
	if n := count("n_dead_tup"); n != orders || count("n_tup_hot_upd") != 0 {
		t.Errorf("%d orders left %d dead rows, %d of them without entries in the indexes", orders, n, count("n_tup_hot_upd"))
	}
}

// Of PostgreSQL an order takes two statements, each of which is a round trip, with the record of its
// request and its response. A refusal takes one, with the whole record.
func TestCost_statements(t *testing.T) {
	g, connector := lossyGuardOf(t, newPostgres(t))
	sent := 0
	connector.observe = func(string, []driver.NamedValue) { sent++ }
	check(t, errors.Join(g.begins(t.Context(), "A-17"), recorded(g.End(t.Context(), orderOf("A-17"), successOf("A-17")))))
	if sent != 2 {
		t.Errorf("%d statements for an order", sent)
	}
	refused, err := g.Begin(t.Context(), orderOf("A-17"))
	wantError(t, granted(refused, err), errCreated)
	if sent != 3 || string(refused.Known.Invoice) != string(successOf("A-17").Invoice) {
		t.Errorf("%d statements with a refusal, which has the invoice %s", sent, refused.Known.Invoice)
	}
}

// successOf is what a call records of a success.
func successOf(id string) gateway.OrderRecord {
	o := orderOf(id)
	return gateway.OrderRecord{
		Outcome: gateway.OutcomeSucceeded, Request: o.Request, RequestID: o.RequestID, SentAt: time.Now(), StatusCode: 201,
		Invoice: []byte(`{"id":4711,"orderId":"` + id + `","payment_url":"https:\/\/pay.example\/i\/4711","address":"bc1q9h5yx3kq0w2v6u7l8m","amount":"0.00012500"}`),
	}
}
