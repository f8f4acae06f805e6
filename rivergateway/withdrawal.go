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

	// refusedFor is the least age of a job that a refusal of the inquiry ends.
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
// identifier is not checked here: the first run cancels the job of an invalid one.
// InsertWithdrawalTx returns the error of River.
func InsertWithdrawalTx(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, withdrawRequestID string, o InsertOptions) (*rivertype.JobInsertResult, error) {
	o.Job.UniqueOpts = river.UniqueOpts{ByArgs: true}
	return client.InsertTx(ctx, tx, withdrawalArgs{withdrawRequestID, o.Merchant}, &o.Job)
}

// A WithdrawalResult is the end of the wait for a withdrawal.
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

type withdrawalWorker struct {
	river.WorkerDefaults[withdrawalArgs]
	*Jobs
}

// Timeout implements [river.Worker].
func (w *withdrawalWorker) Timeout(*river.Job[withdrawalArgs]) time.Duration { return w.timeout }

// Work implements [river.Worker]. It makes one inquiry.
func (w *withdrawalWorker) Work(ctx context.Context, job *river.Job[withdrawalArgs]) error {
	var seen *gateway.Withdrawal
	over := true
	opts, err := w.callOptions(ctx, job.Args.Merchant)
	if err == nil {
		seen, over, err = w.client.PollWithdrawal(ctx, job.Args.WithdrawRequestID, gateway.WaitOptions{Final: w.cfg.Final}, opts...)
	}
	ended, _ := errors.AsType[*gateway.WaitError](err)
	_, refused := errors.AsType[*gateway.APIError](err)
	waited := time.Since(job.CreatedAt)
	if !over && !(ended != nil && refused && waited >= refusedFor) { // an intermediary may have refused if the error is no WaitError
		return river.JobSnooze(intervalAfter(waited, err))
	}
	result := WithdrawalResult{JobID: job.ID, WithdrawRequestID: job.Args.WithdrawRequestID, Merchant: job.Args.Merchant}
	switch {
	case err == nil:
		result.Status, result.Withdrawal = seen.Status, seen
	case ended != nil:
		result.Status, result.Withdrawal = ended.Status, ended.Last
	}
	if result.Withdrawal == nil {
		result.Reason = err.Error()
	}
	e := jobEnd{result: result.Status}
	if w.cfg.OnWithdrawal != nil {
		e.callback = func(ctx context.Context, tx pgx.Tx) error { return w.cfg.OnWithdrawal(ctx, tx, result) }
	}
	if result.Status == "" {
		e.cancel = err
		wrong, _ := errors.AsType[*gateway.ArgumentError](err)
		if !isLastAttempt(ctx, job.JobRow) && (wrong == nil || wrong.Name != "withdrawRequestId") {
			return tryAgain(ctx, err)
		}
	}
	return end(ctx, w.Jobs, job, e)
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
