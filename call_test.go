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
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// The header fields that are the same in every request.
func plainHeader() http.Header {
	return http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {"cryptogw-gateway-go/" + gateway.Version},
	}
}

func headerWith(pairs ...string) http.Header {
	h := plainHeader()
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// Each method sends this one request and nothing else, and reads the response.
// I-2, I-4, I-5, I-27
func TestClient_Wire(t *testing.T) {
	t.Parallel()
	public := headerWith("Cache-Control", "no-cache")
	keyed := headerWith("Cache-Control", "no-cache", "X-Api-Key", canary)
	inquiry := headerWith("Cache-Control", "no-cache", "X-Api-Key", canary, "Content-Type", "application/json")
	post := headerWith("Content-Type", "application/json", "Content-Length", strconv.Itoa(len(sampleBody)))
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
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(s.status, s.body()))
			got, err := s.call(t.Context(), newClient(t, w.URL))
			require.NoError(t, err)
			assertInvariants(t, got, err)
			expected := want[s.name]
			expected.Target = prefix + expected.Target
			assert.Equal(t, expected, only(t, w))
		})
	}
}

// A public call has the key only with WithAPIKeyOnPublicCalls, and only if there is
// one; a call with the key in its body never has it in a header.
// I-32, I-34
func TestClient_Wire_keyOnPublicCalls(t *testing.T) {
	t.Parallel()
	forEach(t, "with the key", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		_, err := s.call(t.Context(), newClient(t, w.URL, gateway.WithAPIKeyOnPublicCalls()))
		require.NoError(t, err)
		got := only(t, w)
		assert.NotContains(t, got.Target, canary)
		if s.write {
			assert.NotContains(t, got.Header, "X-Api-Key")
			assert.Equal(t, 1, strings.Count(got.Body, canary))
			return
		}
		assert.Equal(t, []string{canary}, got.Header["X-Api-Key"])
	})
	t.Run("an empty key is not sent as an empty header", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(200, enveloped(ratesJSON)))
		c, err := gateway.New(w.URL, "", gateway.WithoutAPIKey(), gateway.WithAPIKeyOnPublicCalls())
		require.NoError(t, err)
		_, err = c.ExchangeRates(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, only(t, w).Header, "X-Api-Key")
	})
}

// Without a key the calls that need one fail before they are sent, and the
// others work.
// I-30, I-31, I-32, I-34
func TestClient_missingAPIKey(t *testing.T) {
	t.Parallel()
	needKey := map[string]bool{"Balance": true, "CreateInvoice": true, "Withdrawal": true}
	forEach(t, "without a key", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c, err := gateway.New(w.URL, "", gateway.WithoutAPIKey())
		require.NoError(t, err)
		got, err := s.call(t.Context(), c)
		assertInvariants(t, got, err)
		if !needKey[s.name] {
			require.NoError(t, err)
			assert.NotContains(t, only(t, w).Header, "X-Api-Key")
			return
		}
		assertRefused(t, err, s.op, "apiKey", "is required for this call")
		assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
		assert.Empty(t, w.Requests())
		_, err = s.call(t.Context(), c, gateway.WithAPIKey(canary), gateway.WithMerchant("a"))
		require.NoError(t, err, "a key for the call is enough, and the refusal left nothing behind")
	})
}

