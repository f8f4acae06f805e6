package gateway_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Bodies of an invoice as they are documented, in the sample request and in the field
// table.
const (
	sampleBody = `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17","amount":"10.4895"}`
	tableBody  = `{"apikey":"` + canary + `","price":10.50,"orderId":"A-17","amount":10.4895}`
	fullBody   = `{"apiKey":"` + canary + `","price":"10.50","orderId":"A-17",` +
		`"baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron (TRC20)","amount":"10.4895"}`
	fullTable = `{"apikey":"` + canary + `","price":10.50,"orderId":"A-17",` +
		`"baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron (TRC20)","amount":10.4895}`
)

// Each method sends this one request and nothing else, and reads the response.
// I-2, I-4, I-5, I-27
func TestClient_Wire(t *testing.T) {
	t.Parallel()
	header := func(pairs ...string) http.Header {
		h := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"cryptogw-gateway-go/" + gateway.Version}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	public := header("Cache-Control", "no-cache")
	keyed := header("Cache-Control", "no-cache", "X-Api-Key", canary)
	inquiry := header("Cache-Control", "no-cache", "X-Api-Key", canary, "Content-Type", "application/json")
	post := header("Content-Type", "application/json", "Content-Length", strconv.Itoa(len(sampleBody)))
	want := map[string]received{
		"CoinNetworks":        {"GET", "/api/networks-coins", public, ""},                         // I-13, I-47
		"CoinNetwork":         {"GET", "/api/networks-coins/" + pairID, public, ""},               // I-14
		"CoinNetworkBySymbol": {"GET", "/api/networks-coins/USDT/Tron%20%28TRC20%29", public, ""}, // I-15
		"CoinNetworksOf":      {"GET", "/api/networks-coins/USDT", public, ""},                    // I-16
		"ExchangeRates":       {"GET", "/api/exchange-rate", public, ""},                          // I-18
		"Balance":             {"GET", "/api/balance/?coinSymbol=USDT", keyed, ""},                // I-19, I-30, I-101
		"CreateInvoice":       {"POST", "/api/invoice/create", post, sampleBody},                  // I-20, I-78, I-100
		"Withdrawal":          {"GET", "/api/withdrawal/inquiry/" + requestID, inquiry, ""},       // I-21, I-22, I-31, I-130
	}
	forEach(t, "the request", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		got, err := s.call(t.Context(), newClient(t, w.URL))
		require.NoError(t, err)
		assertInvariants(t, got, err)
		expected := want[s.name]
		expected.Target = prefix + expected.Target
		assert.Equal(t, expected, only(t, w))
	})
}

// Which key each method sends, and where: in the header X-Api-Key or in the body of an invoice, and nowhere else. Without a
// key, a method that needs one is refused, and the others send no header. Neither the client nor an option shows a key.
// I-28, I-30, I-31, I-32, I-34, I-101
func TestClient_Wire_key(t *testing.T) {
	t.Parallel()
	const other = "OTHER-MERCHANT-KEY-77"
	ofCall := []gateway.CallOption{gateway.WithAPIKey(other), gateway.WithMerchant("a")}
	for _, tt := range []struct {
		name, key          string
		source, everywhere bool // WithAPIKeySource, WithAPIKeyOnPublicCalls
		opts               []gateway.CallOption
		needed, public     string // the key that is sent
	}{
		{"the client's key", canary, false, false, nil, canary, ""},
		{"the client's key everywhere", canary, false, true, nil, canary, canary},
		{"no key", "", false, true, nil, "", ""},
		{"the key of the call", canary, false, false, ofCall, other, ""},
		{"the key of the call everywhere", canary, false, true, ofCall, other, other},
		{"the key of the call alone", "", false, false, ofCall, other, ""},
		{"the key of a source", "", true, false, nil, canary, ""},
		{"the key of a source everywhere", "", true, true, nil, canary, canary},
		{"the key of the call, beside a source", "", true, true, ofCall, other, other},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			w, asked := serve(t, respond(s.status, s.body())), 0
			var opts []gateway.Option
			if tt.everywhere {
				opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
			}
			if tt.source {
				opts = append(opts, gateway.WithAPIKeySource(func(context.Context) (string, error) { asked++; return canary, nil }))
			} else if tt.key == "" {
				opts = append(opts, gateway.WithoutAPIKey())
			}
			c, err := gateway.New(w.URL, tt.key, opts...)
			require.NoError(t, err)
			got, err := s.call(t.Context(), c, tt.opts...)
			assertInvariants(t, got, err)
			for _, v := range []any{c, *c, []any{map[string]any{"c": c}}, opts, tt.opts} { // also after its connections have carried it
				assertSilent(t, v, canary)
				assertSilent(t, v, other)
			}
			want := tt.public
			if s.keyed {
				want = tt.needed
			}
			assert.Equal(t, tt.source && want == canary, asked == 1)
			if s.keyed && want == "" {
				assertRefused(t, err, s.op, "apiKey", "is required for this call")
				assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
				assert.Empty(t, w.Requests())
				return
			}
			require.NoError(t, err)
			sent := only(t, w)
			if s.write {
				assert.Equal(t, strings.Replace(sampleBody, canary, want, 1), sent.Body)
				want = ""
			}
			assert.Equal(t, slices.DeleteFunc([]string{want}, func(key string) bool { return key == "" }), append([]string{}, sent.Header["X-Api-Key"]...))
		})
	}
	_, err := cannedClient(t, 400, refused("bad key "+other)).Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithAPIKey(other))
	assert.ErrorContains(t, err, "bad key [REDACTED]")
}

