package gateway

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

// An operation describes the request of a method: route, arguments, place of the key.
type operation struct {
	name             string
	route            string    // each {name} is replaced by an argument
	args             [2]string // for the route, in its order
	query            []endpoint.Param
	key              keyPlace
	sendsContentType bool                                    // also for a read
	undocumented     bool                                    // whether the form of the result is not documented
	once             bool                                    // whether only one attempt is made
	statusIn         func(result doc.Node, id string) string // the status in a result that cannot be decoded; nil for none
}

// namesNothing reports whether neither the path nor the query can name a record.
func (o *operation) namesNothing() bool { return o.args[0] == "" && o.query == nil }

// A keyPlace is where the key goes: docs/interface.md, I-30 to I-34.
type keyPlace int8

const (
	keyNowhere keyPlace = iota // not stated to be needed
	keyInHeader
	keyInBody
)

// A write is the payload of a call that creates something. Such a call is attempted again only if nothing of it was
// sent, or if it is declared that a repetition does no harm.
type write interface {
	// encode returns the body of the request.
	encode(key string) []byte
	// read reads a response of 2xx. It reports whether that is a refusal, or returns why it proves nothing.
	read(e envelope) (isRefusal bool, wrong *doc.Error)
	// mayBeIn reports whether an error response may have what the call creates, by its envelope or its bytes.
	mayBeIn(e envelope, text []byte) bool
	// isRepeatable reports whether it is declared that a repetition does no harm.
	isRepeatable() bool
}

// A call is one use of an operation: the request, and the state of its attempts.
type call struct {
	client    *Client
	operation operation
	decode    func(envelope) *doc.Error // reads the result of a response into the result of the method; nil for a write
	write     write                     // nil for a read

	cfg       callConfig
	badOption *ArgumentError  // the error of its options; nil for none
	ctx       context.Context // with the call, for [CallFromContext]; it bounds the call
	url       url.URL
	key       redact.Secret
	redactor  redact.Redactor // removes every key that a response may repeat

	// Of a write that outlasts the context of its caller.
	wire     context.Context        // of the requests; nil for ctx
	mayBegin func() bool            // see [attempt.Template]; nil for a write that does not outlast its caller
	follow   func() context.Context // returns the context that bounds the call from now on; nil if it stays
	expires  time.Time              // no write begins after this; zero for never

	template     *attempt.Template    // of the body of a write; nil for a read
	library      retryablehttp.Client // makes the attempts
	started      time.Time            // when the call began
	attempts     int                  // how many attempts began
	begun        time.Time            // when the last one began
	last         lastAttempt          // the facts about the last one
	status       int                  // of the last response of any attempt; 0 for none
	failure      callError            // of the last one; nil for none
	next         attempt.Next         // whether another one follows
	unknownSince time.Time            // when the first attempt of a write began whose outcome is unknown; zero for none
	ended        ended                // what observers receive beside the error
}

// What an attempt has sent, as far as that is proved.
type sent int8

const (
	sentNothing  sent = iota // nothing of the body of a write, which is sealed
	sentMaybe                // a request that may have reached the service
	sentAnswered             // a request, or a part of one: a response came
)

// What observers receive of an order at its end, beside the error.
type ended struct {
	Replayed, Left, Cut  bool
	Others               int
	GuardErr, DetailsErr error
}

// A lastAttempt keeps the facts about the last attempt of a call.
type lastAttempt struct {
	sent      sent
	status    int       // of the response; 0 when none came
	asOf      time.Time // when the response was read, less its age
	body      []byte    // the beginning of the response, without keys, if it failed a write
	drift     []Drift   // where the response differs from docs/interface.md
	ambiguous error     // why it may not be the response to the write; nil if it is
}

// do makes a call whose result read reads.
func do[T any](
	ctx context.Context, client *Client, what operation, read func(envelope) (T, *doc.Error), opts []CallOption,
) (T, error) {
	var result T
	c := &call{client: client, operation: what}
	c.decode = func(e envelope) (wrong *doc.Error) {
		e.asOf = c.last.asOf
		result, wrong = read(e)
		return wrong
	}
	if err := c.get(ctx, opts); err != nil {
		return *new(T), err
	}
	return result, nil
}

