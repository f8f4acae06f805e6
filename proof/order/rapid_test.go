package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/bubble"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// A behavior is what a scripted transport does with one attempt, within what
// net/http allows a RoundTripper.
type behavior struct {
	Before time.Duration // before anything
	Read   int           // bytes of the body that are read; below zero for all
	Rest   bool          // the rest is read after RoundTrip has returned
	Commit bool          // if all of it was read
	After  time.Duration // before the end
	Status int           // 0 for an error
	Error  int           // which of the errors
	Cut    int           // the body of the response breaks off after so many bytes; below zero for none
	Slow   time.Duration // before the body of the response
	Traced bool          // whether httptrace hooks are called
	Late   bool          // the body is first read when RoundTrip has returned, whatever it returns
}

// A step is one create-invoice call of a schedule.
type step struct {
	Order    int
	Other    bool // with another price
	Resubmit bool
	Start    time.Duration // after the step before
	Cancel   time.Duration // after the start; 0 for never
	Deadline time.Duration // after the start; 0 for none
	Attempts []behavior    // for each attempt; the last is for all that follow
}

// A schedule is a random sequence of calls. It is data only, so that it can be
// drawn outside the bubble in which it runs.
type schedule struct {
	Attempts int
	Timeout  time.Duration
	Steps    []step
}

func drawDuration(t *rapid.T, name string) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second}).Draw(t, name)
}

// drawRare is drawDuration for what mostly does not happen.
func drawRare(t *rapid.T, name string) time.Duration {
	if rapid.IntRange(0, 3).Draw(t, name+" comes") != 0 {
		return 0
	}
	return drawDuration(t, name)
}

func drawBehavior(t *rapid.T) behavior {
	return behavior{
		Before: drawDuration(t, "before"),
		Read:   rapid.SampledFrom([]int{-1, -1, -1, -1, 0, 0, 1, 40, 1000}).Draw(t, "read"),
		Rest:   rapid.Bool().Draw(t, "rest is read late"),
		Commit: rapid.IntRange(0, 3).Draw(t, "commit") != 0,
		After:  drawDuration(t, "after"),
		Status: rapid.SampledFrom([]int{0, 0, 0, 201, 201, 201, 201, 201, 201, 201, 200, 302, 400, 401, 408, 409, 422, 429, 500, 502, 503, 460, 999}).Draw(t, "status"),
		Error:  rapid.IntRange(0, len(tripErrors())-1).Draw(t, "error"),
		Cut:    rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 60, 10000}).Draw(t, "cut"),
		Slow:   drawDuration(t, "slow"),
		Traced: rapid.Bool().Draw(t, "traced"),
		Late:   rapid.IntRange(0, 7).Draw(t, "late") == 0,
	}
}

func drawSchedule(t *rapid.T) schedule {
	behaviors := rapid.SliceOfN(rapid.Custom(drawBehavior), 1, 3)
	steps := rapid.Custom(func(t *rapid.T) step {
		return step{
			Order:    rapid.IntRange(0, 3).Draw(t, "order"),
			Other:    rapid.IntRange(0, 7).Draw(t, "other") == 0,
			Resubmit: rapid.IntRange(0, 3).Draw(t, "resubmit") == 0,
			Start:    drawDuration(t, "start"),
			Cancel:   drawRare(t, "cancel"),
			Deadline: drawRare(t, "deadline"),
			Attempts: behaviors.Draw(t, "behaviors"),
		}
	})
	return schedule{
		Attempts: rapid.IntRange(1, 4).Draw(t, "attempts"),
		Timeout:  rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, time.Minute, time.Minute}).Draw(t, "timeout"),
		Steps:    rapid.SliceOfN(steps, 1, 6).Draw(t, "steps"),
	}
}

func tripErrors() []error {
	return []error{
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		&net.OpError{Op: "write", Err: syscall.EPIPE},
		&net.OpError{Op: "read", Err: syscall.ECONNRESET},
		&net.DNSError{Err: "no such host", IsNotFound: true},
		&net.DNSError{Err: "try again", IsTemporary: true},
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded, context.Canceled,
		errors.New("http: server closed idle connection"),
		errors.New("net/http: HTTP/1.x transport connection broken: " + canary),
	}
}

// A simulation is a scripted gateway, and the transport to it.
type simulation struct {
	sync.Mutex
	inFlight map[string]int       // attempts under way, by order
	calls    map[string]int       // calls under way, by order
	unknown  map[string]time.Time // orders of which an outcome is unknown, and since when
	ever     map[string]bool      // orders of which one ever was
	refused  map[string]time.Time // when an order was refused last, the body at the latest
	created  map[string][]bool    // orders with an invoice that a call returned, and whether that was for the other request
	held     []string             // orders that were refused because one is
	wrong    []string
	late     sync.WaitGroup
	attempts int
	timeout  time.Duration
}

// A callState is a call under way, as its context carries it.
type callState struct {
	step
	record *faultserver.Record
	sent   int // attempts
	begun  time.Time
}

type callStateKey struct{}