// An argument arrives as one segment of the path, whatever is in it, or is refused. Package endpoint tests all texts.
// I-15, I-16, I-23, I-24, I-25, I-149
func TestClient_Wire_pathArguments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, call := range []struct {
		op, argument, target string
		do                   func(c *gateway.Client, text string) (any, error)
	}{
		{"coin_network", "id", "*", func(c *gateway.Client, text string) (any, error) { return c.CoinNetwork(ctx, text) }},
		{"coin_network_by_symbol", "coinSymbol", "*/Tron", func(c *gateway.Client, text string) (any, error) {
			return c.CoinNetworkBySymbol(ctx, text, "Tron")
		}},
		{"coin_network_by_symbol", "networkName", "USDT/*", func(c *gateway.Client, text string) (any, error) {
			return c.CoinNetworkBySymbol(ctx, "USDT", text)
		}},
		{"coin_networks_of", "coinSymbol", "*", func(c *gateway.Client, text string) (any, error) { return c.CoinNetworksOf(ctx, text) }},
		{"withdrawal", "withdrawRequestId", "*", func(c *gateway.Client, text string) (any, error) { return c.Withdrawal(ctx, text) }},
	} {
		for _, tt := range []struct{ text, segment, refuses string }{
			{"usdt (BEP20) é世", "usdt%20%28BEP20%29%20%C3%A9%E4%B8%96", ""},
			{"../a?b#c%2F", "..%2Fa%3Fb%23c%252F", ""},
			{"", "", "is required"},
			{"..", "", "must not be a dot segment"},
			{"a\r\nb", "", "control characters"},
			{strings.Repeat("a", 257), "", "is longer than 256 bytes"},
		} {
			w := serve(t, respond(404, ""))
			got, err := call.do(newClient(t, w.URL), tt.text)
			assertInvariants(t, got, err)
			if tt.refuses != "" {
				assertRefused(t, err, call.op, call.argument, tt.refuses)
				assert.Empty(t, w.Requests())
				continue
			}
			require.ErrorContains(t, err, ": 404: ")
			assert.NotErrorIs(t, err, gateway.ErrNotFound, "a page of somebody else says nothing about a record")
			assert.ErrorContains(t, err, "is the path of the base URL right?")
			target := only(t, w).Target
			assert.Equal(t, strings.Replace(call.target, "*", tt.segment, 1), target[len(target)-len(call.target)-len(tt.segment)+1:], target)
		}
	}
}

