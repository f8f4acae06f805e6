package order

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/leak"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// canary is the key of every client here. No text may show it.
const canary = invariant.Key

// TestMain sets how many schedules TestRapid draws, unless -rapid.checks does, and fails when the tests leave a
// goroutine behind.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "2000")
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
	log.SetOutput(io.Discard) // what net/http logs about the faults
	leak.Main(m)
}

// A step is a click of a buyer: the merchant calls, and calls again as long as that is safe.
type step struct {
	Merchant   int // each has orders of the same names, and a key; merchant 0 has the client's own
	Order      int
	Upper      bool          // its identifier, if it is a UUID, in upper case
	Other      bool          // with another price
	Invalid    bool          // with a price that no gateway takes
	Absent     bool          // before it a person looks the order up if it is unknown, and records the finding
	Early      bool          // the person does not wait until nothing can arrive any more
	Start      time.Duration // after the step before
	Cancel     time.Duration // after the start; 0 for never
	Deadline   time.Duration // after the start; 0 for none
	BeginFails bool          // the guard cannot be asked
	EndFails   time.Duration // for how long the guard cannot record the outcome: as after a kill if it is for ever
	Suspended  time.Duration // the process stands still when it has the lease
	Attempts   []behavior    // of each attempt; the last is for all that follow
}

// A schedule is a random sequence of clicks. It is data only: it is drawn outside the bubble in which it runs.
type schedule struct {
	Attempts   int
	Timeout    time.Duration
	Idempotent bool // the gateway returns the first invoice of a repeated order, as the client declares
	Leases     bool // the guard has leases, which end
	Steps      []step
}

func drawDuration(t *rapid.T, name string) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second}).Draw(t, name)
}

// one reports true once in so many times.
func one(t *rapid.T, in int, name string) bool { return rapid.IntRange(1, in).Draw(t, name) == in }

// drawRare is drawDuration for events that rarely happen.
func drawRare(t *rapid.T, name string) time.Duration {
	if !one(t, 4, name+" comes") {
		return 0
	}
	return drawDuration(t, name)
}

func drawBehavior(t *rapid.T) behavior {
	b := behavior{
		Before: drawDuration(t, "before"),
		Read:   rapid.SampledFrom([]int{everything, everything, everything, everything, 0, 0, 1, 40}).Draw(t, "read"),
		Rest:   rapid.Bool().Draw(t, "rest is read late"),
		Commit: !one(t, 4, "no commit"),
		After:  drawDuration(t, "after"),
		Status: rapid.SampledFrom([]int{
			0, 0, 0, 201, 201, 201, 201, 201, 201, 201, 200, 302, 400, 400, 401, 403, 404, 408, 409, 422, 422, 429, 500, 502, 503, 525, 460, 999,
		}).Draw(t, "status"),
		Body:    rapid.SampledFrom(bodies()).Draw(t, "body"),
		Says:    rapid.SampledFrom([]string{"no " + canary, "no such coin", "the order already exists"}).Draw(t, "says"),
		Result:  rapid.SampledFrom(successes()).Draw(t, "result"),
		Error:   rapid.IntRange(0, len(tripErrors())-1).Draw(t, "error"),
		Transit: rapid.SampledFrom([]time.Duration{0, 0, 0, transit - time.Millisecond}).Draw(t, "transit"),
		Cut:     rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 60, 10000}).Draw(t, "cut"),
		Slow:    drawDuration(t, "slow"),
		Late:    one(t, 8, "late"),
	}
	if rapid.Bool().Draw(t, "whole") {
		b.Read, b.Rest, b.Late, b.Cut = everything, false, false, -1
	}
	return b
}

func drawSchedule(t *rapid.T) schedule {
	s := schedule{
		Attempts:   rapid.IntRange(1, 4).Draw(t, "attempts"),
		Timeout:    rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, 20 * time.Second, 20 * time.Second}).Draw(t, "timeout"),
		Idempotent: one(t, 4, "idempotent"),
		Leases:     rapid.Bool().Draw(t, "leases"),
	}
	behaviors := rapid.SliceOfN(rapid.Custom(drawBehavior), 1, 3)
	s.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		next := step{
			Merchant: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "merchant"),
			Upper:    rapid.Bool().Draw(t, "upper"),
			Order:    rapid.SampledFrom([]int{0, 0, 1, 2, 3, 3}).Draw(t, "order"),
			Other:    one(t, 8, "other"),
			Invalid:  one(t, 12, "invalid"),
			Absent:   one(t, 4, "is looked up"),
			Early:    one(t, 3, "too early"),
			Start:    rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, 20 * time.Millisecond, 2 * time.Second, lease}).Draw(t, "start"),
			Cancel:   drawRare(t, "cancel"),
			Deadline: drawRare(t, "deadline"),
			Attempts: behaviors.Draw(t, "behaviors"),
		}
		if s.Leases && one(t, 3, "the guard fails") {
			next.BeginFails = one(t, 4, "begin fails")
			next.EndFails = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, lease, forever}).Draw(t, "end fails")
			next.Suspended = rapid.SampledFrom([]time.Duration{0, time.Second, lease, lease + time.Minute, 2 * lease}).Draw(t, "suspended")
		}
		return next
	}), 1, 12).Draw(t, "steps")
	return s
}

