package gateway

import (
	"context"
	"errors"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/strictjson"
	"github.com/cryptogw/gateway/internal/validate"
)

// A WithdrawalStatus is the status of a withdrawal: one of the three documented ones, or
// another text, which is kept as it came.
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

// A Withdrawal is a request to withdraw.
type Withdrawal struct {
	Status            WithdrawalStatus `json:"status"`                       // one of the constants, or another text
	Destination       string           `json:"destination"`                  // as it came
	Amount            decimal.Decimal  `json:"amount"`                       // of no documented unit
	Fee               decimal.Decimal  `json:"fee"`                          // of no documented unit; whether Amount includes it is not documented
	Coin              string           `json:"coin"`                         // as it came
	Network           string           `json:"network"`                      // as it came
	WithdrawRequestID string           `json:"withdrawRequestId" check:"id"` // the identifier that was asked for
}

// docs/interface.md, I-132 to I-144.
var (
	withdrawalRecord = strictjson.RecordOf[Withdrawal]()
	readWithdrawal   = strictjson.One(withdrawalRecord)
)

// MarshalJSON is as that of [CoinNetwork].
func (w Withdrawal) MarshalJSON() ([]byte, error) { return withdrawalRecord.Marshal(w) }

// UnmarshalJSON is as that of [CoinNetwork].
func (w *Withdrawal) UnmarshalJSON(text []byte) error { return withdrawalRecord.Unmarshal(text, w) }

// routeWithdrawRequestID is the name of the argument in the route and in errors.
const routeWithdrawRequestID = "withdrawRequestId"

// Withdrawal returns the state of a withdrawal. How a withdrawal is requested, which
// yields its identifier, is not documented; the identifier is 1 to 256 bytes without any of
// / \ % ? #. A record with another identifier is an error that matches
// [ErrResponseMismatch].
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
	}, readWithdrawal, opts)
}

// withdrawalStatusIn finds the status in the body of a withdrawal of which another field cannot be
// decoded: it may be the end of the withdrawal. A record that names another withdrawal has none.
func withdrawalStatusIn(body []byte, id string) (status string) {
	var d strictjson.Decoder
	d.Reset(body, strictjson.Options{})
	readEnvelope(&d, "", func(d *strictjson.Decoder) {
		record := strictjson.NodeOf(d, strictjson.Raw(d))
		for element := range record.Elements() {
			record = element
		}
		if named := record.Member("withdrawRequestId"); named.IsZero() || validate.SameID(named.Text(), id) {
			status = record.Member("status").Text()
		}
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