// Every method refuses a nil context and a client that New has not made, and none panics. A context that has ended is no
// wrong argument: it is a transport error without an attempt.
func TestClient_sendsNothing(t *testing.T) {
	t.Parallel()
	forEach(t, "nothing to send with", func(t *testing.T, s subject) {
		var none context.Context
		working := newClient(t, "http://localhost", neverSends())
		for _, tt := range []struct {
			ctx              context.Context
			client           *gateway.Client
			argument, reason string
		}{
			{none, working, "ctx", "must not be nil"},
			{t.Context(), nil, "client", "was not made by New"},
			{t.Context(), &gateway.Client{}, "client", "was not made by New"},
		} {
			got, err := s.call(tt.ctx, tt.client)
			assertRefused(t, err, s.op, tt.argument, tt.reason)
			assertInvariants(t, got, err)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
		defer cancel()
		for ctx, want := range map[context.Context]error{cancelledContext(): context.Canceled, late: context.DeadlineExceeded} {
			got, err := s.call(ctx, working)
			assertInvariants(t, got, err)
			failure := as[*gateway.TransportError](t, err)
			assert.Equal(t, gateway.PhaseStart, failure.Phase)
			assert.Zero(t, failure.Attempts)
			assert.Equal(t, map[bool]gateway.Outcome{true: notSent, false: unknown}[s.write], gateway.OutcomeOf(err))
			for _, is := range []error{context.Canceled, context.DeadlineExceeded} {
				assert.Equal(t, want == is, errors.Is(err, is))
			}
		}
	})
}

// If a caller's transport breaks its contract, the client reports the truth about an invoice, and gives out nothing more
// of its body afterwards.
// I-123
func TestClient_IncorrectTransports(t *testing.T) {
	t.Parallel()
	refusal := refusedConnection("connect")
	withoutBody := func(status int) tripper {
		return func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: status}, nil }
	}
	reading := func(most int64, next tripper) tripper {
		return func(req *http.Request) (*http.Response, error) {
			if req.Body != nil {
				_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, most))
			}
			return next(req)
		}
	}
	closes := func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, refusal
	}
	badCertificate := &net.OpError{Op: "remote error", Err: tls.AlertError(116)}
	const unknown, rejected = gateway.OutcomeUnknown, gateway.OutcomeRejected
	for _, tt := range []struct {
		name     string
		trip     tripper         // nil for a success
		outcome  gateway.Outcome // of an invoice
		attempts int             // of a read
		tries    int             // of an invoice
	}{
		{"it reads the body and then reports that it could not connect", readThen(refusal), unknown, 3, 1},
		{"it reads the body and then reports that the server refuses its certificate", readThen(badCertificate), unknown, 1, 1},
		{"it reports that it could not connect, and keeps the body", errorTrip(refusal), notSent, 3, 3},
		{"it closes the body unread and reports that it could not connect", closes, notSent, 3, 3},
		{"it refuses by itself, as a circuit breaker does", errorTrip(errors.New("circuit breaker is open")), notSent, 1, 1},
		{"it refuses with an error that is temporary", errorTrip(fmt.Errorf("limiter: %w", temporaryError{})), notSent, 3, 3},
		{"it returns a refusal without a body", reading(math.MaxInt64, withoutBody(401)), rejected, 1, 1},
		{"it returns a refusal before it has read the body", respondAlways(429), rejected, 3, 1},
		{"it returns a success without a body, without having read the invoice", withoutBody(200), unknown, 1, 1},
		{"it returns a success, and has read a part of the body", nil, gateway.OutcomeSucceeded, 1, 1},
		{"it wraps a panic in an error of many lines", readThen(errors.New("gateway: broke\n\twith key " + canary)), unknown, 1, 1},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				var bodies []io.Reader
				trip := tt.trip
				if trip == nil {
					trip = reading(10, func(*http.Request) (*http.Response, error) { return reply(s.status, s.body()), nil })
				}
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
					tries++
					assert.Empty(t, req.Header["Idempotency-Key"])
					assert.Nil(t, req.GetBody, "with GetBody net/http would replay an invoice")
					if req.Body != nil {
						bodies = append(bodies, req.Body)
					}
					return trip(req)
				})}))
				got, err := s.call(t.Context(), c)
				assertInvariants(t, got, err)
				assert.Equal(t, tt.outcome == gateway.OutcomeSucceeded, err == nil, "%v", err)
				for _, body := range bodies {
					late, err := io.ReadAll(body)
					assert.Error(t, err)
					assert.Empty(t, late, "a transport that goes on reads nothing more")
				}
				if !s.write {
					assert.Equal(t, tt.attempts, tries)
					return
				}
				assert.Equal(t, tt.tries, tries)
				assert.Equal(t, tt.outcome, gateway.OutcomeOf(err), "%v", err)
			})
		})
	}
}