// An argument arrives as one segment of the path, whatever is in it, or is refused. Package endpoint tests all texts.
// I-15, I-16, I-23, I-24, I-25, I-149
func TestClient_Wire_pathArguments(t *testing.T) {
	t.Parallel()
	for _, call := range []struct {
		name, op, argument, target string
		do                         func(ctx context.Context, c *gateway.Client, text string) (any, error)
	}{
		{"CoinNetwork", "coin_network", "id", "networks-coins/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetwork(ctx, text)
		}},
		{"CoinNetworkBySymbol, the symbol", "coin_network_by_symbol", "coinSymbol", "networks-coins/*/Tron", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetworkBySymbol(ctx, text, "Tron")
		}},
		{"CoinNetworkBySymbol, the network", "coin_network_by_symbol", "networkName", "networks-coins/USDT/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetworkBySymbol(ctx, "USDT", text)
		}},
		{"CoinNetworksOf", "coin_networks_of", "coinSymbol", "networks-coins/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.CoinNetworksOf(ctx, text)
		}},
		{"Withdrawal", "withdrawal", "withdrawRequestId", "withdrawal/inquiry/*", func(ctx context.Context, c *gateway.Client, text string) (any, error) {
			return c.Withdrawal(ctx, text)
		}},
	} {
		for _, tt := range []struct{ name, text, segment, refuses string }{
			{"spaces and parentheses", "Binance Smart Chain (BEP20)", "Binance%20Smart%20Chain%20%28BEP20%29", ""},
			{"a lower-case symbol stays so", "usdt", "usdt", ""},
			{"letters beyond ASCII", "é世", "%C3%A9%E4%B8%96", ""},
			{"characters that mean something in a URL", "../a?b#c%2F", "..%2Fa%3Fb%23c%252F", ""},
			{"nothing, which would ask for something else", "", "", "is required"},
			{"two dots", "..", "", "must not be a dot segment"},
			{"a line end", "a\r\nb", "", "control characters"},
			{"257 bytes", strings.Repeat("a", 257), "", "is longer than 256 bytes"},
		} {
			t.Run(call.name+": "+tt.name, func(t *testing.T) {
				t.Parallel()
				w := serve(t, respond(404, ""))
				got, err := call.do(t.Context(), newClient(t, w.URL), tt.text)
				assertInvariants(t, got, err)
				if tt.refuses != "" {
					assertRefused(t, err, call.op, call.argument, tt.refuses)
					assert.Empty(t, w.Requests())
					return
				}
				require.ErrorIs(t, err, gateway.ErrNotFound)
				assert.Equal(t, prefix+"/api/"+strings.Replace(call.target, "*", tt.segment, 1), only(t, w).Target)
			})
		}
	}
}

// Every method refuses a nil context and a client that New has not made, and none panics.
func TestClient_badReceiverOrContext(t *testing.T) {
	t.Parallel()
	forEach(t, "nothing to send with", func(t *testing.T, s subject) {
		var none context.Context
		for _, tt := range []struct {
			ctx              context.Context
			client           *gateway.Client
			argument, reason string
		}{
			{none, newClient(t, "http://localhost", neverSends()), "ctx", "must not be nil"},
			{t.Context(), nil, "client", "was not made by New"},
			{t.Context(), &gateway.Client{}, "client", "was not made by New"},
		} {
			got, err := s.call(tt.ctx, tt.client)
			assertRefused(t, err, s.op, tt.argument, tt.reason)
			assertInvariants(t, got, err)
		}
	})
}

// A context that has ended is no wrong argument: a read is a transport error
// without an attempt, and an invoice is not sent.
func TestClient_endedContext(t *testing.T) {
	t.Parallel()
	forEach(t, "a context that has ended", func(t *testing.T, s subject) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancelLate := context.WithDeadline(t.Context(), time.Unix(1, 0))
		defer cancelLate()
		for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
			got, err := s.call(ctx, newClient(t, "http://localhost", neverSends()))
			assertInvariants(t, got, err)
			var failure *gateway.TransportError
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, gateway.PhaseStart, failure.Phase)
			assert.Zero(t, failure.Attempts)
			assert.Equal(t, notSent, gateway.OutcomeOf(err))
			for _, is := range []error{context.Canceled, context.DeadlineExceeded} {
				assert.Equal(t, want == is, errors.Is(err, is))
			}
		}
	})
}

