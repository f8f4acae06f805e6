package year

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
)

// A lookup is a page of the gateway that shows an order, to the second method that ends unknown orders.
type lookup struct{ *service }

var errDown = errors.New("the lookup is down")

// Resolve implements [sqlguard.Resolver]. An order that is not found is absent an hour after it was sent: the
// operator states that every request is carried out by then, or never.
func (l lookup) Resolve(_ context.Context, unknown []sqlguard.Order) (found []sqlguard.Finding, err error) {
	if l.world.during(time.Now(), refuses, unavailable, forgets, stalls, packetLoss) != "" {
		return nil, errDown
	}
	for _, o := range unknown {
		invoices := l.known(o.ID)
		switch {
		case len(invoices) > 0:
			found = append(found, sqlguard.Finding{Order: o, Resolution: sqlguard.Resolution{Exists: true, Invoice: json.RawMessage(invoices[0].json())}})
		case time.Since(o.Record.SentAt) > time.Hour:
			found = append(found, sqlguard.Finding{Order: o})
		}
	}
	return found, nil
}

func (p *shop) lookUp() {
	report, err := p.guard.ResolvePending(p.t.Context(), lookup{p.service}, sqlguard.ResolveOptions{By: "job:lookup"})
	if err != nil && !errors.Is(err, errDown) || len(report.Refused) > 0 {
		p.t.Error(err, report.Refused)
	}
	for _, f := range report.Resolved {
		p.ended(f.Order.ID, f.Resolution.Exists)
	}
}

// sendAgain asks for every pending order again: the job of a merchant whose gateway repeats orders.
func (p *shop) sendAgain() {
	pending, err := p.guard.Pending(p.t.Context(), sqlguard.PendingQuery{})
	must(p.t, err)
	for _, o := range pending {
		var n int
		_, err := fmt.Sscanf(o.ID, "order-%d", &n)
		must(p.t, err)
		_ = p.create(p.world.orders[n]) // the next job does it again
	}
}
