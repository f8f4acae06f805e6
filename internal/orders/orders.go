// Package orders has the transitions of an order: every guard keeps rows and changes them by these
// functions, which read no clock and no database.
package orders

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// Errors of transitions that are refused. The row is not changed.
var (
	ErrOtherGateway = errors.New("gateway: the order belongs to another gateway")
	ErrNotUnknown   = errors.New("the outcome of the order is not unknown")
	ErrTriedAgain   = errors.New("the order was sent again since it was read")
	ErrTooEarly     = errors.New("a request of the order may still be in transit")
	ErrNotCreated   = errors.New("the order is not created, or one of its attempts has no known outcome")
)

// A State is what an order is. The numbers are those of gateway.OrderState.
type State int8

const (
	Free State = iota
	InFlight
	Created
	Unknown
)

// String returns the state in words.
func (s State) String() string { return [...]string{"free", "in flight", "created", "unknown"}[s] }

// A Row is an order in a guard; R is the record of an attempt. The zero row is an order that was never
// begun. Times are microseconds since 1970 by the clock of the guard, and 0 for never. A row is a value: a
// transition returns another row, and changes no slice of the first.
type Row[R any] struct {
	Gateway string // the base URL of the gateway that has the order; empty if unknown

	Attempts  int
	Attempt   int64 // names the attempt that was begun last
	Begun     int64 // when that attempt began; 0 if nobody knows
	Lease     int64 // until when that attempt may be sent
	OpenSince int64 // when the oldest attempt began that has no known outcome; 0 for none, and if an invoice is known
	Ended     int64 // when an outcome was recorded last
	Created   int64 // when it became known that an invoice exists

	Held     *R           // the attempt that was begun last, until it ends
	Open     []Attempt[R] // attempts of unknown outcome, the first that was known first
	Last     *R           // of an order without an invoice: the last attempt that surely created none
	Invoices []Attempt[R] // the invoice of the order, and further ones, which should not be
	Bare     bool         // the first invoice exists, but its text is unknown
	Findings []Finding    // all of them, the first one first
}

// An Attempt is an attempt to create the invoice.
type Attempt[R any] struct {
	Name   int64 // 0 if nobody knows which attempt it is
	Found  bool  // a person has recorded the invoice, not the attempt
	Silent bool  // its process has not reported its outcome
	Record R
}

// A Finding is what a person found out about an order of unknown outcome.
type Finding struct {
	Exists   bool
	By, Note string
	At       int64   // when it was recorded
	Attempt  int64   // the last one of the order then
	Ended    []int64 // the attempts whose outcome was unknown until then
}

// State returns the state of an order.
func (r *Row[R]) State(now int64) State {
	switch {
	case r.Held != nil && now < r.Lease:
		return InFlight
	case len(r.Invoices) > 0:
		return Created
	case r.Held != nil || len(r.Open) > 0:
		return Unknown
	default:
		return Free
	}
}

// Unsettled returns the attempts whose outcome is not known, the last one last.
func (r *Row[R]) Unsettled() []Attempt[R] {
	if r.Held == nil {
		return r.Open
	}
	return with(r.Open, Attempt[R]{Name: r.Attempt, Silent: true, Record: *r.Held})
}

// An Answer is the result of a transition.
type Answer struct {
	Changed bool  // the row must be written
	Granted bool  // of Begin
	Err     error // why nothing was done
}

// A Begin asks for the lease of an order.
type Begin[R any] struct {
	Gateway  string
	Attempt  int64
	Lease    int64 // how long it may be sent, in microseconds
	Resubmit bool  // even if its outcome is unknown
	Record   R     // of the attempt, as long as no outcome of it is known
}

// Begin grants the lease of an order that is free, or of unknown outcome and to be sent again.
func (r Row[R]) Begin(b Begin[R], now int64) (Row[R], Answer) {
	if r.Held != nil && r.Attempt == b.Attempt { // the statement was repeated
		return r, Answer{Granted: true}
	}
	state := r.State(now)
	if r.Gateway != "" && r.Gateway != b.Gateway {
		return r, Answer{Err: fmt.Errorf("%w: it is known at %s, and this client calls %s; if that is the same gateway "+
			"with a new base URL, change the orders as docs/unknown.md says", ErrOtherGateway, r.Gateway, b.Gateway)}
	}
	if state != Free && (state != Unknown || !b.Resubmit) {
		return r, Answer{}
	}
	r.Open = r.Unsettled()
	r.Gateway = b.Gateway
	r.Attempts++
	r.Attempt, r.Held, r.Begun, r.Lease = b.Attempt, new(b.Record), now, now+b.Lease
	r.close(now)
	return r, Answer{Changed: true, Granted: true}
}

// A Result says whether an attempt has made an invoice.
type Result int8

const (
	Nothing   Result = iota // no invoice was made
	Undecided               // one may have been made
	Success                 // one was made
)

