package sqlguard

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
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

// A server that is killed under load keeps what it has acknowledged, and what fails grants nothing.
func TestServer_killed(t *testing.T) {
	for name, tt := range map[string]struct {
		start func() (database, error)
		w     testDB // with the name of the database
	}{
		"PostgreSQL": {func() (database, error) { return postgrestest.Start("shared_buffers=32MB") }, testDB{PostgreSQL, "pgx", "postgres", DefaultTable}},
		"MariaDB":    {func() (database, error) { return mariadbtest.Start() }, testDB{MariaDB, "mysql", "shop", DefaultTable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := tt.start()
			check(t, err)
			t.Cleanup(server.Stop)
			w := tt.w
			w.dsn = server.DSN(w.dsn)
			g := w.guard(t)
			g.retryEnd = 0
			l := newLoad(g)
			for range 3 {
				l.reach(20)
				check(t, server.Restart("KILL"))
			}
			l.reach(20)
			l.stop()
			check(t, g.endLeases(t.Context()))
			l.check(t, g)
		})
	}
}

// A cluster is a primary and a replica that has all its commits.
type cluster struct {
	w       testDB // the primary
	fence   func(t *testing.T)
	promote func(t *testing.T) (dsn string)
	kill    func() // the primary
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
	return cluster{w, func(t *testing.T) {
		execute(t, db, `ALTER SYSTEM SET default_transaction_read_only = on`)
		execute(t, db, `SELECT pg_reload_conf()`)
	}, func(t *testing.T) string {
		execute(t, testDB{PostgreSQL, "pgx", replica.DSN("postgres"), ""}.open(t), `SELECT pg_promote()`)
		return replica.DSN("postgres")
	}, primary.Kill}
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
	return cluster{testDB{MariaDB, "mysql", dsn(0), DefaultTable}, func(t *testing.T) {
		execute(t, dbs[0], "SET GLOBAL read_only = 1") // waits for the commits
	}, func(t *testing.T) string {
		var position string
		check(t, dbs[0].QueryRow("SELECT @@gtid_binlog_pos").Scan(&position))
		execute(t, dbs[1], "SELECT MASTER_GTID_WAIT('"+position+"')")
		execute(t, dbs[1], "STOP SLAVE")
		return dsn(1)
	}, servers[0].Kill}
}

// A switchover under load: the primary becomes read-only, or is killed, its replica is promoted, and the name leads to that one. The
// connections to a primary that lives stay. Orders go on without a restart, what was acknowledged stays, and each order that was in flight is recorded.
func TestServer_switchover(t *testing.T) {
	for name, start := range map[string]func(*testing.T) cluster{
		"PostgreSQL": postgresCluster, "MariaDB": mariaDBCluster,
		"PostgreSQL, a crash": func(t *testing.T) cluster {
			c := postgresCluster(t)
			c.fence = func(*testing.T) { c.kill() }
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			w := c.w
			p := w.behindProxy(t)
			g := w.guard(t)
			g.db.SetMaxIdleConns(4)
			l := newLoad(g)
			l.reach(20)
			inFlight := []string{}
			for range 5 {
				id := rand.Text()
				check(t, g.begins(t.Context(), id))
				inFlight = append(inFlight, id)
			}
			c.fence(t)
			ended := make(chan error, len(inFlight))
			for _, id := range inFlight { // the gateway has created them meanwhile
				go func() { ended <- g.ends(context.Background(), id, gateway.OutcomeSucceeded) }()
			}
			p.leadTo(c.promote(t))
			for range inFlight {
				if err := <-ended; err != nil {
					t.Errorf("created, and not recorded: %v", err)
				}
			}
			l.reach(20)
			l.stop()
			l.begun, l.created = append(l.begun, inFlight...), append(l.created, inFlight...)
			if l.failed > 0 {
				t.Errorf("%d calls failed", l.failed)
			}
			l.check(t, g)
		})
	}
}

// An error that says that the server is read-only, not ready or going away costs one connection and one more try.
func TestConnection_errors(t *testing.T) {
	postgres, mariadb := newPostgres(t), newMariaDB(t)
	tables := map[Dialect]testDB{PostgreSQL: postgres, MariaDB: mariadb}
	for _, w := range tables {
		w.guard(t)
	}
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
			db, losing := losesAnswers(t, tables[tt.dialect])
			g, err := New(db, WithTable(tables[tt.dialect].table), WithDialect(tt.dialect))
			check(t, err)
			g.retryEnd = 0
			id := rand.Text()
			losing.refuse = tt.err
			check(t, g.begins(t.Context(), id))
			losing.refuse = tt.err
			check(t, g.ends(t.Context(), id, gateway.OutcomeSucceeded))
			if o := g.order(t, id); o.State != gateway.OrderCreated || o.Attempts != 1 || losing.opened != 3 {
				t.Errorf("%d connections, %+v", losing.opened, o)
			}
		})
	}
}