// A call that its caller has ended is not to be made again, whatever the cause.
func TestClient_CauseOfACancelledRead(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{&gateway.APIError{Operation: "balance", StatusCode: 503}, errors.New("the buyer has gone")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := withdrawal(ctx, newClient(t, "http://localhost", neverSends()))
		assertInvariants(t, nil, err)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, strings.TrimPrefix(cause.Error(), "gateway: "))
		_, isOwn := errors.AsType[*gateway.APIError](err)
		assert.False(t, isOwn, "an error of another call is not the error of this one")
		assert.False(t, gateway.SafeToRetry(err), "of %v", err)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
	}
}

// No method follows a redirect, whichever transport it has.
// I-10
func TestClient_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	following := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, status := range []int{301, 302, 303, 307, 308} {
		forEach(t, strconv.Itoa(status), func(t *testing.T, s subject) {
			evil := serve(t, respond(s.status, s.body()))
			for _, opts := range [][]gateway.Option{nil, {gateway.WithHTTPClient(following)}} {
				w := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL, status) })
				got, err := s.call(t.Context(), newClient(t, w.URL, opts...))
				assertInvariants(t, got, err)
				only(t, w)
				assert.Equal(t, !s.write, errors.Is(err, gateway.ErrRedirect))
				assert.Equal(t, unknown, gateway.OutcomeOf(err))
			}
			assert.Empty(t, evil.Requests())
		})
	}
}

// A response that begins before the request is written is not believed, whatever it says.
func TestCreateInvoice_earlyResponse(t *testing.T) {
	t.Parallel()
	wrap := gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) })
	for _, tt := range []struct {
		name, status, body string
		opts               []gateway.Option
	}{
		{"a success", "201 Created", enveloped(invoiceJSON), nil},
		{"a refusal", "422 No", refused("No."), nil},
		{"a success under a middleware", "201 Created", enveloped(invoiceJSON), []gateway.Option{wrap}},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			direct := &http.Transport{WriteBufferSize: 1, DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					first := make([]byte, 1)
					_, _ = theirs.Read(first)
					_, _ = io.WriteString(theirs, "HTTP/1.1 ")
					time.Sleep(time.Nanosecond) // until it is read
					if req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(first), theirs))); err == nil {
						drain(req)
					}
					_, _ = fmt.Fprintf(theirs, "%s\r\nContent-Length: %d\r\n\r\n%s", tt.status, len(tt.body), tt.body)
				}()
				return ours, nil
			}}
			c := newClient(t, "http://localhost", append(tt.opts, gateway.WithHTTPClient(&http.Client{Transport: direct}))...)
			got, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			assert.False(t, gateway.SafeToRetry(err))
		})
	}
}

// The fields of a RetryPolicy, and their defaults, reach the loop: over many calls the
// waits stay under their ceilings, and come near both ends. The waits are tested in package attempt.
// I-160
func TestRetry_fullJitter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		policy   gateway.RetryPolicy
		status   int
		ceilings []time.Duration
	}{
		{"the defaults", gateway.RetryPolicy{}, 500, []time.Duration{1e8, 2e8}},
		{"the defaults after 503", gateway.RetryPolicy{}, 503, []time.Duration{1e9, 2e9}},
		{"BaseDelay alone, above the default of MaxDelay", gateway.RetryPolicy{BaseDelay: 8e9}, 500, []time.Duration{8e9, 8e9}},
		{"MaxDelay alone, below the default of BaseDelay", gateway.RetryPolicy{MaxDelay: 5e7}, 500, []time.Duration{5e7, 5e7}},
		{"all are set", gateway.RetryPolicy{MaxAttempts: 4, BaseDelay: 3e9, MaxDelay: 7e9}, 500, []time.Duration{3e9, 6e9, 7e9}},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			drawn := make([][]time.Duration, len(tt.ceilings))
			for range 300 { // calls, each with a budget of its own
				p := paced(t, tt.policy, saysStatus(tt.status))
				require.Error(t, withdrawal(t.Context(), p.client))
				require.Len(t, p.waits(), len(tt.ceilings))
				for i, wait := range p.waits() {
					drawn[i] = append(drawn[i], wait)
				}
			}
			for i, ceiling := range tt.ceilings {
				assert.LessOrEqual(t, slices.Max(drawn[i]), ceiling, "wait %d", i)
				assert.Greater(t, slices.Max(drawn[i]), ceiling*9/10, "wait %d of many comes near the ceiling", i)
				assert.Less(t, slices.Min(drawn[i]), ceiling/10, "wait %d of many comes near 0", i)
			}
		})
	}
}

