package orders

import (
	"bytes"
	"encoding/json"
	"time"
)

// A Record is gateway.OrderRecord, which this package cannot import: a struct with exactly these fields, where O is
// gateway.Outcome and Q is gateway.InvoiceRequest. The functions of this file translate between it and a [Row], for
// every guard.
type Record[O ~int8, Q Request[Q]] interface{ ~fields[O, Q] }

type fields[O ~int8, Q Request[Q]] = struct {
	Outcome    O                 `json:"outcome"`
	Request    Q                 `json:"request"`
	Invoice    json.RawMessage   `json:"invoice,omitzero"`
	Others     []json.RawMessage `json:"others,omitzero"`
	SentAt     time.Time         `json:"sentAt,omitzero"`
	CreatedAt  time.Time         `json:"createdAt,omitzero"`
	StatusCode int               `json:"statusCode,omitzero"`
	Body       []byte            `json:"body,omitzero"`
	Cause      string            `json:"cause,omitzero"`
}

// A Request is gateway.InvoiceRequest.
type Request[Q any] interface{ Equal(other Q) bool }

// The numbers of gateway.Outcome.
const (
	unknown = iota
	succeeded
	notSent
	rejected
)

// Causes that a record has without a failure of its attempt.
const (
	notReported = "the process did not record an outcome"
	notShown    = "a person found that the invoice exists, and did not record what it says"
)

// A Status has the fields of gateway.OrderStatus, which it converts to. S is gateway.OrderState, F is
// gateway.RecordedFinding, and R is gateway.OrderRecord.
type Status[S ~int8, F, R any] struct {
	OrderID  string
	Merchant string
	Gateway  string
	State    S
	Attempts int
	Attempt  string

	Begun     time.Time
	SentUntil time.Time
	Ended     time.Time
	Since     time.Time
	Created   time.Time

	Record  R
	Earlier []R

	Findings []F

	GuardReadAt time.Time
	ReadAt      time.Time
}

// A RecordedFinding is gateway.RecordedFinding.
type RecordedFinding interface {
	~struct {
		Exists   bool
		By, Note string
		At       time.Time
		Attempt  string
	}
}

// StatusOf returns an order as it was read: at now by the clock of the guard, and at readAt by the clock of the
// process.
func StatusOf[S ~int8, F RecordedFinding, R Record[O, Q], O ~int8, Q Request[Q]](
	row *Row[R], merchant, id string, now int64, readAt time.Time,
) Status[S, F, R] {
	state := row.State(now)
	status := Status[S, F, R]{
		OrderID: id, Merchant: merchant, Gateway: row.Gateway,
		State: S(state), Attempts: row.Attempts, Attempt: NameOf(row.Attempt),
		Begun: TimeAt(row.Begun), SentUntil: TimeAt(row.Lease), Ended: TimeAt(row.Ended), Created: TimeAt(row.Created),
		GuardReadAt: TimeAt(now), ReadAt: readAt.UTC(),
	}
	if known := Known(row, now); known != nil {
		status.Record = *known
	}
	earlier := row.Unsettled()
	switch state {
	case InFlight:
		earlier = row.Open
	case Unknown:
		status.Since = TimeAt(row.OpenSince)
		earlier = earlier[:len(earlier)-1]
	}
	for _, a := range earlier {
		status.Earlier = append(status.Earlier, a.Record)
	}
	for _, f := range row.Findings {
		status.Findings = append(status.Findings,
			F{Exists: f.Exists, By: f.By, Note: f.Note, At: TimeAt(f.At), Attempt: NameOf(f.Attempt)})
	}
	return status
}

// Known returns the record of an order: its invoice, or its last attempt; nil if it has none.
func Known[R Record[O, Q], O ~int8, Q Request[Q]](row *Row[R], now int64) *R {
	switch row.State(now) {
	case InFlight:
		return new(R(fields[O, Q]{Request: fields[O, Q](*row.Held).Request}))
	case Created:
		return new(invoiceOf(row))
	case Unknown:
		open := row.Unsettled()
		return &open[len(open)-1].Record
	default:
		return row.Last
	}
}

