// Package rivergateway makes the invoices and the waits for withdrawals of the
// [gateway.Client] durable jobs of River, https://riverqueue.com, in PostgreSQL.
//
// River keeps a job until the job has ended, whichever process dies. After a lost response
// River does not know that an invoice was sent. The [sqlguard.Guard] does, which every [Jobs]
// has. Together they forget no order and send none twice.
//
// [InsertInvoiceTx] puts the job into the transaction in which the merchant stores the
// order. A worker creates the invoice, and OnInvoice of [Config] is called with the
// result in the transaction that ends the job, so its writes happen once.
//
// A job whose context is cancelled before anything was sent, as by StopAndCancel, goes
// back to the queue. While an invoice is being sent Stop and StopAndCancel wait for its outcome, for at most
// InvoiceTimeout of [gateway.RetryPolicy], and 10 seconds each for the guard and for OnInvoice. No deadline cuts it.
//
// The README says what each outcome does with a job, and what to do after a crash.
package rivergateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// Config is the configuration of [New]. Guard and Pool are required.
type Config struct {
	// Guard prevents a second invoice for an order, in whichever process a job
	// runs. All processes must use the same table.
	Guard *sqlguard.Guard

	// Pool is the database of River, in which the jobs end.
	Pool *pgxpool.Pool

	// BaseURL, and what APIKey returns, are the arguments of [gateway.New]. The key is behind a function, so that
	// nothing that prints a Config shows it. If BaseURL is empty and APIKey nil, New reads the environment, see
	// [gateway.FromEnv]; with a BaseURL, APIKey is nil for a key that Options set.
	BaseURL string
	APIKey  func() string

	// Options are options of the client. Its order guard is Guard, whatever they
	// contain.
	Options []gateway.Option

	// Merchant returns the options of a call for a merchant, such as
	// [gateway.WithAPIKey]. It is called for the jobs that name one. Guard must then
	// have [sqlguard.WithMerchants], and every job name one.
	Merchant func(ctx context.Context, merchant string) ([]gateway.CallOption, error)

	// OnInvoice is called with the result of an invoice, in the transaction that ends
	// the job. If it returns an error, nothing is committed, and it is called again. It
	// has 10 seconds, also when the engine is being stopped. Nil calls nothing.
	OnInvoice func(ctx context.Context, tx pgx.Tx, result InvoiceResult) error

	// OnWithdrawal is called in the same way with the result of a wait for a withdrawal.
	OnWithdrawal func(ctx context.Context, tx pgx.Tx, result WithdrawalResult) error

	// Final are further statuses that end a wait for a withdrawal, see [gateway.WaitOptions].
	Final []gateway.WithdrawalStatus

	// RunTimeout is how long River considers a run of a job alive; 0 means 9 minutes. River rescues no job of a dead
	// process before that, whatever its RescueStuckJobsAfter. A run that takes longer, because it waits for the outcome
	// of its invoice, is not cut.
	RunTimeout time.Duration

	// OnPending is called by the jobs of [PeriodicPending]. If it returns an error, the
	// job fails, and does not run again. Nil calls nothing.
	OnPending func(ctx context.Context, report PendingReport) error
}

// Jobs are the workers of this package, see [New]. They are safe for concurrent use.
type Jobs struct {
	cfg      Config
	client   *gateway.Client
	timeout  time.Duration // of a run
	inFlight time.Duration // until the next run, while another call for the order is in flight
}

const (
	runTimeout     = 9 * time.Minute  // more than a CreateInvoice waits for another call and then takes, by default and with WithIdempotentOrders
	endTimeout     = 10 * time.Second // of the transaction that ends a job
	inFlightSnooze = 15 * time.Second
)

// New returns workers with a client that has the order guard of the configuration.
// There is no other way to make workers: with a guard in memory, two processes would send
// two invoices. The error for an invalid configuration is a [*gateway.ArgumentError].
func New(cfg Config) (*Jobs, error) {
	switch {
	case cfg.Guard == nil:
		return nil, badArgument("Guard", "is required: a guard in memory does not know of other processes")
	case cfg.Pool == nil:
		return nil, badArgument("Pool", "is required")
	case slices.Contains(cfg.Final, gateway.WithdrawalPending) || slices.Contains(cfg.Final, ""):
		return nil, badArgument("Final", "must have neither PENDING nor an empty status")
	case cfg.RunTimeout < 0:
		return nil, badArgument("RunTimeout", "must not be negative")
	}
	client, err := cfg.client()
	if err != nil {
		return nil, err
	}
	return &Jobs{cfg: cfg, client: client, timeout: cmp.Or(cfg.RunTimeout, runTimeout), inFlight: inFlightSnooze}, nil
}

func (cfg Config) client() (*gateway.Client, error) {
	opts := append(slices.Clone(cfg.Options), gateway.WithOrderGuard(cfg.Guard)) // the last one wins
	switch {
	case cfg.BaseURL == "" && cfg.APIKey == nil:
		return gateway.FromEnv(opts...)
	case cfg.APIKey == nil:
		return gateway.New(cfg.BaseURL, "", opts...)
	default:
		return gateway.New(cfg.BaseURL, cfg.APIKey(), opts...)
	}
}

