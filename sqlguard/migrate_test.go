package sqlguard

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

// A guard1 is what a process of version 1 has: an order guard with its statements.
type guard1 struct {
	db         *sql.DB
	begin, end string
	dialect    Dialect
	tokens     sync.Map // by order
}

func (w testDB) guard1(t *testing.T) *guard1 {
	t.Helper()
	g := &guard1{db: w.open(t), begin: begin1SQLite, end: end1SQLite, dialect: w.dialect}
	if w.dialect == PostgreSQL {
		g.begin, g.end = begin1PostgreSQL, end1PostgreSQL
	}
	name := strings.NewReplacer("{table}", w.table)
	g.begin, g.end = name.Replace(g.begin), name.Replace(g.end)
	return g
}

// createTable1 creates the table of version 1.
func (w testDB) createTable1(t *testing.T) {
	t.Helper()
	schema := schema1SQLite
	if w.dialect == PostgreSQL {
		schema = schema1PostgreSQL
	}
	execute(t, w.open(t), strings.ReplaceAll(schema, "{table}", w.table))
}

func (g *guard1) Begin(ctx context.Context, o gateway.Order) (gateway.Admission, error) {
	token, resubmitted := rand.Text(), StateFree
	if o.Resubmit {
		resubmitted = StateUnknown
	}
	args := []any{o.Merchant, o.Request.OrderID, token, interval(defaultLease), string(resubmitted), string(StateFree)}
	if g.dialect == PostgreSQL {
		args = append(args, "5000ms")
	}
	verdicts, err := readTexts(g.db.QueryContext(ctx, g.begin, args...))
	if err != nil {
		return gateway.Admission{}, err
	}
	refusal, _ := refusals(verdicts[0], false)
	if refusal == nil {
		g.tokens.Store(o.Request.OrderID, token)
	}
	return gateway.Admission{}, refusal
}

func (g *guard1) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) error {
	token, _ := g.tokens.Load(o.Request.OrderID)
	_, err := readTexts(g.db.QueryContext(ctx, g.end, o.Merchant, o.Request.OrderID, token, r.Outcome.String()))
	return err
}

// once1 begins and ends an order as version 1 does.
func (g *guard1) once1(t *testing.T, id string, outcome gateway.Outcome) {
	t.Helper()
	_, err := g.Begin(t.Context(), orderOf(id))
	check(t, err)
	check(t, g.End(t.Context(), orderOf(id), gateway.OrderRecord{Outcome: outcome}))
}

// A counter is a service that counts the invoices of each order.
type counter struct {
	mu   sync.Mutex
	sent map[string]int
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	var body struct{ OrderID string }
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[body.OrderID]++
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(`{"message":"Operation was successful.","result":` + resultOf(body.OrderID) + `,"meta":{}}`)),
	}, nil
}

func (c *counter) client(t *testing.T, guard gateway.OrderGuard) *gateway.Client {
	t.Helper()
	client, err := gateway.New("https://gateway.example", "a-key-for-tests", gateway.WithOrderGuard(guard), gateway.WithHTTPClient(&http.Client{Transport: c}))
	check(t, err)
	return client
}

// A table of version 1 is brought up while processes of both versions send orders, and after one that
// was doing it was killed before it committed: no order is lost, and none is sent twice.
func TestGuard_Migrate_under_load(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		w.createTable1(t)
		old := w.guard1(t)
		old.once1(t, "created", gateway.OutcomeSucceeded)
		old.once1(t, "free", gateway.OutcomeRejected)
		old.once1(t, "unknown", gateway.OutcomeUnknown)
		for _, id := range []string{"died", "in flight"} {
			_, err := old.Begin(t.Context(), orderOf(id))
			check(t, err)
		}
		g, err := New(w.open(t), WithTable(w.table))
		check(t, err)
		g.wantVersion(t, 1)
		wantNotMigrated(t, g.begins(t.Context(), order))

		l := &load{t: t, counter: counter{sent: map[string]int{}}, stop: make(chan struct{})}
		for range 2 {
			l.start(w.guard1(t))
		}
		l.await(&l.done)
		w.killMigration(t)
		g.wantVersion(t, 1)
		l.await(&l.done)
		for range 3 {
			fresh, err := New(w.open(t), WithTable(w.table))
			check(t, err)
			l.all.Go(func() {
				if err := fresh.Migrate(context.Background()); err != nil {
					t.Error(err)
				}
				l.start(fresh)
			})
		}
		l.await(&l.fresh)
		close(l.stop)
		l.all.Wait()
		g.wantVersion(t, SchemaVersion)
		l.check(g)
		checkOldRows(t, w, g)
	})
}

func (g *Guard) wantVersion(t *testing.T, want int) {
	t.Helper()
	if version, err := g.SchemaVersion(t.Context()); err != nil || version != want {
		t.Errorf("version %d, %v, want %d", version, err, want)
	}
}

func wantNotMigrated(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "call Migrate") {
		t.Error(err)
	}
}