// one reads the documented record that a result is. It must have the identifier, unless that is empty.
func one[T any](e envelope, record *doc.Record[T], id string) (*T, *doc.Error) {
	if wrong := e.check(); wrong != nil {
		return nil, wrong
	}
	return record.One(e.result, id)
}

// An abortedError is the error that an [Observer] and an [OrderGuard] receive if a panic or a Goexit in
// the caller's code ends the call.
type abortedError struct{}

func (*abortedError) Error() string     { return "gateway: a panic has ended the call" }
func (*abortedError) decided() decision { return decision{} }

var errAborted = &abortedError{}

// errClientTimeout is the cause of a deadline that the caller's context does not have.
var errClientTimeout = errors.New("the Timeout of the http.Client of WithHTTPClient")

// get makes a call that asks no guard, such as a read.
func (c *call) get(ctx context.Context, opts []CallOption) (err error) {
	if err := c.accept(ctx, opts); err != nil {
		return err
	}
	c.begin(ctx)
	err = errAborted // until the call returns
	defer func() { c.observeEnd(err) }()
	if c.badOption != nil {
		return c.badOption
	}
	if err := c.address(); err != nil {
		return err
	}
	if err := c.resolveKey(); err != nil {
		return err
	}
	return c.send()
}

// accept applies the options of the call, and refuses a client that [New] has not made, and a nil context.
func (c *call) accept(ctx context.Context, opts []CallOption) error {
	c.badOption = c.cfg.apply(c.operation.name, opts)
	if name, reason := c.client.check(ctx); reason != "" {
		return c.refuse(name, reason)
	}
	return nil
}

// begin runs the Start of the observers.
func (c *call) begin(ctx context.Context) {
	c.started = time.Now()
	if c.cfg.key == nil { // another key is another merchant's
		c.cfg.merchant = cmp.Or(c.cfg.merchant, c.client.cfg.defaults.merchant)
	}
	c.redactor = c.client.redactorOf(&c.cfg)
	c.ctx = c.observeStart(context.WithValue(ctx, callKey{}, c))
}

// redactorOf returns a redactor of the client's secrets, and of those in the options of a call.
func (c *Client) redactorOf(cfg *callConfig) redact.Redactor {
	return c.redactor.With(cfg.secrets()...)
}

// address completes the URL of the request.
func (c *call) address() error {
	if name, reason := c.client.base.URL(&c.url, c.operation.route, c.operation.args[:], c.operation.query); reason != "" {
		return c.refuse(name, reason)
	}
	return nil
}

// check returns why a call with this client or context is refused.
func (c *Client) check(ctx context.Context) (name, reason string) {
	switch {
	case c == nil || c.cfg == nil:
		return "client", "was not made by New"
	case ctx == nil:
		return "ctx", "must not be nil"
	default:
		return "", ""
	}
}

func (c *call) refuse(name, reason string) *ArgumentError {
	return &ArgumentError{Operation: c.operation.name, Name: name, Reason: reason}
}

// resolveKey finds the key of the call, which must not be empty where it is needed.
func (c *call) resolveKey() error {
	c.key = c.client.key
	switch {
	case c.cfg.key != nil:
		c.key = *c.cfg.key
	case c.client.cfg.keySource != nil && (c.operation.key != keyNowhere || c.client.cfg.keyOnPublic):
		if err := c.keyFromSource(); err != nil {
			return err
		}
	}
	if c.operation.key != keyNowhere && c.key.IsEmpty() {
		missing := c.refuse("apiKey", "is required for this call: give it to New, WithAPIKeySource or WithAPIKey")
		missing.err = ErrMissingAPIKey
		return missing
	}
	return nil
}