// A Retry-After is a floor under the wait of a read, and is in the error, also of an
// invoice, which never waits. The spellings of the header are tested in package attempt.
// I-161
func TestRetry_RetryAfter(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for _, tt := range []struct {
		name    string
		policy  gateway.RetryPolicy
		headers []string      // a bubble begins in the year 2000
		floor   time.Duration // the RetryAfter of the error, too
		sent    int
	}{
		{"30 s, the longest that is waited for", gateway.RetryPolicy{}, []string{"Retry-After", "30"}, 30 * second, 3},
		{"31 s", gateway.RetryPolicy{}, []string{"Retry-After", "31"}, 31 * second, 1},
		{"an hour, which MaxRetryAfter allows", gateway.RetryPolicy{MaxRetryAfter: time.Hour}, []string{"Retry-After", "3600"}, time.Hour, 3},
		{
			"this clock is an hour behind the service's",
			gateway.RetryPolicy{},
			[]string{"Date", "Sat, 01 Jan 2000 01:00:00 GMT", "Retry-After", "Sat, 01 Jan 2000 01:00:05 GMT"},
			5 * second, 3,
		},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			p := paced(t, tt.policy, saysStatus(429, tt.headers...))
			for i, call := range []func() error{
				func() error { return withdrawal(t.Context(), p.client) },
				func() error { _, err := p.client.CreateInvoice(t.Context(), order("A-17")); return err },
			} {
				refusal := as[*gateway.APIError](t, call())
				assert.Equal(t, tt.floor, refusal.RetryAfter)
				assert.Equal(t, []gateway.Outcome{unknown, gateway.OutcomeRejected}[i], refusal.Outcome)
			}
			require.Len(t, p.at, tt.sent+1)
			for _, wait := range p.waits()[:tt.sent-1] {
				assert.GreaterOrEqual(t, wait, tt.floor)
				assert.LessOrEqual(t, wait, max(tt.floor, 2*second))
			}
			assert.Zero(t, p.waits()[tt.sent-1], "the invoice is sent at once")
			assert.Equal(t, time.Now(), p.at[tt.sent])
		})
	}
}

// A wait that would end after the caller's deadline does not begin: the failure at hand is worth
// more than the end of the time. A budget that is empty ends a call as well, and retries that help do not empty it.
func TestRetry_noFurtherAttempt(t *testing.T) {
	t.Parallel()
	const late, empty = "(the next one would be after the deadline)", "the retry budget was empty"
	long, quick := gateway.RetryPolicy{BaseDelay: 1000 * time.Hour, MaxDelay: 1000 * time.Hour}, gateway.RetryPolicy{BaseDelay: time.Microsecond, MaxDelay: time.Microsecond}
	var everyOther trips
	for range 80 {
		everyOther = append(everyOther, saysStatus(500), withdrawalIn("PENDING"))
	}
	for _, tt := range []struct {
		name      string
		write     bool
		policy    gateway.RetryPolicy
		responses trips
		calls     int
		retries   int // of all calls
		text      string
	}{
		{"a read after a status with a long Retry-After", false, quick, trips{saysStatus(503, "Retry-After", "20")}, 1, 0, late},
		{"a read without a response", false, long, trips{brokenConnect}, 1, 0, late},
		{"an invoice that was not sent", true, long, trips{brokenConnect}, 1, 0, late},
		{"80 reads fail with 500", false, quick, trips{saysStatus(500)}, 80, 35, empty},
		{"80 reads are limited by 429, which costs nothing", false, quick, trips{saysStatus(429)}, 80, 160, `429: "No." (3 attempts)`},
		{"80 invoices are not sent", true, quick, trips{brokenConnect}, 80, 35, empty},
		{"80 reads succeed when they are tried again", false, quick, everyOther, 80, 80, ""},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx := lasting(t, 10*time.Second)
			p := paced(t, tt.policy, tt.responses...)
			var err error
			for n := range tt.calls {
				if tt.write {
					_, err = p.client.CreateInvoice(ctx, order(fmt.Sprint("A-", n)))
				} else {
					err = withdrawal(ctx, p.client)
				}
			}
			assert.Len(t, p.at, tt.calls+tt.retries)
			if tt.text == "" {
				assert.NoError(t, err)
				return
			}
			assertInvariants(t, nil, err)
			assert.ErrorContains(t, err, tt.text)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, map[bool]gateway.Outcome{true: notSent, false: unknown}[tt.write], gateway.OutcomeOf(err))
		})
	}
}

