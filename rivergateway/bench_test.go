package rivergateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

// BenchmarkInsertInvoiceTx measures transactions with one InsertInvoiceTx, and for comparison
// with one row of a plain table, on a server with the defaults of PostgreSQL.
func BenchmarkInsertInvoiceTx(b *testing.B) {
	server, err := postgrestest.Start()
	check(b, err)
	b.Cleanup(server.Stop)
	check(b, migrate(server, "postgres"))
	pool, err := pgxpool.New(b.Context(), server.DSN("postgres")+"&pool_max_conns=16&pool_min_conns=16")
	check(b, err)
	b.Cleanup(pool.Close)
	_, err = pool.Exec(b.Context(), `CREATE TABLE plain (id text PRIMARY KEY, at timestamptz NOT NULL)`)
	check(b, err)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	check(b, err)
	for _, workers := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("job/%d", workers), func(b *testing.B) {
			inTransactions(b, pool, workers, func(ctx context.Context, tx pgx.Tx, id string) error {
				_, err := InsertInvoiceTx(ctx, client, tx, request(id), InsertOptions{})
				return err
			})
		})
		b.Run(fmt.Sprintf("row/%d", workers), func(b *testing.B) {
			inTransactions(b, pool, workers, func(ctx context.Context, tx pgx.Tx, id string) error {
				_, err := tx.Exec(ctx, `INSERT INTO plain VALUES ($1, now())`, id)
				return err
			})
		})
	}
}

// inTransactions lets workers share b.N transactions, each with an order of its own.
func inTransactions(b *testing.B, pool *pgxpool.Pool, workers int, do func(ctx context.Context, tx pgx.Tx, id string) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	run, took := time.Now().UnixNano(), make([]time.Duration, b.N)
	b.ResetTimer()
	for range workers {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				start := time.Now()
				if err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
					return do(b.Context(), tx, fmt.Sprintf("%d-%d", run, n))
				}); err != nil {
					b.Error(err)
				}
				took[n-1] = time.Since(start)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "inserts/s")
	slices.Sort(took)
	for name, i := range map[string]int{"p50-ms": b.N / 2, "p99-ms": b.N * 99 / 100} {
		b.ReportMetric(took[i].Seconds()*1000, name)
	}
}