// A connection that swallows everything is given up, and the order is begun, and ended, on another one.
func TestConnection_dead(t *testing.T) {
	for name, table := range map[string]func(testing.TB) testDB{"PostgreSQL": newPostgres, "MariaDB": newMariaDB} {
		t.Run(name, func(t *testing.T) {
			w := table(t)
			p := w.behindProxy(t)
			g := w.guard(t)
			if g.mostTry != 3*time.Second {
				t.Errorf("a try takes %v", g.mostTry)
			}
			g.mostTry, g.retryEnd = 200*time.Millisecond, 0
			for i, do := range []func() error{
				func() error { return g.begins(t.Context(), order) },
				func() error { return g.ends(t.Context(), order, gateway.OutcomeSucceeded) },
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
		})
	}
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
	g, err := New(db, WithTable(w.table))
	check(t, err)
	g.once(t, order, gateway.OutcomeSucceeded)
}

// A load is workers that begin and end orders.
type load struct {
	g       *Guard
	working sync.WaitGroup
	ended   chan struct{} // gets one for each order that is created
	over    chan struct{}

	mu             sync.Mutex
	begun, created []string
	failed         int // calls
}

func newLoad(g *Guard) *load {
	l := &load{g: g, ended: make(chan struct{}), over: make(chan struct{})}
	for range 4 {
		l.working.Go(l.work)
	}
	return l
}

// reach returns when a number of further orders are created.
func (l *load) reach(count int) {
	for range count {
		<-l.ended
	}
}

func (l *load) stop() {
	close(l.over)
	l.working.Wait()
}

func (l *load) work() {
	ctx := context.Background()
	for {
		id := rand.Text()
		err := l.g.begins(ctx, id)
		if err == nil {
			l.note(&l.begun, id)
			if err = l.g.ends(ctx, id, gateway.OutcomeSucceeded); err == nil {
				l.note(&l.created, id)
				select {
				case l.ended <- struct{}{}:
				case <-l.over:
				}
			}
		}
		if err != nil {
			l.mu.Lock()
			l.failed++
			l.mu.Unlock()
		}
		select {
		case <-l.over:
			return
		default:
		}
	}
}

func (l *load) note(list *[]string, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, id)
}

// check requires that the orders are as they were acknowledged.
func (l *load) check(t *testing.T, g *Guard) {
	t.Helper()
	for _, id := range l.created {
		if o := g.order(t, id); o.State != gateway.OrderCreated {
			t.Errorf("created: %+v", o)
		}
	}
	for _, id := range l.begun {
		if o := g.order(t, id); o.State == gateway.OrderFree {
			t.Errorf("begun: %+v", o)
		}
	}
	t.Logf("%d orders were begun, %d created", len(l.begun), len(l.created))
}

// A server that stalls keeps no Begin for longer than its patience, and grants nothing then.
func TestServer_stalls(t *testing.T) {
	for name, shared := range map[string]struct {
		w      func(testing.TB) testDB
		server *sharedServer
	}{"PostgreSQL": {newPostgres, &sharedPostgres}, "MariaDB": {newMariaDB, &sharedMariaDB}} {
		t.Run(name, func(t *testing.T) {
			g := shared.w(t).guard(t)
			if shared.server.server == nil {
				t.Skip("the server is not one of the tests")
			}
			g.patience = 100 * time.Millisecond
			check(t, g.begins(t.Context(), "before")) // there is a connection
			check(t, g.ends(t.Context(), "before", gateway.OutcomeSucceeded))
			resume, err := shared.server.server.Suspend()
			check(t, err)
			err = g.begins(t.Context(), order)
			resume()
			if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(fmt.Sprint(err), "timeout") {
				t.Error(err)
			}
			check(t, g.endLeases(t.Context()))
			if got := g.order(t, order); got.State == gateway.OrderCreated || got.State == gateway.OrderInFlight {
				t.Errorf("%+v", got)
			}
		})
	}
}
