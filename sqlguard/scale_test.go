package sqlguard

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

var (
	scaleRows  = flag.String("scale", "", "measure with these numbers of orders, as 10000,100000,1000000, on a PostgreSQL of its own")
	scaleFor   = flag.Duration("for", 20*time.Millisecond, "how long each row of the measurement takes")
	scaleFsync = flag.String("fsync", "on", "whether that PostgreSQL writes to the disk")
)

// TestScale measures what docs/scale.md reports:
//
//	go test -run TestScale -v -timeout 1h -scale 10000,100000,1000000 -for 3s
//
// Without -scale it only runs the measurement, with few orders. SQLGUARD_POSTGRES is
// the server if it is set.
func TestScale(t *testing.T) {
	w, server, rows := scaleDB(t)
	m := &measurement{testDB: w, t: t, server: server, report: map[string]string{}}
	m.handle = w.pool(t, 1, 1)
	m.create()
	m.exec(`CREATE TABLE ` + w.table + `_plain (id text PRIMARY KEY, at timestamptz NOT NULL)`)
	t.Cleanup(func() { _, _ = m.handle.Exec(`DROP TABLE ` + w.table + `_plain`) })
	for _, workers := range []int{1, 4, 16} {
		m.inserts(workers)
	}
	for _, n := range rows {
		m.fillTo(n)
		for _, workers := range []int{1, 4, 16, 64} {
			m.orders(workers, workers)
		}
		m.orders(16, 2)
		m.pending()
		m.sizes()
		m.prune()
	}
	if *scaleRows == "" {
		return
	}
	for _, title := range slices.Sorted(maps.Keys(m.report)) {
		fmt.Fprintf(os.Stdout, "\n|%s", m.report[title][len("| 1:"):])
	}
}

// scaleDB returns the database, its server if that is its own, and the numbers of orders to
// measure with.
func scaleDB(t *testing.T) (w testDB, server *postgrestest.Server, rows []int) {
	t.Helper()
	if *scaleRows == "" {
		return newPostgres(t), nil, []int{1000}
	}
	for text := range strings.SplitSeq(*scaleRows, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1000 || n < slices.Max(append(rows, 0)) {
			t.Fatalf("-scale %s: numbers from 1000 on, in ascending order", *scaleRows)
		}
		rows = append(rows, n)
	}
	if os.Getenv("SQLGUARD_POSTGRES") == "" {
		server, err := postgrestest.Start("fsync=" + *scaleFsync)
		check(t, err)
		t.Cleanup(server.Stop)
		return testDB{PostgreSQL, "pgx", server.DSN("postgres"), DefaultTable}, server, rows
	}
	return newPostgres(t), nil, rows
}

// A measurement is what one run has measured so far.
type measurement struct {
	testDB
	t      *testing.T
	handle *sql.DB
	server *postgrestest.Server // nil if it is not that of the measurement
	filled int                  // the number of orders that were ever filled in
	report map[string]string    // Markdown tables by their first line, numbered
}

func (m *measurement) exec(text string) (took time.Duration) {
	m.t.Helper()
	start := time.Now()
	if _, err := m.handle.Exec(text); err != nil {
		m.t.Fatalf("%v\n%s", err, text)
	}
	return time.Since(start)
}

func (m *measurement) number(query string, args ...any) (n int) {
	m.t.Helper()
	if err := m.handle.QueryRow(query, args...).Scan(&n); err != nil {
		m.t.Fatalf("%v\n%s", err, query)
	}
	return n
}

// add adds a line to a table. The header has the names of the columns.
func (m *measurement) add(header string, cells ...any) {
	if m.report[header] == "" {
		m.report[header] = header + "\n|" + strings.Repeat("---|", strings.Count(header, "|")-1) + "\n"
	}
	line := "|"
	for _, cell := range cells {
		line += fmt.Sprintf(" %v |", cell)
	}
	m.report[header] += line + "\n"
	m.t.Log(line)
}

// pool opens a handle with that many connections, and keeps some of them when they are idle.
func (w testDB) pool(t *testing.T, connections, idle int) *sql.DB {
	t.Helper()
	db := w.open(t)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(idle)
	return db
}

// pooled returns a guard over such a handle, which is to be closed.
func (m *measurement) pooled(connections, idle int) (g *Guard, end func()) {
	m.t.Helper()
	db := m.pool(m.t, connections, idle)
	g, err := New(db, WithTable(m.table))
	check(m.t, err)
	return g, func() { _ = db.Close() }
}

