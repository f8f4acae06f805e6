package gateway

import (
	"errors"

	"github.com/cryptogw/gateway/internal/retry"
)

// WithIdempotentOrders declares what the operator of the gateway has guaranteed in writing: creating
// an invoice is idempotent by orderId, and a repeated orderId returns the existing invoice. The client cannot
// verify it; where it does not hold, each repetition is another invoice that a buyer can pay.
//
// An invoice whose outcome is unknown is then retried within [RetryPolicy], and by a later call
// for the order with an equal request, without [AllowResubmit]: each time with the amounts
// and texts that the [OrderGuard] has kept, digit by digit. A success ends the unknown outcome; a
// refusal does not, because it proves nothing about the earlier attempt. [SafeToRetry] is true of
// an [*OutcomeUnknownError] that another call may end.
func WithIdempotentOrders() Option {
	return func(cfg *config) error {
		cfg.repeatable = true
		return nil
	}
}

// isRepeatable reports whether the call may send an unknown order again by [WithIdempotentOrders].
func (c *call) isRepeatable(r InvoiceRequest, known *OrderRecord) bool {
	return c.client.cfg.repeatable && known != nil && known.Request.equal(r)
}

var errOtherRequest = errors.New("the order was sent for another request meanwhile")

// repeat makes an order that is sent again by [WithIdempotentOrders] the one that was sent before:
// the amounts of an equal request can have other digits. If it is not equal, another call has sent
// the order since the guard was asked first.
func (c *call) repeat(o *Order, known *OrderRecord) {
	if !o.Resubmit || c.cfg.resubmit || known == nil {
		return
	}
	if !c.isRepeatable(o.Request, known) {
		c.invalid = c.transportError(fault{phase: PhaseOrder, err: errOtherRequest})
		return
	}
	request := known.Request
	o.Request, c.operation.write = request, &request
}

// mayDoBetter reports whether the call could succeed if it were made again, be that safe or not.
func (c *call) mayDoBetter(failure error) bool {
	switch failure := failure.(type) {
	case *TransportError:
		return failure.retryable || c.ctx.Err() != nil
	case *APIError:
		return retry.IsRetryableStatus(failure.StatusCode)
	case *DecodeError:
		return failure.retryable
	default:
		return false
	}
}
