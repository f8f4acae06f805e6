package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	_ "modernc.org/sqlite"
)

// Waits has a row for each withdrawal whose end somebody waits for. Insert it in the transaction that
// stores the withdrawal; further columns are the merchant's.
const waits = `CREATE TABLE IF NOT EXISTS waits (
	id     text PRIMARY KEY, -- WithdrawRequestID
	since  bigint NOT NULL,  -- Unix seconds
	due    bigint NOT NULL,  -- when to ask next; while a process asks, when its lease is over
	status text              -- the final one; NULL: not known yet
)`

const lease = 60 // seconds; more than the timeout of a call of Withdrawal

// askNext inquires about one withdrawal that is due, and reports its end once, in the transaction that records the
// end. It returns false if none is due. Every process calls it in a loop: again at once after true, and otherwise each
// second. After an error or a crash, another call inquires when the lease is over.
func askNext(
	ctx context.Context, client *gateway.Client, db *sql.DB, now int64,
	tell func(tx *sql.Tx, id string, status gateway.WithdrawalStatus) error,
) (more bool, err error) {
	var id string
	var since int64
	err = db.QueryRowContext(ctx, `UPDATE waits SET due = $1 WHERE id = (
		SELECT id FROM waits WHERE status IS NULL AND due <= $2 ORDER BY due LIMIT 1 -- PostgreSQL: FOR UPDATE SKIP LOCKED
	) RETURNING id, since`, now+lease, now).Scan(&id, &since)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w, over, err := client.PollWithdrawal(ctx, id, gateway.WaitOptions{})
	if !over { // ask again after a quarter of the time that it has taken
		_, failed := db.ExecContext(ctx, `UPDATE waits SET due = $1 WHERE id = $2 AND status IS NULL`, now+min(max((now-since)/4, 10), 300), id)
		return true, errors.Join(err, failed) // log it
	}
	status := gateway.WithdrawalStatusOf(err)
	if w != nil {
		status = w.Status
	}
	if status == "" {
		return true, err // the identifier is not valid
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return true, err
	}
	defer tx.Rollback()
	ended, err := tx.ExecContext(ctx, `UPDATE waits SET status = $1 WHERE id = $2 AND status IS NULL`, string(status), id)
	if err != nil {
		return true, err
	}
	if n, err := ended.RowsAffected(); n == 0 || err != nil {
		return true, err // a process that was suspended for longer than its lease has told it
	}
	if err := tell(tx, id, status); err != nil {
		return true, err
	}
	return true, tx.Commit()
}

// After a crash another process waits for the withdrawal. It reports the end until the end is recorded.
func Example_withdrawals() {
	ctx := context.Background()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron"})
	client, err := gateway.New(gw.URL, gw.APIKey)
	check(err)
	dir, err := os.MkdirTemp("", "waits")
	check(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	check(err)
	defer db.Close()
	_, err = db.Exec(waits + `; INSERT INTO waits (id, since, due) VALUES ('` + id + `', 1000, 1000)`)
	check(err)

	locked := errors.New("the merchant's table is locked")
	ask := func(now int64) {
		more, err := askNext(ctx, client, db, now, func(_ *sql.Tx, told string, status gateway.WithdrawalStatus) error {
			fmt.Println("the end:", told == id, status)
			if now == 1070 {
				return locked // nothing is recorded: the event comes again
			}
			return nil
		})
		fmt.Println(now, "asked:", more, err)
	}
	ask(1000) // it is PENDING
	ask(1009)
	_, err = db.Exec(`UPDATE waits SET due = 1010 + 60`) // a process dies as it asks
	check(err)
	check(gw.SetStatusAfter(id, 0, "COMPLETED"))
	ask(1069)
	ask(1070)
	ask(1129)
	ask(1130)
	ask(2000)
	// Output:
	// 1000 asked: true <nil>
	// 1009 asked: false <nil>
	// 1069 asked: false <nil>
	// the end: true COMPLETED
	// 1070 asked: true the merchant's table is locked
	// 1129 asked: false <nil>
	// the end: true COMPLETED
	// 1130 asked: true <nil>
	// 2000 asked: false <nil>
}