// A caller's transport may do what no correct one does: the client says what it knows of an
// invoice, and shows nothing more of the invoice afterwards.
// I-123
func TestClient_IncorrectTransports(t *testing.T) {
	t.Parallel()
	refusal := refusedConnection("connect")
	closes := func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, refusal
	}
	for _, tt := range []struct {
		name     string
		trip     tripper
		outcome  gateway.Outcome // of an invoice
		attempts int             // of a read
		tries    int             // of an invoice
	}{
		{"it reads the body and then reports that it could not connect", readThen(refusal), gateway.OutcomeUnknown, 3, 1},
		{"it reads the body and then reports that the server refuses its certificate", readThen(&net.OpError{Op: "remote error", Err: tls.AlertError(116)}), gateway.OutcomeUnknown, 1, 1},
		{"it reports that it could not connect, and keeps the body", errorTrip(refusal), gateway.OutcomeNotSent, 3, 3},
		{"it closes the body unread and reports that it could not connect", closes, gateway.OutcomeNotSent, 3, 3},
		{"it refuses by itself, as a circuit breaker does", errorTrip(errors.New("circuit breaker is open")), gateway.OutcomeNotSent, 1, 1},
		{"it refuses with an error that is temporary", errorTrip(fmt.Errorf("limiter: %w", temporaryError{})), gateway.OutcomeNotSent, 3, 3},
		{"it returns a refusal without a body", func(req *http.Request) (*http.Response, error) {
			drain(req)
			return &http.Response{StatusCode: 401}, nil
		}, gateway.OutcomeRejected, 1, 1},
		{"it returns a refusal before it has read the body", func(*http.Request) (*http.Response, error) { return reply(429, refused("Not now.")), nil }, gateway.OutcomeRejected, 3, 1},
		{"it returns a success without a body, without having read the invoice", func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil }, gateway.OutcomeUnknown, 1, 1},
		{"it returns a success, and has read a part of the body", nil, gateway.OutcomeSucceeded, 1, 1},
		{"it wraps a panic in an error of many lines", readThen(errors.New("gateway: broke\n\tat once\n\twith key " + canary)), gateway.OutcomeUnknown, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				synctest.Test(t, func(t *testing.T) {
					tries := 0
					var bodies []io.Reader
					c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
						tries++
						assert.Empty(t, req.Header["Idempotency-Key"])
						assert.Nil(t, req.GetBody, "with GetBody net/http would replay an invoice")
						if req.Body != nil {
							bodies = append(bodies, req.Body)
						}
						if tt.trip != nil {
							return tt.trip(req)
						}
						if req.Body != nil {
							_, _ = io.ReadFull(req.Body, make([]byte, 10))
						}
						return reply(s.status, s.body()), nil
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
			}
		})
	}
}

// A call that its caller has ended is not to be made again, whatever the cause.
func TestClient_CauseOfACancelledRead(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{&gateway.APIError{Operation: "balance", StatusCode: 503}, errors.New("the buyer has gone")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		got, err := newClient(t, "http://localhost", through(errorTrip(errors.New("nothing must be sent")))).Withdrawal(ctx, requestID)
		assertInvariants(t, got, err)
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
	var hits atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(func() {
		evil.Close()
		assert.Zero(t, hits.Load(), "the other host was contacted")
	})
	following := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, s := range subjects() {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(s.name, "/", status), func(t *testing.T) {
				t.Parallel()
				for _, opts := range [][]gateway.Option{nil, {gateway.WithHTTPClient(following)}} {
					w := serve(t, func(w http.ResponseWriter, r *http.Request) {
						http.Redirect(w, r, evil.URL, status)
					})
					got, err := s.call(t.Context(), newClient(t, w.URL, opts...))
					assertInvariants(t, got, err)
					assert.Len(t, w.Requests(), 1)
					assert.Equal(t, !s.write, errors.Is(err, gateway.ErrRedirect))
					assert.Equal(t, s.write, gateway.OutcomeOf(err) == gateway.OutcomeUnknown)
				}
			})
		}
	}
}

// A response that begins before the request is written is not believed, whatever it says.
func TestCreateInvoice_earlyResponse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, status, body string
		opts               []gateway.Option
	}{
		{"a success", "201 Created", enveloped(invoiceJSON), nil},
		{"a refusal", "422 No", refused("No."), nil},
		{"a success under a middleware", "201 Created", enveloped(invoiceJSON), []gateway.Option{
			gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) }),
		}},
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
						_, _ = io.Copy(io.Discard, req.Body)
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

