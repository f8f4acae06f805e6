//go:build unix

package sqlguard

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/daemon"
)

// bouncerConnections are those of PgBouncer to the server, for more clients than that.
const bouncerConnections = 3

// Behind PgBouncer with transaction pooling the README names the modes of pgx in which a guard works. In the
// default one an older PgBouncer refuses most statements, with the remedy, and nothing is sent.
func TestPgBouncer(t *testing.T) {
	for _, tt := range []struct {
		pooling, mode string
		mayFail       bool // since 1.21 PgBouncer can keep prepared statements
	}{
		{"transaction", "exec", false},
		{"transaction", "simple_protocol", false},
		{"transaction", "cache_describe", false},
		{"session", "cache_statement", false},
		{"transaction", "cache_statement", true},
	} {
		t.Run(tt.pooling+"/"+tt.mode, func(t *testing.T) {
			w := newPostgres(t)
			direct := w.guard(t)
			w.dsn = startPgBouncer(t, w.dsn, tt.pooling) + "&default_query_exec_mode=" + tt.mode
			created, failed := w.ofClients(t)
			for _, err := range failed {
				if !tt.mayFail || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
					t.Fatalf("%d of 100 orders, first: %v", len(failed), err)
				}
			}
			for _, id := range created {
				if o := direct.order(t, id); o.State != gateway.OrderCreated {
					t.Errorf("%+v", o)
				}
			}
			if !tt.mayFail {
				w.life(t)
			}
		})
	}
}

// ofClients creates 100 orders by 10 handles, which share the connections of PgBouncer.
func (w testDB) ofClients(t *testing.T) (created []string, failed []error) {
	t.Helper()
	var working sync.WaitGroup
	var mu sync.Mutex
	for range 10 {
		g := w.mustNew(t)
		g.retryEnd = 0
		working.Go(func() {
			for range 10 {
				id := rand.Text()
				err := g.begins(t.Context(), id)
				if err == nil {
					err = g.ends(t.Context(), id, gateway.OutcomeSucceeded)
				}
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				} else {
					created = append(created, id)
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	return created, failed
}

// startPgBouncer returns the DSN of a PgBouncer in front of a server, until the test ends.
func startPgBouncer(t *testing.T, dsn, pooling string) string {
	t.Helper()
	server, err := pgconn.ParseConfig(dsn)
	check(t, err)
	size, password := bouncerConnections, ""
	if server.Password != "" {
		password = " password='" + strings.ReplaceAll(server.Password, "'", "''") + "'"
	}
	if pooling == "session" { // each client has one
		size = 90
	}
	bouncer, err := daemon.New("postgres", "KILL", "process up", func(dir, port string) []string {
		path := filepath.Join(dir, "pgbouncer.ini")
		check(t, os.WriteFile(path, fmt.Appendf(nil, `[databases]
shop = dbname=%s host=%s port=%d user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 500
`, server.Database, server.Host, server.Port, server.User, password, port, pooling, size), 0o644))
		return []string{"/bin/sh", "-c", "PATH=$PATH:/usr/sbin exec pgbouncer " + path}
	})
	check(t, err)
	t.Cleanup(bouncer.Stop)
	if err := bouncer.Start(); err != nil {
		t.Fatalf("%v: apt-get install pgbouncer", err)
	}
	return "postgres://any@127.0.0.1:" + bouncer.Port + "/shop?sslmode=disable"
}
