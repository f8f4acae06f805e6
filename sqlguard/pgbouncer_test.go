package sqlguard

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/jackc/pgx/v5/pgconn"
)

// bouncerConnections are those of PgBouncer to the server, for more clients than that.
const bouncerConnections = 3

// Behind PgBouncer with transaction pooling the README names the modes of pgx in which a guard
// works. In the default one an older PgBouncer refuses most statements, and nothing is sent.
func TestPgBouncer(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	for _, test := range []struct{ pooling, mode string }{
		{"transaction", "exec"},
		{"transaction", "simple_protocol"},
		{"transaction", "cache_describe"},
		{"session", "cache_statement"},
	} {
		t.Run(test.pooling+"/"+test.mode, func(t *testing.T) {
			behind := w
			behind.dsn = startPgBouncer(t, w.dsn, test.pooling) + "&default_query_exec_mode=" + test.mode
			ids, failed := behind.ofClients(t, func(g *Guard, id string) error {
				return errors.Join(g.begins(t.Context(), id), recorded(g.End(t.Context(), orderOf(id), successOf(id))))
			})
			if len(failed) > 0 {
				t.Fatalf("%d of 100 orders, first: %v", len(failed), failed[0])
			}
			for _, id := range ids {
				o, err := g.Order(t.Context(), "", id)
				if err != nil || o.State != StateCreated {
					t.Errorf("%+v, %v", o, err)
				}
			}
			behind.life(t)
		})
	}
	t.Run("transaction/default", func(t *testing.T) {
		behind := w
		behind.dsn = startPgBouncer(t, w.dsn, "transaction")
		_, failed := behind.ofClients(t, func(g *Guard, id string) error { return g.begins(t.Context(), id) })
		t.Logf("%d of 100 Begins fail", len(failed))
		for _, err := range failed { // since 1.21 PgBouncer can keep prepared statements
			if !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
				t.Fatalf("the error does not name the remedy: %v", err)
			}
		}
	})
}

// ofClients does an operation with 100 orders in 10 handles, which share the connections of PgBouncer.
func (w testDB) ofClients(t *testing.T, operation func(*Guard, string) error) (done []string, failed []error) {
	t.Helper()
	var working sync.WaitGroup
	var mu sync.Mutex
	for range 10 {
		db := w.open(t)
		g, err := New(db, WithTable(w.table))
		check(t, err)
		working.Go(func() {
			for range 10 {
				id := rand.Text()
				err := operation(g, id)
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				} else {
					done = append(done, id)
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	return done, failed
}

// life uses every method of a guard.
func (w testDB) life(t *testing.T) {
	t.Helper()
	ctx, id := t.Context(), rand.Text()
	g := w.guard(t)
	g.once(t, id, gateway.OutcomeUnknown)
	wantError(t, g.begins(ctx, id), errUnknown)
	check(t, g.resubmits(ctx, id))
	check(t, g.ends(ctx, id, gateway.OutcomeUnknown))
	summary, err := g.PendingSummary(ctx)
	check(t, err)
	pending, err := g.Pending(ctx, PendingQuery{Most: 10})
	check(t, err)
	if len(pending) != 1 || summary.Count != 1 || pending[0].ID != id {
		t.Fatalf("%+v, %+v", pending, summary)
	}
	found := []byte(`{"id":"4711"}`)
	check(t, g.Resolve(ctx, pending[0], Resolution{Exists: true, By: "anna", Note: `it's in "the" list \`, Invoice: found}))
	_, err = g.Reconcile(ctx, Statement{}, ReconcileOptions{})
	check(t, err)
	if o, err := g.Order(ctx, "", id); err != nil || string(o.Record.Invoice) != string(found) {
		t.Errorf("%+v, %v", o, err)
	}
	_, err = g.Prune(ctx, 24*time.Hour)
	check(t, err)
}

// startPgBouncer returns the DSN of a PgBouncer in front of a server, until the test ends.
func startPgBouncer(t *testing.T, dsn, pooling string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Fatalf("%v: apt-get install pgbouncer", err)
		}
	}
	server, err := pgconn.ParseConfig(dsn)
	check(t, err)
	dir, err := os.MkdirTemp("", "pgbouncer-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password := ""
	if server.Password != "" {
		password = " password='" + strings.ReplaceAll(server.Password, "'", "''") + "'"
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	port := freePort(t)
	check(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
shop = dbname=%s host=%s port=%d user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 500
`, server.Database, server.Host, server.Port, server.User, password, port, pooling, pool(pooling)), 0o644))
	runPgBouncer(t, path, dir, config)
	return fmt.Sprintf("postgres://any@127.0.0.1:%d/shop?sslmode=disable", port)
}

// pool is how many connections PgBouncer has: in a session each client has one.
func pool(pooling string) int {
	if pooling == "session" {
		return 90
	}
	return bouncerConnections
}

// runPgBouncer starts the program. It refuses to run as root.
func runPgBouncer(t *testing.T, path, dir, config string) {
	t.Helper()
	args := []string{config}
	if os.Geteuid() == 0 {
		check(t, os.Chmod(dir, 0o755))
		_, err := user.Lookup("postgres")
		check(t, err)
		args = []string{"-u", "postgres", config}
	}
	cmd := exec.Command(path, args...)
	said, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	up, lines, text := make(chan bool, 2), bufio.NewScanner(said), ""
	go func() {
		defer close(ended)
		for lines.Scan() {
			if text += lines.Text() + "\n"; strings.Contains(lines.Text(), "process up") {
				up <- true
			}
		}
		up <- false
		_ = cmd.Wait()
	}()
	if !<-up {
		t.Fatalf("PgBouncer has not started: %s", text)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