// The error of a call is the error of its last attempt, even if earlier attempts failed otherwise. A wait for the next
// attempt ends with the context.
// I-159
func TestRetry_lastAttempt(t *testing.T) {
	t.Parallel()
	errShutdown := errors.New("shutting down")
	damaged := brokenBody(201, "", flate.CorruptInputError(1))
	late := func(*http.Request) (*http.Response, error) {
		time.Sleep(11 * time.Second)
		return reply(503, refused("Not now.")), nil
	}
	good := withdrawalIn("PENDING")
	const dialed = "gateway: withdrawal: start: dial tcp: connect: connection refused; last status 503 (3 attempts)"
	for _, tt := range []struct {
		name      string
		responses trips
		attempts  int
		lasts     time.Duration // 0 for any
		want      string        // of the error; "" for none
		is        error
	}{
		{"a refusal", trips{brokenConnect, saysStatus(503), saysStatus(404)}, 3, 0, `gateway: withdrawal: 404: "No." (3 attempts)`, gateway.ErrNotFound},
		{"no response", trips{saysStatus(503), brokenConnect}, 3, 0, dialed, nil},
		{"a success after a body that was damaged on the way", trips{damaged, good}, 2, 0, "", nil},
		{"a success", trips{saysStatus(503), brokenConnect, good}, 3, 0, "", nil},
		{
			"the context ends in a wait",
			trips{saysStatus(503, "Retry-After", "20")},
			1, 10 * time.Second,
			"gateway: withdrawal: backoff: context canceled: shutting down; last status 503", errShutdown,
		},
		{"the context ends in an attempt", trips{late}, 1, 11 * time.Second, `gateway: withdrawal: 503: "Not now."`, gateway.ErrServer},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer time.AfterFunc(10*time.Second, func() { cancel(errShutdown) }).Stop()
			p := paced(t, gateway.RetryPolicy{}, tt.responses...)
			err := withdrawal(ctx, p.client)
			assert.Len(t, p.at, tt.attempts)
			assert.True(t, tt.lasts == 0 || time.Since(p.begun) == tt.lasts)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assertInvariants(t, nil, err)
			assert.EqualError(t, err, tt.want)
			assert.True(t, tt.is == nil || errors.Is(err, tt.is))
			assert.Equal(t, tt.is == errShutdown, errors.Is(err, context.Canceled))
			assert.False(t, tt.is == errShutdown && gateway.SafeToRetry(err))
		})
	}
}

// Attempts have a timeout each, and a create-invoice a longer one. The Timeout of the
// caller's http.Client limits one attempt of a read, and not the sending of an invoice.
// I-11
func TestRetry_attemptTimeouts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		policy        gateway.RetryPolicy
		callers       time.Duration // the Timeout of the caller's client
		read, invoice time.Duration
	}{
		{"the defaults", gateway.RetryPolicy{}, 0, 15 * time.Second, time.Minute},
		{"both are set", gateway.RetryPolicy{AttemptTimeout: time.Second, InvoiceTimeout: 2 * time.Second}, 0, time.Second, 2 * time.Second},
		{"the timeout of the caller's client", gateway.RetryPolicy{}, 7 * time.Second, 7 * time.Second, time.Minute},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			synctest.Test(t, func(t *testing.T) {
				var lasted []time.Duration
				client := &http.Client{Timeout: tt.callers, Transport: tripper(func(req *http.Request) (*http.Response, error) {
					begun := time.Now()
					resp, err := hangAfterReading(req)
					lasted = append(lasted, time.Since(begun))
					return resp, err
				})}
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(client), gateway.WithRetry(tt.policy))
				_, err := s.call(t.Context(), c)
				require.NoError(t, c.Shutdown(t.Context()))
				assert.Equal(t, tt.callers, client.Timeout)
				if s.write {
					assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
					assert.Equal(t, []time.Duration{tt.invoice}, lasted)
					return
				}
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, []time.Duration{tt.read, tt.read, tt.read}, lasted)
			})
		})
	}
}
