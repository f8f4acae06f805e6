package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/cryptogw/gateway"
)

// A deed is what a scripted transport does with one attempt, within what
// net/http allows a RoundTripper.
type deed struct {
	Before time.Duration // before anything
	Read   int           // bytes of the body that are read; below zero for all
	Rest   bool          // the rest is read after RoundTrip has returned
	Commit bool          // if all of it was read
	After  time.Duration // before the end
	Status int           // 0 for an error
	Error  int           // which of the errors
	Cut    int           // the body of the answer breaks off after so many bytes; below zero for none
	Slow   time.Duration // before the body of the answer
	Traced bool          // whether httptrace hooks are called
}

// A step is one create-invoice call of a schedule.
type step struct {
	Order    int
	Resubmit bool
	Start    time.Duration // after the step before
	Cancel   time.Duration // after the start; 0 for never
	Deadline time.Duration // after the start; 0 for none
	Deeds    []deed        // for each attempt; the last stands for all that follow
}

// A schedule is a random course of events. It is data only, so that it can be
// drawn outside the bubble in which it is played.
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

func drawDeed(t *rapid.T) deed {
	return deed{
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
	}
}

func drawSchedule(t *rapid.T) schedule {
	deeds := rapid.SliceOfN(rapid.Custom(drawDeed), 1, 3)
	steps := rapid.Custom(func(t *rapid.T) step {
		return step{
			Order:    rapid.IntRange(0, 3).Draw(t, "order"),
			Resubmit: rapid.IntRange(0, 3).Draw(t, "resubmit") == 0,
			Start:    drawDuration(t, "start"),
			Cancel:   drawRare(t, "cancel"),
			Deadline: drawRare(t, "deadline"),
			Deeds:    deeds.Draw(t, "deeds"),
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

// A world is a scripted gateway, and the transport to it.
type world struct {
	sync.Mutex
	inFlight map[string]int  // attempts under way, by order
	calls    map[string]int  // calls under way, by order
	unknown  map[string]bool // orders of which an outcome is unknown
	ever     map[string]bool // orders of which one ever was
	held     []string        // orders that were refused because one is
	wrong    []string
	late     sync.WaitGroup
}

// A traveller is a call on its way, as its context carries it.
type traveller struct {
	step
	saw   *sight
	trips int
}

type travellerKey struct{}

// RoundTrip does the deed that is due.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	who, _ := req.Context().Value(travellerKey{}).(*traveller)
	order := fmt.Sprint("order-", who.Order)
	d := who.Deeds[min(who.trips, len(who.Deeds)-1)]
	who.trips++
	if req.URL.Host != host || req.Method != http.MethodPost {
		who.saw.remark("I8: another request or host: %s %s", req.Method, req.URL.Host)
		return nil, io.EOF
	}
	w.enter(order, who)
	defer w.leave(order)
	if trace := httptrace.ContextClientTrace(req.Context()); d.Traced {
		trace.GetConn(host)
		defer trace.GotConn(httptrace.GotConnInfo{})
	}
	if err := wait(req.Context(), d.Before); err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	read, all := w.take(req.Body, d.Read)
	carry := func() {
		if d.Rest && !all {
			more, err := io.ReadAll(req.Body)
			read, all = append(read, more...), err == nil
		}
		w.arrived(who, order, read, d.commits())
		_ = req.Body.Close()
	}
	if err := wait(req.Context(), d.After); err != nil || d.Status == 0 {
		if d.Rest {
			w.late.Go(carry) // net/http may go on reading until it has closed the body
		} else {
			carry()
		}
		return nil, cmp.Or(err, tripErrors()[d.Error])
	}
	carry()
	return d.answer(req, order, orderIn(read) != "" && d.commits()), nil
}

// take reads so many bytes of a body, or all.
func (w *world) take(body io.Reader, n int) (read []byte, all bool) {
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

// arrived enters what the gateway got of a body.
func (w *world) arrived(who *traveller, order string, body []byte, commit bool) {
	who.saw.arrive(len(body))
	if got := orderIn(body); got != "" && commit {
		who.saw.commit()
		if got != order {
			who.saw.remark("the body is for the order %q", got)
		}
	}
}

func (w *world) enter(order string, who *traveller) {
	w.Lock()
	defer w.Unlock()
	if w.inFlight[order]++; w.inFlight[order] > 1 {
		w.wrong = append(w.wrong, "two invoices for "+order+" in flight")
	}
	// What another call of the order is about to learn is not known here yet.
	if w.unknown[order] && !who.Resubmit && w.calls[order] == 1 {
		w.wrong = append(w.wrong, order+" was sent after an unknown outcome, without leave")
	}
}

func (w *world) leave(order string) {
	w.Lock()
	defer w.Unlock()
	w.inFlight[order]--
}

// commits reports whether d carries a whole request out. A status by which a
// service says that it did nothing is not a lie here.
func (d deed) commits() bool {
	switch d.Status {
	case 400, 401, 409, 422, 429:
		return false
	default:
		return d.Commit
	}
}

// answer is the answer of d, which is good only for a commit.
func (d deed) answer(req *http.Request, order string, committed bool) *http.Response {
	body := enveloped(invoiceResult(order))
	if d.Status >= 300 || !committed {
		body = `{"message":"no ` + canary + `","result":[],"meta":{}}`
	}
	var content io.Reader = strings.NewReader(body)
	if d.Cut >= 0 && d.Cut < len(body) {
		content = io.MultiReader(strings.NewReader(body[:d.Cut]), failing{})
	}
	return &http.Response{
		StatusCode: d.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {canary}, "Location": {"http://other.example/"}},
		Body:   &slowBody{Reader: content, ctx: req.Context(), slow: d.Slow},
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

// play plays the schedule. It returns how the calls ended and what was wrong.
func (s schedule) play() (ends []end, wrong []string) {
	w := &world{inFlight: map[string]int{}, calls: map[string]int{}, unknown: map[string]bool{}, ever: map[string]bool{}}
	client, err := gateway.New("http://"+host+"/merchant", canary, gateway.WithHTTPClient(&http.Client{Transport: w}),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: s.Attempts, InvoiceTimeout: s.Timeout}))
	if err != nil {
		return nil, []string{err.Error()}
	}
	ends = make([]end, len(s.Steps))
	var calls sync.WaitGroup
	for i, step := range s.Steps {
		_ = wait(context.Background(), step.Start)
		calls.Go(func() { ends[i] = w.call(client, step) })
	}
	calls.Wait()
	w.late.Wait()
	for _, id := range w.held {
		if !w.ever[id] {
			w.wrong = append(w.wrong, id+" was refused, although no outcome of it was ever unknown")
		}
	}
	for i, e := range ends {
		for _, broken := range e.broken() {
			w.wrong = append(w.wrong, fmt.Sprintf("step %d: %s", i, broken))
		}
	}
	return ends, w.wrong
}

// call makes one call, and notes what the guard must know afterwards.
func (w *world) call(client *gateway.Client, s step) end {
	who := &traveller{step: s, saw: &sight{}}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), travellerKey{}, who))
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
	w.Lock()
	w.calls[id]++
	w.Unlock()
	e := create(ctx, client, id, who.saw, opts...)
	w.Lock()
	defer w.Unlock()
	w.calls[id]--
	switch {
	case e.outcome() == gateway.OutcomeUnknown:
		w.unknown[id], w.ever[id] = true, true
	case e.err == nil:
		delete(w.unknown, id)
	case errors.Is(e.err, gateway.ErrOrderOutcomeUnknown):
		w.held = append(w.held, id)
	}
	if refused := errors.Is(e.err, gateway.ErrOrderInFlight) || errors.Is(e.err, gateway.ErrOrderOutcomeUnknown); refused && who.trips > 0 {
		who.saw.remark("refused by the guard after it was sent")
	}
	return e
}

// TestRapid plays random schedules. -rapid.checks says how many, else 10,000.
// A failure is shrunk to the shortest schedule, which is printed.
func TestRapid(t *testing.T) {
	all := &tally{}
	schedules := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		var ends []end
		var wrong []string
		synctest.Test(t, func(*testing.T) { ends, wrong = s.play() })
		if len(wrong) > 0 {
			rt.Fatalf("%+v\n%s", s, strings.Join(wrong, "\n"))
		}
		schedules++
		for _, e := range ends {
			all.add("", e)
		}
	})
	t.Logf("rapid: %d schedules, %v", schedules, all)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeRejected, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.counts[outcome], "no call ended as %v", outcome)
	}
}
