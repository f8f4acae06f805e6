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

// Behind PgBouncer with transaction pooling a guard works in the mode of pgx that the README names, with more handles than PgBouncer
// has connections to the server. In the default mode an older PgBouncer refuses most statements, with the remedy, and nothing is sent.
func TestPgBouncer(t *testing.T) {
	w := newPostgres(t)
	direct := w.guard(t)
	w.dsn = startPgBouncer(t, w.dsn)
	for mode, mayFail := range map[string]bool{"exec": false, "cache_statement": true} { // since 1.21 it can keep prepared statements
		var working sync.WaitGroup
		for range 10 {
			g := w.with("&default_query_exec_mode=" + mode).mustNew(t)
			working.Go(func() {
				for range 5 {
					o := orderOf(rand.Text())
					err := g.asks(t.Context(), &o)
					if err == nil {
						err = g.ends(t.Context(), o, gateway.OutcomeSucceeded)
					}
					if err == nil {
						err = direct.asks(t.Context(), &o)
					}
					if err != errCreated && (!mayFail || !strings.Contains(err.Error(), "default_query_exec_mode=exec")) {
						t.Error(err)
					}
				}
			})
		}
		working.Wait()
	}
	w.with("&default_query_exec_mode=exec").life(t)
}

// startPgBouncer returns the DSN of a PgBouncer with three connections to a server, until the test ends.
func startPgBouncer(t *testing.T, dsn string) string {
	t.Helper()
	server, err := pgconn.ParseConfig(dsn)
	check(t, err)
	password := ""
	if server.Password != "" {
		password = " password='" + strings.ReplaceAll(server.Password, "'", "''") + "'"
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
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
`, server.Database, server.Host, server.Port, server.User, password, port), 0o644))
		return []string{"/bin/sh", "-c", "PATH=$PATH:/usr/sbin exec pgbouncer " + path}
	})
	check(t, err)
	t.Cleanup(bouncer.Stop)
	if err := bouncer.Start(); err != nil {
		t.Fatalf("%v: apt-get install pgbouncer", err)
	}
	return "postgres://any@127.0.0.1:" + bouncer.Port + "/shop?sslmode=disable"
}