func (c *call) keyFromSource() error {
	if c.ctx.Err() != nil {
		return c.contextEnded(PhaseStart)
	}
	timeout := c.client.cfg.retry.AttemptTimeout
	if c.write != nil {
		timeout = c.client.cfg.retry.InvoiceTimeout
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	key, err := c.client.cfg.keySource(keyContext{ctx})
	if err != nil {
		c.redactor = c.redactor.With(redact.NewSecret(key))
		reason := fmt.Errorf("the source of the API key: %w", sanitize(err, c.redactor))
		return c.transportError(PhaseStart, reason, attempt.IsNetworkError(err))
	}
	if reason := endpoint.APIKey(key); reason != "" && key != "" {
		return c.refuse("WithAPIKeySource", "the key "+reason)
	}
	c.key = redact.NewSecret(key)
	c.redactor = c.redactor.With(c.key)
	return nil
}

// A keyContext is the context of a source of keys. It hides the values of the caller's context, except the call: a
// key chosen by such a value could belong to another merchant than the order.
type keyContext struct{ context.Context }

func (ctx keyContext) Value(key any) any {
	if key == (callKey{}) {
		return ctx.Context.Value(key)
	}
	return nil
}

// send makes the attempts of a call.
func (c *call) send() error {
	if c.ctx.Err() != nil {
		return c.contextEnded(PhaseStart)
	}
	c.library.HTTPClient, c.library.RetryMax = c.client.http(), c.client.cfg.retry.MaxAttempts-1
	c.library.RequestLogHook, c.library.CheckRetry, c.library.Backoff = c.beforeAttempt, c.afterAttempt, c.waitBeforeNext
	c.library.ErrorHandler = retryablehttp.PassthroughErrorHandler
	_, _ = c.library.Do(&retryablehttp.Request{Request: c.newHTTPRequest()}) // afterAttempt has kept the result
	if c.next.Wait > 0 {
		// Do has returned before the next attempt: the context has ended.
		c.followContext()
		c.failure = c.contextEnded(PhaseBackoff)
	}
	if response := c.cfg.response; response != nil {
		response.StatusCode, response.Attempts, response.Duration = c.status, c.attempts, time.Since(c.started)
	}
	return c.failed()
}

// sleep waits, or returns the error of a context that has ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failed returns the failure of the last attempt, or nil.
func (c *call) failed() error {
	if c.failure == nil {
		return nil
	}
	return c.failure
}

// newHTTPRequest returns the request of all attempts. The body of each is made from its
// [attempt.Template]. It has no GetBody: with it, net/http would send a write again by itself.
func (c *call) newHTTPRequest() *http.Request {
	wire := c.wire
	if wire == nil {
		wire = c.ctx
	}
	req := c.client.request.WithContext(wire)
	req.URL = &c.url
	if c.write != nil {
		text := c.write.encode(c.key.Reveal())
		req.Method, req.ContentLength = http.MethodPost, int64(len(text))
		c.template = &attempt.Template{Bytes: text, Expires: c.expires, Begin: c.mayBegin}
		req.Body = c.template
	}
	return req
}

// beforeAttempt begins an attempt: a hook of go-retryablehttp.
func (c *call) beforeAttempt(_ retryablehttp.Logger, req *http.Request, _ int) {
	req.Header = c.newHeader()
	c.attempts++
	c.begun, c.last, c.next.Wait = time.Now(), lastAttempt{sent: sentMaybe}, 0
	c.failure = errAborted // until the attempt ends
}

// newHeader makes the header of an attempt. No attempt shares it with another: a RoundTripper
// could change it.
func (c *call) newHeader() http.Header {
	header := make(http.Header, 5)
	header["Accept"], header["User-Agent"] = []string{"application/json"}, []string{c.client.cfg.userAgent}
	if c.write == nil { // a cache may have old prices, and balances of others
		header["Cache-Control"] = []string{"no-cache"}
	}
	for _, set := range [...]map[string][]redact.Secret{c.client.cfg.defaults.header, c.cfg.header} {
		for name, values := range set {
			header[name] = make([]string, len(values))
			for i, value := range values {
				header[name][i] = value.Reveal()
			}
		}
	}
	if c.operation.sendsContentType || c.write != nil {
		header["Content-Type"] = []string{"application/json"}
	}
	if c.operation.key == keyInHeader || c.operation.key == keyNowhere && c.client.cfg.keyOnPublic && !c.key.IsEmpty() {
		header["X-Api-Key"] = []string{c.key.Reveal()}
	}
	return header
}

// afterAttempt reads the response to an attempt and decides whether another one follows: the policy of
// go-retryablehttp.
func (c *call) afterAttempt(_ context.Context, resp *http.Response, err error) (bool, error) {
	c.followContext()
	if err != nil {
		c.failure = c.noResponse(err)
	} else {
		c.failure = c.receive(resp)
	}
	if c.failure == nil {
		c.client.retrier.Succeeded(c.attempts, c.next)
		c.next = attempt.Next{}
	} else {
		if c.write != nil && c.failure.decided().outcome == OutcomeUnknown && c.unknownSince.IsZero() {
			c.unknownSince = c.begun // no later attempt proves anything about this one
		}
		c.next = c.whatFollows()
		annotate(c.failure, c.next.Note)
	}
	c.reportAttempt()
	return c.next.Wait > 0, nil
}

// followContext makes a write that outlasts its caller go on with its own context.
func (c *call) followContext() {
	if c.follow != nil {
		c.ctx = c.follow()
	}
}

// waitBeforeNext returns the wait that afterAttempt has chosen: the backoff of go-retryablehttp.
func (c *call) waitBeforeNext(time.Duration, time.Duration, int, *http.Response) time.Duration {
	return c.next.Wait
}

// whatFollows decides whether another attempt follows the failed one, and when.
func (c *call) whatFollows() attempt.Next {
	decision := c.failure.decided()
	failed := attempt.Failure{Retry: decision.transient && c.ctx.Err() == nil && c.mayRepeat(decision)}
	if refusal, ok := c.failure.(*APIError); ok {
		failed.Throttled, failed.After = attempt.IsThrottled(refusal.StatusCode), refusal.RetryAfter
		failed.Free = refusal.StatusCode == http.StatusTooManyRequests // the service itself counts requests
	}
	deadline, _ := c.ctx.Deadline()
	return c.client.retrier.Next(c.attempts, failed, deadline)
}

// annotate adds to a failure why no other attempt follows.
func annotate(failure callError, note string) {
	switch failure := failure.(type) {
	case *TransportError:
		failure.note = note
	case *APIError:
		failure.note = note
	}
}

// mayRepeat reports whether another attempt is safe. A write is attempted again only if it is
// proved that nothing of it was sent, or if it is repeatable.
func (c *call) mayRepeat(failed decision) bool {
	switch {
	case c.write == nil:
		return !c.operation.once
	case !c.unknownSince.IsZero():
		return c.write.isRepeatable()
	default:
		return failed.outcome == OutcomeNotSent
	}
}

// decide returns what a failed attempt means for the call. The proved outcome applies to a write only.
func (c *call) decide(proved Outcome, transient bool) decision {
	if c.write == nil {
		return decision{retryable: transient, transient: transient}
	}
	if !c.unknownSince.IsZero() {
		proved = OutcomeUnknown
	}
	safe := proved == OutcomeNotSent || proved == OutcomeRejected
	return decision{outcome: proved, retryable: transient && safe, transient: transient}
}

// noResponse makes the error of an attempt without a response.
func (c *call) noResponse(err error) callError {
	cause, _ := errors.AsType[*attempt.Error](err) // a Transport returns no other
	if cause.Unread {
		c.last.sent = sentNothing
	}
	return c.transportError(Phase(cause.Phase.String()), sanitize(cause.Err, c.redactor), cause.Retryable())
}

// contextEnded makes the error of a call that makes no attempt because its context has ended.
func (c *call) contextEnded(phase Phase) *TransportError {
	return c.transportError(phase, contextError(c.ctx, c.redactor), false)
}

// isEnded reports whether the context of the call ended its last step. Cancelling does not end an attempt
// of a write that was read for sending.
func (c *call) isEnded() bool {
	goesOn := c.write != nil && c.last.sent != sentNothing && errors.Is(c.ctx.Err(), context.Canceled)
	return c.ctx.Err() != nil && !goesOn
}

// transportError makes the error of a call, or of an attempt, without a usable response. If the
// context of the call ended it, that is the reason.
func (c *call) transportError(phase Phase, err error, transient bool) *TransportError {
	timeout := attempt.IsTimeout(err)
	if c.isEnded() {
		err, transient = contextError(c.ctx, c.redactor), false
		timeout = errors.Is(c.ctx.Err(), context.DeadlineExceeded)
	}
	proved := OutcomeUnknown
	if c.last.sent == sentNothing {
		proved = OutcomeNotSent
	}
	d := c.decide(proved, transient)
	isOver := c.ctx.Err() != nil && context.Cause(c.ctx) != errClientTimeout
	didNothing := c.last.sent != sentAnswered && (c.write == nil || d.outcome == OutcomeNotSent)
	if didNothing && !isOver {
		d.retryable = true // a call that did nothing may be made again, whatever the reason
	}
	return &TransportError{
		Operation: c.operation.name, Phase: phase, Attempts: c.attempts, LastStatus: c.status, Err: err,
		Outcome: d.outcome, Retryable: d.retryable, transient: d.transient, timeout: timeout,
	}
}

// How much of a response an error keeps, in bytes.
const (
	maxSnippet     = 8 << 10 // of the body
	maxHeaderValue = 1 << 10
	maxContentType = 256
	maxLocation    = 256

	maxErrorBody  = 1 << 20 // of the body of an error that is read: the trace of a program is long
	maxPooledBody = 1 << 20 // a larger body's tree is not used again
	byteOrderMark = "\uFEFF"
)

// receive reads the response to an attempt, and returns why it is a failure.
func (c *call) receive(resp *http.Response) callError {
	body := resp.Body.(*attempt.Result)
	defer func() { _ = body.Close() }() // go-retryablehttp finds it empty
	text := bytes.TrimPrefix(body.Text(), []byte(byteOrderMark))
	tree := c.client.trees().Get().(*doc.Doc)
	tree.Reset()
	defer func() {
		if tree.Reset(); len(text) <= maxPooledBody {
			c.client.trees().Put(tree)
		}
	}()
	c.status = resp.StatusCode
	c.last = lastAttempt{
		sent: sentAnswered, status: resp.StatusCode, asOf: time.Now().Add(-ageOf(resp.Header)), ambiguous: body.Ambiguous,
	}
	e, failure := c.readResponse(tree, resp, text, body.Err)
	if failure == nil {
		failure = c.unrelated(body)
	}
	if failure != nil && c.write != nil {
		c.last.body = c.redactor.Snippet(text, maxSnippet)
	}
	if c.cfg.response != nil {
		*c.cfg.response = c.newResponse(resp, e)
		c.cfg.response.Skipped = skippedIn(tree)
	}
	return failure
}

// readResponse reads a response by its status. Lost says why its body is not whole; nil if it is.
func (c *call) readResponse(tree *doc.Doc, resp *http.Response, text []byte, lost error) (e envelope, _ callError) {
	switch status := resp.StatusCode; {
	case status >= 400:
		return c.readError(tree, resp, text, lost)
	case status >= 300:
		return e, c.redirected(resp)
	case status < 200:
		return e, c.transportError(PhaseWait, fmt.Errorf("status %d is not a response", status), false)
	case lost != nil:
		e, _ = c.open(tree, text)
		return e, c.bodyError(resp, lost, text)
	default:
		return c.readResult(tree, resp, text)
	}
}

// unrelated returns why a success may not be the response to the write, or nil.
func (c *call) unrelated(body *attempt.Result) callError {
	switch {
	case body.Unread:
		return c.transportError(PhaseWait, errUnsentSuccess, false)
	case body.Ambiguous != nil:
		return c.transportError(PhaseWait, body.Ambiguous, false)
	default:
		return nil
	}
}

// errUnsentSuccess is the error of a success that came without the invoice having been read.
var errUnsentSuccess = errors.New("the transport returned a success without having read the invoice")

// open reads a body as a tree, and finds the parts of its envelope.
func (c *call) open(tree *doc.Doc, text []byte, opts ...jsontext.Options) (envelope, *doc.Error) {
	most := doc.MaxListing
	if c.operation.undocumented {
		most = doc.MaxUndocumented
	}
	wrong := tree.Parse(text, c.redactor, most, opts...)
	return openEnvelope(tree.Root(), c.client.cfg.successMessage), wrong
}

// readError reads the body of an error response, in which a name may be there twice. Lost says why the body is not
// whole.
func (c *call) readError(tree *doc.Doc, resp *http.Response, text []byte, lost error) (envelope, *APIError) {
	e, wrong := c.open(tree, text, jsontext.AllowDuplicateNames(true))
	said := readRefusal(e, wrong)
	isCut := lost != nil && !errors.Is(lost, attempt.ErrTooLarge)
	isUnreadable := hasJSON(text) && (lost != nil || wrong != nil)
	said.doubtful = c.write != nil && (isCut || isUnreadable || c.write.mayBeIn(e, text))
	failure := c.apiError(resp, e, text, said)
	if isCut {
		failure.lost = sanitize(lost, c.redactor)
	}
	return e, failure
}

// hasJSON reports whether a text begins or ends as JSON, or may be JSON in another encoding, such as UTF-16 or gzip.
// The warnings of a program may stand before it.
func hasJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte(`"`)) || bytes.IndexByte(text, 0) >= 0 || len(text) > 0 &&
		(strings.IndexByte("{[", text[0]) >= 0 || strings.IndexByte("}]", text[len(text)-1]) >= 0)
}