// RoundTrip carries out the behavior of this attempt.
func (w *simulation) RoundTrip(req *http.Request) (*http.Response, error) {
	state, _ := req.Context().Value(callStateKey{}).(*callState)
	order := fmt.Sprint("order-", state.Order)
	b := state.Attempts[min(state.sent, len(state.Attempts)-1)]
	state.sent++
	if req.URL.Host != call.Host || req.Method != http.MethodPost {
		state.record.Violation("another request or host: %s %s", req.Method, req.URL.Host)
		return nil, io.EOF
	}
	ctx := req.Context()
	w.late.Add(1) // nobody may be waiting for it any more
	defer w.late.Done()
	w.enter(order, state)
	defer w.leave(order)
	if trace := httptrace.ContextClientTrace(req.Context()); b.Traced {
		trace.GetConn(call.Host)
		defer trace.GotConn(httptrace.GotConnInfo{})
	}
	if err := wait(ctx, b.Before); err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	var read []byte
	all := false
	if !b.Late {
		read, all = w.take(req.Body, b.Read)
	}
	carry := func() {
		if (b.Rest || b.Late) && !all {
			more, err := io.ReadAll(req.Body)
			read, all = append(read, more...), err == nil
		}
		w.arrived(state, order, read, b.commits() || b.Late && b.Commit) // a refusal of what has not arrived refuses nothing
		_ = req.Body.Close()
	}
	err := wait(ctx, b.After)
	if b.Late {
		w.late.Go(func() { <-req.Context().Done(); carry() })
	}
	if err != nil || b.Status == 0 {
		if b.Late {
		} else if b.Rest {
			w.late.Go(carry) // net/http may go on reading until it has closed the body
		} else {
			carry()
		}
		return nil, cmp.Or(err, tripErrors()[b.Error])
	}
	if b.refuses() {
		state.record.Refused()
		w.Lock()
		w.refused[order] = time.Now().Add(b.Slow)
		w.Unlock()
	}
	committed := false // one that reads late has not arrived yet
	if !b.Late {
		carry()
		committed = call.OrderIn(read) != "" && b.commits()
	}
	return b.response(ctx, req, order, committed), nil
}

// take reads so many bytes of a body, or all.
func (w *simulation) take(body io.Reader, n int) (read []byte, all bool) {
	if n == 0 {
		return nil, false
	}
	if n < 0 {
		read, err := io.ReadAll(body)
		return read, err == nil
	}
	read = make([]byte, n)
	got, err := io.ReadFull(body, read)
	return read[:got], errors.Is(err, io.ErrUnexpectedEOF)
}

// arrived records what the gateway got of a body.
func (w *simulation) arrived(state *callState, order string, body []byte, commit bool) {
	state.record.Arrived(len(body), false)
	if got := call.OrderIn(body); got != "" && commit {
		state.record.Committed()
		if got != order {
			state.record.Violation("the body is for the order %q", got)
		}
	}
}

func (w *simulation) enter(order string, state *callState) {
	w.Lock()
	defer w.Unlock()
	if w.inFlight[order]++; w.inFlight[order] > 1 {
		w.wrong = append(w.wrong, "two invoices for "+order+" in flight")
	}
	// What another call of the order is about to learn is not known here yet.
	since, unknown := w.unknown[order]
	if unknown && w.calls[order] == 1 && (!state.Resubmit || since.After(state.begun)) {
		w.wrong = append(w.wrong, order+" was sent after an unknown outcome, without AllowResubmit for that one")
	}
}

func (w *simulation) leave(order string) {
	w.Lock()
	defer w.Unlock()
	w.inFlight[order]--
}

// commits reports whether b carries out a whole request. A status of a refusal
// is true here.
func (b behavior) commits() bool { return b.Commit && !b.refuses() }

func (b behavior) refuses() bool {
	switch b.Status {
	case 400, 401, 409, 422, 429:
		return true
	default:
		return false
	}
}

