package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// inRiver returns an engine that works one job for each cell, in River over PostgreSQL.
// Of a job that is retried, two attempts are waited for.
func inRiver(r riverRun) func(context.Context, *database, []*cell) error {
	return func(ctx context.Context, db *database, cells []*cell) error {
		undisturbed, deployed := map[int]*cell{}, map[int]*cell{}
		for i, c := range cells {
			if c.fault == deploy {
				deployed[i] = c
			} else {
				undisturbed[i] = c
			}
		}
		r.pool = db.pool
		return errors.Join(r.work(ctx, undisturbed, false), r.work(ctx, deployed, true))
	}
}

type invoiceArgs struct {
	Cell int `json:"cell"`
}

func (invoiceArgs) Kind() string { return "invoice" }

// An invoiceWorker works the jobs of one process.
type invoiceWorker struct {
	river.WorkerDefaults[invoiceArgs]
	cells  map[int]*cell
	others bool // each attempt is made by another process

	mu   sync.Mutex
	send map[int]create // by cell
}

func (w *invoiceWorker) Work(ctx context.Context, job *river.Job[invoiceArgs]) error {
	c := w.cells[job.Args.Cell]
	send, err := w.sender(ctx, job.Args.Cell)
	if err != nil {
		return err
	}
	return send(ctx, c.order)
}

// sender returns the client of this process for a cell.
func (w *invoiceWorker) sender(ctx context.Context, i int) (create, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.send[i] == nil || w.others {
		c := w.cells[i]
		c.processes++ // River ends the context of the first process
		_, send, err := c.process(ctx)
		if err != nil {
			return nil, err
		}
		w.send[i] = send
	}
	return w.send[i], nil
}

// A riverRun is a queue in the database.
type riverRun struct {
	pool        *pgxpool.Pool
	queue       string
	maxAttempts int  // 0 for River's default
	graceful    bool // a deploy is Stop, and else StopAndCancel
	others      bool // each attempt is made by another process
}

// work inserts a job for each cell and waits until they are done, over a deploy when
// there is one.
func (r riverRun) work(ctx context.Context, cells map[int]*cell, deployed bool) error {
	client, err := r.start(ctx, cells)
	if err != nil {
		return err
	}
	var jobs []river.InsertManyParams
	for i := range cells {
		jobs = append(jobs, river.InsertManyParams{Args: invoiceArgs{i}, InsertOpts: &river.InsertOpts{Queue: r.queue, MaxAttempts: r.maxAttempts}})
	}
	if _, err := client.InsertMany(ctx, jobs); err != nil {
		return err
	}
	if deployed {
		for _, c := range cells {
			select {
			case <-c.service.committed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := r.stop(ctx, client, cells); err != nil {
			return err
		}
		if client, err = r.start(ctx, cells); err != nil {
			return err
		}
	}
	return errors.Join(r.waitForJobs(ctx), client.StopAndCancel(ctx))
}

// stop stops a process in which all jobs wait for a response. Those come when Stop waits for them.
func (r riverRun) stop(ctx context.Context, client *river.Client[pgx.Tx], cells map[int]*cell) error {
	if !r.graceful {
		return client.StopAndCancel(ctx)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- client.Stop(ctx) }()
	for _, c := range cells {
		close(c.service.release)
	}
	return <-stopped
}

// start starts a process.
func (r riverRun) start(ctx context.Context, cells map[int]*cell) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &invoiceWorker{cells: cells, others: r.others, send: map[int]create{}})
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Queues:  map[string]river.QueueConfig{r.queue: {MaxWorkers: 200}},
		Workers: workers,
	})
	if err != nil {
		return nil, err
	}
	return client, client.Start(ctx)
}

// waitForJobs waits until every job is final or has failed twice. After a second failure
// River waits for 16 seconds and more, which no figure needs.
func (r riverRun) waitForJobs(ctx context.Context) error {
	const open = `SELECT count(*) FROM river_job WHERE queue = $1 AND finalized_at IS NULL AND NOT (attempt >= 2 AND state = 'retryable')`
	for {
		var left int
		if err := r.pool.QueryRow(ctx, open, r.queue).Scan(&left); err != nil || left == 0 {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d jobs of River have not ended: %w", left, ctx.Err())
		}
	}
}