// orderID names an order, as the step spells it. Each merchant has one of that name.
func (s *step) orderID() string {
	id := [...]string{"order-0", "order-1", "order-2", "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"}[s.Order]
	if s.Upper && s.Order == 3 {
		return strings.ToUpper(id)
	}
	return id
}

// key is the key of the merchant, and merchant the name.
func (s *step) key() string { return [...]string{canary, canary + "-1", canary + "-2"}[s.Merchant] }

func (s *step) merchant() string {
	return [...]string{"merchant 0", "merchant 1", "merchant 2"}[s.Merchant]
}

// known identifies the order, whatever its spelling.
func (s *step) known() string { return s.merchant() + "/" + strings.ToLower(s.orderID()) }

// A reading is how a merchant reads a call: as the client reports it, unless a test shows the harm of another way.
type reading struct {
	outcome   func(err error, replayed bool) gateway.Outcome
	hasty     bool // he cancels an order although another click for it is under way
	unguarded bool // no guard keeps his orders
}

func literally(err error, _ bool) gateway.Outcome { return gateway.OutcomeOf(err) }

// run lives through the schedule. It returns how the calls ended, and the world with what was wrong.
func (s schedule) run(how reading) (results []call.Result, w *world) {
	w = &world{schedule: s, orders: map[string]*account{}, counts: map[string]int{}, guard: &leases{held: map[string]holding{}}}
	w.guard.world = w
	var guard gateway.OrderGuard = &w.guard.MemoryGuard
	switch {
	case how.unguarded:
		guard = nil
	case s.Leases:
		guard = w.guard
	}
	options := []gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: w}), gateway.WithSuccessMessage("OK"), gateway.WithOrderGuard(guard),
		gateway.WithObserver(gateway.Observer{Start: w.started, End: w.ended}),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: s.Attempts, InvoiceTimeout: s.Timeout, MaxRetryAfter: time.Second}),
	}
	if s.Idempotent {
		options = append(options, gateway.WithIdempotentOrders())
	}
	client, err := gateway.New("http://"+call.Host+"/merchant", canary, options...)
	if err != nil {
		w.note("%v", err)
		return nil, w
	}
	all := make([][]call.Result, len(s.Steps))
	var clicks sync.WaitGroup
	for i, step := range s.Steps {
		_ = wait(context.Background(), step.Start)
		clicks.Go(func() { all[i] = w.click(client, step, how) })
	}
	clicks.Wait()
	w.left.Wait()                               // what goes on without its caller has ended
	w.late.Wait()                               // each record is whole
	_ = client.Shutdown(context.Background())   // until nothing is recorded any more
	_ = wait(context.Background(), time.Minute) // until bodies are read that nobody waits for
	if w.open != 0 {
		w.note("%d calls have no end for observers", w.open)
	}
	for id, o := range w.orders {
		if o.held && !o.ever {
			w.note("%s was refused, although no outcome of it was ever unknown", id)
		}
		if len(o.commits) > 1 {
			w.note("%s has %d invoices", id, len(o.commits))
		}
	}
	for i, r := range slices.Concat(all...) {
		for _, violation := range r.Violations() {
			w.note("call %d: %s", i, violation)
		}
	}
	return slices.Concat(all...), w
}

// started notes the Start of a call for observers.
func (w *world) started(ctx context.Context, _ gateway.Call) context.Context {
	w.change(func() { w.open++ })
	return ctx
}

// ended notes the End of a call for observers, which each call has once.
func (w *world) ended(ctx context.Context, c gateway.Call) {
	w.Lock()
	defer w.Unlock()
	a, _ := ctx.Value(attemptedKey{}).(*attempted)
	if w.open--; a.told != nil {
		w.note("a call for %s has two ends", a.known())
	}
	a.told = &c
}

// mostTries is how often a merchant calls because it is safe to.
const mostTries = 4

