package rivergateway

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
)

const (
	minInterval   = 10 * time.Second
	maxInterval   = 5 * time.Minute
	maxRetryAfter = time.Hour

	// refusedFor is how old a job is at least when a refusal of the inquiry ends it.
	refusedFor = 24 * time.Hour
)

type withdrawalArgs struct {
	WithdrawRequestID string `json:"withdrawRequestId" river:"unique"`
	Merchant          string `json:"merchant" river:"unique"`
}

// Kind implements [river.JobArgs].
func (withdrawalArgs) Kind() string { return "gateway_withdrawal" }

// InsertWithdrawalTx inserts the job that waits for a withdrawal, in the merchant's
// transaction. A withdrawal has one job, as an order has with [InsertInvoiceTx]. The
// identifier is not checked here: the first run cancels the job of an invalid one. It
// returns the error of River.
func InsertWithdrawalTx(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, withdrawRequestID string, o InsertOptions) (*rivertype.JobInsertResult, error) {
	o.Job.UniqueOpts = river.UniqueOpts{ByArgs: true}
	return client.InsertTx(ctx, tx, withdrawalArgs{withdrawRequestID, o.Merchant}, &o.Job)
}

// A WithdrawalResult is how the wait for a withdrawal ends.
type WithdrawalResult struct {
	JobID             int64  // of River
	WithdrawRequestID string // as it was inserted
	Merchant          string // as it was inserted; empty for the client's own

	// Status is COMPLETED, FAILED, or one of [Config.Final]. It is
	// empty if the end is not known: the service has refused the inquiry at the engine's last
	// attempt, or the identifier is invalid.
	Status gateway.WithdrawalStatus

	Withdrawal *gateway.Withdrawal // nil if a part of it could not be read
	Reason     string              // then: the error, in one line
}

// A storedWithdrawal is a WithdrawalResult as the output of a job.
type storedWithdrawal struct {
	Status     gateway.WithdrawalStatus `json:"status"`
	Withdrawal *gateway.Withdrawal      `json:"withdrawal"`
	Reason     string                   `json:"reason,omitempty"`
}

type withdrawalWorker struct {
	river.WorkerDefaults[withdrawalArgs]
	*Jobs
}

// Timeout implements [river.Worker].
func (w *withdrawalWorker) Timeout(*river.Job[withdrawalArgs]) time.Duration { return w.timeout }

// Work implements [river.Worker]. It makes one inquiry.
func (w *withdrawalWorker) Work(ctx context.Context, job *river.Job[withdrawalArgs]) error {
	return storableError(w.work(ctx, job))
}

func (w *withdrawalWorker) work(ctx context.Context, job *river.Job[withdrawalArgs]) error {
	opts, err := w.callOptions(ctx, job.Args.Merchant)
	if err != nil && !isLastAttempt(ctx, job.JobRow) {
		return tryAgain(ctx, err)
	}
	var seen *gateway.Withdrawal
	over := true
	if err == nil {
		seen, over, err = w.client.PollWithdrawal(ctx, job.Args.WithdrawRequestID, gateway.WaitOptions{Final: w.cfg.Final}, opts...)
	}
	if !over && !(isRefusal(err) && time.Since(job.CreatedAt) >= refusedFor) {
		return river.JobSnooze(intervalAfter(time.Since(job.CreatedAt), err))
	}
	result := WithdrawalResult{JobID: job.ID, WithdrawRequestID: job.Args.WithdrawRequestID, Merchant: job.Args.Merchant}
	result.read(seen, err)
	e := jobEnd{output: storedWithdrawal{result.Status, result.Withdrawal, result.Reason}}
	if w.cfg.OnWithdrawal != nil {
		e.callback = func(ctx context.Context, tx pgx.Tx) error { return w.cfg.OnWithdrawal(ctx, tx, result) }
	}
	switch {
	case result.Status != "":
	case !isLastAttempt(ctx, job.JobRow) && !refusesIdentifier(err):
		return tryAgain(ctx, err)
	default:
		e.cancel = err
	}
	return end(ctx, w.Jobs, job, e)
}

// read reads how a wait has ended, from what a poll has returned.
func (r *WithdrawalResult) read(seen *gateway.Withdrawal, err error) {
	if ended, ok := errors.AsType[*gateway.WaitError](err); ok {
		seen, err = ended.Last, ended.Err
		r.Status = ended.Status
	}
	if seen != nil {
		r.Status, r.Withdrawal = seen.Status, seen
		return
	}
	r.Reason = err.Error()
}

// isRefusal reports whether the service itself refuses the inquiry, and not an intermediary.
func isRefusal(err error) bool {
	ended, ok := errors.AsType[*gateway.WaitError](err)
	if !ok {
		return false
	}
	_, refused := errors.AsType[*gateway.APIError](ended)
	return refused
}

func refusesIdentifier(err error) bool {
	refusal, ok := errors.AsType[*gateway.ArgumentError](err)
	return ok && refusal.Name == "withdrawRequestId"
}

// intervalAfter is the time until the next inquiry: a quarter of how long the job has
// waited, within bounds, or longer where the service asks for it.
func intervalAfter(waited time.Duration, err error) time.Duration {
	interval := min(max(waited/4, minInterval), maxInterval)
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
		interval = max(interval, min(refusal.RetryAfter, maxRetryAfter))
	}
	return interval
}