// response is that of b, which is a success only for a commit.
func (b behavior) response(ctx context.Context, req *http.Request, order string, committed bool) *http.Response {
	body := call.Enveloped(call.InvoiceResult(order))
	if b.Status >= 300 || !committed {
		body = `{"message":"no ` + canary + `","result":[],"meta":{}}`
	}
	var content io.Reader = strings.NewReader(body)
	if b.Cut >= 0 && b.Cut < len(body) {
		content = io.MultiReader(strings.NewReader(body[:b.Cut]), failing{})
	}
	return &http.Response{
		StatusCode: b.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {canary}, "Location": {"http://other.example/"}},
		Body:   &slowBody{Reader: content, ctx: ctx, slow: b.Slow},
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type slowBody struct {
	io.Reader
	ctx  context.Context
	slow time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if err := wait(b.ctx, b.slow); err != nil {
		return 0, err
	}
	b.slow = 0
	return b.Reader.Read(p)
}

func (b *slowBody) Close() error { return nil }

// wait waits as long as ctx lasts. In a bubble it takes no time.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// run makes the calls of the schedule. It returns how they ended and what was
// wrong.
func (s schedule) run() (results []call.Result, wrong []string) {
	w := &simulation{inFlight: map[string]int{}, calls: map[string]int{}, unknown: map[string]time.Time{}, ever: map[string]bool{}, refused: map[string]time.Time{}, created: map[string][]bool{}, attempts: s.Attempts, timeout: s.Timeout}
	client, err := gateway.New("http://"+call.Host+"/merchant", canary, gateway.WithHTTPClient(&http.Client{Transport: w}),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: s.Attempts, InvoiceTimeout: s.Timeout}))
	if err != nil {
		return nil, []string{err.Error()}
	}
	results = make([]call.Result, len(s.Steps))
	var calls sync.WaitGroup
	for i, step := range s.Steps {
		_ = wait(context.Background(), step.Start)
		calls.Go(func() { results[i] = w.call(client, step) })
	}
	calls.Wait()
	w.late.Wait()                               // each record is whole
	_ = wait(context.Background(), time.Minute) // until bodies are read that nobody waits for
	for _, id := range w.held {
		if !w.ever[id] {
			w.wrong = append(w.wrong, id+" was refused, although no outcome of it was ever unknown")
		}
	}
	for i, r := range results {
		for _, violation := range r.Violations() {
			w.wrong = append(w.wrong, fmt.Sprintf("step %d: %s", i, violation))
		}
	}
	return results, w.wrong
}

// call makes one call, and records what the guard must know afterwards.
func (w *simulation) call(client *gateway.Client, s step) call.Result {
	state := &callState{step: s, record: &faultserver.Record{}, begun: time.Now()}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), callStateKey{}, state))
	defer cancel()
	if s.Cancel > 0 {
		defer time.AfterFunc(s.Cancel, cancel).Stop()
	}
	if s.Deadline > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, s.Deadline)
		defer done()
	}
	var opts []gateway.CallOption
	if s.Resubmit {
		opts = append(opts, gateway.AllowResubmit())
	}
	id := fmt.Sprint("order-", s.Order)
	request := call.Order(id)
	if s.Other {
		request.Price = request.Price.Add(decimal.New(1, 0))
	}
	w.Lock()
	w.calls[id]++
	w.Unlock()
	r := call.Send(ctx, client, request, state.record, opts...)
	if took, most := time.Since(state.begun), w.longest(s); took > most {
		state.record.Violation("the call took %v, and its timeouts %v", took, most)
	}
	w.Lock()
	defer w.Unlock()
	w.calls[id]--
	unknown, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](r.Err)
	isBefore := isUnknown && unknown.Replayed
	switch {
	case r.Err == nil:
		delete(w.unknown, id)
		if !r.Replayed() {
			w.created[id] = append(w.created[id], s.Other)
		} else if slices.Contains(w.created[id], !s.Other) {
			state.record.Violation("it gets the invoice of another request")
		}
	case isBefore:
		w.held = append(w.held, id)
	case isUnknown:
		w.unknown[id], w.ever[id] = time.Now(), true
	}
	if since, unknown := w.unknown[id]; unknown && since.Before(state.begun) && r.Outcome() != gateway.OutcomeUnknown {
		state.record.Violation("the outcome of the order was unknown before, and is %v", r.Outcome())
	}
	if r.Outcome() == gateway.OutcomeConflict && (state.sent > 0 || slices.Contains(w.created[id], s.Other)) {
		state.record.Violation("a conflict of an order that was sent, or whose invoice is for this request")
	}
	held := errors.Is(r.Err, gateway.ErrOrderInFlight) || isBefore && !s.Resubmit
	if (held || r.Replayed() || r.Shared()) && state.sent > 0 {
		state.record.Violation("held back by the guard after it was sent")
	}
	if refused, known := w.refused[id]; r.Shared() && (!known || refused.Before(state.begun)) {
		state.record.Violation("it shares a refusal that no call got while it waited")
	}
	return r
}

// longest is how long a call may take: a second more than the timeouts of another call for
// the order, for which it waits, and its own.
func (w *simulation) longest(s step) time.Duration {
	const backoff = 10 * time.Second // more than the default policy waits
	most := 2 * time.Duration(w.attempts) * (w.timeout + backoff)
	for _, end := range []time.Duration{s.Cancel, s.Deadline} {
		if end > 0 {
			most = min(most, end)
		}
	}
	return most + time.Second
}

// TestRapid runs random schedules. -rapid.checks sets how many; the default is 5,000.
// A failure is shrunk to the shortest schedule, which is printed.
func TestRapid(t *testing.T) {
	all := &call.Summary{}
	schedules := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		var results []call.Result
		var wrong []string
		bubble.Test(t, func(*testing.T) { results, wrong = s.run() })
		if len(wrong) > 0 {
			rt.Fatalf("%+v\n%s", s, strings.Join(wrong, "\n"))
		}
		schedules++
		for _, r := range results {
			all.Add("", r)
		}
	})
	t.Logf("rapid: %d schedules, %v", schedules, all)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeRejected, gateway.OutcomeConflict, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "no call ended as %v", outcome)
	}
}