// click is the merchant, who knows whether a call has an error, its [gateway.SafeToRetry] and its [gateway.Outcome], and
// follows them literally: the merchant shows the invoice, calls again, cancels the order and sends the buyer elsewhere,
// or keeps the order open. The outcome of one call does not bind another that is under way: the merchant cancels if all
// clicks that were under way at once say so.
func (w *world) click(client *gateway.Client, s step, how reading) (results []call.Result) {
	if s.Absent {
		w.lookUp(s)
	}
	w.change(func() { w.order(s.known()).clicks++ })
	first, cancels := 0, false
	for n := 0; n < mostTries; n++ {
		r, sent := w.call(client, s, first)
		results, first = append(results, r), first+sent
		outcome := how.outcome(r.Err, r.Replayed())
		cancels = outcome == gateway.OutcomeNotSent || outcome == gateway.OutcomeRejected
		if !gateway.SafeToRetry(r.Err) {
			break
		}
		_ = wait(context.Background(), 2*time.Second)
	}
	w.Lock()
	defer w.Unlock()
	o := w.order(s.known())
	o.clicks--
	o.kept = o.kept || !cancels
	if cancels && how.hasty || o.clicks == 0 && !o.kept {
		w.counts["buyers sent elsewhere"]++
		if o.cancels++; len(o.commits) > 0 {
			w.note("%s has an invoice, and its buyer is sent elsewhere", s.known())
		}
	}
	if o.clicks == 0 {
		o.kept = false
	}
	return results
}

// forever is longer than a client tries to record an outcome.
const forever = 2 * time.Hour

// transit is how long a request may be in transit.
const transit = time.Second

// lookUp has a person record whether the gateway has an invoice of an unknown order. The guard does not believe that
// there is none as long as a request may be in transit.
func (w *world) lookUp(s step) {
	if !s.Early {
		_ = wait(context.Background(), transit)
	}
	w.guard.expire()
	read, err := w.guard.Order(context.Background(), s.merchant(), s.orderID())
	if err != nil || read.State != gateway.OrderUnknown {
		return
	}
	w.Lock()
	defer w.Unlock()
	const invoice = `{"id":"copied by a person"}`
	f, o := gateway.Finding{By: "anna", Margin: transit}, w.order(s.known())
	o.ever = true // follow may look first after the finding
	if len(o.commits) > 0 {
		f.Exists, f.Invoice = true, []byte(invoice)
	}
	err = w.guard.Resolve(context.Background(), read, f)
	switch {
	case err == nil && f.Exists:
		o.settle()
		o.result = invoice
		o.created = append(o.created, o.commits...)
	case err == nil:
		o.settle()
		w.counts["orders found absent"]++
	case !errors.Is(err, gateway.ErrTooEarly) && !errors.Is(err, gateway.ErrNotUnknown) && !errors.Is(err, gateway.ErrTriedAgain):
		w.note("a finding about %s is refused: %v", s.known(), err)
	}
}

