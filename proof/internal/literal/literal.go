// Package literal has a merchant who knows of a call only whether there is an error, what
// [gateway.SafeToRetry] says of it, and its [gateway.Outcome], and who does literally what
// these say: he shows the invoice, calls again, cancels the order and sends the buyer
// elsewhere, or keeps the order open until the buyer clicks again. He lives through random
// schedules of faults, double clicks, cancellations, deploys and kills, in the time of a
// bubble, at gateways of which some create another invoice for a repeated order, some return
// the first one and some refuse. Whatever happens no order has two invoices, none that has one
// is sent again, no buyer is sent elsewhere while an invoice exists, and an invoice that was shown once is shown for ever.
package literal

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/bubble"
)

// A World is where a merchant lives.
type World struct {
	HTTP2 bool

	// Open opens what the guards of one schedule share.
	Open func() (Store, error)

	// Reading is how the merchant reads what a call returns; nil for as it is.
	Reading func(*gateway.Invoice, error) (*gateway.Invoice, error)

	// Idempotent is a merchant who declares that his gateway returns the first invoice of a
	// repeated order, and a gateway that does so.
	Idempotent bool

	// Hasty is a merchant who cancels an order although another click for it is under way.
	Hasty bool
}

// A Store is where the guards of a merchant keep their orders.
type Store interface {
	// Guard returns the guard of a process that begins, and what closes it.
	Guard() (guard gateway.OrderGuard, closes func() error, err error)
	// Expire ends the lease of an order whose process has died.
	Expire(orderID string) error
	// Survives reports whether the guard of a process knows what those before it did.
	Survives() bool
	// Close closes the store itself.
	Close() error
}

// Memory is the store of a [gateway.MemoryGuard], which does not survive its process.
func Memory() (Store, error) { return memory{&gateway.MemoryGuard{}}, nil }

type memory struct{ guard *gateway.MemoryGuard }

func (m memory) Guard() (gateway.OrderGuard, func() error, error) {
	return m.guard, func() error { return nil }, nil
}
func (m memory) Expire(string) error { return nil }
func (m memory) Survives() bool      { return false }
func (m memory) Close() error        { return nil }

// What can be wrong.
const (
	Doubled       = "orders with two invoices"
	SentAgain     = "orders sent again that had an invoice"
	SentElsewhere = "buyers sent elsewhere while an invoice exists"
	otherBytes    = "successes with other bytes than the gateway's"
	Forgotten     = "created orders whose invoice a later call does not get"
	invented      = "conflicts with an invoice that does not exist"
	broken        = "schedules that could not be run"
)

// A Report is what happened in schedules.
type Report struct {
	Schedules, Orders, Calls, Kills, Deploys int
	Created, Replayed, NotSent, Rejected     int // by call
	Conflicts                                int // by call
	Unknown, InFlight                        int // by call; InFlight is what is unknown and safe to retry
	Elsewhere, Absent                        int // orders; Absent are those of which an operator found no invoice
	Wrong                                    map[string]int
	Details                                  []string
}

// Add adds another report.
func (r *Report) Add(o Report) {
	for sum, n := range map[*int]int{
		&r.Schedules: o.Schedules, &r.Orders: o.Orders, &r.Calls: o.Calls, &r.Kills: o.Kills, &r.Deploys: o.Deploys,
		&r.Created: o.Created, &r.Replayed: o.Replayed, &r.NotSent: o.NotSent, &r.Rejected: o.Rejected, &r.Conflicts: o.Conflicts,
		&r.Unknown: o.Unknown, &r.InFlight: o.InFlight, &r.Elsewhere: o.Elsewhere, &r.Absent: o.Absent,
	} {
		*sum += n
	}
	if r.Wrong == nil {
		r.Wrong = map[string]int{}
	}
	for what, n := range o.Wrong {
		r.Wrong[what] += n
	}
	r.Details = append(r.Details, o.Details...)
}

// String returns the counts.
func (r Report) String() string {
	text := fmt.Sprintf("%d schedules, %d orders, %d kills, %d deploys; %d calls: %d created, %d replayed, %d not sent, %d rejected, %d conflicts, %d unknown, %d unknown and safe to retry; %d orders cancelled, %d found absent",
		r.Schedules, r.Orders, r.Kills, r.Deploys, r.Calls, r.Created, r.Replayed, r.NotSent, r.Rejected, r.Conflicts, r.Unknown, r.InFlight, r.Elsewhere, r.Absent)
	for _, what := range []string{Doubled, SentAgain, SentElsewhere, otherBytes, Forgotten, invented} {
		text += fmt.Sprintf("; %d %s", r.Wrong[what], what)
	}
	return text
}