// create makes what is missing of the table and its indexes.
func (m *measurement) create() (took time.Duration) {
	m.t.Helper()
	g, err := New(m.handle, WithTable(m.table))
	check(m.t, err)
	start := time.Now()
	check(m.t, g.Migrate(m.t.Context()))
	return time.Since(start)
}

// fillTo adds created orders with random names, which ended during the last 400 days, until there are
// n. Above a million the indexes are dropped before and made afterwards.
func (m *measurement) fillTo(n int) {
	missing := n - m.number(`SELECT count(*) FROM `+m.table)
	table := m.table
	if n > 1_000_000 {
		m.exec(`ALTER TABLE ` + table + ` DROP CONSTRAINT ` + table + `_pkey`)
		m.exec(`DROP INDEX ` + table + openIndex + `, ` + table + doneIndex)
	}
	m.exec(m.filling(missing))
	if n > 1_000_000 {
		m.exec(`ALTER TABLE ` + table + ` ADD PRIMARY KEY (merchant, order_id)`)
		m.create()
	}
	m.exec(`VACUUM ANALYZE ` + table)
	m.exec(`CHECKPOINT`)
}

// filling is the statement that adds n orders.
func (m *measurement) filling(n int) string {
	first := m.filled + 1
	m.filled += n
	return fmt.Sprintf(`INSERT INTO %s (order_id, attempts, begun_at, lease_until, ended_at, outcome, created_at)
		SELECT md5(i::text), 1, at, at + interval '5 minutes', at + interval '1 second', 'succeeded', at + interval '1 second' FROM (
			SELECT i, now() - interval '400 days' * ((%[3]d - i) / %[4]d.0) AS at FROM generate_series(%[2]d, %[3]d) AS i) AS made`,
		m.table, first, m.filled, max(n, 1))
}

// A sample has the durations of each kind of statement, of one worker.
type sample map[string][]time.Duration

func (s sample) time(kind string, f func() error) error {
	start := time.Now()
	err := f()
	s[kind] = append(s[kind], time.Since(start))
	return err
}

// median and the 99th percentile, in milliseconds.
func (s sample) percentiles(kind string) (p50, p99 string) {
	d := slices.Sorted(slices.Values(s[kind]))
	at := func(n int) string {
		if len(d) == 0 {
			return "–"
		}
		return milliseconds(d[len(d)*n/100])
	}
	return at(50), at(99)
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64)
}

// run lets workers do an operation again and again until a time is over or stop is closed. Each has
// done it twice before, so that it has a connection.
func (m *measurement) run(workers int, stop <-chan struct{}, operation func(s sample) error) (all sample, each int) {
	m.t.Helper()
	samples := make([]sample, workers)
	var warming, working sync.WaitGroup
	var deadline time.Time
	begin := make(chan struct{})
	warming.Add(workers)
	for i := range workers {
		working.Go(func() {
			warm := sample{}
			err := errors.Join(operation(warm), operation(warm))
			warming.Done()
			<-begin
			samples[i] = sample{}
			for err == nil && !over(stop, deadline) {
				err = operation(samples[i])
			}
			if err != nil {
				m.t.Error(err)
			}
		})
	}
	warming.Wait()
	start := time.Now()
	deadline = start.Add(*scaleFor)
	close(begin)
	working.Wait()
	took, count := time.Since(start), 0
	all = sample{}
	for _, s := range samples {
		for kind, d := range s {
			all[kind] = append(all[kind], d...)
		}
	}
	for _, d := range all {
		count = max(count, len(d))
	}
	return all, int(float64(count) / took.Seconds())
}