// call makes one call of a step, and compares how it ends with what the gateway and the guard have.
func (w *world) call(client *gateway.Client, s step, first int) (r call.Result, sent int) {
	a := &attempted{step: s, first: first, record: &call.Record{}, begun: time.Now()}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), attemptedKey{}, a))
	defer cancel()
	if s.Cancel > 0 {
		defer time.AfterFunc(s.Cancel, cancel).Stop()
	}
	if s.Deadline > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, s.Deadline)
		defer done()
	}
	opts := []gateway.CallOption{gateway.WithMerchant(s.merchant())}
	if s.Merchant != 0 {
		opts = append(opts, gateway.WithAPIKey(s.key()))
	}
	request := call.Order(s.orderID())
	switch {
	case s.Invalid:
		request.Price = decimal.New(-1, 0)
	case s.Other:
		request.Price = request.Price.Add(decimal.New(1, 0))
	}
	w.Lock()
	o := w.order(s.known())
	a.epoch = o.cancels
	if o.calls++; o.calls > 1 {
		o.met++
	}
	isHeldUp := o.suspended > 0
	shown := slices.Contains(o.created, s.Other) && o.unknown.IsZero() && o.lost == 0
	isFree, met := o.calls == 1 && o.unknown.IsZero() && len(o.created) == 0 && o.lost == 0 && !s.Invalid, o.met
	w.Unlock()
	r = call.Send(ctx, client, request, a.record, opts...)
	if took, most := time.Since(a.begun), w.longest(s); took > most {
		a.record.Violation("the call took %v, and its timeouts %v", took, most)
	}
	isLeft := errors.Is(r.Err, gateway.ErrStillSending)
	w.Lock()
	defer w.Unlock()
	isHeldUp = isHeldUp || o.suspended > 0
	isJoined := errors.Is(r.Err, gateway.ErrOrderInFlight)
	if s.Deadline > 0 && r.Outcome() == gateway.OutcomeUnknown && gateway.SafeToRetry(r.Err) && !isJoined { // it may go on
		w.left.Go(func() { w.follow(o, a, isLeft, func() bool { return isFree && o.met == met && !a.slept }) })
	} else {
		o.calls--
	}
	r.Result, r.Repeatable = o.result, w.Idempotent
	if o.lost > 0 && r.Replayed() {
		r.Result = string(r.Invoice.Raw) // the client may know more than the guard
	}
	outlasted := s.Deadline == 0 && a.sent == 1 && a.read // a cancelled context does not cut an invoice that is being sent
	if isFree && o.met == met && !a.slept && (ctx.Err() == nil || outlasted) {
		w.checkAlone(r, a, ctx.Err() != nil)
	}
	if shown && r.Err != nil && ctx.Err() == nil && !a.slept && !s.Invalid && !isHeldUp {
		a.record.Violation("the invoice was shown, and a later call does not get it")
	}
	unknown, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](r.Err)
	switch isBefore := isUnknown && unknown.Replayed; {
	case r.Err == nil:
		o.settle()
		if r.Replayed() {
			w.counts["invoices replayed"]++
		}
		if o.left {
			w.counts["invoices shown after their caller had left"]++
		}
		if !r.Replayed() {
			o.created = append(o.created, s.Other)
		} else if slices.Contains(o.created, !s.Other) {
			a.record.Violation("it gets the invoice of another request")
		}
	case isBefore:
		o.held = true
	case isUnknown:
		o.unknown, o.ever, o.doubted = time.Now(), true, true
	}
	if isLeft {
		return r, a.sent
	}
	knowsMore := o.lost > 0 && r.Outcome() == gateway.OutcomeConflict // the client than the guard
	if !o.unknown.IsZero() && o.unknown.Before(a.begun) && r.Outcome() != gateway.OutcomeUnknown && !knowsMore {
		a.record.Violation("the outcome of the order was unknown before, and is %v", r.Outcome())
	}
	if r.Outcome() == gateway.OutcomeConflict && (a.sent > 0 || slices.Contains(o.created, s.Other) && !s.Invalid || len(o.commits) == 0) {
		a.record.Violation("a conflict of an order that was sent, has no invoice, or has it for this request")
	}
	if (isJoined || isUnknown && unknown.Replayed && !w.Idempotent || r.Replayed()) && a.sent > 0 {
		a.record.Violation("held back by the guard after it was sent")
	}
	return r, a.sent
}

// follow waits for the end of an invoice whose caller has left at a deadline. The guard gets the outcome that the
// response proves.
func (w *world) follow(o *account, a *attempted, isSent bool, isAlone func() bool) {
	_ = wait(context.Background(), a.Suspended) // the guard itself is held up
	has := gateway.OrderStatus{State: gateway.OrderInFlight}
	for has.State == gateway.OrderInFlight {
		_ = wait(context.Background(), 10*time.Millisecond)
		w.guard.expire()
		has, _ = w.guard.Order(context.Background(), a.merchant(), a.orderID())
	}
	w.Lock()
	defer w.Unlock()
	o.calls--
	if !isSent {
		return
	}
	w.counts["callers who left while their invoice was sent"]++
	has, _ = w.guard.Order(context.Background(), a.merchant(), a.orderID()) // a person may have looked it up since
	switch has.State {
	case gateway.OrderCreated:
		o.settle()
		o.created, o.left = append(o.created, a.Other), true
	case gateway.OrderUnknown:
		o.unknown, o.ever, o.doubted = time.Now(), true, true
	}
	if want, certain := w.came(a); certain && isAlone() && (a.told.Outcome != want || !a.ending.IsZero() && a.outcome != want) {
		w.note("the end of %s is %v, recorded as %v, after its caller has left, and is %v by what came", a.known(), a.told.Outcome, a.outcome, want)
	}
}

// came returns the outcome of a call that runs alone, for an order that has no invoice that may exist: it is sent,
// whatever becomes of other orders, and the responses decide the outcome. It is certain if these arrive.
func (w *world) came(a *attempted) (want gateway.Outcome, certain bool) {
	want = gateway.OutcomeNotSent
	for n := range a.sent {
		switch b := a.attempt(n); {
		case !b.arrives(w.Timeout):
			return 0, false
		case b.creates():
			want = gateway.OutcomeSucceeded
		case b.refuses() && want != gateway.OutcomeUnknown:
			want = gateway.OutcomeRejected
		default:
			want = gateway.OutcomeUnknown
		}
	}
	return want, true
}

