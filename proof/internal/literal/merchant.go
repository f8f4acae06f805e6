package literal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// mostTries is how often a merchant calls again because it is safe to.
const mostTries = 4

// An order is what the merchant keeps of one, in a store that survives its processes.
type order struct {
	id string

	mu        sync.Mutex
	underWay  int            // clicks
	kept      bool           // one of those that were under way with them says that it is not to be cancelled
	elsewhere bool           // it is cancelled, and the buyer pays another way
	shown     map[int][]byte // the invoice, by the request for it
}

// begin reports whether the order is open.
func (o *order) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.elsewhere {
		return false
	}
	o.underWay++
	return true
}

// end ends a click. The order is cancelled if that is what all clicks say that were under way at
// once: what is true of one call does not bind another, which may be sent later.
func (o *order) end(cancels, hasty bool) (cancelled bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.underWay--
	o.kept = o.kept || !cancels
	if cancels && hasty || o.underWay == 0 && !o.kept {
		o.elsewhere = true
	}
	if o.underWay == 0 {
		o.kept = false
	}
	return o.elsewhere
}

func (o *order) request(which int) gateway.InvoiceRequest {
	price := decimal.New(1050, -2).Add(decimal.NewFromInt(int64(which)))
	if which == invalid {
		price = decimal.NewFromInt(-1)
	}
	return gateway.InvoiceRequest{
		OrderID: o.id, Price: price, Amount: decimal.New(1050, -2), BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}
}

// errDied is that the process died within the call.
var errDied = errors.New("the process has died")

// serve is the merchant. It knows whether there is an error, [gateway.SafeToRetry], and what
// [gateway.OutcomeOf] returns.
func (w *world) serve(ctx context.Context, p *process, o *order, c *click) {
	if !o.begin() {
		return // the buyer has paid another way
	}
	var err error
	for range mostTries {
		_, err = w.create(ctx, p, o, c) // which keeps what the buyer is shown
		if !gateway.SafeToRetry(err) {
			break
		}
		pause(2 * time.Second)
	}
	outcome := gateway.OutcomeOf(err)
	cancels := !errors.Is(err, errDied) && (outcome == gateway.OutcomeNotSent || outcome == gateway.OutcomeRejected)
	if o.end(cancels, w.Hasty) {
		w.count(func(r *Report) { r.Elsewhere++ })
	}
}