// An End is the outcome of an attempt.
type End[R any] struct {
	Gateway string
	Attempt int64
	Result  Result
	Bare    bool // the text of the invoice is unknown
	Record  R
}

// End records the outcome of an attempt, whoever has the lease. The state of the order only becomes more
// certain. An outcome that the attempt has reported before changes nothing.
func (r Row[R]) End(e End[R], now int64) (Row[R], Answer) {
	ended := Attempt[R]{Name: e.Attempt, Record: e.Record}
	open, made := indexOf(r.Open, e.Attempt), indexOf(r.Invoices, e.Attempt)
	switch {
	case r.Held != nil && r.Attempt == e.Attempt: // the holder of the lease
		r.Held = nil
	case made >= 0 && !r.learns(made, e): // an attempt that has succeeded
		return r, Answer{}
	case open >= 0 && e.Result == Undecided: // an earlier attempt, whose outcome is still not known
		if !r.Open[open].Silent {
			return r, Answer{}
		}
		r.Open, r.Ended = slices.Clone(r.Open), now
		r.Open[open] = ended
		return r, Answer{Changed: true}
	case open >= 0: // an earlier attempt, whose outcome becomes known
		r.Open = without(r.Open, open)
	case e.Result == Nothing, e.Result == Undecided && r.hasEnded(e.Attempt): // a stranger, who says nothing new
		return r, Answer{}
	case r.Attempts == 0: // a stranger, whose row is gone
		r.Gateway, r.Attempts, r.Attempt, r.Begun = e.Gateway, 1, e.Attempt, now
	}
	if r.Held == nil {
		r.Lease = now
	}
	r.Ended = now
	switch {
	case e.Result == Nothing:
		r.Last = new(e.Record)
	case e.Result == Undecided:
		r.Open = with(r.Open, ended)
	case len(r.Invoices) == 0 || r.learns(0, e):
		r.Invoices, r.Bare = append([]Attempt[R]{ended}, r.Invoices[min(1, len(r.Invoices)):]...), e.Bare
	default:
		r.Invoices = with(r.Invoices, ended)
	}
	r.close(now)
	return r, Answer{Changed: true}
}

// learns reports whether a success has the gateway's own text of an invoice for which the row has only a person's
// finding, or no text.
func (r *Row[R]) learns(made int, e End[R]) bool {
	first := r.Invoices[made]
	isSameInvoice := first.Name == e.Attempt || first.Found && r.Bare
	return made == 0 && e.Result == Success && !e.Bare && isSameInvoice && (first.Found || r.Bare)
}

// hasEnded reports whether a finding has ended an attempt.
func (r *Row[R]) hasEnded(attempt int64) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return slices.Contains(f.Ended, attempt) })
}

// A Resolve is a finding about an order of unknown outcome.
type Resolve[R any] struct {
	Finding
	Attempt int64     // the last one when the order was read, before it was looked up
	Read    int64     // when the order was read, by the clock of the guard
	ReadAt  time.Time // the same, by the clock of the process that read it
	Waited  int64     // how long after the attempt began, or ended, the order was read, by the clocks of the processes
	Margin  int64     // how long a request may be in transit, in microseconds
	Bare    bool      // the text of the invoice is unknown
	Same    bool      // its invoice equals the invoice of the row
	Record  R         // of the invoice
}

// Resolve ends an order of unknown outcome, or adds the text of the invoice to a created order that
// lacks it.
func (r Row[R]) Resolve(f Resolve[R], now int64) (Row[R], Answer) {
	state := r.State(now)
	adds := state == Created && r.Bare && f.Exists && !f.Bare
	switch {
	case r.hasFound(f, state):
		return r, Answer{}
	case state != Unknown && !adds:
		return r, Answer{Err: r.notUnknown(state)}
	case r.Attempt != f.Attempt:
		return r, Answer{Err: ErrTriedAgain}
	case !f.Exists && r.tooEarlyBy(f) > 0:
		return r, Answer{Err: tooEarly(f.ReadAt, r.tooEarlyBy(f))}
	}
	f.Finding.At, f.Finding.Attempt, f.Finding.Ended = now, f.Attempt, namesOf(r.Unsettled())
	r.Findings = with(r.Findings, f.Finding)
	if adds {
		r.Invoices = slices.Clone(r.Invoices)
		r.Invoices[0].Record, r.Invoices[0].Found, r.Bare = f.Record, true, false
		return r, Answer{Changed: true}
	}
	open := r.Unsettled()
	last := open[len(open)-1]
	r.Held, r.Open, r.Last = nil, nil, &last.Record
	if f.Exists {
		name := last.Name
		if len(open) > 1 {
			name = 0
		}
		r.Invoices, r.Bare = []Attempt[R]{{Name: name, Found: true, Record: f.Record}}, f.Bare
	}
	r.close(now)
	return r, Answer{Changed: true}
}