// What the service said is kept although the context ends meanwhile.
func TestClient_contextEndsInAnAttempt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		cancel()
		return reply(503, refused("Not now.")), nil
	}))
	var said *gateway.APIError
	require.ErrorAs(t, withdrawal(ctx, c), &said)
	assert.Equal(t, "Not now.", said.Message)
	assert.Equal(t, 1, said.Attempts)
}

// A retry of a read that got 502, 503 or 504 dials anew, and so do later reads: the name of
// the name may lead to a host that works. It does so once a second.
func TestClient_retryDialsAnew(t *testing.T) {
	t.Parallel()
	wrap := func(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) }
	through := func(next http.RoundTripper) []gateway.Option {
		return []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: next})}
	}
	for _, tt := range []struct {
		name   string
		status int
		opts   []gateway.Option
		broken int // connections that do not work
		want   int // connections
		fails  int // reads
	}{
		{"502", 502, nil, 1, 2, 0},
		{"503", 503, nil, 1, 2, 0},
		{"504", 504, nil, 1, 2, 0},
		{"429, which another host would say too", 429, nil, 1, 1, 3},
		{"503 without a retry", 503, []gateway.Option{once()}, 1, 1, 3},
		{"two hosts that do not work, the second one met in the same second", 503, nil, 2, 2, 3},
		{"a caller's transport", 503, through(&http.Transport{}), 1, 2, 0},
		{"a middleware", 503, []gateway.Option{gateway.WithMiddleware(wrap)}, 1, 2, 0},
		{"a middleware around a caller's transport", 503, append(through(&http.Transport{}), gateway.WithMiddleware(wrap)), 1, 2, 0},
		{"a RoundTripper, whose connections are the caller's business", 503, through(wrap(&http.Transport{})), 1, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			type number struct{}
			var connections atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Context().Value(number{}).(int64) <= int64(tt.broken) {
					respond(tt.status, "")(w, r)
					return
				}
				respond(200, enveloped(ratesJSON))(w, r)
			}))
			server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
				return context.WithValue(ctx, number{}, connections.Add(1))
			}
			server.Start()
			t.Cleanup(server.Close)
			quick := gateway.WithRetry(gateway.RetryPolicy{BaseDelay: 1, MaxDelay: 1})
			c := newClient(t, server.URL, append([]gateway.Option{quick}, tt.opts...)...)
			t.Cleanup(c.CloseIdleConnections)
			fails := 0
			for range 3 {
				if _, err := c.ExchangeRates(t.Context()); err != nil {
					fails++
				}
			}
			assert.Equal(t, tt.fails, fails)
			assert.EqualValues(t, tt.want, connections.Load())
		})
	}
}

// A retry of a read that got no response meets no other dead connection.
func TestClient_deadConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dialed, dead atomic.Int64 // the first connections are dead
		c := newClient(t, "http://localhost", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 2}), gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 3,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				number := dialed.Add(1)
				go func() {
					for reader := bufio.NewReader(theirs); ; {
						if _, err := http.ReadRequest(reader); err != nil {
							return
						}
						time.Sleep(time.Millisecond) // others dial meanwhile
						if number > dead.Load() {
							_, _ = fmt.Fprintf(theirs, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(enveloped(ratesJSON)), enveloped(ratesJSON))
						}
					}
				}()
				return ours, nil
			},
		}}))
		read := func() {
			_, err := c.ExchangeRates(t.Context())
			assert.NoError(t, err)
		}
		var together sync.WaitGroup
		for range 3 {
			together.Go(read)
		}
		together.Wait()
		require.EqualValues(t, 3, dialed.Load())
		dead.Store(3)
		read()
		assert.EqualValues(t, 4, dialed.Load())
		c.CloseIdleConnections()
	})
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
			most := make([]time.Duration, len(tt.ceilings))
			least := slices.Repeat([]time.Duration{math.MaxInt64}, len(tt.ceilings))
			for range 300 { // calls, each with a budget of its own
				p := paced(t, tt.policy, saysStatus(tt.status))
				require.Error(t, withdrawal(t.Context(), p.client))
				waits := p.waits()
				require.Len(t, waits, len(tt.ceilings))
				for i, wait := range waits {
					most[i], least[i] = max(most[i], wait), min(least[i], wait)
				}
			}
			for i, ceiling := range tt.ceilings {
				assert.Less(t, most[i], ceiling+1, "wait %d", i)
				assert.Greater(t, most[i], ceiling*9/10, "wait %d of many comes near the ceiling", i)
				assert.Less(t, least[i], ceiling/10, "wait %d of many comes near 0", i)
			}
		})
	}
}

