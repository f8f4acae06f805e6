package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/leak"
)

// canary is the key of every test client. No text may ever contain it.
const canary = invariant.Key

// prefix is a path in front of every route, so that a path that forgets the
// base URL's own fails.
const prefix = "/merchant/v0"

// Wire text as docs/interface.md describes it, written by hand in package everycall.
const (
	pairID    = everycall.PairID
	requestID = everycall.WithdrawalID

	networkJSON    = everycall.NetworkJSON
	coinJSON       = everycall.CoinJSON
	pairJSON       = everycall.PairJSON
	withdrawalJSON = everycall.WithdrawalJSON
	ratesJSON      = everycall.RatesJSON
	balanceJSON    = everycall.BalanceJSON
	invoiceJSON    = everycall.InvoiceJSON
)

// enveloped puts the documented envelope of a success around a result.
func enveloped(result string) string { return everycall.Enveloped(result) }

// refused is the documented envelope of an error.
func refused(message string) string {
	return fmt.Sprintf(`{"message":%q,"result":[],"meta":{}}`, message)
}

// A subject is one method of the client, with a response that it can read.
type subject struct {
	name   string
	op     string
	route  string
	status int
	result string // the result of a good response
	write  bool
	keyed  bool // whether it sends the key by default
	call   func(ctx context.Context, c *gateway.Client, opts ...gateway.CallOption) (any, error)
}

func (s subject) body() string { return enveloped(s.result) }

// subjects are all methods that send one request.
func subjects() (all []subject) {
	for _, c := range everycall.All() {
		do := func(ctx context.Context, client *gateway.Client, opts ...gateway.CallOption) (any, error) {
			return c.Do(ctx, client, everycall.Documented(), opts...)
		}
		all = append(all, subject{c.Name, c.Operation, c.Route, c.Status, c.Result, c.Writes(), c.Key != everycall.NoKey, do})
	}
	return all
}

// order is a valid invoice request for an order.
func order(id string) gateway.InvoiceRequest { return everycall.Order(id) }

// A wire is a server that records the requests it receives.
type wire struct {
	URL string // with prefix

	mu       sync.Mutex
	requests []received
}

// received is a request as it arrived.
type received struct {
	Method, Target string
	Header         http.Header
	Body           string
}

// serve starts a server that calls handler after it has read the whole request.
func serve(t testing.TB, handler http.HandlerFunc) *wire {
	t.Helper()
	w := &wire{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.requests = append(w.requests, received{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
		w.mu.Unlock()
		handler(rw, r)
	}))
	server.Config.ErrorLog = quiet()
	server.Start()
	t.Cleanup(server.Close)
	w.URL = server.URL + prefix
	return w
}

// Requests are the requests that have arrived, oldest first.
func (w *wire) Requests() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]received(nil), w.requests...)
}

// respond sends the same response to every request.
func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const inMemoryURL = "https://gateway.example"

// inMemory is a client without a network, whose requests get one response.
func inMemory(b testing.TB, body string, opts ...gateway.Option) *gateway.Client {
	b.Helper()
	return newClient(b, inMemoryURL, append(opts, over(statusTrip(200, body)))...)
}

// newClient returns a client with the canary key.
func newClient(t testing.TB, url string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New(url, canary, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { stopRecording(c) })
	return c
}

// stopRecording ends what records in the background.
func stopRecording(c *gateway.Client) {
	_ = c.Shutdown(cancelledContext())
}

// A scripted is a client for a bubble, whose transport sends each request in its own way
// and notes the time of it.
type scripted struct {
	client    *gateway.Client
	transport gateway.Option
	begun     time.Time
	at        []time.Time // of the requests
}

// scriptedClient makes a client whose requests meet these in turn, and the last for all that follow.
func scriptedClient(t *testing.T, trips ...tripper) *scripted {
	t.Helper()
	return paced(t, gateway.RetryPolicy{}, trips...)
}

// paced is a scriptedClient with a policy.
func paced(t *testing.T, policy gateway.RetryPolicy, trips ...tripper) *scripted {
	t.Helper()
	s := &scripted{begun: time.Now()}
	s.transport = over(func(req *http.Request) (*http.Response, error) {
		s.at = append(s.at, time.Now())
		return trips[min(len(s.at), len(trips))-1](req)
	})
	s.connect(t, gateway.WithRetry(policy))
	return s
}

// connect makes the client again, with options.
func (s *scripted) connect(t *testing.T, opts ...gateway.Option) {
	t.Helper()
	s.client = newClient(t, "http://localhost", append(opts, s.transport)...)
}

// waits are the waits between the requests.
func (s *scripted) waits() (all []time.Duration) {
	for i := 1; i < len(s.at); i++ {
		all = append(all, s.at[i].Sub(s.at[i-1]))
	}
	return all
}