// killMigration has a process change the table, and kills it before it commits.
func (w testDB) killMigration(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(job{Driver: w.driver, DSN: w.dsn, Table: w.table, Migrate: true, Timeout: time.Minute})
	check(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "changed\n" {
		t.Errorf("%q, %v", line, err)
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// migrateHalf is what a process does that is killed: it changes the table, and does not commit.
func (j job) migrateHalf(ctx context.Context, db *sql.DB) error {
	g, err := New(db, WithTable(j.Table))
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	begin := "BEGIN"
	if g.cfg.dialect == SQLite {
		begin = "BEGIN IMMEDIATE"
	}
	texts, err := g.migration(ctx, conn)
	for _, text := range append([]string{begin}, texts...) {
		if _, failure := conn.ExecContext(ctx, text); failure != nil {
			return errors.Join(err, failure)
		}
	}
	fmt.Println("changed")
	<-ctx.Done()
	return errors.Join(err, ctx.Err())
}

// A load are processes that send orders, all the same ones.
type load struct {
	t *testing.T
	counter
	all  sync.WaitGroup
	stop chan struct{}
	done atomic.Int64 // calls
	last atomic.Int64 // the order that was reached

	fresh atomic.Int64 // orders that processes of the new version have sent
}

func (l *load) start(g gateway.OrderGuard) {
	client := l.client(l.t, g)
	l.all.Go(func() {
		for n := l.last.Load(); ; n++ {
			select {
			case <-l.stop:
				return
			default:
			}
			invoice, err := client.CreateInvoice(context.Background(), request(int(n)))
			if err != nil || len(invoice.Raw) > 0 && string(invoice.Raw) != resultOf(invoice.OrderID) {
				l.t.Errorf("%d: %+v, %v", n, invoice, err)
			}
			for last := l.last.Load(); last < n && !l.last.CompareAndSwap(last, n); last = l.last.Load() {
			}
			if _, fresh := g.(*Guard); fresh && err == nil && !invoice.Replayed {
				l.fresh.Add(1)
			}
			l.done.Add(1)
		}
	})
}

// await waits until 20 more calls are counted.
func (l *load) await(calls *atomic.Int64) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), awaitTimeout)
	defer cancel()
	for until := calls.Load() + 20; calls.Load() < until && !l.t.Failed(); {
		if err := wait(ctx, time.Millisecond); err != nil {
			l.t.Errorf("%d calls, want %d: %v", calls.Load(), until, err)
		}
	}
}

// check compares the orders with what the service has created.
func (l *load) check(g *Guard) {
	l.t.Helper()
	kept := 0
	for n := range l.last.Load() + 1 {
		o, err := g.Order(l.t.Context(), "", orderName(int(n)))
		if err != nil || o.State != StateCreated || l.sent[o.ID] != 1 {
			l.t.Errorf("%+v, %v, sent %d times", o, err, l.sent[o.ID])
		}
		if string(o.Record.Invoice) == resultOf(o.ID) {
			kept++
		}
	}
	l.t.Logf("%d orders, of %d of which the invoice is kept", l.last.Load()+1, kept)
	if kept < int(l.fresh.Load()) {
		l.t.Errorf("%d were sent by the new version", l.fresh.Load())
	}
}

// checkOldRows checks what becomes of the rows that version 1 has left.
func checkOldRows(t *testing.T, w testDB, g *Guard) {
	t.Helper()
	execute(t, g.db, `UPDATE `+w.table+` SET lease_until = begun_at WHERE order_id = 'died'`)
	c := counter{sent: map[string]int{}}
	client := c.client(t, g)
	ask := func(id string) (*gateway.Invoice, error) {
		ctx, cancel := withoutWait(t.Context())
		defer cancel()
		return c.client(t, impatient{g}).CreateInvoice(ctx, orderOf(id).Request)
	}
	if invoice, err := ask("created"); err != nil || !invoice.Replayed || invoice.Raw != nil {
		t.Errorf("%+v, %v", invoice, err)
	}
	if invoice, err := client.CreateInvoice(t.Context(), orderOf("free").Request); err != nil || invoice.Replayed {
		t.Errorf("%+v, %v", invoice, err)
	}
	for _, id := range []string{"unknown", "died"} {
		_, err := ask(id)
		unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
		if !ok || !unknown.Replayed || unknown.SentAt.IsZero() || !strings.Contains(err.Error(), "keeps no record") {
			t.Errorf("%s: %v", id, err)
		}
	}
	_, err := ask("in flight")
	wantError(t, err, gateway.ErrOrderInFlight)
	if c.sent["free"] != 1 || len(c.sent) != 1 {
		t.Error(c.sent)
	}
}

// An impatient guard ends a call with a context of withoutWait that would wait for an order in flight.
type impatient struct{ gateway.OrderGuard }

func withoutWait(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, patienceKey{}, &patience{end: cancel}), cancel
}

func (g impatient) Begin(ctx context.Context, o gateway.Order) (gateway.Admission, error) {
	admission, err := g.OrderGuard.Begin(ctx, o)
	if errors.Is(err, gateway.ErrOrderInFlight) {
		ctx.Value(patienceKey{}).(*patience).end()
	}
	return admission, err
}
