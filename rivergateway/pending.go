package rivergateway

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/cryptogw/gateway/sqlguard"
)

// A PendingReport is about the orders that a person must look up, for an alarm.
type PendingReport struct {
	Count  int              // how many there are
	Oldest time.Time        // since when the first of them is unknown
	Age    time.Duration    // of Oldest; 0 without one
	Orders []sqlguard.Order // the first 100 at most, see [sqlguard.Guard.Pending]

	Resolved    sqlguard.ResolveReport // what the Resolver of [Config] has found before; these orders are not counted above
	ResolverErr error                  // why it has not found out more, or its report is not complete; nil without an error
}

// A storedReport is a PendingReport as the output of a job.
type storedReport struct {
	Count  int           `json:"count"`
	Oldest time.Time     `json:"oldest,omitzero"`
	Age    time.Duration `json:"age"` // in nanoseconds

	Resolved int `json:"resolved,omitempty"`
	Refused  int `json:"refused,omitempty"` // findings
}

const mostOrders = 100 // of a report: after a long failure of the service there may be very many

type pendingArgs struct{}

// Kind implements [river.JobArgs].
func (pendingArgs) Kind() string { return "gateway_pending" }

// PeriodicPending returns the periodic job that asks the Resolver of [Config] and then calls
// OnPending, for PeriodicJobs of [river.Config]. It is also run when an elected client starts.
// The report, without orders, is the output of each job. The interval is at least a second.
//
// A resolver that fails keeps no report from being made: its error is that of the job afterwards. It is asked for 5 minutes at most in one run, the oldest order first. Two
// runs at once do no harm: of two findings about an order one is refused.
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

// Timeout implements [river.Worker].
func (w *pendingWorker) Timeout(*river.Job[pendingArgs]) time.Duration {
	if w.cfg.Resolver == nil {
		return 0 // that of the engine
	}
	return w.timeout
}

// Work implements [river.Worker].
func (w *pendingWorker) Work(ctx context.Context, job *river.Job[pendingArgs]) error {
	return storableError(w.work(ctx, job))
}

func (w *pendingWorker) work(ctx context.Context, job *river.Job[pendingArgs]) error {
	var report PendingReport
	if w.cfg.Resolver != nil {
		report.Resolved, report.ResolverErr = w.resolvePending(ctx, job.Queue)
	}
	if err := w.report(ctx, report); err != nil {
		return tryAgain(ctx, errors.Join(err, report.ResolverErr))
	}
	return report.ResolverErr
}

// report completes the report with what is still pending, and makes it.
func (w *pendingWorker) report(ctx context.Context, r PendingReport) error {
	summary, err := w.cfg.Guard.PendingSummary(ctx)
	if err != nil {
		return err
	}
	r.Count, r.Oldest = summary.Count, summary.Oldest
	if !r.Oldest.IsZero() {
		r.Age = max(0, time.Since(r.Oldest))
	}
	if r.Orders, err = w.cfg.Guard.Pending(ctx, sqlguard.PendingQuery{Most: mostOrders}); err != nil {
		return err
	}
	output := storedReport{r.Count, r.Oldest, r.Age, len(r.Resolved.Resolved), len(r.Resolved.Refused)}
	if err := river.RecordOutput(ctx, output); err != nil || w.cfg.OnPending == nil {
		return err
	}
	return w.cfg.OnPending(ctx, r)
}
