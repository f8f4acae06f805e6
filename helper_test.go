package gateway_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/caller"
	"github.com/cryptogw/gateway/internal/everycall"
)

// canary is the key of every test client. No text may ever contain it.
const canary = "CANARY-5f1d8e0b7a64c932"

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
func enveloped(result string) string {
	return everycall.Enveloped(result)
}

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
		all = append(all, subject{
			c.Name, c.Operation, c.Route, c.Status, c.Result, c.Writes(), c.Key != everycall.NoKey,
			func(ctx context.Context, client *gateway.Client, opts ...gateway.CallOption) (any, error) {
				return c.Do(ctx, client, everycall.Documented(), opts...)
			},
		})
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

// memory is a transport that responds from memory once it has read the request.
type memory struct{ body string }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(m.body)), ContentLength: int64(len(m.body)), Request: req,
	}, nil
}

// client returns a client with an [http.Transport], as most callers have, that responds
// from memory: to invoices too, for which a copy would not.
func (m memory) client() *http.Client {
	t := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}} // HTTP/1 only
	t.RegisterProtocol("https", m)
	return &http.Client{Transport: &attempt.Split{Dedicated: attempt.NewDedicated(t), Shared: t}}
}

const inMemoryURL = "https://gateway.example"

func inMemory(b testing.TB, body string, opts ...gateway.Option) *gateway.Client {
	b.Helper()
	return newClient(b, inMemoryURL, append(opts, gateway.WithHTTPClient(memory{body}.client()))...)
}

// newClient returns a client with the canary key.
func newClient(t testing.TB, url string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New(url, canary, opts...)
	require.NoError(t, err)
	return c
}

// A scripted is a client for a bubble, whose transport has a response for each request
// and notes the time of it.
type scripted struct {
	client    *gateway.Client
	transport gateway.Option
	begun     time.Time
	at        []time.Time // of the requests
}

// scriptedClient makes a client whose n-th request, from 0, has the response responses[n];
// those after the last have the last.
func scriptedClient(t *testing.T, responses ...func() (*http.Response, error)) *scripted {
	t.Helper()
	s := &scripted{begun: time.Now()}
	s.transport = through(func(*http.Request) (*http.Response, error) {
		s.at = append(s.at, time.Now())
		return responses[min(len(s.at), len(responses))-1]()
	})
	s.connect(t)
	return s
}

// connect makes the client again, with options.
func (s *scripted) connect(t *testing.T, opts ...gateway.Option) {
	t.Helper()
	s.client = newClient(t, "http://localhost", append(opts, s.transport)...)
}

// respondWith makes a response, new each time.
func respondWith(status int, body string, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return reply(status, body, headers...), nil }
}

// recordsJSON is an array of n records as in a real listing: 40 coins on 12 networks,
// repeated, with identifiers of their own and a few fees.
func recordsJSON(n int) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		coin, network := fmt.Sprintf("c%d", i%40), fmt.Sprintf("n%d", i/40%12)
		all.WriteString(strings.NewReplacer(
			pairID, fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i),
			`"1.5"`, fmt.Sprintf(`"%d.5"`, i%7),
			"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2"+network,
			"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44", "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3"+coin,
			"Tron (TRC20)", "Network "+network, "USDT", strings.ToUpper(coin),
		).Replace(pairJSON))
	}
	return "[" + all.String() + "]"
}

// catalogJSON is an array of n records of 200 coins on 20 networks, each with a fee of its
// own.
func catalogJSON(n int) string {
	records := make([]string, n)
	for i := range records {
		coin, network := fmt.Sprintf("%03d", i%200), fmt.Sprintf("%02d", i/200%20)
		records[i] = strings.NewReplacer(
			pairID, fmt.Sprintf("7c9d6d0e-2f0f-4d7e-9a53-%012d", i), `"1.5"`, fmt.Sprintf(`"%d.%d"`, i/7, i%7),
			"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d"+network,
			"5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44", "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3"+coin,
			"Tron (TRC20)", "Network "+network, "USDT", "C"+coin,
		).Replace(pairJSON)
	}
	return "[" + strings.Join(records, ",") + "]"
}

// once turns retries off.
func once() gateway.Option { return gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}) }

// assertInvariants asserts what is true of every call: a result or an error
// and never both, an error of a known type in one line, and the key nowhere.
func assertInvariants(t testing.TB, result any, err error) {
	t.Helper()
	if err == nil {
		assert.False(t, isZero(result), "a success has a result")
		assertNoKey(t, result)
		return
	}
	assert.True(t, isZero(result), "an error comes with the zero result, not %v", result)
	assertKnownError(t, err)
	assert.NotContains(t, err.Error(), "\n", "an error is one line")
	assert.True(t, strings.HasPrefix(err.Error(), "gateway: "), "an error has the prefix of the package: %s", err)
	assertNoKey(t, err)
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		assertNoKey(t, inner)
	}
	var unknown *gateway.OutcomeUnknownError
	if errors.As(err, &unknown) {
		assertNoKey(t, unknown.Cause)
	}
}

func isZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }

func assertKnownError(t testing.TB, err error) {
	t.Helper()
	var (
		argument  *gateway.ArgumentError
		api       *gateway.APIError
		decode    *gateway.DecodeError
		transport *gateway.TransportError
		unknown   *gateway.OutcomeUnknownError
		failed    *gateway.WithdrawalFailedError
		wait      *gateway.WaitError
		limit     *gateway.LimitError
	)
	for _, target := range []any{&argument, &api, &decode, &transport, &unknown, &failed, &wait, &limit} {
		if errors.As(err, target) {
			return
		}
	}
	assert.Fail(t, "an error of an unknown type", "%T: %v", err, err)
}

// assertNoKey asserts that no way of printing v shows the canary.
func assertNoKey(t testing.TB, v any) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		text := fmt.Sprintf(verb, v)
		assert.NotContains(t, text, canary, "%s of %T", verb, v)
		assert.NotContains(t, text, fmt.Sprintf("%x", canary), "%s of %T", verb, v)
	}
	if encoded, err := json.Marshal(v); err == nil {
		assert.NotContains(t, string(encoded), canary, "JSON of %T", v)
	}
}

// quiet is a log that discards everything.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// bytesAllocated is how many bytes the whole program allocates while a function runs.
func bytesAllocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// assertPassedOn asserts that a call ends as the code of a caller's that it has run in another
// goroutine: with a panic of this value, whose stack names a test, or for nil without one.
func assertPassedOn(t *testing.T, value any, call func()) {
	t.Helper()
	var recovered any
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recovered = recover() }()
		call()
		returned = true
	}()
	<-done
	assert.False(t, returned)
	if value == nil {
		assert.Nil(t, recovered)
		return
	}
	if passed, ok := recovered.(*caller.Panic); assert.True(t, ok, "%v", recovered) {
		assert.Equal(t, value, passed.Value)
		assert.Contains(t, passed.Stack, "gateway_test.")
	}
}
