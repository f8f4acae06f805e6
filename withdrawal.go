package gateway

import (
	"context"
	"errors"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
)

// A WithdrawalStatus is the status of a withdrawal. A documented status is one of the three constants, whatever its
// case in the response. Any other text is kept as it came.
type WithdrawalStatus string

const (
	// WithdrawalPending means that the withdrawal is ongoing or awaits further actions.
	WithdrawalPending WithdrawalStatus = "PENDING"
	// WithdrawalFailed means that the withdrawal met an issue and could not be completed.
	WithdrawalFailed WithdrawalStatus = "FAILED"
	// WithdrawalCompleted means that the withdrawal was successfully finalized.
	WithdrawalCompleted WithdrawalStatus = "COMPLETED"
)

// Known reports whether s is one of the three documented statuses, in any case of letters.
func (s WithdrawalStatus) Known() bool { return s.is(WithdrawalPending) || s.Terminal() }

// Terminal reports whether s is FAILED or COMPLETED, in any case of letters. An unknown status is never
// terminal.
func (s WithdrawalStatus) Terminal() bool { return s.is(WithdrawalFailed) || s.is(WithdrawalCompleted) }

// is reports whether two statuses are the same, whatever their case.
func (s WithdrawalStatus) is(other WithdrawalStatus) bool {
	return strings.EqualFold(string(s), string(other))
}

// canonical returns the constant of a known status, and any other status as it is.
func (s WithdrawalStatus) canonical() WithdrawalStatus {
	if s.Known() {
		return WithdrawalStatus(strings.ToUpper(string(s)))
	}
	return s
}

// A Withdrawal is a request to withdraw. Whether Amount includes Fee is not documented.
type Withdrawal struct {
	Status            WithdrawalStatus `json:"status"`                       // one of the constants, or another text
	Destination       string           `json:"destination"`                  // as it came
	Amount            decimal.Decimal  `json:"amount"`                       // of no documented unit
	Fee               decimal.Decimal  `json:"fee"`                          // of no documented unit
	Coin              string           `json:"coin"`                         // as it came
	Network           string           `json:"network"`                      // as it came
	WithdrawRequestID string           `json:"withdrawRequestId" check:"id"` // the requested identifier
}

var withdrawalRecord = doc.RecordOf[Withdrawal]() // docs/interface.md, I-132 to I-144

// Withdrawal returns the state of a withdrawal. Its identifier has 1 to 256 bytes; the service does not
// document how a withdrawal is requested, which yields the identifier. A record with another identifier is an
// error that matches [ErrResponseMismatch].
//
// GET /api/withdrawal/inquiry/{withdrawRequestId}
func (c *Client) Withdrawal(ctx context.Context, withdrawRequestID string, opts ...CallOption) (*Withdrawal, error) {
	return do(ctx, c, operation{
		name:             OpWithdrawal,
		route:            "/api/withdrawal/inquiry/{withdrawRequestId}",
		args:             [2]string{withdrawRequestID},
		key:              keyInHeader,
		sendsContentType: true,
		statusIn:         withdrawalStatusIn,
	}, func(e envelope) (*Withdrawal, *doc.Error) {
		return one(e, withdrawalRecord, withdrawRequestID)
	}, opts)
}

// withdrawalStatusIn finds the status in a result that cannot be decoded otherwise: the withdrawal may have
// ended. It returns "" for a record that names another withdrawal.
func withdrawalStatusIn(result doc.Node, id string) string {
	record := result.Only()
	if named := record.Member("withdrawRequestId"); !named.IsZero() && !endpoint.SameID(named.Text(), id) {
		return ""
	}
	return record.Member("status").Text()
}

// WithdrawalStatusOf returns the status that was read although an inquiry or a wait failed with err: the
// status in a response whose other fields cannot be decoded, or the last status of a wait. It is empty if
// there is none.
func WithdrawalStatusOf(err error) WithdrawalStatus {
	if ended, ok := errors.AsType[*WaitError](err); ok {
		return ended.Status
	}
	if unreadable, ok := errors.AsType[*DecodeError](err); ok {
		return WithdrawalStatus(unreadable.status).canonical()
	}
	return ""
}