// invoiceOf returns the record of a created order.
func invoiceOf[R Record[O, Q], O ~int8, Q Request[Q]](row *Row[R]) R {
	r := fields[O, Q](row.Invoices[0].Record)
	r.CreatedAt = TimeAt(row.Created)
	for _, other := range row.Invoices[1:] {
		invoice := fields[O, Q](other.Record).Invoice
		if invoice == nil {
			invoice = json.RawMessage("null") // its text is unknown
		}
		r.Others = append(r.Others, invoice)
	}
	return R(r)
}

// Held returns the record of an attempt until it ends.
func Held[R Record[O, Q], O ~int8, Q Request[Q]](request Q, began time.Time) R {
	return R(fields[O, Q]{Request: request, SentAt: began.UTC(), Cause: notReported})
}

// Before returns the record of the attempt that precedes the newest one; nil if its outcome is known.
func Before[R any](row *Row[R]) *R {
	if len(row.Open) == 0 {
		return nil
	}
	return &row.Open[len(row.Open)-1].Record
}

// EndOf returns the transition for the record of an attempt. An outcome that proves nothing counts as unknown.
func EndOf[R Record[O, Q], O ~int8, Q Request[Q]](gateway string, attempt int64, record R) End[R] {
	r := fields[O, Q](record)
	end := End[R]{Gateway: gateway, Attempt: attempt}
	switch r.Outcome {
	case succeeded:
		end.Result, end.Bare = Success, len(r.Invoice) == 0
	case notSent, rejected:
		end.Result = Nothing
	default:
		end.Result, r.Outcome = Undecided, unknown
	}
	end.Record = R(r)
	return end
}

// Ended returns the record of an order, as it is after an attempt has ended.
func Ended[R Record[O, Q], O ~int8, Q Request[Q]](row *Row[R], end End[R], now int64) R {
	state := row.State(now)
	switch {
	case end.Result == Success && len(row.Invoices) > 0:
		return invoiceOf(row)
	case state == InFlight && len(row.Open) > 0: // another attempt has the lease
		return row.Open[len(row.Open)-1].Record
	case state == Free, state == InFlight:
		return end.Record
	default:
		return *Known(row, now)
	}
}

// ResolveOf returns the transition for a finding, with an invoice as JSON or none.
func ResolveOf[R Record[O, Q], O ~int8, Q Request[Q]](
	row *Row[R], finding Finding, invoice json.RawMessage,
) Resolve[R] {
	isSame := len(row.Invoices) > 0 && bytes.Equal(fields[O, Q](row.Invoices[0].Record).Invoice, invoice)
	return Resolve[R]{Finding: finding, Bare: len(invoice) == 0, Same: isSame, Record: found(row, invoice)}
}

// found returns the record of an invoice that a person found. If the attempts had different requests, the record has
// no request: nobody knows which one created the invoice.
func found[R Record[O, Q], O ~int8, Q Request[Q]](row *Row[R], invoice json.RawMessage) (none R) {
	attempts := row.Unsettled()
	if len(attempts) == 0 {
		attempts = row.Invoices
	}
	if len(attempts) == 0 {
		return none
	}
	r := fields[O, Q](attempts[len(attempts)-1].Record)
	last := r.Request
	for _, a := range attempts {
		if !fields[O, Q](a.Record).Request.Equal(last) {
			r.Request = fields[O, Q]{}.Request
		}
	}
	r.Outcome, r.Invoice, r.Body, r.StatusCode, r.Cause = succeeded, nil, nil, 0, notShown
	if len(invoice) > 0 {
		r.Invoice, r.Cause = bytes.Clone(invoice), ""
	}
	return R(r)
}
