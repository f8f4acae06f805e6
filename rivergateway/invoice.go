package rivergateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// ErrOtherRequest matches the error of [InsertInvoiceTx] for an order that has a job with
// another request.
var ErrOtherRequest = errors.New("rivergateway: the order has a job with another request")

// invoiceArgs are a [gateway.InvoiceRequest] in texts, so that no digit of an amount
// depends on how JSON is decoded.
type invoiceArgs struct {
	OrderID      string `json:"orderId" river:"unique"`
	Merchant     string `json:"merchant" river:"unique"`
	Price        string `json:"price"`
	Amount       string `json:"amount"`
	BaseCurrency string `json:"baseCurrency,omitempty"`
	CoinSymbol   string `json:"coinSymbol,omitempty"`
	NetworkName  string `json:"networkName,omitempty"`
}

// Kind implements [river.JobArgs].
func (invoiceArgs) Kind() string { return "gateway_invoice" }

func (a invoiceArgs) request() (gateway.InvoiceRequest, error) {
	price, err1 := decimal.NewFromString(a.Price)
	amount, err2 := decimal.NewFromString(a.Amount)
	return gateway.InvoiceRequest{
		OrderID: a.OrderID, Price: price, Amount: amount,
		BaseCurrency: a.BaseCurrency, CoinSymbol: a.CoinSymbol, NetworkName: a.NetworkName,
	}, errors.Join(err1, err2)
}

// digits returns the text of a decimal with all its digits, trailing zeros included.
func digits(d decimal.Decimal) string { return d.StringFixed(max(0, -d.Exponent())) }

// InsertInvoiceTx inserts the job that creates an invoice, in the merchant's transaction:
// the invoice is sent if it commits, and only then. The key is not stored.
//
// An order has one job. If there is one that was neither cancelled nor discarded, InsertInvoiceTx returns it with
// UniqueSkippedAsDuplicate, and sends its request. The error matches [ErrOtherRequest] if that request differs by more
// than an amount of the same coin, which follows the rate. For an invalid request InsertInvoiceTx returns the error of
// [gateway.InvoiceRequest.Validate].
func InsertInvoiceTx(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, r gateway.InvoiceRequest, o InsertOptions) (*rivertype.JobInsertResult, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	args := invoiceArgs{
		OrderID: r.OrderID, Merchant: o.Merchant, Price: digits(r.Price), Amount: digits(r.Amount),
		BaseCurrency: r.BaseCurrency, CoinSymbol: r.CoinSymbol, NetworkName: r.NetworkName,
	}
	o.Job.UniqueOpts = river.UniqueOpts{ByArgs: true}
	inserted, err := client.InsertTx(ctx, tx, args, &o.Job)
	if err != nil {
		return nil, err
	}
	var first invoiceArgs
	err = json.Unmarshal(inserted.Job.EncodedArgs, &first)
	request, invalid := first.request()
	if r.CoinSymbol != "" && r.CoinSymbol == request.CoinSymbol {
		r.Amount = request.Amount
	}
	if err := errors.Join(err, invalid); err != nil || !request.Equal(r) {
		return inserted, errors.Join(ErrOtherRequest, err)
	}
	return inserted, nil
}

// An InvoiceResult is the outcome of an order when its job ends.
type InvoiceResult struct {
	JobID    int64           // of River
	OrderID  string          // as it was inserted
	Merchant string          // as it was inserted; empty for the client's own
	Outcome  gateway.Outcome // of the order: an invoice that exists is OutcomeSucceeded, whoever created it

	// Invoice is the invoice that was created, also by a run that died or by other code. It
	// is nil for other outcomes; its Raw is nil if the guard has no response.
	Invoice *gateway.Invoice

	Reason     string    // the error, in one line
	StatusCode int       // of the response, if the outcome is unknown and one came
	Body       []byte    // at most 8 KiB of that response
	SentAt     time.Time // when the invoice with that unknown outcome was sent; zero if that is not known

	askedAt time.Time // when the run asked the guard, by the guard's clock; zero if the guard failed
}

// A storedInvoice is an InvoiceResult as the output of a job. PostgreSQL would change the spelling of JSON, or refuse it.
type storedInvoice struct {
	Result  string    `json:"result"` // in JSON
	Raw     []byte    `json:"raw"`    // of the invoice
	AskedAt time.Time `json:"askedAt"`
}

func (r InvoiceResult) stored() storedInvoice {
	var raw []byte
	if r.Invoice != nil {
		invoice := *r.Invoice
		raw, invoice.Raw, r.Invoice = invoice.Raw, nil, &invoice
	}
	text, _ := json.Marshal(r) // if it fails, as for a year of five digits, the next run asks the guard again
	return storedInvoice{string(text), raw, r.askedAt}
}

// undelivered returns the result that an earlier run has stored because OnInvoice failed, and false if there is none.
func undelivered(job *rivertype.JobRow) (r InvoiceResult, ok bool) {
	var stored output[storedInvoice]
	if json.Unmarshal(job.Output(), &stored) != nil || stored.Delivered || json.Unmarshal([]byte(stored.Result.Result), &r) != nil {
		return InvoiceResult{}, false
	}
	if r.Invoice != nil {
		r.Invoice.Raw = stored.Result.Raw
	}
	r.askedAt = stored.Result.AskedAt
	return r, true
}