// saysStatus refuses, with headers in pairs.
func saysStatus(status int, headers ...string) tripper {
	return statusTrip(status, refused("No."), headers...)
}

// once turns retries off.
func once() gateway.Option { return gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}) }

// assertInvariants asserts the rules that every call keeps.
func assertInvariants(t testing.TB, result any, err error) {
	t.Helper()
	assert.Empty(t, invariant.Broken(result, err))
}

func isZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }

// assertNoKey asserts that no way of printing v shows the canary.
func assertNoKey(t testing.TB, v any) {
	t.Helper()
	assert.False(t, invariant.ShowsKey(v), "the key is in %T", v)
}

// quiet is a log that discards everything.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// canned is a transport whose responses have a body of unknown length.
type canned struct {
	status int
	body   func() io.Reader
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	drain(req)
	resp := reply(c.status, "")
	resp.Body, resp.ContentLength = io.NopCloser(c.body()), -1
	return resp, nil
}

// cannedClient is a client without a network and without an order guard, that gets
// one response.
func cannedClient(t testing.TB, status int, body string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	return newClient(t, inMemoryURL, append([]gateway.Option{over(statusTrip(status, body)), gateway.WithOrderGuard(nil), once()}, opts...)...)
}

// decodeErrorOf returns the DecodeError that err is, or for a write the one
// that is the cause of its unknown outcome.
func decodeErrorOf(t testing.TB, s subject, err error) *gateway.DecodeError {
	t.Helper()
	if s.write {
		err = as[*gateway.OutcomeUnknownError](t, err).Cause
	}
	return as[*gateway.DecodeError](t, err)
}

// as returns the error of a type that err is, or that is in it.
func as[E error](t testing.TB, err error) E {
	t.Helper()
	found, ok := errors.AsType[E](err)
	require.True(t, ok, "%T: %v", err, err)
	return found
}

// causeOf is the cause of an unknown outcome, and any other error itself.
func causeOf(err error) error {
	if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return lost.Cause
	}
	return err
}

// assertNotUnderstood asserts that a method cannot decode a response, reports the
// place, and keeps the beginning of what it got.
func assertNotUnderstood(t testing.TB, s subject, body, pointer string, reasons ...string) {
	t.Helper()
	result, err := s.call(t.Context(), cannedClient(t, s.status, body))
	assertInvariants(t, result, err)
	require.Error(t, err)
	wrong := decodeErrorOf(t, s, err)
	assert.Equal(t, s.op, wrong.Operation)
	assert.Equal(t, s.status, wrong.StatusCode)
	assert.Equal(t, "application/json", wrong.ContentType)
	assert.Equal(t, pointer, wrong.Pointer)
	for _, reason := range reasons {
		assert.ErrorContains(t, wrong.Err, reason)
	}
	kept := strings.TrimPrefix(body, "\ufeff")
	assert.Equal(t, kept[:min(len(kept), 8<<10)], string(wrong.Body), "the first 8 KiB are kept")
	assert.LessOrEqual(t, len(err.Error()), 4<<10, "the text is bounded")
	assert.False(t, gateway.SafeToRetry(err))
	assert.Equal(t, unknown, gateway.OutcomeOf(err))
}

// forEach runs a test for every method.
func forEach(t *testing.T, name string, test func(t *testing.T, s subject)) {
	t.Helper()
	for _, s := range subjects() {
		t.Run(name+", "+s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// inBubble runs a test in a bubble, with a clock of its own.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// subjectNamed is one of the methods.
func subjectNamed(name string) subject {
	for _, s := range subjects() {
		if s.name == name {
			return s
		}
	}
	panic("no method " + name)
}

// The statuses of the matrix, with what each means: whether a read is tried
// again, and whether it proves that there is no invoice. It is written out
// once more, apart from the client's own lists.
var statuses = func() (all []statusCase) {
	retried := []int{408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
	rejects := []int{400, 401, 402, 403, 404, 405, 407, 410, 411, 413, 414, 415, 421, 422, 425, 426, 429, 431, 451}
	others := []int{406, 409, 412, 416, 417, 418, 423, 428, 460, 499, 501, 505, 511, 600, 999}
	needMessage := []int{400, 403, 422}
	sentinels := map[int]error{
		401: gateway.ErrUnauthorized, 403: gateway.ErrForbidden, 404: gateway.ErrNotFound, 409: gateway.ErrConflict, 429: gateway.ErrRateLimited,
	}
	for _, status := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(retried, rejects, others)))) {
		sentinel := sentinels[status]
		if status >= 500 {
			sentinel = gateway.ErrServer
		}
		all = append(all, statusCase{
			status, slices.Contains(retried, status), slices.Contains(rejects, status), slices.Contains(needMessage, status), sentinel,
		})
	}
	return all
}()

type statusCase struct {
	status           int
	retried, rejects bool
	needsMessage     bool  // only with a message of the service does it reject
	sentinel         error // nil for none
}

var sentinels = []error{
	gateway.ErrInvalidArgument, gateway.ErrMissingAPIKey, gateway.ErrUnauthorized, gateway.ErrForbidden,
	gateway.ErrNotFound, gateway.ErrConflict, gateway.ErrRateLimited, gateway.ErrServer, context.DeadlineExceeded,
	gateway.ErrRedirect, gateway.ErrResponseTooLarge, gateway.ErrResponseMismatch,
	gateway.ErrOrderInFlight, gateway.ErrWithdrawalFailed, gateway.ErrFinalStatus,
}

// assertUnknownBefore asserts that an error is about an earlier invoice of unknown outcome.
func assertUnknownBefore(t testing.TB, err error, text ...any) {
	t.Helper()
	assert.True(t, as[*gateway.OutcomeUnknownError](t, err).Replayed, text...)
}

// assertSentinels asserts that an error matches these and no others.
func assertSentinels(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, sentinel := range sentinels {
		assert.Equal(t, slices.Contains(want, sentinel), errors.Is(err, sentinel), "%q of %v", sentinel, err)
	}
}

// through sends requests through one function.
func through(trip tripper) gateway.Option {
	return gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return nil, err
			}
			_ = req.Body.Close()
		}
		return trip(req)
	})})
}