// A Retry-After is a floor under the wait of a read, and is in the error, also of an
// invoice, which never waits. The spellings of the header are tested in package attempt.
// I-161
func TestRetry_RetryAfter(t *testing.T) {
	t.Parallel()
	// Bubbles begin at this time.
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		name    string
		policy  gateway.RetryPolicy
		headers []string
		floor   time.Duration // the RetryAfter of the error, too
		sent    int
	}{
		{"30 s, the longest that is waited for", gateway.RetryPolicy{}, []string{"Retry-After", "30"}, 30 * time.Second, 3},
		{"31 s", gateway.RetryPolicy{}, []string{"Retry-After", "31"}, 31 * time.Second, 1},
		{"an hour, which MaxRetryAfter allows", gateway.RetryPolicy{MaxRetryAfter: time.Hour}, []string{"Retry-After", "3600"}, time.Hour, 3},
		{"this clock is an hour behind the service's", gateway.RetryPolicy{}, []string{"Date", date(time.Hour), "Retry-After", date(time.Hour + 5*time.Second)}, 5 * time.Second, 3},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			p := paced(t, tt.policy, saysStatus(429, tt.headers...))
			var refusal *gateway.APIError
			require.ErrorAs(t, withdrawal(t.Context(), p.client), &refusal)
			assert.Equal(t, tt.floor, refusal.RetryAfter)
			assert.Len(t, p.at, tt.sent)
			for _, wait := range p.waits() {
				assert.GreaterOrEqual(t, wait, tt.floor)
				assert.LessOrEqual(t, wait, max(tt.floor, 2*time.Second))
			}
			begun := time.Now()
			_, err := p.client.CreateInvoice(t.Context(), order("A-17"))
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, tt.floor, refusal.RetryAfter)
			assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
			assert.Len(t, p.at, tt.sent+1, "an invoice never waits")
			assert.Zero(t, time.Since(begun))
		})
	}
}

// A wait that would end after the caller's deadline does not begin: the failure at hand is worth
// more than the end of the time. A budget that is empty ends a call as well, and retries that help do not empty it.
func TestRetry_noFurtherAttempt(t *testing.T) {
	t.Parallel()
	const late, empty = "(the next one would be after the deadline)", "the retry budget was empty"
	long, quick := gateway.RetryPolicy{BaseDelay: 1000 * time.Hour, MaxDelay: 1000 * time.Hour}, gateway.RetryPolicy{BaseDelay: 1, MaxDelay: 1}
	lost := func() (*http.Response, error) { return nil, refusedConnection("connect") }
	everyOther := func(fails func() (*http.Response, error)) func() (*http.Response, error) {
		n := 0
		return func() (*http.Response, error) {
			if n++; n%2 == 1 {
				return fails()
			}
			return reply(201, enveloped(withdrawalJSON)), nil
		}
	}
	for _, tt := range []struct {
		name     string
		write    bool
		policy   gateway.RetryPolicy
		response func() (*http.Response, error)
		calls    int
		retries  int // of all calls
		text     string
	}{
		{"a read after a status with a long Retry-After", false, quick, saysStatus(503, "Retry-After", "20"), 1, 0, late},
		{"a read without a response", false, long, lost, 1, 0, late},
		{"an invoice that was not sent", true, long, lost, 1, 0, late},
		{"80 reads fail with 500", false, quick, saysStatus(500), 80, 35, empty},
		{"80 reads are limited by 429, which costs nothing", false, quick, saysStatus(429), 80, 160, `429: "No." (3 attempts)`},
		{"80 invoices are not sent", true, quick, lost, 80, 35, empty},
		{"80 reads succeed when they are tried again", false, quick, everyOther(saysStatus(500)), 80, 80, ""},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			tries := 0
			transport := tripper(func(*http.Request) (*http.Response, error) { tries++; return tt.response() })
			c := newClient(t, "http://localhost", gateway.WithRetry(tt.policy), gateway.WithHTTPClient(&http.Client{Transport: transport}))
			var err error
			for n := range tt.calls {
				if tt.write {
					_, err = c.CreateInvoice(ctx, order(fmt.Sprint("A-", n)))
				} else {
					_, err = c.Withdrawal(ctx, requestID)
				}
			}
			assert.Equal(t, tt.calls+tt.retries, tries)
			if tt.text == "" {
				assert.NoError(t, err)
				return
			}
			assertInvariants(t, nil, err)
			assert.ErrorContains(t, err, tt.text)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
		})
	}
}