// isTrueOf reports whether a result that an earlier run has stored is still true of its order.
func (r InvoiceResult) isTrueOf(order gateway.OrderStatus) bool {
	switch {
	case order.State == gateway.OrderCreated: // perhaps by other code, which has the invoice
		return false
	case r.Outcome == gateway.OutcomeSucceeded: // which the guard could not record
		return true
	case order.State == gateway.OrderUnknown:
		return false
	default:
		isAbsent := func(f gateway.RecordedFinding) bool { return !f.Exists && f.At.After(r.askedAt) }
		return r.Outcome != gateway.OutcomeUnknown || !slices.ContainsFunc(order.Findings, isAbsent)
	}
}

type invoiceWorker struct {
	river.WorkerDefaults[invoiceArgs]
	*Jobs
}

// Timeout implements [river.Worker].
func (w *invoiceWorker) Timeout(*river.Job[invoiceArgs]) time.Duration { return w.timeout }

// Work implements [river.Worker]. It first asks the guard: the result that an earlier run has stored can be old.
func (w *invoiceWorker) Work(ctx context.Context, job *river.Job[invoiceArgs]) error {
	before, hasBefore := undelivered(job.JobRow)
	order, err := w.cfg.Guard.Order(ctx, job.Args.Merchant, job.Args.OrderID)
	switch {
	case err != nil && hasBefore:
		return tryAgain(ctx, err)
	case order.State == gateway.OrderInFlight:
		return river.JobSnooze(w.inFlight)
	case hasBefore && before.isTrueOf(order):
		return w.end(ctx, job, before)
	}
	invoice, outcome, err := w.create(ctx, job.Args)
	switch {
	case errors.Is(err, gateway.ErrOrderInFlight) || errors.Is(err, gateway.ErrShutdown):
		return river.JobSnooze(w.inFlight)
	case mayPass(outcome, err) && !isLastAttempt(ctx, job.JobRow):
		return tryAgain(ctx, err)
	case outcome == gateway.OutcomeNotSent && order.State != gateway.OrderFree:
		outcome = gateway.OutcomeUnknown // this run could not call, and an earlier one has
	}
	result := InvoiceResult{
		JobID: job.ID, OrderID: job.Args.OrderID, Merchant: job.Args.Merchant, Outcome: outcome, Invoice: invoice, askedAt: order.GuardReadAt,
	}
	if err != nil {
		result.Reason = err.Error()
	}
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		result.StatusCode, result.Body, result.SentAt = unknown.StatusCode, unknown.Body, unknown.SentAt
	}
	return w.end(ctx, job, result)
}

// create creates the invoice, and waits for its outcome, even if the Timeout of an http.Client ends the first call. If
// that call could not be made, the outcome is not unknown: nothing was sent.
func (w *invoiceWorker) create(ctx context.Context, args invoiceArgs) (*gateway.Invoice, gateway.Outcome, error) {
	request, err1 := args.request()
	opts, err2 := w.callOptions(ctx, args.Merchant)
	if err := errors.Join(err1, err2); err != nil {
		return nil, gateway.OutcomeNotSent, err
	}
	ctx, cancel := withoutDeadline(ctx)
	defer cancel()
	invoice, err := w.client.CreateInvoice(ctx, request, opts...)
	isSent := errors.Is(err, gateway.ErrStillSending)
	for isSent && (errors.Is(err, gateway.ErrStillSending) || errors.Is(err, gateway.ErrOrderInFlight)) {
		invoice, err = w.client.CreateInvoice(context.WithoutCancel(ctx), request, opts...)
	}
	return invoice, gateway.OutcomeOf(err), err
}

// withoutDeadline returns a context that is cancelled with ctx, but has no deadline: River's would end the wait for an
// invoice that is being sent, and then the process, as Stop waits for runs only.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	unbounded, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if ctx.Err() == context.Canceled {
			cancel()
		}
	})
	return unbounded, func() { stop(); cancel() }
}

// mayPass reports whether a later run can end better than with err.
func mayPass(outcome gateway.Outcome, err error) bool {
	return outcome == gateway.OutcomeNotSent || gateway.SafeToRetry(err) || outcome == gateway.OutcomeRejected && isAboutSetUp(err)
}

// isAboutSetUp reports whether a refusal is not about the order, but about the credentials, the base URL or a proxy.
func isAboutSetUp(err error) bool {
	refusal, ok := errors.AsType[*gateway.APIError](err)
	return errors.Is(err, gateway.ErrRedirect) || ok && slices.Contains([]int{401, 402, 403, 404, 405, 407}, refusal.StatusCode)
}

func (w *invoiceWorker) end(ctx context.Context, job *river.Job[invoiceArgs], r InvoiceResult) error {
	e := jobEnd{result: r.stored()}
	if w.cfg.OnInvoice != nil {
		e.callback = func(ctx context.Context, tx pgx.Tx) error { return w.cfg.OnInvoice(ctx, tx, r) }
	}
	if r.Outcome != gateway.OutcomeSucceeded {
		e.cancel = errors.New(r.Reason)
	}
	return end(ctx, w.Jobs, job, e)
}
