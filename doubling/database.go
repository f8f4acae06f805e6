package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A database is PostgreSQL, with the tables of River and of sqlguard.
type database struct {
	pool  *pgxpool.Pool
	guard func() gateway.OrderGuard // that of a new process
	first *sqlguard.Guard           // that of this one
	stop  func()
}

// openDatabase connects to the server at POSTGRES_DSN, or to one that it starts.
func openDatabase(ctx context.Context) (*database, error) {
	dsn, stop := os.Getenv("POSTGRES_DSN"), func() {}
	if dsn == "" {
		var err error
		if dsn, stop, err = startServer(ctx); err != nil {
			return nil, err
		}
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		stop()
		return nil, err
	}
	db := &database{pool: pool, stop: func() { pool.Close(); stop() }}
	if err := db.createTables(ctx); err != nil {
		db.stop()
		return nil, err
	}
	return db, nil
}

func (db *database) createTables(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(db.pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	handle := stdlib.OpenDBFromPool(db.pool)
	if db.first, err = sqlguard.New(handle); err != nil {
		return err
	}
	db.guard = func() gateway.OrderGuard {
		g, _ := sqlguard.New(handle) // as above
		return g
	}
	return db.first.Migrate(ctx)
}

// pending returns which orders sqlguard lists as unknown.
func (db *database) pending(ctx context.Context) (map[string]bool, error) {
	orders, err := db.first.Pending(ctx, sqlguard.PendingQuery{})
	found := map[string]bool{}
	for _, o := range orders {
		found[o.ID] = true
	}
	return found, err
}

// startServer starts PostgreSQL for as long as this process lives.
func startServer(ctx context.Context) (dsn string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, "bash", "../.ci/postgres", "sh", "-c", `echo "$POSTGRES_DSN"; exec cat >/dev/null`)
	cmd.Stderr = os.Stderr
	input, err1 := cmd.StdinPipe()
	output, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = input.Close(); _, _ = io.Copy(io.Discard, output); _ = cmd.Wait() }
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("../.ci/postgres has not started a server: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}
