package year

import (
	"fmt"
	"slices"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
)

// A tally is what the year has shown of a shop.
type tally struct {
	doubtful       map[string]time.Time  // orders whose outcome was unknown, since when
	since          map[string]time.Time  // those that are not ended yet
	ages           []time.Duration       // of the others when they were ended
	exists, absent int                   // how they were ended
	absences       map[string]time.Time  // when orders were ended as absent, the last time
	pending        []sqlguard.Order      // at the end of the year
	found, never   int                   // of these, requests that one search finds, and that never arrived
	listed         map[string]bool       // the seeded orders that the reconciliations have listed
	periods        []period              // whose files are to be exported again
	before         string                // the last file, as it was before it was damaged
	defective      int                   // files so far
	files          map[string]*fileTally // by defect; "" for sound ones
	wrong          []string              // findings, and whatever else must not be
	doubled        int                   // orders with two invoices, but those of the gateway's own doing
}

// A fileTally is what became of files.
type fileTally struct{ files, refused, exists, absent int }

func newTally() tally {
	return tally{
		doubtful: map[string]time.Time{}, since: map[string]time.Time{}, absences: map[string]time.Time{},
		listed: map[string]bool{}, files: map[string]*fileTally{},
	}
}

func (p *shop) isWrong(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// doubt counts an order whose outcome is unknown from now on.
func (p *shop) doubt(order string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since[order].IsZero() {
		p.since[order] = time.Now()
	}
	if p.doubtful[order].IsZero() {
		p.doubtful[order] = time.Now()
	}
}

// ended compares what ends an order with what is true, and counts it if the order was doubtful.
func (p *shop) ended(order string, exists bool) {
	if invoices := len(p.service.known(order)); exists != (invoices > 0) {
		p.isWrong("%s was ended as exists=%v and has %d invoices", order, exists, invoices)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	since, doubtful := p.since[order]
	if !doubtful {
		return
	}
	delete(p.since, order)
	p.ages = append(p.ages, time.Since(since))
	if exists {
		p.exists++
		return
	}
	p.absent++
	p.absences[order] = time.Now()
}

// audit compares every order with what is true at the end.
func (p *shop) audit() {
	arrived := map[string]bool{}
	for _, orders := range p.service.log {
		arrived[orders[0]] = true
	}
	for _, o := range p.world.orders {
		id := o.request.OrderID
		record, err := p.guard.Order(p.t.Context(), "", id)
		must(p.t, err)
		invoices := p.service.orders[id]
		switch exists := len(invoices) > 0; {
		case record.State == sqlguard.StateUnknown:
			p.pending = append(p.pending, record)
			p.search(record, arrived[id])
		case exists != (record.State == sqlguard.StateCreated):
			p.isWrong("%s is %s and has %d invoices", id, record.State, len(invoices))
		}
		if len(invoices) > 1 && o.seeded != twice {
			p.doubled++
		}
		for _, i := range invoices {
			if ended, ok := p.absences[id]; ok && i.asked.Before(ended) {
				p.isWrong("%s was ended as absent, and an earlier request has created invoice %d", id, i.id)
			}
		}
	}
}

// search looks the request of an unknown order up in the gateway's log by its identifier.
func (p *shop) search(o sqlguard.Order, arrived bool) {
	lines := p.service.log[o.Record.RequestID]
	switch {
	case !arrived && len(lines) == 0:
		p.never++
	case slices.Equal(lines, []string{o.ID}):
		p.found++
	default:
		p.isWrong("the log has %q for the request %q of %s", lines, o.Record.RequestID, o.ID)
	}
}