// The last attempt is the error, though attempts before it failed otherwise; and a wait for the next one ends with the
// context.
// I-159
func TestRetry_lastAttempt(t *testing.T) {
	t.Parallel()
	errShutdown := errors.New("shutting down")
	lost := func() (*http.Response, error) { return nil, refusedConnection("read") }
	damaged := func() (*http.Response, error) {
		resp := reply(201, "")
		resp.Body = io.NopCloser(brokenReader{flate.CorruptInputError(1)})
		return resp, nil
	}
	for _, tt := range []struct {
		name      string
		responses []func() (*http.Response, error)
		attempts  int
		want      string // of the error; "" for none
		is        error
	}{
		{"a refusal", []func() (*http.Response, error){lost, saysStatus(503), saysStatus(404)}, 3, `gateway: withdrawal: 404: "No." (3 attempts)`, gateway.ErrNotFound},
		{"no response", []func() (*http.Response, error){saysStatus(503), lost}, 3, "gateway: withdrawal: dial: dial tcp: read: connection refused; last status 503 (3 attempts)", nil},
		{"a success after a body that was damaged on the way", []func() (*http.Response, error){damaged, respondWith(201, enveloped(withdrawalJSON))}, 2, "", nil},
		{"a success", []func() (*http.Response, error){saysStatus(503), lost, respondWith(201, enveloped(withdrawalJSON))}, 3, "", nil},
		{"the context ends in a wait", []func() (*http.Response, error){saysStatus(503, "Retry-After", "20")}, 1, "gateway: withdrawal: backoff: context canceled: shutting down; last status 503", errShutdown},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer time.AfterFunc(10*time.Second, func() { cancel(errShutdown) }).Stop()
			p := paced(t, gateway.RetryPolicy{}, tt.responses...)
			err := withdrawal(ctx, p.client)
			assert.Len(t, p.at, tt.attempts)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assertInvariants(t, nil, err)
			assert.EqualError(t, err, tt.want)
			assert.True(t, tt.is == nil || errors.Is(err, tt.is))
			if errors.Is(err, errShutdown) {
				assert.Equal(t, 10*time.Second, time.Since(p.begun), "it returns when it is cancelled")
				assert.ErrorIs(t, err, context.Canceled)
				assert.False(t, gateway.SafeToRetry(err))
			}
		})
	}
}

// Attempts have a timeout each, and a create-invoice a longer one. The Timeout of the
// caller's http.Client limits one attempt, too.
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
		{"the timeout of the caller's client", gateway.RetryPolicy{}, 7 * time.Second, 7 * time.Second, 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				synctest.Test(t, func(t *testing.T) {
					var lasted []time.Duration
					client := &http.Client{Timeout: tt.callers, Transport: tripper(func(req *http.Request) (*http.Response, error) {
						begun := time.Now()
						drain(req)
						<-req.Context().Done()
						lasted = append(lasted, time.Since(begun))
						return nil, req.Context().Err()
					})}
					c := newClient(t, "http://localhost", gateway.WithHTTPClient(client), gateway.WithRetry(tt.policy))
					_, err := s.call(t.Context(), c)
					assert.Equal(t, tt.callers, client.Timeout)
					if s.write {
						assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
						assert.Equal(t, []time.Duration{tt.invoice}, lasted)
						return
					}
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.Equal(t, []time.Duration{tt.read, tt.read, tt.read}, lasted)
				})
			}
		})
	}
}