// Run runs the schedules of the seeds from first on.
func (w World) Run(t *testing.T, first uint64, schedules int) (all Report) {
	t.Helper()
	for n := range schedules {
		all.Add(w.run(t, first+uint64(n))) // #nosec G115 -- not negative
	}
	return all
}

// enough schedules have everything in them.
const enough = 200

// Verify fails the test with what was wrong.
func (r Report) Verify(t *testing.T) {
	t.Helper()
	for _, detail := range r.Details[:min(len(r.Details), 5)] {
		t.Error(detail)
	}
	if len(r.Wrong) > 0 {
		t.Error(r)
	}
	for what, n := range map[string]int{
		"created": r.Created, "replayed": r.Replayed, "not sent": r.NotSent, "rejected": r.Rejected, "a conflict": r.Conflicts, "unknown": r.Unknown, "in flight": r.InFlight, "cancelled": r.Elsewhere,
	} {
		if n == 0 && r.Schedules >= enough {
			t.Errorf("nothing was %s: the schedules prove nothing about that", what)
		}
	}
}

func (w World) run(t *testing.T, seed uint64) (report Report) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		live := &world{World: w}
		live.wrong = func(what, format string, args ...any) {
			live.count(func(r *Report) {
				r.Wrong[what]++
				r.Details = append(r.Details, fmt.Sprintf("seed %d, HTTP/2 %v: %s: %s", seed, w.HTTP2, what, fmt.Sprintf(format, args...)))
			})
		}
		live.report = Report{Schedules: 1, Wrong: map[string]int{}}
		if err := live.live(seed); err != nil {
			live.wrong(broken, "%v", err)
		}
		report = live.report
	})
	return report
}

// A world is that of one schedule.
type world struct {
	World
	schedule

	store   Store
	gateway *service
	orders  []*order
	process *process // that serves the clicks now
	all     []*process
	serving sync.WaitGroup

	mu     sync.Mutex
	report Report
	wrong  func(what, format string, args ...any)
}

func (w *world) count(add func(*Report)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(&w.report)
}

// live lives through the schedule of a seed.
func (w *world) live(seed uint64) (err error) {
	if w.store, err = w.Open(); err != nil {
		return err
	}
	defer func() { err = firstOf(err, w.store.Close()) }()
	w.schedule = draw(seed, w.store.Survives())
	if w.Idempotent {
		w.Repeated = gatewaytest.RepeatSame
	}
	w.gateway = newService(w.Answers, w.Repeated)
	for n := range len(w.Answers) {
		w.orders = append(w.orders, &order{id: orderID(seed, n), shown: map[int][]byte{}})
	}
	w.report.Orders = len(w.orders)
	defer func() {
		for _, p := range w.all {
			p.stop()
			err = firstOf(err, p.closes())
		}
		pause(time.Minute) // what is under way may still create an invoice
		w.gateway.Close()
		synctest.Wait()
		w.verify()
	}()
	if err := w.start(); err != nil {
		return err
	}
	for i := range w.Events {
		if err := w.happen(&w.Events[i]); err != nil {
			return err
		}
	}
	return w.settle()
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) happen(e *event) error {
	pause(e.After)
	switch e.Kind {
	case deploys:
		w.count(func(r *Report) { r.Deploys++ })
		w.process.cancel()
		return w.start()
	case kills:
		w.count(func(r *Report) { r.Kills++ })
		w.process.kill()
		return w.start()
	case expires:
		return w.expire()
	case resolves:
		return w.resolve()
	default:
		p, o := w.process, w.orders[e.Click.Order]
		w.serving.Go(func() { w.click(p, o, &e.Click) })
		return nil
	}
}

// settle ends the faults, and has every buyer click again, twice.
func (w *world) settle() error {
	w.serving.Wait()
	pause(lease)
	if err := w.expire(); err != nil {
		return err
	}
	for _, o := range w.gateway.orders {
		o.heal()
	}
	w.Routes = nil
	if err := w.start(); err != nil {
		return err
	}
	for range 2 {
		for _, o := range w.orders {
			w.click(w.process, o, &click{})
		}
	}
	return nil
}