func badArgument(name, reason string) error {
	return &gateway.ArgumentError{Operation: "rivergateway", Name: name, Reason: reason}
}

// AddWorkers registers the workers, and returns the error of [river.AddWorkerSafely].
func (j *Jobs) AddWorkers(workers *river.Workers) error {
	return errors.Join(
		river.AddWorkerSafely(workers, &invoiceWorker{Jobs: j}),
		river.AddWorkerSafely(workers, &withdrawalWorker{Jobs: j}),
		river.AddWorkerSafely(workers, &pendingWorker{Jobs: j}),
	)
}

// Shutdown waits until every outcome that the guard could not record at once is recorded, see [gateway.Client.Shutdown].
// Call it after Stop of River, and before the program ends. A job that runs later is left to another process.
func (j *Jobs) Shutdown(ctx context.Context) error { return j.client.Shutdown(ctx) }

// InsertOptions are options of [InsertInvoiceTx] and [InsertWithdrawalTx]. The zero value
// means the merchant that the client is for, and the defaults of River.
type InsertOptions struct {
	Merchant string           // whose order or withdrawal it is; empty for the client's own
	Job      river.InsertOpts // options of River; UniqueOpts is overwritten
}

// callOptions returns the options of a call for a merchant.
func (j *Jobs) callOptions(ctx context.Context, merchant string) ([]gateway.CallOption, error) {
	if merchant == "" {
		return nil, nil
	}
	if j.cfg.Merchant == nil {
		return nil, badArgument("Merchant", "is required for jobs that name a merchant")
	}
	opts, err := j.cfg.Merchant(ctx, merchant)
	if err != nil {
		return nil, fmt.Errorf("rivergateway: merchant %q: %w", merchant, err)
	}
	return append(slices.Clip(opts), gateway.WithMerchant(merchant)), nil
}

// tryAgain is the error of a run after which the engine runs the job again. River counts
// no attempt if the run was interrupted.
func tryAgain(ctx context.Context, err error) error {
	if ctx.Err() == context.Canceled && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w (%w)", err, context.Canceled)
	}
	return textError{err}
}

// A textError is an error, perhaps of the merchant's code, in a form that PostgreSQL can store: with U+FFFD for each NUL.
// Otherwise none of the jobs would end that the engine ends together with this one.
type textError struct{ error }

func (e textError) Error() string { return strings.ReplaceAll(e.error.Error(), "\x00", "\ufffd") }

func (e textError) Unwrap() error { return e.error }

// isLastAttempt reports whether the engine does not run a job again after an error.
func isLastAttempt(ctx context.Context, job *rivertype.JobRow) bool {
	return job.Attempt >= job.MaxAttempts && ctx.Err() != context.Canceled
}

// A jobEnd says how to end a job that does not run again.
type jobEnd struct {
	result   any                                        // stored with the job
	callback func(ctx context.Context, tx pgx.Tx) error // OnInvoice or OnWithdrawal; nil for none
	cancel   error                                      // why the job is cancelled; nil if it is completed
}

// An output is the text that the engine stores with a job.
type output[T any] struct {
	Delivered bool `json:"delivered"` // whether the merchant's function had the result, in a transaction that has committed
	Result    T    `json:"result"`
}

// end calls the merchant's function, stores the output and ends the job in one
// transaction, so that it happens once: a job that is completed, or whose
// cancellation was requested, does not run again, even if this process dies. If the function fails,
// also by a panic, the engine stores the result with the job, and the next run calls the
// function with it. If the COMMIT fails, it may have had its effect: the engine stores nothing, and the next run
// asks the guard.
func end[T river.JobArgs](ctx context.Context, j *Jobs, job *river.Job[T], e jobEnd) error {
	called := false
	defer func() {
		if !called {
			_ = river.RecordOutput(ctx, output[any]{false, e.result}) // fails outside of a worker and over 32 MB only
		}
	}()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := pgx.BeginFunc(bounded, j.cfg.Pool, func(tx pgx.Tx) error {
		err := endTx(bounded, tx, job, e)
		called = err == nil
		return err
	})
	switch {
	case err != nil:
		return tryAgain(ctx, err)
	case e.cancel != nil:
		return river.JobCancel(textError{e.cancel})
	}
	return nil
}

func endTx[T river.JobArgs](ctx context.Context, tx pgx.Tx, job *river.Job[T], e jobEnd) error {
	client := river.ClientFromContext[pgx.Tx](ctx)
	row, err := client.JobUpdateTx(ctx, tx, job.ID, &river.JobUpdateParams{Output: output[any]{true, e.result}}) // locks it
	if err != nil {
		return err
	}
	if row.State != rivertype.JobStateRunning || !row.AttemptedAt.Equal(*job.AttemptedAt) {
		return errors.New("rivergateway: the job has been taken over by another run")
	}
	if e.callback != nil {
		if err := e.callback(ctx, tx); err != nil {
			return err
		}
	}
	if e.cancel != nil {
		_, err = client.JobCancelTx(ctx, tx, job.ID)
	} else {
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
	}
	return err
}
