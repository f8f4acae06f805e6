package rivergateway

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/cryptogw/gateway"
)

// A PendingReport is about the orders that a person must look up, for an alarm.
type PendingReport struct {
	Count  int                   // how many there are
	Oldest time.Time             // since when the first of them is unknown
	Age    time.Duration         // of Oldest; 0 without one
	Orders []gateway.OrderStatus // the first 100 at most, see [sqlguard.Guard.Pending]
}

// A storedReport is a PendingReport as the output of a job.
type storedReport struct {
	Count  int           `json:"count"`
	Oldest time.Time     `json:"oldest,omitzero"`
	Age    time.Duration `json:"age"` // in nanoseconds
}

const mostOrders = 100 // of a report: after a long failure of the service there may be very many

type pendingArgs struct{}

// Kind implements [river.JobArgs].
func (pendingArgs) Kind() string { return "gateway_pending" }

// PeriodicPending returns the periodic job that calls OnPending of [Config], for PeriodicJobs
// of [river.Config]. It also runs when an elected client starts. Each job stores the report,
// without orders, as its output. The interval is at least a second.
func PeriodicPending(interval time.Duration) *river.PeriodicJob {
	args := func() (river.JobArgs, *river.InsertOpts) {
		return pendingArgs{}, &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: interval}}
	}
	return river.NewPeriodicJob(river.PeriodicInterval(interval), args, &river.PeriodicJobOpts{ID: pendingArgs{}.Kind(), RunOnStart: true})
}

type pendingWorker struct {
	river.WorkerDefaults[pendingArgs]
	*Jobs
}

// Work implements [river.Worker].
func (w *pendingWorker) Work(ctx context.Context, _ *river.Job[pendingArgs]) error {
	if err := w.report(ctx); err != nil {
		return storableError(tryAgain(ctx, err))
	}
	return nil
}

func (w *pendingWorker) report(ctx context.Context) error {
	summary, err := w.cfg.Guard.PendingSummary(ctx)
	if err != nil {
		return err
	}
	r := PendingReport{Count: summary.Count, Oldest: summary.Oldest}
	if !r.Oldest.IsZero() {
		r.Age = max(0, time.Since(r.Oldest))
	}
	if r.Orders, err = w.cfg.Guard.Pending(ctx, gateway.PendingQuery{Most: mostOrders}); err != nil {
		return err
	}
	if err := river.RecordOutput(ctx, storedReport{r.Count, r.Oldest, r.Age}); err != nil || w.cfg.OnPending == nil {
		return err
	}
	return w.cfg.OnPending(ctx, r)
}
