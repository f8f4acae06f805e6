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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// A behavior is what the simulated gateway does with one attempt, within what net/http allows a
// RoundTripper.
type behavior struct {
	Before  time.Duration // before anything
	Read    int           // bytes of the body that are read; everything for all
	Rest    bool          // the rest is read after RoundTrip has returned
	Commit  bool          // an invoice is created, if the whole body was read
	After   time.Duration // before the end
	Status  int           // 0 for an error
	Body    string        // of a failure: a form, see [gatewaytest.ErrorForm]
	Says    string        // the message in it
	Result  success       // of a success
	Error   int           // which of the errors
	Transit time.Duration // after an error, before the gateway gets what was sent
	Cut     int           // the body of the response breaks off after so many bytes; below zero for none
	Slow    time.Duration // before the body of the response
	Late    bool          // the body is first read when RoundTrip has returned, whatever it returns
}

// A success is a message and a result in which ID, ORDER and OTHER stand for the invoice, the order, and
// the order in the other case. Without a result it is a page of an intermediary, in place of the response.
type success struct{ Message, Result string }

// successes are those of real gateways. WithSuccessMessage names the second message. The third one proves
// an invoice only with 201 and an identifier by its name.
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
		{unnamed, `{"invoice":{"url":"https://pay.example/1","token":ID}}`},
		{},
	}
}

// The documented body of a failure, the page of an intermediary, and a body that may have an invoice.
const (
	envelope = `{"message":MESSAGE,"result":[],"meta":{}}`
	page     = `<html>MESSAGE</html>`
	doubtful = `{"message":MESSAGE,"data":{"invoiceId":"GW-9"},"meta":{}}`
)

// unnamed is a message of a success that the client does not know.
const unnamed = "Invoice created."

// bodies are the bodies of failures.
func bodies() []string {
	all := []string{envelope, envelope, envelope, page, "", doubtful}
	for _, form := range gatewaytest.ErrorForms() {
		all = append(all, string(form))
	}
	return all
}

func tripErrors() []error {
	return []error{
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.OpError{Op: "write", Err: syscall.EPIPE},
		&net.DNSError{Err: "no such host", IsNotFound: true}, &net.DNSError{Err: "try again", IsTemporary: true},
		io.EOF, net.ErrClosed, context.DeadlineExceeded, context.Canceled, errors.New("http: server closed idle connection"),
		errors.New("net/http: HTTP/1.x transport connection broken: " + canary),
	}
}

// everything is more than a body has.
const everything = 1 << 20

// commits reports whether b carries out a whole request.
func (b behavior) commits() bool { return b.Commit && !b.refuses() }

// refuses reports whether b proves that no invoice was created.
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

// creates reports whether b proves that the invoice was created.
func (b behavior) creates() bool {
	return b.commits() && (b.Status == 201 || b.Status == 200 && b.Result.Message != unnamed) && b.Result.Result != ""
}

// arrives reports whether the whole request arrives, and the whole response within a time.
func (b behavior) arrives(within time.Duration) bool {
	return b.Read == everything && !b.Late && b.Status != 0 && b.Cut < 0 && b.lasts() < within
}

func (b behavior) lasts() time.Duration { return b.Before + b.After + b.Slow }

// An attempted call is under way; its context carries it.
type attempted struct {
	step
	first  int // attempts of earlier calls of the step
	record *call.Record
	epoch  int  // how often the order was cancelled before
	sent   int  // attempts
	read   bool // the last of them has read something of the body
	begun  time.Time
	slept  bool // the process was suspended, or the guard failed

	ending  time.Time       // when the guard was told the outcome for the first time
	outcome gateway.Outcome // what it was told
	lost    bool            // it could not record that
	told    *gateway.Call   // the end of the call, as an observer has it; nil before it
}

type attemptedKey struct{}

// attempt is what happens to the attempt of the call with a number; the last behavior is for all that follow.
func (a *attempted) attempt(n int) behavior { return a.Attempts[min(a.first+n, len(a.Attempts)-1)] }

// RoundTrip carries out the behavior of this attempt.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	a, _ := req.Context().Value(attemptedKey{}).(*attempted)
	var b behavior
	w.change(func() { b, a.sent, a.read = a.attempt(a.sent), a.sent+1, false })
	if req.URL.Host != call.Host || req.Method != http.MethodPost {
		a.record.Violation("another request or host: %s %s", req.Method, req.URL.Host)
		return nil, io.EOF
	}
	ctx := req.Context()
	w.late.Add(1) // nobody may be waiting for it any more
	defer w.late.Done()
	defer w.enter(a)()
	if err := wait(ctx, b.Before); err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	var read []byte
	if !b.Late {
		read, _ = io.ReadAll(io.LimitReader(req.Body, int64(b.Read)))
		w.change(func() { a.read = len(read) > 0 })
	}
	carry := func() {
		if b.Rest || b.Late {
			more, _ := io.ReadAll(req.Body)
			read = append(read, more...)
		}
		_ = req.Body.Close()
		arrive := func() { w.arrived(a, read, b.commits() || b.Late && b.Commit) } // a refusal of what has not arrived refuses nothing
		if b.Status != 0 || b.Transit == 0 {
			arrive()
			return
		}
		w.late.Go(func() { _ = wait(context.Background(), b.Transit); arrive() })
	}
	err := wait(ctx, b.After)
	if b.Late {
		w.late.Go(func() { <-ctx.Done(); carry() })
	}
	if err != nil || b.Status == 0 {
		switch {
		case b.Late:
		case b.Rest:
			w.late.Go(carry) // net/http may go on reading until it has closed the body
		default:
			carry()
		}
		return nil, cmp.Or(err, tripErrors()[b.Error])
	}
	if b.refuses() {
		a.record.Refused()
	}
	committed := false // a body that is read late has not arrived yet
	if !b.Late {
		carry()
		committed = call.OrderIn(read) != "" && b.commits()
	}
	return w.response(req, a, b, committed), nil
}

