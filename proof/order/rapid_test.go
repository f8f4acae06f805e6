package order

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
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
	Body   string        // of a failure: a form, as of [gatewaytest.ErrorForm]
	Says   string        // the message in it
	Result success       // of a success
	Error  int           // which of the errors
	Cut    int           // the body of the response breaks off after so many bytes; below zero for none
	Slow   time.Duration // before the body of the response
	Traced bool          // whether httptrace hooks are called
	Late   bool          // the body is first read when RoundTrip has returned, whatever it returns
}

// A success is what says that an invoice was created: a message, and a result in which ID, ORDER and OTHER
// stand for texts: the invoice, the order, and that in the other case. Without a result it is a page of an
// intermediary, in the place of what the gateway has sent.
type success struct{ Message, Result string }

// successes are those of real gateways. WithSuccessMessage names the second message. The third one proves an invoice
// only with 201.
func successes() []success {
	const usual, other = "Operation was successful.", "OK"
	return []success{
		{usual, `{"id":ID,"orderId":ORDER,"status":"NEW"}`},
		{other, `{"id":ID,"orderId":ORDER,"status":"NEW"}`},
		{usual, `{"id":ID,"orderId":"GW-1","status":"NEW"}`},
		{other, `{"orderId":"GW-1","invoice":{"id":ID,"merchantOrderId":ORDER}}`},
		{usual, `{"id":ID,"orderId":OTHER}`},
		{usual, `[{"id":ID,"orderId":ORDER,"related":[{"orderId":"order-0"},{"orderId":"order-1"},{"orderId":"GW-2"}]}]`},
		{other, `ID`},
		{unnamed, `{"id":ID,"orderId":ORDER}`},
		{unnamed, `ID`},
		{},
	}
}

// The body of a failure that is the documented one, that of an intermediary, and one that may have an invoice.
const (
	envelope = `{"message":MESSAGE,"result":[],"meta":{}}`
	page     = `<html>MESSAGE</html>`
	doubtful = `{"message":MESSAGE,"data":{"code":"FAILED"},"meta":{}}`
)

// unnamed is a message of a success that the client is not told.
const unnamed = "Invoice created."

// bodies are those of failures.
func bodies() []string {
	all := []string{envelope, envelope, envelope, page, "", doubtful}
	for _, form := range gatewaytest.ErrorForms() {
		all = append(all, string(form))
	}
	return all
}

// merchants have orders of the same names, and a key each. The first one is the client's own.
const merchants = 3

// A step is one create-invoice call of a schedule.
type step struct {
	Merchant int
	Order    int
	Upper    bool          // its identifier, if it is a UUID, in upper case
	Other    bool          // with another price
	Absent   bool          // before it a person looks the order up if it is unknown, and records what the gateway has
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
	b := behavior{
		Before: drawDuration(t, "before"),
		Read:   rapid.SampledFrom([]int{-1, -1, -1, -1, 0, 0, 1, 40, 1000}).Draw(t, "read"),
		Rest:   rapid.Bool().Draw(t, "rest is read late"),
		Commit: rapid.IntRange(0, 3).Draw(t, "commit") != 0,
		After:  drawDuration(t, "after"),
		Status: rapid.SampledFrom([]int{
			0, 0, 0, 201, 201, 201, 201, 201, 201, 201, 200, 302, 400, 400, 401, 403, 404, 408, 409, 422, 422, 429, 500, 502, 503, 525, 460, 999,
		}).Draw(t, "status"),
		Body:   rapid.SampledFrom(bodies()).Draw(t, "body"),
		Says:   rapid.SampledFrom([]string{"no " + canary, "no such coin", "the order already exists"}).Draw(t, "says"),
		Result: rapid.SampledFrom(successes()).Draw(t, "result"),
		Error:  rapid.IntRange(0, len(tripErrors())-1).Draw(t, "error"),
		Cut:    rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 60, 10000}).Draw(t, "cut"),
		Slow:   drawDuration(t, "slow"),
		Traced: rapid.Bool().Draw(t, "traced"),
		Late:   rapid.IntRange(0, 7).Draw(t, "late") == 0,
	}
	if rapid.Bool().Draw(t, "whole") {
		b.Read, b.Rest, b.Late, b.Cut = -1, false, false, -1
	}
	return b
}