// reply is a response as a RoundTripper returns it. Headers are in pairs.
func reply(status int, body string, headers ...string) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Add(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// drain reads and closes the body of a request.
func drain(req *http.Request) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
}

type temporaryError struct{}

func (temporaryError) Error() string { return "try again" }

func (temporaryError) Temporary() bool { return true }

type closer struct {
	io.ReadCloser
	closed func()
}

func (c closer) Close() error {
	c.closed()
	return c.ReadCloser.Close()
}

type brokenReader struct{ err error }

func (f brokenReader) Read([]byte) (int, error) { return 0, f.err }

type timeoutError struct{ text string }

func (e timeoutError) Error() string { return "no response: " + e.text }

func (timeoutError) Timeout() bool { return true }

func statusTrip(status int, body string, headers ...string) tripper {
	return func(req *http.Request) (*http.Response, error) {
		drain(req)
		return reply(status, body, headers...), nil
	}
}

func errorTrip(err error) tripper {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func readThen(err error) tripper {
	return func(req *http.Request) (*http.Response, error) {
		drain(req)
		return nil, err
	}
}

func hangTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func hangAfterReading(req *http.Request) (*http.Response, error) {
	drain(req)
	return hangTrip(req)
}

// lasting is a context of a test with a deadline.
func lasting(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func cancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A tripper is a RoundTripper in one function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// No test leaves a goroutine behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients warn of what the tests cause
	leak.Main(m)
}

func refusedConnection(call string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(call, syscall.ECONNREFUSED)}
}

const password = "hunter2-and-more"

// only returns the one request that has arrived.
func only(t testing.TB, w *wire) received {
	t.Helper()
	requests := w.Requests()
	require.Len(t, requests, 1)
	return requests[0]
}

// badKeys are some API keys that cannot be sent. Package endpoint tests all rules.
var badKeys = []struct{ name, key, reason string }{
	{"spaces", "   ", "is blank"},
	{"a header after the key", canary + "\r\nX: y", "must be printable ASCII"},
	{"a space at the end is not trimmed", canary + " ", "must not begin or end with a space"},
	{"4,097 bytes", canary + strings.Repeat("k", 4097-len(canary)), "is longer than 4,096 bytes"},
}

// assertRefused asserts that err is the refusal of one argument by the client
// itself.
func assertRefused(t testing.TB, err error, op, name, reason string) {
	t.Helper()
	var refusal *gateway.ArgumentError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, op, refusal.Operation)
	assert.Equal(t, name, refusal.Name)
	assert.Contains(t, refusal.Reason, reason)
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.Equal(t, "gateway: "+op+": "+name+": "+refusal.Reason, err.Error())
	want := unknown
	if op == gateway.OpCreateInvoice {
		want = notSent
	}
	assert.Equal(t, want, gateway.OutcomeOf(err), "only an error of an invoice says something about it")
	assert.False(t, gateway.SafeToRetry(err), "the same argument is refused again")
	assertInvariants(t, nil, err)
}

func sameKey(context.Context) (string, error) { return canary, nil }

// clientWithKeySource makes a client whose key comes from source.
func clientWithKeySource(t *testing.T, url string, source func(context.Context) (string, error), opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New(url, "", append(opts, gateway.WithAPIKeySource(source))...)
	require.NoError(t, err)
	t.Cleanup(func() { stopRecording(c) })
	return c
}