// enter notes that an attempt begins, and what must not be true of its order. It returns what notes the end.
func (w *world) enter(a *attempted) (leave func()) {
	w.Lock()
	defer w.Unlock()
	o := w.order(a.known())
	leave = func() { w.change(func() { o.inFlight-- }) }
	if o.inFlight++; o.inFlight > 1 {
		w.note("two invoices for %s are in flight", a.known())
	}
	if !w.Idempotent && !o.unknown.IsZero() && o.calls == 1 { // another call may be about to learn it
		w.note("%s was sent after an unknown outcome, without a finding", a.known())
	}
	if !w.Idempotent && len(o.commits) > 0 {
		w.note("%s was sent again, although it has an invoice", a.known())
	}
	return leave
}

// arrived records what the gateway got of a body, and creates the invoice.
func (w *world) arrived(a *attempted, body []byte, commit bool) {
	a.record.Arrived(len(body), false)
	got := call.OrderIn(body)
	if got == "" || !commit {
		return
	}
	isOwn := got == a.orderID() || w.Idempotent && strings.EqualFold(got, a.orderID()) // it is sent as it was first spelled
	if !isOwn || !bytes.Contains(body, []byte(strconv.Quote(a.key()))) {
		a.record.Violation("the body is for the order %q, or has the key of another merchant", got)
	}
	w.Lock()
	defer w.Unlock()
	o := w.order(a.known())
	if o.cancels > a.epoch {
		w.note("%s got an invoice after the buyer was sent elsewhere", a.known())
	}
	if len(o.commits) == 0 || !w.Idempotent {
		o.commits = append(o.commits, a.Other)
	}
	if a.record.Seen().Commits == 0 || !w.Idempotent {
		a.record.Committed()
	}
}

// response answers as b says; a success needs an invoice.
func (w *world) response(req *http.Request, a *attempted, b behavior, committed bool) *http.Response {
	body := strings.NewReplacer("STATUS", strconv.Itoa(b.Status), "TEXT", strconv.Quote(http.StatusText(b.Status)),
		"MESSAGE", strconv.Quote(b.Says)).Replace(b.Body)
	switch {
	case b.Status >= 300 || !committed:
	case b.Result.Result == "":
		body = page
	default:
		body = fmt.Sprintf(`{"message":%q,"result":%s,"meta":{}}`, b.Result.Message, w.result(a, b.Result.Result))
	}
	slow := reader(func([]byte) (int, error) { return 0, cmp.Or(wait(req.Context(), b.Slow), io.EOF) })
	content := io.MultiReader(slow, strings.NewReader(body))
	if b.Cut >= 0 && b.Cut < len(body) {
		content = io.MultiReader(slow, strings.NewReader(body[:b.Cut]), reader(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }))
	}
	return &http.Response{
		StatusCode: b.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {canary}, "Location": {"http://other.example/"}},
		Body:   io.NopCloser(content),
	}
}

// result is the invoice of an order: the first one, if the gateway returns that for a repeated order.
func (w *world) result(a *attempted, form string) string {
	w.Lock()
	defer w.Unlock()
	o, other := w.order(a.known()), a.step
	other.Upper = !other.Upper
	if o.result == "" || !w.Idempotent {
		w.invoices++
		o.result = strings.NewReplacer("ID", fmt.Sprintf(`"inv-%d"`, w.invoices),
			"ORDER", strconv.Quote(a.orderID()), "OTHER", strconv.Quote(other.orderID())).Replace(form)
	}
	return o.result
}

// A reader is an [io.Reader] in one function.
type reader func([]byte) (int, error)

func (f reader) Read(p []byte) (int, error) { return f(p) }

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

// An account is the history of one order.
type account struct {
	inFlight  int       // attempts under way
	calls     int       // calls under way
	met       int       // calls that began beside another
	suspended int       // calls that stand still with the lease: what others learn from their flight is old
	unknown   time.Time // since when its outcome is unknown; zero if it is not
	doubted   bool      // a call has said so
	expired   []string  // the attempts whose lease is over, and which have not ended
	ever      bool      // it was unknown once
	held      bool      // a call was refused because it is
	lost      int       // outcomes of it that the guard could not record
	commits   []bool    // its invoices: whether each is for the other request
	created   []bool    // those that a call returned, or a person found
	left      bool      // one of them was created after its caller had left
	result    string    // the invoice that was sent last

	clicks  int  // under way
	kept    bool // one of those that were under way with them says that it is not to be cancelled
	cancels int  // how often it was cancelled, and the buyer paid elsewhere
}

// settle ends all doubt.
func (o *account) settle() { o.unknown, o.doubted, o.expired = time.Time{}, false, nil }

// A world is the gateway, its merchants, and the violations.
type world struct {
	schedule
	sync.Mutex
	orders   map[string]*account
	guard    *leases
	invoices int
	counts   map[string]int // of what must happen in some schedule
	wrong    []string
	late     sync.WaitGroup
	left     sync.WaitGroup // calls that go on without their callers
	open     int            // calls whose end no observer has
}

// order is the account of an order. The lock is held.
func (w *world) order(known string) *account {
	if w.orders[known] == nil {
		w.orders[known] = &account{}
	}
	return w.orders[known]
}

// change changes the world, or a call that is under way in it.
func (w *world) change(f func()) {
	w.Lock()
	defer w.Unlock()
	f()
}

// note notes a violation. The lock is held.
func (w *world) note(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}