// expire ends the leases of the processes that died.
func (w *world) expire() error {
	for _, p := range w.all {
		for _, id := range p.leftBehind() {
			if err := w.store.Expire(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve has an operator look at the orders that are unknown.
func (w *world) resolve() error {
	store, ok := w.store.(*leased)
	if !ok {
		return nil
	}
	absent, err := store.resolve(func(id string) bool { return len(w.gateway.orders[id].Invoices()) > 0 })
	w.count(func(r *Report) { r.Absent += absent })
	return err
}

// click is a buyer's.
func (w *world) click(p *process, o *order, c *click) {
	ctx, cancel := context.WithCancel(context.WithValue(p.ctx, clickKey{}, &clicked{begins: c.BeginFails, sleeps: c.Suspended}))
	defer cancel()
	if c.KeyFails {
		p.seal()
	}
	if c.Cancel > 0 {
		defer time.AfterFunc(c.Cancel, cancel).Stop()
	}
	if c.Deadline > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, c.Deadline)
		defer done()
	}
	w.serve(ctx, p, o, c)
}

// create makes one call, and compares what it returns with what the gateway has.
func (w *world) create(ctx context.Context, p *process, o *order, c *click) (*gateway.Invoice, error) {
	o.mu.Lock()
	shown := o.shown[c.Request]
	o.mu.Unlock()
	request := o.request(c.Request)
	opts := []gateway.CallOption{gateway.WithHeader(orderHeader, o.id)}
	if n := merchant(o.id); n > 0 {
		opts = append(opts, gateway.WithAPIKey(merchantKey(n)), gateway.WithMerchant(fmt.Sprint("merchant ", n)))
	}
	invoice, err := p.client.CreateInvoice(ctx, request, opts...)
	if p.isDead() {
		return nil, errDied
	}
	if w.Reading != nil {
		invoice, err = w.Reading(invoice, err)
	}
	w.count(func(r *Report) { r.add(invoice, err) })
	if gateway.OutcomeOf(err) == gateway.OutcomeConflict && len(w.gateway.orders[o.id].Invoices()) == 0 {
		w.wrong(invented, "%s: %v", o.id, err)
	}
	failed := ctx.Value(clickKey{}).(*clicked).hasFailed()
	switch {
	case err != nil && shown != nil && ctx.Err() == nil && !failed:
		w.wrong(Forgotten, "%s: %v", o.id, err)
	case err != nil:
	case shown != nil && !bytes.Equal(shown, invoice.Raw):
		w.wrong(otherBytes, "%s: %s, and before %s", o.id, invoice.Raw, shown)
	default:
		w.compare(o, request, invoice)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.shown[c.Request] = invoice.Raw
	}
	return invoice, err
}

// compare compares an invoice with that of the gateway.
func (w *world) compare(o *order, request gateway.InvoiceRequest, invoice *gateway.Invoice) {
	served := w.gateway.orders[o.id]
	if !served.hasSent(invoice.Raw) {
		w.wrong(otherBytes, "%s: %q was never sent", o.id, invoice.Raw)
	}
	for _, created := range served.Invoices() {
		if created.Price != request.Price.StringFixed(2) {
			w.wrong(otherBytes, "%s: an invoice of %s for a request of %s", o.id, created.Price, request.Price)
		}
	}
}

// verify compares what the merchant and the gateway have in the end.
func (w *world) verify() {
	for _, o := range w.orders {
		invoices := w.gateway.orders[o.id].Invoices()
		if len(invoices) > 1 {
			w.wrong(Doubled, "%s: %+v", o.id, invoices)
		}
		if n := w.gateway.orders[o.id].repeats; n > 0 && !w.Idempotent {
			w.wrong(SentAgain, "%s: %d requests to a gateway of kind %q", o.id, n, w.Repeated)
		}
		if o.elsewhere && len(invoices) > 0 {
			w.wrong(SentElsewhere, "%s: %+v", o.id, invoices)
		}
	}
}

// add counts a call.
func (r *Report) add(invoice *gateway.Invoice, err error) {
	r.Calls++
	switch outcome := gateway.OutcomeOf(err); {
	case err == nil && invoice.Replayed:
		r.Replayed++
	case err == nil:
		r.Created++
	case outcome == gateway.OutcomeNotSent:
		r.NotSent++
	case outcome == gateway.OutcomeRejected:
		r.Rejected++
	case outcome == gateway.OutcomeConflict:
		r.Conflicts++
	case gateway.SafeToRetry(err):
		r.InFlight++
	default:
		r.Unknown++
	}
}
