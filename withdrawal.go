package gateway

import (
	"context"

	"github.com/shopspring/decimal"
)

// A WithdrawalStatus is where a withdrawal stands: INTERFACE.md, "Withdrawal
// status". A text that is not listed there is kept as it came.
type WithdrawalStatus string

const (
	// WithdrawalPending is a withdrawal that is ongoing or awaits further actions.
	WithdrawalPending WithdrawalStatus = "PENDING"
	// WithdrawalFailed is a withdrawal that met an issue and could not be completed.
	WithdrawalFailed WithdrawalStatus = "FAILED"
	// WithdrawalCompleted is a withdrawal that has been successfully finalized.
	WithdrawalCompleted WithdrawalStatus = "COMPLETED"
)

// Known reports whether s is one of the three statuses of the interface,
// spelled exactly so.
func (s WithdrawalStatus) Known() bool {
	return s == WithdrawalPending || s.Terminal()
}

// Terminal reports whether s is FAILED or COMPLETED. A status that is not
// known is never terminal.
func (s WithdrawalStatus) Terminal() bool {
	return s == WithdrawalFailed || s == WithdrawalCompleted
}

// A Withdrawal is a request to withdraw: INTERFACE.md, "Withdrawal inquiry
// result".
type Withdrawal struct {
	Status            WithdrawalStatus
	Destination       string
	Amount            decimal.Decimal // in units of the coin
	Fee               decimal.Decimal // in units of the coin
	Coin              string
	Network           string
	WithdrawRequestID string
}

var withdrawalFields = fields[Withdrawal]{
	required("status", readStatus, func(w *Withdrawal) *WithdrawalStatus { return &w.Status }),
	required("destination", (*decoder).text, func(w *Withdrawal) *string { return &w.Destination }),
	required("amount", (*decoder).amount, func(w *Withdrawal) *decimal.Decimal { return &w.Amount }),
	required("fee", (*decoder).amount, func(w *Withdrawal) *decimal.Decimal { return &w.Fee }),
	required("coin", (*decoder).text, func(w *Withdrawal) *string { return &w.Coin }),
	required("network", (*decoder).text, func(w *Withdrawal) *string { return &w.Network }),
	required("withdrawRequestId", (*decoder).identifier, func(w *Withdrawal) *string { return &w.WithdrawRequestID }),
}

var readWithdrawal = one(withdrawalFields)

// readStatus keeps a status that the interface does not list.
func readStatus(d *decoder) WithdrawalStatus {
	value := d.scalar('"')
	if value == nil {
		return ""
	}
	for _, known := range [...]WithdrawalStatus{WithdrawalPending, WithdrawalFailed, WithdrawalCompleted} {
		if string(unquote(value)) == string(known) {
			return known
		}
	}
	d.note(DriftUnknownStatus)
	return WithdrawalStatus(d.nonEmptyIn(value))
}

// Withdrawal returns where a withdrawal stands. How a withdrawal is requested,
// which gives its identifier, is not part of the interface; the identifier is 1
// to 256 bytes without any of / \ % ? #. A record with another identifier is an
// error that matches [ErrResponseMismatch].
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) Withdrawal(ctx context.Context, withdrawRequestID string, opts ...CallOption) (*Withdrawal, error) {
	return do(ctx, c, call{
		op:    opWithdrawal,
		route: "/api/withdrawal/inquiry/{withdrawRequestId}",
		args:  [2]string{withdrawRequestID},
		id:    withdrawRequestID,
		key:   keyInHeader,
		json:  true,
	}, readWithdrawal, opts)
}
