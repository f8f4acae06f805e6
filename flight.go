package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
)

const (
	// maxUnattended is how many flights of a client send without a caller: each has a connection.
	maxUnattended = 256

	// maxRecorders is how many flights of a client record their outcome in the background, and maxRecording how many
	// of them call the guard at a time.
	maxRecorders = 256
	maxRecording = 4

	// longestRecording is for how long a flight tries to record its outcome.
	longestRecording = time.Hour

	// Bounds of the pause before a flight tries again to record its outcome.
	leastPause = time.Second
	mostPause  = 15 * time.Second
)

// A flight is the way of an order through a client: it asks the guard, sends, and records. The call that begins it is
// its leader; other calls of the client for the order wait for it. If the leader's context has a deadline, the flight
// has a goroutine of its own, and goes on after the deadline.
type flight struct {
	flights *flights // nil for a call that has begun no flight
	key     orderKey
	request InvoiceRequest  // of the leader
	caller  context.Context // of the leader
	result  landing         // may be read by others once the flight has landed

	isRecording bool // the outcome is recorded in the background

	// Of a flight with a goroutine of its own. The results may be read once it has arrived.
	wire    context.Context // of the requests: it has the caller's values, and ends when the flight is cut
	cut     context.CancelCauseFunc
	arrived chan struct{}
	invoice *Invoice
	err     error
	aborted *abort // why there is no result; nil if there is one

	// The mutex of flights guards the rest.
	stage    stage
	attempts int           // how many attempts have begun
	isLeft   bool          // the leader has left while the invoice was sent, or its outcome recorded
	isCut    bool          // the leader's deadline has cut the invoice
	changed  chan struct{} // closed when the flight lands, and when it is over; nil while no call waits
}

// A stage is how far a flight has come.
type stage int8

const (
	asking    stage = iota // the guard
	busy                   // asking it again, because another process has the order
	granted                // by the guard, and nothing of the invoice was read for sending
	sending                // from the first byte until there is an outcome
	recording              // the outcome of the invoice
	landed                 // the leader has the outcome
	over                   // the guard has it too, or never will
)

// A landing is the result of a flight for the calls that wait for it.
type landing struct {
	state     OrderState   // of the order; [OrderFree] also if the guard has failed
	known     *OrderRecord // of the order; nil for none
	retryable bool         // whether the leader's call may be made again, after an unknown outcome
	failed    error        // why the guard has not answered; nil if it has
}

// endsWaiting reports whether the calls that wait end. Otherwise the order is free, or another process has it, and one
// of them begins the next flight.
func (l landing) endsWaiting() bool {
	return l.failed != nil || l.state == OrderCreated || l.state == OrderUnknown
}

// landingOf returns the landing that follows from the record of an order.
func landingOf(known *OrderRecord) landing {
	switch {
	case known == nil || known.Outcome == OutcomeNotSent || known.Outcome == OutcomeRejected:
		return landing{}
	case known.Outcome == OutcomeSucceeded:
		return landing{state: OrderCreated, known: known}
	default:
		return landing{state: OrderUnknown, known: known}
	}
}

// An abort is a panic, or a Goexit, of the caller's code.
type abort struct {
	value any // of the panic; nil for a Goexit
	stack []byte
}

// fly makes the flight, and returns its result to the leader: on the leader's goroutine, unless a deadline may end the
// wait. Without a deadline, a cancelled call returns after the Begin of its guard: if the program ended before that,
// the order could stay in flight until its lease expires.
func (f *flight) fly(o *order, mayLeave bool) (*Invoice, error) {
	if !mayLeave {
		defer f.finish()
		return o.complete()
	}
	response := o.cfg.response
	if response != nil {
		o.cfg.response = new(Response) // the caller's must not change once the caller has left
	}
	f.arrived = make(chan struct{})
	f.wire, f.cut = context.WithCancelCause(context.WithoutCancel(f.caller))
	o.wire, o.mayBegin, o.follow = f.wire, func() bool { return f.mayBegin(o.attempts) }, f.context
	f.flights.enter()
	go f.run(o)

	if left := f.wait(); left != nil {
		return nil, o.leftError(left)
	}
	if f.aborted != nil {
		f.aborted.resume()
	}
	if response != nil {
		*response = *o.cfg.response
	}
	return f.invoice, f.err
}

// run makes the flight on a goroutine of its own.
func (f *flight) run(o *order) {
	defer f.flights.exit()
	defer close(f.arrived)
	defer f.finish()
	defer f.cut(nil)
	hasReturned := false
	defer func() {
		if value := recover(); !hasReturned {
			f.aborted = &abort{value, debug.Stack()}
			o.logAbort(f.aborted)
		}
	}()
	f.invoice, f.err = o.complete()
	hasReturned = true
}

// resume goes on with the panic, or the Goexit, in the goroutine of the caller.
func (a *abort) resume() {
	if a.value == nil {
		runtime.Goexit()
	}
	panic(a.value)
}

