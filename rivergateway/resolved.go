package rivergateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

const resolvedBy = "resolver:rivergateway" // of a finding that does not say by whom it is

// resolvePending asks the resolver about the pending orders, and has jobs in a queue tell
// the merchant.
func (j *Jobs) resolvePending(ctx context.Context, queue string) (sqlguard.ResolveReport, error) {
	ctx, cancel := context.WithTimeout(ctx, j.resolve)
	defer cancel()
	return j.cfg.Guard.ResolvePending(ctx, &tellingResolver{j.cfg, queue}, sqlguard.ResolveOptions{By: resolvedBy})
}

// A tellingResolver inserts a job for each order that its resolver has found out about,
// before the finding is recorded. The job waits for that, and then tells the merchant, also
// if this process dies between the two.
type tellingResolver struct {
	cfg   Config
	queue string
}

// Resolve implements [sqlguard.Resolver].
func (r *tellingResolver) Resolve(ctx context.Context, unknown []sqlguard.Order) ([]sqlguard.Finding, error) {
	passed := map[resolvedArgs]bool{}
	for _, o := range unknown {
		passed[argsOf(o)] = true
	}
	findings, err := r.cfg.Resolver.Resolve(ctx, unknown)
	if err != nil || r.cfg.OnInvoice == nil {
		return findings, err
	}
	var jobs []river.InsertManyParams
	for _, f := range findings {
		if args := argsOf(f.Order); passed[args] {
			delete(passed, args)
			opts := &river.InsertOpts{Queue: r.queue, UniqueOpts: river.UniqueOpts{ByArgs: true}}
			jobs = append(jobs, river.InsertManyParams{Args: args, InsertOpts: opts})
		}
	}
	if len(jobs) > 0 {
		_, err = river.ClientFromContext[pgx.Tx](ctx).InsertMany(ctx, jobs)
	}
	return findings, err
}

// resolvedArgs are an order that a resolver has found out about.
type resolvedArgs struct {
	OrderID  string `json:"orderId"`
	Merchant string `json:"merchant"`
	Attempts int    `json:"attempts"` // as it had them then
}

func argsOf(o sqlguard.Order) resolvedArgs { return resolvedArgs{o.ID, o.Merchant, o.Attempts} }

// Kind implements [river.JobArgs].
func (resolvedArgs) Kind() string { return "gateway_resolved" }

type resolvedWorker struct {
	river.WorkerDefaults[resolvedArgs]
	*Jobs
}

// Work implements [river.Worker].
func (w *resolvedWorker) Work(ctx context.Context, job *river.Job[resolvedArgs]) error {
	return storableError(w.work(ctx, job))
}

// work tells the merchant what became of an order. It sends nothing.
func (w *resolvedWorker) work(ctx context.Context, job *river.Job[resolvedArgs]) error {
	order, err := w.cfg.Guard.Order(ctx, job.Args.Merchant, job.Args.OrderID)
	if err != nil {
		return tryAgain(ctx, err)
	}
	if order.Attempts != job.Args.Attempts {
		return nil // it was sent again, and whoever has sent it is told; or it was pruned
	}
	waits, err := hasOpenJob(ctx, job.Args)
	if err != nil {
		return tryAgain(ctx, err)
	}
	if waits || order.State == sqlguard.StateUnknown {
		return river.JobSnooze(intervalAfter(time.Since(job.CreatedAt), nil))
	}
	r := InvoiceResult{JobID: job.ID, OrderID: order.ID, Merchant: order.Merchant, Outcome: gateway.OutcomeNotSent}
	if order.State == sqlguard.StateCreated {
		r.Outcome, r.Invoice = gateway.OutcomeSucceeded, &gateway.Invoice{OrderID: order.ID, Raw: order.Record.Invoice, Replayed: true, CreatedAt: order.Created}
	} else {
		r.Reason = "rivergateway: no invoice exists, as was found by " + order.Resolution.By
	}
	return end(ctx, w.Jobs, job, jobEnd{output: r.stored(job.JobRow), callback: w.tell(r)})
}

// hasOpenJob reports whether an order has a job of [InsertInvoiceTx] that has not ended. What
// that tells would come later and be older.
func hasOpenJob(ctx context.Context, args resolvedArgs) (bool, error) {
	order, err := json.Marshal(map[string]string{"orderId": args.OrderID, "merchant": args.Merchant})
	if err != nil {
		return false, err
	}
	open := []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}
	jobs, err := river.ClientFromContext[pgx.Tx](ctx).JobList(ctx, river.NewJobListParams().First(1).
		Kinds(invoiceArgs{}.Kind()).States(open...).Where("args @> @order::jsonb", river.NamedArgs{"order": string(order)}))
	return err == nil && len(jobs.Jobs) > 0, err
}
