package rivergateway

import (
	"context"
	"encoding/json"
	"errors"
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
// the invoice is sent if it commits, and only then. An order has one job: if there is one,
// unless it was cancelled or discarded, that is returned with UniqueSkippedAsDuplicate,
// and the error matches [ErrOtherRequest] if its request is not [gateway.InvoiceRequest.Equal]. For an invalid request it returns
// the error of [gateway.InvoiceRequest.Validate]. The key is not stored.
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
}

// A storedInvoice is an InvoiceResult as the output of a job. PostgreSQL would change the spelling of JSON, or refuse it.
type storedInvoice struct {
	Result string `json:"result"` // in JSON
	Raw    []byte `json:"raw"`    // of the invoice
}

func (r InvoiceResult) stored() storedInvoice {
	var raw []byte
	if r.Invoice != nil {
		invoice := *r.Invoice
		raw, invoice.Raw, r.Invoice = invoice.Raw, nil, &invoice
	}
	text, _ := json.Marshal(r) // if it fails, as for a year of five digits, the next run asks the guard again
	return storedInvoice{string(text), raw}
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
	return r, true
}

type invoiceWorker struct {
	river.WorkerDefaults[invoiceArgs]
	*Jobs
}

// Timeout implements [river.Worker].
func (w *invoiceWorker) Timeout(*river.Job[invoiceArgs]) time.Duration { return w.timeout }

// Work implements [river.Worker].
func (w *invoiceWorker) Work(ctx context.Context, job *river.Job[invoiceArgs]) error {
	if before, ok := undelivered(job.JobRow); ok {
		return w.end(ctx, job, before, errors.New(before.Reason))
	}
	invoice, outcome, err := w.create(ctx, job.Args)
	switch {
	case errors.Is(err, gateway.ErrOrderInFlight):
		return river.JobSnooze(w.inFlight)
	case (outcome == gateway.OutcomeNotSent || gateway.SafeToRetry(err)) && !isLastAttempt(ctx, job.JobRow):
		return tryAgain(ctx, err)
	}
	result := InvoiceResult{JobID: job.ID, OrderID: job.Args.OrderID, Merchant: job.Args.Merchant, Outcome: outcome, Invoice: invoice}
	if err != nil {
		result.Reason = err.Error()
	}
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		result.StatusCode, result.Body, result.SentAt = unknown.StatusCode, unknown.Body, unknown.SentAt
	}
	return w.end(ctx, job, result, err)
}

// create creates the invoice. If the call could not be made, the outcome is not unknown: nothing was
// sent.
func (w *invoiceWorker) create(ctx context.Context, args invoiceArgs) (*gateway.Invoice, gateway.Outcome, error) {
	request, err1 := args.request()
	opts, err2 := w.callOptions(ctx, args.Merchant)
	if err := errors.Join(err1, err2); err != nil {
		return nil, gateway.OutcomeNotSent, err
	}
	invoice, err := w.client.CreateInvoice(ctx, request, opts...)
	return invoice, gateway.OutcomeOf(err), err
}

func (w *invoiceWorker) end(ctx context.Context, job *river.Job[invoiceArgs], r InvoiceResult, cause error) error {
	e := jobEnd{result: r.stored()}
	if w.cfg.OnInvoice != nil {
		e.callback = func(ctx context.Context, tx pgx.Tx) error { return w.cfg.OnInvoice(ctx, tx, r) }
	}
	if r.Outcome != gateway.OutcomeSucceeded {
		e.cancel = cause
	}
	return end(ctx, w.Jobs, job, e)
}
