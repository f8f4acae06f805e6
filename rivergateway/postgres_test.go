package rivergateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/cryptogw/gateway/internal/testing/postgrestest"
	"github.com/cryptogw/gateway/sqlguard"
)

// The server that all tests share. The first test that needs it starts it.
var shared struct {
	sync.Mutex
	server    *postgrestest.Server
	err       error
	databases atomic.Int64
}

const template = "with_tables"

// sharedPostgres returns the server, in which the database template has the tables.
func sharedPostgres(t *testing.T) *postgrestest.Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = postgrestest.Start("fsync=off", "shared_buffers=64MB", "max_connections=300")
		if shared.err == nil {
			shared.err = errors.Join(create(shared.server, template, "template1"), migrate(shared.server, template))
		}
	}
	if shared.err != nil {
		t.Fatalf("no PostgreSQL server: %v", shared.err)
	}
	return shared.server
}

func stopPostgres() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.Stop()
	}
}

// newDatabase returns the DSN of a new database with the tables.
func newDatabase(t *testing.T) string {
	t.Helper()
	server, name := sharedPostgres(t), fmt.Sprintf("test_%d", shared.databases.Add(1))
	shared.Lock() // a template must not be in use
	defer shared.Unlock()
	if err := create(server, name, template); err != nil {
		t.Fatal(err)
	}
	return server.DSN(name)
}

func create(server *postgrestest.Server, name, template string) error {
	conn, err := pgx.Connect(context.Background(), server.DSN("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(context.Background(), `CREATE DATABASE `+name+` TEMPLATE `+template)
	return errors.Join(err, conn.Close(context.Background()))
}

// migrate makes the tables of River, of the guard and of a merchant.
func migrate(server *postgrestest.Server, database string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, server.DSN(database))
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	guard, err := sqlguard.New(db)
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `CREATE TABLE results (order_id text NOT NULL, outcome text NOT NULL, response boolean NOT NULL)`)
	return errors.Join(err, guard.Migrate(ctx))
}