func drawSchedule(t *rapid.T) schedule {
	behaviors := rapid.SliceOfN(rapid.Custom(drawBehavior), 1, 3)
	steps := rapid.Custom(func(t *rapid.T) step {
		return step{
			Merchant: rapid.IntRange(0, merchants-1).Draw(t, "merchant"),
			Upper:    rapid.Bool().Draw(t, "upper"),
			Order:    rapid.IntRange(0, 3).Draw(t, "order"),
			Other:    rapid.IntRange(0, 7).Draw(t, "other") == 0,
			Absent:   rapid.IntRange(0, 3).Draw(t, "is looked up") == 0,
			Start:    drawDuration(t, "start"),
			Cancel:   drawRare(t, "cancel"),
			Deadline: drawRare(t, "deadline"),
			Attempts: behaviors.Draw(t, "behaviors"),
		}
	})
	s := schedule{
		Attempts: rapid.IntRange(1, 4).Draw(t, "attempts"),
		Timeout:  rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, time.Minute, time.Minute}).Draw(t, "timeout"),
	}
	// Orders of one merchant that fail at once, before the others: none of those is held back by them.
	if crowd := rapid.SampledFrom([]int{0, 0, 0, 6, 20}).Draw(t, "crowd"); crowd > 0 {
		one := steps.Draw(t, "one of the crowd")
		for n := range crowd {
			one.Order, one.Start = 100+n, 0
			s.Steps = append(s.Steps, one)
		}
	}
	s.Steps = append(s.Steps, rapid.SliceOfN(steps, 1, 6).Draw(t, "steps")...)
	return s
}

// orderID names an order, as the step spells it. Each merchant has one of that name.
func (s *step) orderID() string {
	const id = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"
	switch {
	case s.Order != 3:
		return fmt.Sprint("order-", s.Order)
	case s.Upper:
		return strings.ToUpper(id)
	default:
		return id
	}
}

// key is that of the merchant.
func (s *step) key() string {
	if s.Merchant == 0 {
		return canary
	}
	return fmt.Sprint(canary, "-", s.Merchant)
}

// merchant is the name of the merchant.
func (s *step) merchant() string {
	if s.Merchant == 0 {
		return ""
	}
	return fmt.Sprint("merchant ", s.Merchant)
}

// known is what the order is known by, whatever its spelling.
func (s *step) known() string { return fmt.Sprint(s.Merchant, "/", strings.ToLower(s.orderID())) }

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
	inFlight map[string]int // attempts under way, by order
	calls    map[string]int // calls under way, by order
	guard    *gateway.MemoryGuard
	unknown  map[string]time.Time // orders of which an outcome is unknown, and since when
	ever     map[string]bool      // orders of which one ever was
	commits  map[string][]bool    // invoices of an order: whether each is for the other request
	absent   int                  // findings
	created  map[string][]bool    // orders with an invoice that a call returned, and whether that was for the other request
	held     []string             // orders that were refused because one is
	results  map[string]string    // what was sent last of an order that was created
	met      map[string]int       // calls of an order that began beside another
	sound    int                  // calls whose outcome was that of what they got
	outlasts int                  // such calls whose context was cancelled meanwhile
	invoices int
	wrong    []string
	late     sync.WaitGroup
	attempts int
	timeout  time.Duration
}

// A callState is a call under way, as its context carries it.
type callState struct {
	step
	record *faultserver.Record
	sent   int  // attempts
	read   bool // something of the body in the last of them
	begun  time.Time
}

type callStateKey struct{}