// readResult reads the body of a response of 2xx.
func (c *call) readResult(tree *doc.Doc, resp *http.Response, text []byte) (envelope, callError) {
	e, wrong := c.open(tree, text)
	isRefusal := false
	switch {
	case wrong != nil:
	case c.write != nil:
		isRefusal, wrong = c.write.read(e)
	default:
		if isRefusal = e.isRefusal(); !isRefusal {
			wrong = c.decode(e)
			isRefusal = wrong != nil && errors.Is(wrong.Err, doc.ErrNoRecord)
		}
	}
	if !isRefusal {
		tree.NoteError(wrong)
	}
	c.last.drift = drifts(c.operation.name, tree)
	switch {
	case isRefusal:
		return e, c.apiError(resp, e, text, refusal{message: e.said()})
	case wrong != nil:
		failure := c.decodeError(resp, wrong, text, false)
		if c.operation.statusIn != nil && !wrong.Syntax && !errors.Is(wrong.Err, doc.ErrMismatch) {
			failure.status = c.operation.statusIn(e.result, c.operation.args[0])
		}
		return e, failure
	default:
		return e, nil
	}
}

// redirected returns the failure of a response of 3xx. It proves that nothing was created if it only asks for the same
// request elsewhere.
func (c *call) redirected(resp *http.Response) *TransportError {
	base, isElsewhere := c.asksElsewhere(resp)
	failure := c.transportError(PhaseWait, c.redirect(resp, base), false)
	if isElsewhere && c.write != nil && c.last.ambiguous == nil {
		failure.Outcome = c.decide(OutcomeRejected, false).outcome
	}
	return failure
}

