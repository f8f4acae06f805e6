package sqlguard

import (
	"bufio"
	"context"
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
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

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

// A process that is killed before it commits leaves no table, and no other has to wait for it. Several
// create the table at once, and each order is sent once.
func TestGuard_Migrate_killed(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		w.killMigration(t)
		g, err := New(w.open(t), WithTable(w.table))
		check(t, err)
		g.wantVersion(t, 0)
		wantNotMigrated(t, g.begins(t.Context(), order))

		service := counter{sent: map[string]int{}}
		var all sync.WaitGroup
		for range 4 {
			fresh, err := New(w.open(t), WithTable(w.table))
			check(t, err)
			client := service.client(t, fresh)
			all.Go(func() {
				if err := fresh.Migrate(context.Background()); err != nil {
					t.Error(err)
				}
				for n := range 20 {
					if _, err := client.CreateInvoice(context.Background(), request(n)); err != nil {
						t.Errorf("%d: %v", n, err)
					}
				}
			})
		}
		all.Wait()
		g.wantVersion(t, SchemaVersion)
		for n := range 20 {
			o, err := g.Order(t.Context(), "", orderName(n))
			if err != nil || o.State != StateCreated || service.sent[o.ID] != 1 || string(o.Record.Invoice) != resultOf(o.ID) {
				t.Errorf("%+v, %v, sent %d times", o, err, service.sent[o.ID])
			}
		}
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

// withoutWait returns a context whose calls do not wait for an order in flight.
func withoutWait(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	return context.WithValue(ctx, patienceKey{}, &patience{end: cancel}), cancel
}