// RoundTrip carries out the behavior of this attempt.
func (w *simulation) RoundTrip(req *http.Request) (*http.Response, error) {
	state, _ := req.Context().Value(callStateKey{}).(*callState)
	order := state.known()
	b := state.attempt(state.sent)
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
		state.read = len(read) > 0
	}
	carry := func() {
		if (b.Rest || b.Late) && !all {
			more, err := io.ReadAll(req.Body)
			read, all = append(read, more...), err == nil
		}
		w.arrived(state, read, b.commits() || b.Late && b.Commit) // a refusal of what has not arrived refuses nothing
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
	}
	committed := false // one that reads late has not arrived yet
	if !b.Late {
		carry()
		committed = call.OrderIn(read) != "" && b.commits()
	}
	return w.response(ctx, req, state, b, committed), nil
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
func (w *simulation) arrived(state *callState, body []byte, commit bool) {
	state.record.Arrived(len(body), false)
	if got := call.OrderIn(body); got != "" && commit {
		state.record.Committed()
		w.Lock()
		w.commits[state.known()] = append(w.commits[state.known()], state.Other)
		w.Unlock()
		if got != state.orderID() || !bytes.Contains(body, []byte(strconv.Quote(state.key()))) {
			state.record.Violation("the body is for the order %q, or has the key of another merchant", got)
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
	if _, unknown := w.unknown[order]; unknown && w.calls[order] == 1 {
		w.wrong = append(w.wrong, order+" was sent after an unknown outcome, without a finding")
	}
}

func (w *simulation) leave(order string) {
	w.Lock()
	defer w.Unlock()
	w.inFlight[order]--
}

// attempt is what becomes of the attempt with a number.
func (s *step) attempt(n int) behavior { return s.Attempts[min(n, len(s.Attempts)-1)] }

// commits reports whether b carries out a whole request. A status of a refusal
// is true here.
func (b behavior) commits() bool { return b.Commit && !b.refuses() }

// refuses reports whether b says that no invoice was created.
func (b behavior) refuses() bool {
	switch b.Status {
	case 400, 422:
		return b.Body != page && b.Body != "" && b.Body != doubtful
	case 403:
		return b.Body == envelope || b.Body == string(gatewaytest.ErrorNull)
	case 401, 404, 429:
		return b.Body != doubtful
	default:
		return false
	}
}

// creates reports whether b says that the invoice was created.
func (b behavior) creates() bool {
	return b.commits() && (b.Status == 201 || b.Status == 200 && b.Result.Message != unnamed) && b.Result.Result != ""
}

// arrives reports whether the whole request arrives, and the whole response within a time.
func (b behavior) arrives(within time.Duration) bool {
	return b.Read < 0 && !b.Late && b.Status != 0 && b.Cut < 0 && b.lasts() < within
}

func (b behavior) lasts() time.Duration { return b.Before + b.After + b.Slow }

// outcome is that of the calls' attempts, of which the last one decides: there is none after a response
// that is lost. It reports false if one of them is not all that it says.
func (c *callState) outcome(timeout time.Duration) (outcome gateway.Outcome, certain bool) {
	for n := range c.sent {
		b := c.attempt(n)
		if !b.arrives(timeout) {
			return outcome, false
		}
		switch {
		case b.creates():
			outcome = gateway.OutcomeSucceeded
		case b.refuses():
			outcome = gateway.OutcomeRejected
		default:
			outcome = gateway.OutcomeUnknown
		}
	}
	return outcome, c.sent > 0
}

// response is that of b, which is a success only for a commit.
func (w *simulation) response(ctx context.Context, req *http.Request, state *callState, b behavior, committed bool) *http.Response {
	body := strings.NewReplacer("STATUS", strconv.Itoa(b.Status), "TEXT", strconv.Quote(http.StatusText(b.Status)),
		"MESSAGE", strconv.Quote(b.Says)).Replace(b.Body)
	switch {
	case b.Status >= 300 || !committed:
	case b.Result.Result == "":
		body = page
	default:
		other := state.step
		other.Upper = !other.Upper
		w.Lock()
		w.invoices++
		result := strings.NewReplacer("ID", fmt.Sprintf(`"inv-%d"`, w.invoices),
			"ORDER", strconv.Quote(state.orderID()), "OTHER", strconv.Quote(other.orderID())).Replace(b.Result.Result)
		w.results[state.known()] = result
		w.Unlock()
		body = fmt.Sprintf(`{"message":%q,"result":%s,"meta":{}}`, b.Result.Message, result)
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

// run makes the calls of the schedule. It returns how they ended, the counts and what was
// wrong.
func (s schedule) run() (results []call.Result, counts *simulation, wrong []string) {
	w := &simulation{
		guard: &gateway.MemoryGuard{}, inFlight: map[string]int{}, calls: map[string]int{}, unknown: map[string]time.Time{}, ever: map[string]bool{}, commits: map[string][]bool{},
		created: map[string][]bool{}, results: map[string]string{}, met: map[string]int{}, attempts: s.Attempts, timeout: s.Timeout,
	}
	client, err := gateway.New("http://"+call.Host+"/merchant", canary, gateway.WithHTTPClient(&http.Client{Transport: w}), gateway.WithSuccessMessage("OK"),
		gateway.WithOrderGuard(w.guard), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: s.Attempts, InvoiceTimeout: s.Timeout}))
	if err != nil {
		return nil, w, []string{err.Error()}
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
	for id, invoices := range w.commits {
		if len(invoices) > 1 {
			w.wrong = append(w.wrong, fmt.Sprintf("%s has %d invoices", id, len(invoices)))
		}
	}
	for i, r := range results {
		for _, violation := range r.Violations() {
			w.wrong = append(w.wrong, fmt.Sprintf("step %d: %s", i, violation))
		}
	}
	return results, w, w.wrong
}

// transit is how long a request may be in transit: a body may be read when the attempt has ended.
const transit = time.Second

// lookUp has a person record what the gateway has of an order that is unknown, when nothing can arrive any more.
func (w *simulation) lookUp(s step) {
	_ = wait(context.Background(), transit)
	read, err := w.guard.Order(context.Background(), s.merchant(), s.orderID())
	if err != nil || read.State != gateway.OrderUnknown {
		return
	}
	w.Lock()
	defer w.Unlock()
	const invoice = `{"id":"copied by a person"}`
	f, id := gateway.Finding{By: "anna", Margin: transit}, s.known()
	if len(w.commits[id]) > 0 {
		f.Exists, f.Invoice = true, []byte(invoice)
	}
	err = w.guard.Resolve(context.Background(), read, f)
	switch {
	case err == nil && f.Exists:
		delete(w.unknown, id)
		w.created[id], w.results[id] = append(w.created[id], w.commits[id]...), invoice
	case err == nil:
		delete(w.unknown, id)
		w.absent++
	case !errors.Is(err, gateway.ErrTooEarly) && !errors.Is(err, gateway.ErrNotUnknown) && !errors.Is(err, gateway.ErrTriedAgain):
		w.wrong = append(w.wrong, fmt.Sprintf("a finding about %s is refused: %v", id, err))
	}
}

// call makes one call, and records what the guard must know afterwards.
func (w *simulation) call(client *gateway.Client, s step) call.Result {
	if s.Absent {
		w.lookUp(s)
	}
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
	if s.Merchant != 0 {
		opts = append(opts, gateway.WithAPIKey(s.key()), gateway.WithMerchant(s.merchant()))
	}
	id, request := s.known(), call.Order(s.orderID())
	if s.Other {
		request.Price = request.Price.Add(decimal.New(1, 0))
	}
	w.Lock()
	w.calls[id]++
	if w.calls[id] > 1 {
		w.met[id]++
	}
	_, isUnknown := w.unknown[id]
	isFree, met := w.calls[id] == 1 && !isUnknown && len(w.created[id]) == 0, w.met[id]
	w.Unlock()
	r := call.Send(ctx, client, request, state.record, opts...)
	if took, most := time.Since(state.begun), w.longest(s); took > most {
		state.record.Violation("the call took %v, and its timeouts %v", took, most)
	}
	w.Lock()
	defer w.Unlock()
	w.calls[id]--
	r.Result = w.results[id]
	outlasted := s.Deadline == 0 && state.sent == 1 && state.read // a cancelled context does not cut what is being sent
	if isFree && w.met[id] == met && (ctx.Err() == nil || outlasted) {
		w.checkAlone(r, state, ctx.Err() != nil)
	}
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
	if (errors.Is(r.Err, gateway.ErrOrderInFlight) || isBefore || r.Replayed()) && state.sent > 0 {
		state.record.Violation("held back by the guard after it was sent")
	}
	return r
}

// checkAlone checks the call of an order of which nothing is known that may exist, beside no other one of
// the order: it is sent, whatever becomes of other orders. Its outcome is that of what came, and unknown
// only if that was lost. A success takes its own time, and waits for no other order.
func (w *simulation) checkAlone(r call.Result, state *callState, isCancelled bool) {
	if state.sent == 0 {
		state.record.Violation("held back, although nothing is known of the order")
	}
	want, certain := state.outcome(w.timeout)
	if !certain {
		return
	}
	w.sound++
	if isCancelled {
		w.outlasts++
	}
	if r.Outcome() != want {
		state.record.Violation("the outcome is %v, of what came %v", r.Outcome(), want)
	}
	if b := state.attempt(0); r.Err == nil && state.sent == 1 && time.Since(state.begun) != b.lasts() {
		state.record.Violation("it took %v, and its response %v", time.Since(state.begun), b.lasts())
	}
}

// longest is how long a call may take: a second more than the timeouts of another call for
// the order, for which it waits, and its own. A deadline ends it; cancelling leaves it the attempt that is
// being sent.
func (w *simulation) longest(s step) time.Duration {
	const backoff = 10 * time.Second // more than the default policy waits
	most := 2 * time.Duration(w.attempts) * (w.timeout + backoff)
	if s.Cancel > 0 {
		most = min(most, s.Cancel+w.timeout)
	}
	if s.Deadline > 0 {
		most = min(most, s.Deadline)
	}
	return most + time.Second
}

// TestRapid runs random schedules. -rapid.checks sets how many; the default is 5,000.
// A failure is shrunk to the shortest schedule, which is printed.
func TestRapid(t *testing.T) {
	all := &call.Summary{}
	schedules, sound, outlasts, absent := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		var results []call.Result
		var wrong []string
		bubble.Test(t, func(*testing.T) {
			var counts *simulation
			results, counts, wrong = s.run()
			sound, outlasts, absent = sound+counts.sound, outlasts+counts.outlasts, absent+counts.absent
		})
		if len(wrong) > 0 {
			rt.Fatalf("%+v\n%s", s, strings.Join(wrong, "\n"))
		}
		schedules++
		for _, r := range results {
			all.Add("", r)
		}
	})
	t.Logf("rapid: %d schedules, %v; %d calls alone for an order, whose outcome is that of what came, %d of them cancelled; %d orders found absent", schedules, all, sound, outlasts, absent)
	assert.NotZero(t, absent, "no order was found absent")
	assert.NotZero(t, outlasts, "no call has outlasted its context")
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeRejected, gateway.OutcomeConflict, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "no call ended as %v", outcome)
	}
}
