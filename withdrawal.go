package gateway

import (
	"bytes"
	"context"
	"errors"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// A WithdrawalStatus is the status of a withdrawal: docs/interface.md, I-139 to I-144. A
// text that is not listed there is kept as it came.
type WithdrawalStatus string

const (
	// WithdrawalPending is a withdrawal that is ongoing or awaits further actions.
	WithdrawalPending WithdrawalStatus = "PENDING"
	// WithdrawalFailed is a withdrawal that met an issue and could not be completed.
	WithdrawalFailed WithdrawalStatus = "FAILED"
	// WithdrawalCompleted is a withdrawal that has been successfully finalized.
	WithdrawalCompleted WithdrawalStatus = "COMPLETED"
)

// Known reports whether s is exactly one of the three documented statuses.
func (s WithdrawalStatus) Known() bool {
	return s == WithdrawalPending || s.Terminal()
}

// Terminal reports whether s is FAILED or COMPLETED. A status that is not
// known is never terminal.
func (s WithdrawalStatus) Terminal() bool {
	return s == WithdrawalFailed || s == WithdrawalCompleted
}

// A Withdrawal is a request to withdraw: docs/interface.md, I-132 to I-138.
type Withdrawal struct {
	Status            WithdrawalStatus // one of the three above, or another text
	Destination       string           // as it came
	Amount            decimal.Decimal  // of no documented unit: docs/interface.md, I-146
	Fee               decimal.Decimal  // of no documented unit: docs/interface.md, I-146
	Coin              string           // as it came
	Network           string           // as it came
	WithdrawRequestID string           // the identifier that was asked for
}

var withdrawalFields = strictjson.Fields[Withdrawal]{
	strictjson.Required("status", strictjson.Enum(WithdrawalPending, WithdrawalFailed, WithdrawalCompleted), func(w *Withdrawal) *WithdrawalStatus { return &w.Status }),
	strictjson.Required("destination", (*strictjson.Decoder).Text, func(w *Withdrawal) *string { return &w.Destination }),
	strictjson.Required("amount", (*strictjson.Decoder).Amount, func(w *Withdrawal) *decimal.Decimal { return &w.Amount }),
	strictjson.Required("fee", (*strictjson.Decoder).Amount, func(w *Withdrawal) *decimal.Decimal { return &w.Fee }),
	strictjson.Required("coin", (*strictjson.Decoder).Text, func(w *Withdrawal) *string { return &w.Coin }),
	strictjson.Required("network", (*strictjson.Decoder).Text, func(w *Withdrawal) *string { return &w.Network }),
	strictjson.Required("withdrawRequestId", (*strictjson.Decoder).ID, func(w *Withdrawal) *string { return &w.WithdrawRequestID }),
}

var readWithdrawal = strictjson.One(withdrawalFields)

// routeWithdrawRequestID is the name of the argument in the route and in errors.
const routeWithdrawRequestID = "withdrawRequestId"

// Withdrawal returns the state of a withdrawal. How a withdrawal is requested, which
// yields its identifier, is not stated (docs/interface.md, I-148); the identifier is 1 to
// 256 bytes without any of / \ % ? #. A record with another identifier is an error that
// matches [ErrResponseMismatch].
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) Withdrawal(ctx context.Context, withdrawRequestID string, opts ...CallOption) (*Withdrawal, error) {
	return do(ctx, c, operation{
		name:             OpWithdrawal,
		route:            "/api/withdrawal/inquiry/{withdrawRequestId}",
		args:             [2]string{withdrawRequestID},
		expectID:         withdrawRequestID,
		key:              keyInHeader,
		sendsContentType: true,
		statusIn:         withdrawalStatusIn,
	}, readWithdrawal, opts)
}

// withdrawalStatusIn finds the status in the body of a withdrawal of which another field
// cannot be decoded: it may be the end of the withdrawal.
func withdrawalStatusIn(body []byte) (status string) {
	var d strictjson.Decoder
	d.Reset(bytes.NewReader(body), strictjson.Options{})
	readEnvelope(&d, "", func(d *strictjson.Decoder) struct{} {
		record := strictjson.NodeOf(d, strictjson.Raw(d))
		for element := range record.Elements() {
			record = element
		}
		status = record.Member("status").Text()
		return struct{}{}
	})
	return status
}

// WithdrawalStatusOf returns the status that was read although the inquiry or the wait
// failed with err: of a response of which another field cannot be decoded, or the last one
// of a wait. It is empty for none.
func WithdrawalStatusOf(err error) WithdrawalStatus {
	if ended, ok := errors.AsType[*WaitError](err); ok {
		return ended.Status
	}
	if _, ok := errors.AsType[*WithdrawalFailedError](err); ok {
		return WithdrawalFailed
	}
	if unreadable, ok := errors.AsType[*DecodeError](err); ok {
		return WithdrawalStatus(unreadable.status)
	}
	return ""
}
