package rivergateway

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A PendingReport is about the orders that a person must look up, for an alarm.
type PendingReport struct {
	sqlguard.PendingSummary                       // how many there are, and since when
	Orders                  []gateway.OrderStatus // the first 100 at most, see [sqlguard.Guard.Pending]
}

const mostOrders = 100 // of a report: after a long failure of the service there may be very many

type pendingArgs struct{}

// Kind implements [river.JobArgs].
func (pendingArgs) Kind() string { return "gateway_pending" }

// PeriodicPending returns the periodic job that calls OnPending of [Config], for PeriodicJobs
// of [river.Config]. It also runs when an elected client starts. Each job stores the summary
// as its output. The interval is at least a second.
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
		return tryAgain(ctx, err)
	}
	return nil
}

func (w *pendingWorker) report(ctx context.Context) error {
	summary, err := w.cfg.Guard.PendingSummary(ctx)
	if err != nil {
		return err
	}
	orders, err := w.cfg.Guard.Pending(ctx, gateway.PendingQuery{Most: mostOrders})
	if err != nil {
		return err
	}
	if err := river.RecordOutput(ctx, summary); err != nil || w.cfg.OnPending == nil {
		return err
	}
	return w.cfg.OnPending(ctx, PendingReport{summary, orders})
}