// logAbort logs a panic with its stack. A logger that panics too ends nothing.
func (o *order) logAbort(a *abort) {
	if a.value == nil {
		return
	}
	defer func() { _ = recover() }()
	value := oneLine(sanitize(fmt.Errorf("%v", a.value), o.redactor))
	logger := cmp.Or(o.client.cfg.logger, slog.Default())
	logger.ErrorContext(o.ctx, "gateway: a panic has ended the sending of an invoice",
		"operation", OpCreateInvoice, "panic", value, "stack", string(a.stack))
}

// A leave is why a leader leaves before its flight has landed.
type leave struct {
	isBusy   bool // another process has the order
	attempts int  // that have begun to send; 0 if nothing of the invoice was read for sending
}

// wait waits until the flight has arrived, and returns nil, or until the leader leaves. The end of the leader's context
// ends the wait while the guard is asked, and ends the flight itself before the first byte. Afterwards only a deadline
// ends the wait, or cuts the flight.
func (f *flight) wait() *leave {
	select {
	case <-f.arrived:
		return nil
	case <-f.caller.Done():
	}
	if left := f.callerEnded(); left != nil {
		return left
	}
	// The deadline of a cancelled context is still to come. A timer that is due when it is made can crash the race
	// detector in tests with virtual time (https://go.dev/issue/78156), hence a context.
	deadline, _ := f.caller.Deadline()
	expired, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	select {
	case <-f.arrived:
		return nil
	case <-expired.Done():
	}
	if left := f.deadlinePassed(); left != nil {
		return left
	}
	<-f.arrived
	return nil
}

// callerEnded ends the wait or the flight, after the leader's context has ended.
func (f *flight) callerEnded() *leave {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	switch f.stage {
	case asking, busy:
		f.cut(context.Cause(f.caller))
		return &leave{isBusy: f.stage == busy}
	case granted:
		f.cut(context.Cause(f.caller))
	}
	return nil
}

// deadlinePassed returns why the leader leaves, or nil if it waits for the end of a flight that is cut, or has ended.
func (f *flight) deadlinePassed() *leave {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	if f.stage != recording && (f.stage != sending || !f.goOn()) {
		return nil
	}
	f.isLeft = true
	return &leave{attempts: f.attempts}
}

// goOn decides, when its leader's context has ended, whether a flight that sends goes on. Once the deadline has passed,
// the flight goes on without its leader, or is cut if too many others have none. It is called with the lock.
func (f *flight) goOn() bool {
	deadline, _ := f.caller.Deadline()
	switch {
	case f.isLeft || f.isCut:
		return f.isLeft
	case time.Now().Before(deadline):
		return false
	case f.flights.unattended >= maxUnattended:
		f.isCut = true
		f.cut(context.DeadlineExceeded)
		return false
	default:
		f.isLeft = true
		f.flights.unattended++
		return true
	}
}

// mayBegin decides, at the first byte of an attempt, whether the attempt may send the invoice.
func (f *flight) mayBegin(attempts int) bool {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	if f.caller.Err() != nil && (f.stage != sending || !f.goOn()) {
		return false
	}
	f.stage, f.attempts = sending, attempts
	return true
}

// context returns the context that bounds the rest of the flight: the leader's until the first byte, then the flight's
// own.
func (f *flight) context() context.Context {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	if f.stage == sending && (f.caller.Err() == nil || f.goOn()) {
		return f.wire
	}
	return f.caller
}

// leftOrCut reports whether the leader has left, and whether its deadline has cut the invoice.
func (f *flight) leftOrCut() (left, cut bool) {
	if f.flights == nil {
		return false, false
	}
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	return f.isLeft, f.isCut
}