// redirect returns the error of a response of 3xx, with its target, and the base URL that it asks for. User and query
// are left out, because they may be secret.
func (c *call) redirect(resp *http.Response, base string) error {
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host+to.Path == "" {
		return ErrRedirect
	}
	place := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	wrong := fmt.Errorf("%w: to %s", ErrRedirect, redact.Truncate(c.redactor.Text(place.String()), maxLocation))
	if base != "" && base != c.client.base.String() {
		wrong = fmt.Errorf("%w: set the base URL to %s", wrong, redact.Truncate(c.redactor.Text(base), maxLocation))
	}
	return wrong
}

// maxAge bounds the age that a response has from caches on its way: 68 years, RFC 9111, section 1.2.2.
const maxAge = math.MaxInt32 * time.Second

// ageOf returns how long a response was in caches on its way, or 0 if it does not say so in whole seconds.
func ageOf(header http.Header) time.Duration {
	text, _, _ := strings.Cut(header.Get("Age"), ",") // the first counts: RFC 9111, section 5.1
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil { // out of range
		return maxAge
	}
	return time.Duration(seconds) * time.Second
}

// newResponse returns a response for [WithResponse].
func (c *call) newResponse(resp *http.Response, e envelope) Response {
	return Response{
		FetchedAt: c.last.asOf, Header: c.redactor.Header(resp.Header),
		Message: e.message, Meta: e.metaValue(), Result: json.RawMessage(e.result.JSON()),
	}
}