// checkAlone checks the end of a call that runs alone. A success takes its own time, and waits for no other order.
func (w *world) checkAlone(r call.Result, a *attempted, isCancelled bool) {
	if a.sent == 0 {
		a.record.Violation("held back, although nothing is known of the order")
	}
	want, certain := w.came(a)
	if !certain {
		return
	}
	w.counts["calls alone for an order, whose outcome is what came"]++
	if isCancelled {
		w.counts["such calls that were cancelled"]++
	}
	if r.Outcome() != want {
		a.record.Violation("the outcome is %v, and %v by what came", r.Outcome(), want)
	}
	if b := a.attempt(0); r.Err == nil && a.sent == 1 && time.Since(a.begun) != b.lasts() {
		a.record.Violation("it took %v, and its response %v", time.Since(a.begun), b.lasts())
	}
}

// longest is how long a call may take: a second more than the timeouts of another call for the order, for
// which it waits, and its own. A deadline ends it; cancelling leaves it the attempt that is being sent.
func (w *world) longest(s step) time.Duration {
	const backoff = 10 * time.Second // more than the default policy waits
	most := 2 * time.Duration(w.schedule.Attempts) * (w.Timeout + backoff)
	if s.Cancel > 0 {
		most = min(most, s.Cancel+w.Timeout)
	}
	if s.Deadline > 0 {
		most = min(most, s.Deadline)
	}
	return most + time.Second + s.Suspended
}

// inBubble is [synctest.Test] on one processor: on several, two timers of a bubble that fire at one instant can crash
// the race detector, which has one context for all of them (go.dev/issue/78156).
func inBubble(t *testing.T, f func(*testing.T)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}

// TestRapid has merchants who follow the outcomes literally live through random schedules: clicks at once, faults,
// cancellations, deadlines, findings, guards that fail, suspended processes, gateways that return the first
// invoice of a repeated order. No order has two invoices, no order that has one is sent again, no buyer is sent elsewhere
// while an invoice exists, and an invoice that was shown once is shown for ever. -rapid.checks sets how many
// schedules; a failure is shrunk to the shortest one, which is printed.
func TestRapid(t *testing.T) {
	all, counts := &call.Summary{}, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		var results []call.Result
		var w *world
		inBubble(t, func(*testing.T) { results, w = s.run(reading{outcome: literally}) })
		if len(w.wrong) > 0 {
			rt.Fatalf("%+v\n%s", s, strings.Join(w.wrong, "\n"))
		}
		for what, n := range w.counts {
			counts[what] += n
		}
		for _, r := range results {
			all.Add("", r)
		}
	})
	t.Logf("rapid: %v; %v", all, counts)
	assert.Len(t, counts, 8, "each of these happens")
	for outcome := gateway.OutcomeUnknown; outcome <= gateway.OutcomeConflict; outcome++ {
		assert.NotZero(t, all.Count(outcome), "no call ended as %v", outcome)
	}
}

// TestRapid_findsHarm shows that the schedules find a merchant who does harm.
func TestRapid_findsHarm(t *testing.T) {
	for _, tt := range []struct {
		name string
		how  reading
		want []string
	}{
		{"he reads an order that the guard refuses as not sent, which is true of the call", reading{outcome: func(err error, replayed bool) gateway.Outcome {
			unknown, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
			if replayed || errors.Is(err, gateway.ErrOrderInFlight) || isUnknown && unknown.Replayed || gateway.OutcomeOf(err) == gateway.OutcomeConflict {
				return gateway.OutcomeNotSent
			}
			return gateway.OutcomeOf(err)
		}}, []string{"its buyer is sent elsewhere"}},
		{"he cancels an order although another click may still send it", reading{outcome: literally, hasty: true}, []string{"after the buyer was sent elsewhere"}},
		{"no guard keeps his orders", reading{outcome: literally, unguarded: true}, []string{"sent again, although it has an invoice", "has 2 invoices", "are in flight"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := map[string]int{}
			for seed := 0; seed < 1000 && len(found) < len(tt.want); seed++ {
				inBubble(t, func(*testing.T) {
					_, w := rapid.Custom(drawSchedule).Example(seed).run(tt.how)
					for _, want := range tt.want {
						if strings.Contains(strings.Join(w.wrong, "\n"), want) {
							found[want] = seed
						}
					}
				})
			}
			t.Log(found)
			assert.Len(t, found, len(tt.want))
		})
	}
}
