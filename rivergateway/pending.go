package rivergateway

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/cryptogw/gateway/sqlguard"
)

// A PendingReport is about the orders that a person must look up, for an alarm.
type PendingReport struct {
	Count  int              `json:"count"`           // how many there are
	Oldest time.Time        `json:"oldest,omitzero"` // since when the first of them is unknown
	Age    time.Duration    `json:"age"`             // of Oldest, in nanoseconds; 0 without one
	Orders []sqlguard.Order `json:"-"`               // those of [sqlguard.Guard.Pending]
}

type pendingArgs struct{}

// Kind implements [river.JobArgs].
func (pendingArgs) Kind() string { return "gateway_pending" }

// PeriodicPending returns the periodic job that calls OnPending of [Config], for
// PeriodicJobs of [river.Config]. It is also run when an elected client starts. The report
// is the output of each job. The interval is at least a second.
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
	orders, err := w.cfg.Guard.Pending(ctx)
	if err != nil {
		return err
	}
	report := PendingReport{Count: len(orders), Orders: orders}
	if len(orders) > 0 { // the oldest comes first
		report.Oldest, report.Age = orders[0].Since, max(0, time.Since(orders[0].Since))
	}
	if err := river.RecordOutput(ctx, report); err != nil || w.cfg.OnPending == nil {
		return err
	}
	return w.cfg.OnPending(ctx, report)
}