func (c *call) apiError(resp *http.Response, e envelope, body []byte, said refusal) *APIError {
	proved := OutcomeUnknown
	if resp.StatusCode >= 400 && said.provesNoInvoice(resp.StatusCode) && c.last.ambiguous == nil {
		proved = OutcomeRejected
	}
	d := c.decide(proved, attempt.IsRetryableStatus(resp.StatusCode))
	return &APIError{
		Operation: c.operation.name, StatusCode: resp.StatusCode, Attempts: c.attempts,
		Outcome: d.outcome, Retryable: d.retryable, transient: d.transient,
		Message: said.message, Meta: e.metaValue(), Body: c.redactor.Snippet(body, maxSnippet),
		Header: c.diagnosticHeaders(resp.Header), RetryAfter: attempt.After(resp.Header),
		missingKey: e.missingKey, said: said, namesNothing: c.operation.namesNothing(),
	}
}

// diagnosticHeaders returns the headers that help to find a response in a log. They are
// truncated after the key is removed, because a part of a key would not be recognized.
func (c *call) diagnosticHeaders(all http.Header) http.Header {
	some := http.Header{}
	for _, name := range [...]string{
		"Content-Type", "Date", "Server", "Via", "Retry-After",
		"X-Request-Id", "X-Correlation-Id", "X-Trace-Id", "Traceparent", "Cf-Ray",
	} {
		if values := all[name]; len(values) > 0 {
			some[name] = values[:1]
		}
	}
	some = c.redactor.Header(some)
	for _, values := range some {
		values[0] = redact.Truncate(values[0], maxHeaderValue)
	}
	return some
}