// over returns whether stop is closed or, if there is none, the deadline has passed.
func over(stop <-chan struct{}, deadline time.Time) bool {
	if stop == nil {
		return !time.Now().Before(deadline)
	}
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// newOrder begins and ends an order that is new.
func newOrder(ctx context.Context, g *Guard, s sample) error {
	id := rand.Text()
	if err := s.time("Begin", func() error { return g.begins(ctx, id) }); err != nil {
		return err
	}
	return s.time("End", func() error { return g.End(ctx, orderOf(id), scaleRecord(id)) })
}

// scaleRecord is what a call records of a success.
func scaleRecord(id string) gateway.OrderRecord {
	o := orderOf(id)
	return gateway.OrderRecord{
		Outcome: gateway.OutcomeSucceeded, Request: o.Request, RequestID: o.RequestID, SentAt: time.Now(), StatusCode: 201,
		Invoice: []byte(`{"id":4711,"orderId":"` + id + `","payment_url":"https:\/\/pay.example\/i\/4711","address":"bc1q9h5yx3kq0w2v6u7l8m","amount":"0.00012500"}`),
	}
}

// inserts measures what the database itself does: one row, and one commit.
func (m *measurement) inserts(workers int) {
	db := m.pool(m.t, workers, workers)
	defer func() { _ = db.Close() }()
	s, rate := m.run(workers, nil, func(s sample) error {
		return s.time("insert", func() error {
			_, err := db.Exec(`INSERT INTO `+m.table+`_plain VALUES ($1, now())`, rand.Text())
			return err
		})
	})
	p50, p99 := s.percentiles("insert")
	m.add("| 1: workers | inserts/s | p50 ms | p99 ms |", workers, rate, p50, p99)
}

// orders measures orders that are new, then orders that are refused because they were created.
func (m *measurement) orders(workers, idle int) {
	g, end := m.pooled(workers, idle)
	defer end()
	ctx := m.t.Context()
	before, wal, processor := m.number(`SELECT count(*) FROM `+m.table), m.wal(), m.processor()
	s, rate := m.run(workers, nil, func(s sample) error { return newOrder(ctx, g, s) })
	processor, wal = m.processor()-processor, m.wal()-wal
	added := max(1, m.number(`SELECT count(*) FROM `+m.table)-before)
	refused, refusals := m.run(workers, nil, func(s sample) error {
		return s.time("refused", func() error { return m.refused(ctx, g) })
	})
	name := strconv.Itoa(workers)
	if idle < workers {
		name += fmt.Sprintf(", of %d idle", idle)
	}
	begin50, begin99 := s.percentiles("Begin")
	end50, end99 := s.percentiles("End")
	refused50, refused99 := refused.percentiles("refused")
	m.add("| 2: rows | workers | orders/s | Begin p50 ms | p99 | End p50 ms | p99 | refused/s | p50 ms | p99 | an order: server ms | WAL bytes |",
		before, name, rate, begin50, begin99, end50, end99, refusals, refused50, refused99,
		milliseconds(processor/time.Duration(added)), wal/added)
}

// refused begins an order that was created, chosen at random.
func (m *measurement) refused(ctx context.Context, g *Guard) error {
	id := fmt.Sprintf("%x", md5.Sum([]byte(strconv.Itoa(m.filled-mathrand.IntN(m.filled/2)))))
	if err := g.begins(ctx, id); !errors.Is(err, gateway.ErrOrderCreated) && !errors.Is(err, gateway.ErrOrderInFlight) { // of another worker
		return fmt.Errorf("order %s: %w", id, errors.Join(errors.New("was not refused"), err))
	}
	return nil
}

// pending measures Pending with 100 unknown orders, after as many orders as a tenth of the table, but at
// most 100,000, were begun and ended, which leaves as many dead rows in its index, and after a VACUUM.
func (m *measurement) pending() {
	g, end := m.pooled(1, 1)
	defer end()
	rows := m.number(`SELECT count(*) FROM ` + m.table)
	others := min(rows/10, 100_000)
	m.exec(m.filling(others))
	names := func(last int) string {
		return fmt.Sprintf(`SELECT md5(i::text) FROM generate_series(%d, %d) AS i`, m.filled-last+1, m.filled)
	}
	of := ` WHERE merchant = '' AND order_id IN (` + names(others) + `)`
	m.exec(`UPDATE ` + m.table + ` SET token = 'token'` + of)
	m.exec(`UPDATE ` + m.table + ` SET token = NULL, unknown_since = CASE WHEN order_id IN (` + names(100) + `) THEN now() END` + of)
	listed := func() (orders int, took string) {
		start := time.Now()
		found, err := g.Pending(m.t.Context(), PendingQuery{})
		check(m.t, err)
		return len(found), milliseconds(time.Since(start))
	}
	check(m.t, g.db.Ping())
	orders, first := listed()
	_, second := listed()
	dead := m.dead()
	m.exec(`VACUUM ` + m.table)
	_, vacuumed := listed()
	m.add("| 3: rows | unknown | dead rows | Pending ms | again | after VACUUM |", rows, orders, dead, first, second, vacuumed)
	m.exec(`UPDATE ` + m.table + ` SET unknown_since = NULL WHERE unknown_since IS NOT NULL`)
}

// dead is the number of dead rows by the statistics, to which a session reports at the latest when it ends.
func (m *measurement) dead() int {
	m.exec(`SELECT pg_stat_force_next_flush()`)
	return m.number(`SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = $1`, m.table)
}

// await waits until the sessions of closed handles have ended.
func (m *measurement) await() {
	m.t.Helper()
	end := time.Now().Add(awaitTimeout)
	for others := 1; others > 0; {
		if time.Now().After(end) {
			m.t.Fatalf("%d sessions have not ended", others)
		}
		others = m.number(`SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()`, m.table)
	}
}

// wal is how many bytes of WAL were ever written.
func (m *measurement) wal() int {
	return m.number(`SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS bigint)`)
}

// processor is the processor time that the server has taken, with that of its processes which have ended.
func (m *measurement) processor() (total time.Duration) {
	if m.server == nil {
		return 0
	}
	processes, err := m.server.Processes()
	check(m.t, err)
	for _, pid := range processes {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // "pid (name) state ppid …"
		_, rest, _ := strings.Cut(string(text), ") ")
		for i, field := range strings.Fields(rest) {
			if ticks, err := strconv.Atoi(field); err == nil && 11 <= i && i <= 14 { // utime, stime, cutime, cstime
				total += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return total
}

func (m *measurement) size() int {
	return m.number(`SELECT pg_total_relation_size(CAST(CAST($1 AS text) AS regclass))`, m.table)
}

// sizes reports the sizes, and how long it takes to make the index of Prune for a
// table that lacks it.
func (m *measurement) sizes() {
	rows, parts := m.number(`SELECT count(*) FROM `+m.table), []any{}
	for _, name := range []string{m.table, m.table + "_pkey", m.table + openIndex, m.table + doneIndex} {
		parts = append(parts, megabytes(m.number(`SELECT pg_relation_size(CAST(CAST($1 AS text) AS regclass))`, name)))
	}
	each := m.size() / rows
	m.exec(`DROP INDEX ` + m.table + doneIndex)
	took := m.create()
	m.add("| 4: rows | rows MB | primary key MB | open MB | done MB | bytes per order | done made in ms |",
		append(append([]any{rows}, parts...), each, milliseconds(took))...)
}

func megabytes(bytes int) string { return strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64) }

// prune deletes a tenth of the orders while four workers make others, then measures
// VACUUM, and whether as many orders as were deleted make the table grow.
func (m *measurement) prune() {
	m.exec(`ALTER TABLE ` + m.table + ` SET (autovacuum_enabled = off)`)
	m.exec(`VACUUM ` + m.table)
	g, end1 := m.pooled(1, 1)
	workers, end2 := m.pooled(4, 4)
	stop := make(chan struct{})
	var pruned int
	var took time.Duration
	var pruning sync.WaitGroup
	pruning.Go(func() {
		defer close(stop)
		start := time.Now()
		var err error
		if pruned, err = g.Prune(m.t.Context(), 360*24*time.Hour); err != nil {
			m.t.Error(err)
		}
		took = time.Since(start)
	})
	rows := m.number(`SELECT count(*) FROM ` + m.table)
	s, rate := m.run(4, stop, func(s sample) error { return newOrder(m.t.Context(), workers, s) })
	pruning.Wait()
	end1()
	end2()
	m.await()
	size, dead := m.size(), m.dead()
	vacuum := m.exec(`VACUUM ` + m.table)
	vacuumed, left := m.size(), m.dead()
	m.exec(m.filling(pruned))
	begin50, begin99 := s.percentiles("Begin")
	m.add("| 5: rows | pruned | in ms | orders/s meanwhile | Begin p50 ms | p99 | dead rows | VACUUM ms | dead rows | MB before | after VACUUM | after as many orders |",
		rows, pruned, milliseconds(took), rate, begin50, begin99, dead, milliseconds(vacuum), left, megabytes(size), megabytes(vacuumed), megabytes(m.size()))
	m.exec(`ALTER TABLE ` + m.table + ` RESET (autovacuum_enabled)`)
}