// reach notes how far the flight has come. When the flight has landed, the calls that wait get its result. When it is
// over, another flight of the order may begin.
func (f *flight) reach(stage stage) {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	f.stage = max(f.stage, stage) // the outcome may be recorded before the flight lands
	if stage == over {
		delete(f.flights.all, f.key)
	}
	if stage >= landed && f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// finish gives the calls that wait the result of the flight.
func (f *flight) finish() {
	if f.isRecording {
		f.reach(landed)
	} else {
		f.reach(over)
	}
}

// hasOutcome notes that nothing is sent any more.
func (f *flight) hasOutcome() {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	if f.isLeft { // while it was sent
		f.flights.unattended--
	}
	if f.stage == sending {
		f.stage = recording
	}
}

// look returns the result of the flight for another call, or a channel that is closed when the call should look again.
// A free order has no result before the guard has recorded that.
func (f *flight) look() (landing, <-chan struct{}) {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	if f.stage == over || f.stage == landed && (f.result.state == OrderCreated || f.result.state == OrderUnknown) {
		return f.result, nil
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return landing{}, f.changed
}

// await waits for the flight on behalf of another call, and returns its result for that call.
func (f *flight) await(o *order) (landing, error) {
	result, changed := f.look()
	if changed == nil {
		return result, nil
	}
	if o.Request.differsFrom(&OrderRecord{Request: f.request}) {
		return landing{}, o.guardError(ErrOrderInFlight)
	}
	waiting, cancel := context.WithDeadline(o.ctx, o.until)
	defer cancel()
	for ; changed != nil; result, changed = f.look() {
		select {
		case <-changed:
		case <-waiting.Done():
			if o.ctx.Err() != nil {
				return landing{}, o.waitEnded()
			}
			return landing{}, o.guardError(ErrOrderInFlight)
		}
	}
	return result, nil
}

// recordLater goes on recording an outcome in the background, unless too many others do. Once the lease has expired,
// the order is unknown anyway, and only a success says more.
func (f *flight) recordLater(o *order, r OrderRecord) {
	isLate := func() bool { return r.Outcome != OutcomeSucceeded && attempt.HasPassed(o.expires) }
	if isLate() {
		return
	}
	select {
	case f.flights.recorders <- struct{}{}:
	default:
		return
	}
	f.isRecording = true
	f.flights.enter()
	go func() {
		defer f.flights.exit()
		defer func() { <-f.flights.recorders }()
		defer f.reach(over)
		defer func() {
			if value := recover(); value != nil {
				o.logAbort(&abort{value, debug.Stack()})
			}
		}()
		end := time.Now().Add(longestRecording)
		for pause := leastPause; f.flights.awaitTurn(pause); pause = min(2*pause, mostPause) {
			err := f.flights.takeTurn(func() error { _, err := o.end(r); return err })
			if err == nil || isFinal(err) || isLate() || time.Now().After(end) {
				return
			}
		}
	}()
}

// isFinal reports whether a guard will fail again.
func isFinal(err error) bool {
	_, misused := errors.AsType[*ArgumentError](err)
	return misused || errors.Is(err, ErrOtherGateway)
}

// flights are the calls and the flights of a client for orders.
type flights struct {
	mu         sync.Mutex
	all        map[orderKey]*flight
	busy       int           // calls and goroutines
	none       chan struct{} // closed when none is busy; nil while Shutdown does not wait
	unattended int           // flights that send without a caller

	recorders chan struct{}   // holds a value for each flight that records in the background
	recording chan struct{}   // holds a value for each turn of a recorder to call the guard
	closing   context.Context // ends by Shutdown
	shut      context.CancelFunc
	stopped   context.Context // ends when Shutdown does not wait any longer
	stop      context.CancelFunc
}

func newFlights() *flights {
	fs := &flights{
		all:       map[orderKey]*flight{},
		recorders: make(chan struct{}, maxRecorders), recording: make(chan struct{}, maxRecording),
	}
	fs.closing, fs.shut = context.WithCancel(context.Background())
	fs.stopped, fs.stop = context.WithCancel(context.Background())
	return fs
}

// enter counts a call or a goroutine: Shutdown waits for it.
func (fs *flights) enter() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.busy++
}

func (fs *flights) exit() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.busy--
	fs.tellNone()
}

// tellNone ends the wait of Shutdown if no call and no goroutine is busy. It is called with the lock.
func (fs *flights) tellNone() {
	if fs.busy == 0 && fs.none != nil {
		close(fs.none)
		fs.none = nil
	}
}

// awaitTurn pauses, and then waits for the turn of a recorder to call the guard: a few may at a time, so that a guard
// that recovers is not overrun. A Shutdown ends the pause at once, and makes the next ones short. AwaitTurn reports
// false, without a turn, if Shutdown does not wait any longer.
func (fs *flights) awaitTurn(pause time.Duration) bool {
	closing := fs.closing.Done()
	if fs.closed() {
		pause, closing = leastPause, nil
	}
	select {
	case <-time.After(pause):
	case <-closing:
	case <-fs.stopped.Done():
		return false
	}
	select {
	case fs.recording <- struct{}{}:
		return true
	case <-fs.stopped.Done():
		return false
	}
}

// takeTurn calls end in the turn that awaitTurn has got, and ends the turn, also after a panic.
func (fs *flights) takeTurn(end func() error) error {
	defer func() { <-fs.recording }()
	return end()
}

func (fs *flights) closed() bool { return fs.closing.Err() != nil }

// close ends sending. It returns a channel that is closed once no call and no goroutine is busy.
func (fs *flights) close() <-chan struct{} {
	fs.shut()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.none == nil {
		fs.none = make(chan struct{})
	}
	none := fs.none
	fs.tellNone()
	return none
}

// join returns the flight of an order, and whether the call has begun it.
func (fs *flights) join(o *order) (f *flight, isLeader bool) {
	key := orderKey{o.Merchant, o.Key()}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.all[key]; f != nil {
		return f, false
	}
	o.flight = flight{flights: fs, key: key, request: o.Request, caller: o.ctx}
	fs.all[key] = &o.flight
	return &o.flight, true
}