// decodeError converts an error of a tree to a [*DecodeError]. It is transient if another response may be better.
func (c *call) decodeError(resp *http.Response, wrong *doc.Error, body []byte, transient bool) *DecodeError {
	err := wrong.Err
	if errors.Is(err, doc.ErrMismatch) {
		err = fmt.Errorf("%w%s", ErrResponseMismatch, strings.TrimPrefix(err.Error(), doc.ErrMismatch.Error()))
	} else if c.redactor.Contains(err.Error()) {
		err = sanitize(err, c.redactor) // it quotes the response
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" {
		encoding = redact.Truncate(c.redactor.Text(encoding), maxContentType)
		err = fmt.Errorf("Content-Encoding %q, which was not asked for: %w", encoding, err)
	}
	contentType := strings.ToValidUTF8(c.redactor.Text(resp.Header.Get("Content-Type")), "\uFFFD")
	d := c.decide(OutcomeUnknown, transient)
	return &DecodeError{
		Operation: c.operation.name, StatusCode: resp.StatusCode,
		Outcome: d.outcome, Retryable: d.retryable, transient: d.transient,
		ContentType: redact.Truncate(contentType, maxContentType),
		Pointer:     wrong.Pointer, Value: wrong.Value, Body: c.redactor.Snippet(body, maxSnippet), Err: err,
	}
}

// bodyError returns the error of a body that was cut, is too large or cannot be
// decompressed.
func (c *call) bodyError(resp *http.Response, err error, body []byte) callError {
	switch {
	case errors.Is(err, attempt.ErrTooLarge):
		return c.transportError(PhaseRead, ErrResponseTooLarge, false)
	case isDamaged(err):
		return c.decodeError(resp, &doc.Error{Err: sanitize(err, c.redactor)}, body, true)
	default:
		return c.transportError(PhaseRead, sanitize(err, c.redactor), true)
	}
}

// isDamaged reports whether a body cannot be decompressed: another attempt may get a whole one.
func isDamaged(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}
