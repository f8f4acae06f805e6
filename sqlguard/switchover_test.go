package sqlguard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/mariadbtest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// A cluster is a database whose primary is fenced, so that it writes nothing more, before the next one is promoted.
type cluster struct {
	w       testDB // the primary
	fence   func()
	promote func() (dsn string)
}

// crash is a cluster of one server, which is killed and starts again.
func crash(t *testing.T, w testDB, server database, err error) cluster {
	check(t, err)
	t.Cleanup(server.Stop)
	w.dsn = server.DSN(w.dsn)
	return cluster{w, func() { check(t, server.Restart("KILL")) }, func() string { return w.dsn }}
}

func postgresCluster(t *testing.T) cluster {
	primary, err := postgrestest.Start("fsync=off", "shared_buffers=32MB")
	check(t, err)
	t.Cleanup(primary.Stop)
	replica, err := primary.Replica()
	check(t, err)
	t.Cleanup(replica.Stop)
	w := testDB{PostgreSQL, "pgx", primary.DSN("postgres"), DefaultTable}
	db := w.open(t)
	execute(t, db, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	execute(t, db, `SELECT pg_reload_conf()`)
	return cluster{w, func() {
		execute(t, db, `ALTER SYSTEM SET default_transaction_read_only = on`)
		execute(t, db, `SELECT pg_reload_conf()`)
	}, func() string {
		execute(t, testDB{PostgreSQL, "pgx", replica.DSN("postgres"), ""}.open(t), `SELECT pg_promote(false)`) // a promotion that waits can conflict with the recovery
		return replica.DSN("postgres")
	}}
}

func mariaDBCluster(t *testing.T) cluster {
	var servers [2]*mariadbtest.Server
	var dbs [2]*sql.DB
	for i := range servers {
		var err error
		servers[i], err = mariadbtest.Start("innodb-flush-log-at-trx-commit=0", "log-bin=log", fmt.Sprint("server-id=", i+1))
		check(t, err)
		t.Cleanup(servers[i].Stop)
		dbs[i] = testDB{MariaDB, "mysql", servers[i].DSN("shop"), ""}.open(t)
	}
	execute(t, dbs[0], "CREATE USER shop") // to root nothing is read-only
	execute(t, dbs[0], "GRANT ALL ON shop.* TO shop")
	execute(t, dbs[1], fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %s, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos", servers[0].Port))
	execute(t, dbs[1], "START SLAVE")
	dsn := func(i int) string {
		return strings.Replace(servers[i].DSN("shop"), "root@", "shop@", 1) + "?interpolateParams=true"
	}
	return cluster{testDB{MariaDB, "mysql", dsn(0), DefaultTable}, func() {
		execute(t, dbs[0], "SET GLOBAL read_only = 1") // waits for the commits
	}, func() string {
		var position string
		check(t, dbs[0].QueryRow("SELECT @@gtid_binlog_pos").Scan(&position))
		execute(t, dbs[1], "SELECT MASTER_GTID_WAIT('"+position+"')")
		execute(t, dbs[1], "STOP SLAVE")
		return dsn(1)
	}}
}

// A switchover under load: the primary becomes read-only, its replica is promoted, and the name leads to that one; or the primary is
// killed, and starts again. The connections to a primary that lives stay. Orders go on without a restart, what was acknowledged
// stays, and each order that was in flight is recorded.
func TestServer_switchover(t *testing.T) {
	for name, start := range map[string]func(*testing.T) cluster{
		"PostgreSQL": postgresCluster, "MariaDB": mariaDBCluster,
		"PostgreSQL, a crash": func(t *testing.T) cluster {
			server, err := postgrestest.Start("shared_buffers=32MB")
			return crash(t, testDB{PostgreSQL, "pgx", "postgres", DefaultTable}, server, err)
		},
		"MariaDB, a crash": func(t *testing.T) cluster {
			server, err := mariadbtest.Start()
			return crash(t, testDB{MariaDB, "mysql", "shop", DefaultTable}, server, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			w := c.w
			p := w.behindProxy(t)
			g := w.guard(t)
			g.retryEnd = mostRetryEnd
			g.db.SetMaxIdleConns(4)
			l := newLoad(g)
			l.reach(20)
			var inFlight [5]gateway.Order
			for i := range inFlight {
				inFlight[i] = orderOf(rand.Text())
				check(t, g.asks(t.Context(), &inFlight[i]))
			}
			c.fence()
			ended := make(chan error, len(inFlight))
			for _, o := range inFlight { // the gateway has created them meanwhile
				go func() { ended <- g.ends(context.Background(), o, gateway.OutcomeSucceeded) }()
			}
			p.leadTo(c.promote())
			for range inFlight {
				if err := <-ended; err != nil {
					t.Errorf("created, and not recorded: %v", err)
				}
			}
			l.reach(20)
			close(l.over)
			l.working.Wait()
			if l.failed > 0 {
				t.Errorf("%d calls failed", l.failed)
			}
			for _, o := range inFlight {
				l.created = append(l.created, o.Request.OrderID)
			}
			for _, id := range l.created {
				if o := g.order(t, id); o.State != gateway.OrderCreated {
					t.Errorf("created: %+v", o)
				}
			}
			t.Logf("%d orders were created", len(l.created))
		})
	}
}

// A load is workers that begin and end orders.
type load struct {
	g       *Guard
	working sync.WaitGroup
	ended   chan struct{} // gets one for each order
	over    chan struct{}

	mu      sync.Mutex
	created []string
	failed  int // calls
}

func newLoad(g *Guard) *load {
	l := &load{g: g, ended: make(chan struct{}), over: make(chan struct{})}
	for range 4 {
		l.working.Go(l.work)
	}
	return l
}

// reach returns when a number of further orders have ended.
func (l *load) reach(count int) {
	for range count {
		<-l.ended
	}
}

func (l *load) work() {
	for {
		o := orderOf(rand.Text())
		err := l.g.asks(context.Background(), &o)
		if err == nil {
			err = l.g.ends(context.Background(), o, gateway.OutcomeSucceeded)
		}
		l.mu.Lock()
		if err != nil {
			l.failed++
		} else {
			l.created = append(l.created, o.Request.OrderID)
		}
		l.mu.Unlock()
		select {
		case l.ended <- struct{}{}:
		case <-l.over:
			return
		}
	}
}

// An error that says that the server is read-only, not ready or going away costs one connection and one more try.
func TestConnection_errors(t *testing.T) {
	w := map[Dialect]testDB{PostgreSQL: newPostgres(t), MariaDB: newMariaDB(t)}
	w[PostgreSQL].guard(t)
	w[MariaDB].guard(t)
	for name, tt := range map[string]struct {
		dialect Dialect
		err     error
	}{
		"25006, read-only":              {PostgreSQL, &pgconn.PgError{Code: "25006"}},
		"57P01, ended by the operator":  {PostgreSQL, &pgconn.PgError{Code: "57P01"}},
		"57P02, a crash":                {PostgreSQL, &pgconn.PgError{Code: "57P02"}},
		"57P03, it is starting":         {PostgreSQL, &pgconn.PgError{Code: "57P03"}},
		"a reset":                       {PostgreSQL, &net.OpError{Op: "read", Err: syscall.ECONNRESET}},
		"the end of the connection":     {PostgreSQL, fmt.Errorf("failed: %w", io.ErrUnexpectedEOF)},
		"1290, read-only":               {MariaDB, &mysql.MySQLError{Number: 1290, Message: "--read-only"}},
		"1792, a read-only transaction": {MariaDB, &mysql.MySQLError{Number: 1792}},
		"1836, read-only mode":          {MariaDB, &mysql.MySQLError{Number: 1836}},
		"1047, a node without quorum":   {MariaDB, &mysql.MySQLError{Number: 1047}},
		"1053, it is shutting down":     {MariaDB, &mysql.MySQLError{Number: 1053}},
		"an invalid connection":         {MariaDB, mysql.ErrInvalidConn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits between two tries
			g, losing := w[tt.dialect].losing(t)
			o := orderOf(rand.Text())
			losing.refuse = tt.err
			check(t, g.asks(t.Context(), &o))
			losing.refuse = tt.err
			check(t, g.ends(t.Context(), o, gateway.OutcomeSucceeded))
			if o := g.order(t, o.Request.OrderID); o.State != gateway.OrderCreated || o.Attempts != 1 || losing.opened != 3 {
				t.Errorf("%d connections, %+v", losing.opened, o)
			}
		})
	}
}

// A connection that swallows everything is given up, and the order is begun, and ended, on another one. If all do, Begin ends after
// its patience, and nothing is granted.
func TestConnection_dead(t *testing.T) {
	inServers(t, func(t *testing.T, w testDB) {
		p := w.behindProxy(t)
		g := w.guard(t)
		g.mostTry = 200 * time.Millisecond
		o := orderOf(order)
		for i, do := range []func() error{
			func() error { return g.asks(t.Context(), &o) },
			func() error { return g.ends(t.Context(), o, gateway.OutcomeSucceeded) },
		} {
			check(t, g.db.PingContext(t.Context()))
			before := p.dialled.Load()
			p.kill()
			check(t, do())
			if dialled := p.dialled.Load() - before; dialled == 0 {
				t.Errorf("%d: no other connection", i)
			}
		}
		g.wantState(t, gateway.OrderCreated, 1)
		g.patience, g.mostTry = 100*time.Millisecond, time.Hour
		p.dead.Store(math.MaxInt64)
		wantError(t, g.begins(t.Context(), "stalled"), context.DeadlineExceeded)
		p.kill()
		if o := g.order(t, "stalled"); o.State != gateway.OrderFree {
			t.Errorf("%+v", o)
		}
	})
}

// In a pool of pgx too, a connection to a server that has become read-only is not used again.
func TestConnection_pgxpool(t *testing.T) {
	w := newPostgres(t)
	w.guard(t)
	pool, err := pgxpool.New(t.Context(), w.dsn+"&pool_max_conns=1")
	check(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), "SET default_transaction_read_only = on")
	check(t, err)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { check(t, db.Close()) })
	w.over(t, db).once(t, order, gateway.OutcomeSucceeded)
}