// tooEarlyBy returns how many microseconds too early the order was read, by the clock that says more: a clock that
// jumps must not end the wait.
func (r *Row[R]) tooEarlyBy(f Resolve[R]) int64 {
	return f.Margin + max(r.Lease-f.Read, r.Lease-cmp.Or(r.Begun, r.Lease)-f.Waited)
}

func tooEarly(readAt time.Time, early int64) error {
	left := (time.Duration(early)*time.Microsecond + time.Second - 1).Truncate(time.Second)
	return fmt.Errorf("%w: the order was read %v too early: read it again at %s, and look it up again",
		ErrTooEarly, left, textOf(readAt.Add(left)))
}

// notUnknown is the error of a finding about an order in another state.
func (r *Row[R]) notUnknown(state State) error {
	err := fmt.Errorf("%w: it is %s", ErrNotUnknown, state)
	if last := r.LastFinding(); last.At != 0 {
		what := "no invoice"
		if last.Exists {
			what = "an invoice"
		}
		err = fmt.Errorf("%w, and %q found %s at %s", err, last.By, what, textOf(TimeAt(last.At)))
	}
	return err
}

// LastFinding returns the finding that was recorded last; the zero finding if there is none.
func (r *Row[R]) LastFinding() (last Finding) {
	if len(r.Findings) > 0 {
		last = r.Findings[len(r.Findings)-1]
	}
	return last
}

func textOf(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Mark makes a free order one of unknown outcome: an attempt that this guard has forgotten may have sent it.
func (r Row[R]) Mark(attempt int64, record R, now int64) (Row[R], Answer) {
	if r.State(now) != Free {
		return r, Answer{}
	}
	r.Attempts++
	r.Attempt, r.Begun, r.Lease = attempt, 0, now
	r.Open = []Attempt[R]{{Name: attempt, Record: record}}
	r.close(now)
	return r, Answer{Changed: true}
}

// hasFound reports whether somebody has recorded the same, so that a file can be applied again.
func (r *Row[R]) hasFound(f Resolve[R], state State) bool {
	ended := Free
	if f.Exists {
		ended = Created
	}
	if state != ended || r.Attempt != f.Attempt {
		return false
	}
	last := r.LastFinding()
	return last.At != 0 && last.Exists == f.Exists && last.Attempt == f.Attempt && (f.Bare || f.Same)
}

// Forget returns why the row of an order must not be deleted, or nil: only an order whose invoice is known, without
// an attempt of unknown outcome, may be sent anew. The attempt is the last one when the order was read.
func (r *Row[R]) Forget(attempt, now int64) error {
	switch {
	case r.State(now) != Created || len(r.Unsettled()) > 0:
		return fmt.Errorf("%w: it is %s", ErrNotCreated, r.State(now))
	case r.Attempt != attempt:
		return ErrTriedAgain
	default:
		return nil
	}
}

// close sets what follows from the attempts and invoices of the row.
func (r *Row[R]) close(now int64) {
	switch {
	case len(r.Invoices) > 0:
		r.Last = nil
		if r.Created == 0 {
			r.Created = now
		}
		r.OpenSince = 0
		if r.Held != nil {
			r.OpenSince = r.Begun
		}
	case r.Held == nil && len(r.Open) == 0:
		r.OpenSince = 0
	case r.OpenSince == 0:
		r.OpenSince = now
	}
}

// namesOf returns the names of attempts.
func namesOf[R any](attempts []Attempt[R]) (names []int64) {
	for _, a := range attempts {
		names = append(names, a.Name)
	}
	return names
}

func indexOf[R any](attempts []Attempt[R], name int64) int {
	if name == 0 {
		return -1
	}
	return slices.IndexFunc(attempts, func(a Attempt[R]) bool { return a.Name == name })
}

// with returns a list with a further item, without writing into the array of the list.
func with[T any](list []T, item T) []T { return append(list[:len(list):len(list)], item) }

// without returns a list without the item at a place; -1 for the whole list.
func without[T any](list []T, place int) []T {
	if place < 0 {
		return list
	}
	return append(list[:place:place], list[place+1:]...)
}

// NameOf returns the name of an attempt with a number; "" for 0.
func NameOf(attempt int64) string {
	if attempt == 0 {
		return ""
	}
	return strconv.FormatInt(attempt, 36)
}

// AttemptOf returns the number of the attempt that [NameOf] has named; 0 for "". A name of another guard gets a hash.
func AttemptOf(name string) int64 {
	if attempt, err := strconv.ParseInt(name, 36, 64); err == nil && attempt > 0 || name == "" {
		return attempt
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return int64(hash.Sum64()>>1 | 1) // #nosec G115 -- of 63 bits
}

// TimeAt is the time, in UTC, of microseconds since 1970; the zero time for 0.
func TimeAt(microseconds int64) time.Time {
	if microseconds == 0 {
		return time.Time{}
	}
	return time.UnixMicro(microseconds).UTC()
}
