package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path"
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

// withdrawalIn responds with the documented withdrawal, in another status.
func withdrawalIn(status string) func() (*http.Response, error) {
	body := enveloped(strings.Replace(withdrawalJSON, `"PENDING"`, fmt.Sprintf("%q", status), 1))
	return func() (*http.Response, error) { return reply(201, body), nil }
}

// I-12, I-139, I-141
func TestClient_WaitWithdrawal(t *testing.T) {
	t.Parallel()
	lost := func() (*http.Response, error) { return nil, refusedConnection("read") }
	for _, tt := range []struct {
		name      string
		responses []func() (*http.Response, error)
	}{
		{"it is completed at once", []func() (*http.Response, error){withdrawalIn("COMPLETED")}},
		{"it is pending twice", []func() (*http.Response, error){withdrawalIn("PENDING"), withdrawalIn("PENDING"), withdrawalIn("COMPLETED")}},
		{
			"a status that is not named is not final", // I-144
			[]func() (*http.Response, error){withdrawalIn("PROCESSING"), withdrawalIn("completed"), withdrawalIn("Failed"), withdrawalIn("COMPLETED")},
		},
		{
			"failures that may pass do not end the wait, though all attempts of a call meet them",
			[]func() (*http.Response, error){
				lost, lost, lost, saysStatus(500), saysStatus(502), saysStatus(503), saysStatus(429), saysStatus(408), lost,
				withdrawalIn("COMPLETED"),
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := paced(t, gateway.RetryPolicy{}, tt.responses...)
				got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
				require.NoError(t, err)
				assert.Equal(t, gateway.WithdrawalCompleted, got.Status)
				assert.Equal(t, requestID, got.WithdrawRequestID)
				assert.Len(t, p.at, len(tt.responses))
			})
		})
	}
}

// Every poll of a wait has the options of the call.
func TestClient_WaitWithdrawal_callOptions(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, *gateway.Client, gateway.CallOption) error{
		"wait": func(ctx context.Context, c *gateway.Client, key gateway.CallOption) error {
			_, err := c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{}, key)
			return err
		},
		"watch": func(ctx context.Context, c *gateway.Client, key gateway.CallOption) error {
			for _, err := range c.WatchWithdrawal(ctx, requestID, gateway.WaitOptions{}, key) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"many": func(ctx context.Context, c *gateway.Client, key gateway.CallOption) error {
			for _, err := range c.WaitWithdrawals(ctx, []string{requestID}, gateway.WaitOptions{}, key) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var keys []string
				statuses := []string{"PENDING", "PENDING", "COMPLETED"}
				c := newClient(t, "https://gateway.test", through(func(req *http.Request) (*http.Response, error) {
					keys = append(keys, req.Header.Get("X-Api-Key"))
					return withdrawalIn(statuses[len(keys)-1])()
				}))
				const other = "key-of-another-merchant"
				require.NoError(t, wait(t.Context(), c, gateway.WithAPIKey(other)))
				assert.Equal(t, []string{other, other, other}, keys)
			})
		})
	}
}

// The options reach the pacer, whose waits are tested in internal/poll.
// I-151
func TestClient_WaitWithdrawal_Intervals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		options     gateway.WaitOptions
		least, most time.Duration
	}{
		{"the defaults", gateway.WaitOptions{}, 2 * time.Second, 30 * time.Second},
		{"both are set", gateway.WaitOptions{MinInterval: time.Second, MaxInterval: time.Minute}, time.Second, time.Minute},
		{"MinInterval alone, above the default of the other", gateway.WaitOptions{MinInterval: time.Minute}, time.Minute, time.Minute},
		{"MaxInterval alone, below the default of the other", gateway.WaitOptions{MaxInterval: time.Second}, time.Second, time.Second},
		{"both are the same", gateway.WaitOptions{MinInterval: time.Second, MaxInterval: time.Second}, time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 1000*tt.most)
				defer cancel()
				p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"))
				_, err := p.client.WaitWithdrawal(ctx, requestID, tt.options)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				waits := p.waits()
				longest := time.Duration(0)
				for _, wait := range waits {
					assert.GreaterOrEqual(t, wait, tt.least)
					assert.LessOrEqual(t, wait, tt.most)
					longest = max(longest, wait)
				}
				assert.LessOrEqual(t, waits[0], tt.least*3/2, "the first is short")
				assert.GreaterOrEqual(t, longest, tt.most*9/10, "they grow")
			})
		})
	}
}

// A Retry-After is a floor under the next wait, up to an hour.
// I-161
func TestClient_WaitWithdrawal_RetryAfter(t *testing.T) {
	t.Parallel()
	for after, most := range map[string]time.Duration{"600": 10 * time.Minute, "999999999": time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{}, saysStatus(429, "Retry-After", after), withdrawalIn("PENDING"), withdrawalIn("COMPLETED"))
			_, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			require.NoError(t, err)
			waits := p.waits()
			require.Len(t, waits, 2)
			assert.Equal(t, most, waits[0])
			assert.LessOrEqual(t, waits[1], 30*time.Second, "it holds for one wait")
		})
	}
}

// I-140, I-143
func TestClient_WaitWithdrawal_Failed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"), withdrawalIn("FAILED"))
		got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
		assertInvariants(t, got, err)
		var failed *gateway.WithdrawalFailedError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, gateway.WithdrawalFailed, failed.Withdrawal.Status)
		assert.EqualError(t, err, `gateway: withdrawal "`+requestID+`": the service reports FAILED`)
		assert.False(t, gateway.SafeToRetry(err))
	})
}

const page = "<html><body>Just a moment...</body></html>"

// What is not the service's own word does not end a wait: I-171.
func TestClient_WaitWithdrawal_goesOn(t *testing.T) {
	t.Parallel()
	with := func(old, new string) string {
		changed := strings.Replace(withdrawalJSON, old, new, 1)
		require.NotEqual(t, withdrawalJSON, changed)
		return enveloped(changed)
	}
	weather := map[string]func() (*http.Response, error){
		"a page of a CDN with 200": respondWith(200, page),
		"nothing with 200":         respondWith(200, ""),
		"no content":               respondWith(204, ""),
		"half a body":              respondWith(201, enveloped(withdrawalJSON)[:50]),
		"a body that is cut":       respondWith(201, enveloped(withdrawalJSON), "Content-Length", "9999"),
		"a redirect":               respondWith(302, "", "Location", "https://login.example/"),
		"an error text in a 2xx without a result":             respondWith(200, `{"message":"Maintenance.","meta":{}}`),
		"an error text in a 2xx with null":                    respondWith(200, `{"message":"Maintenance.","result":null,"meta":{}}`),
		"an empty array with 201":                             respondWith(201, enveloped("[]")),
		"another withdrawal":                                  respondWith(201, with(requestID, "another")),
		"another withdrawal that is COMPLETED, without a fee": respondWith(201, enveloped(strings.NewReplacer("PENDING", "COMPLETED", `"fee":"1.5"`, `"fee":null`, requestID, "another").Replace(withdrawalJSON))),
		"a fee that is null":                                  respondWith(201, with(`"fee":"1.5"`, `"fee":null`)),
		"a fee that is empty":                                 respondWith(201, with(`"fee":"1.5"`, `"fee":""`)),
		"no fee":                                              respondWith(201, with(`"fee":"1.5",`, ``)),
		"a network that is null":                              respondWith(201, with(`"network":"`, `"network":null,"was":"`)),
		"an unknown field":                                    respondWith(201, with(`{`, `{"txHash":null,`)),
		"a status that is null":                               respondWith(201, with(`"PENDING"`, `null`)),
		"a compression that nobody asked for":                 respondWith(201, "\x1f\x8b\x08", "Content-Encoding", "br"),
		"403 with a message, as an edge writes it":            respondWith(403, `{"message":"Forbidden"}`),
		"404 in the first minute":                             respondWith(404, refused("No such request.")),
		"a circuit breaker of the caller's transport":         func() (*http.Response, error) { return nil, errBreaker },
	}
	for _, status := range []int{400, 401, 402, 403, 404, 405, 407, 409, 410, 418, 422, 451, 499, 500, 501, 502, 503, 504, 505, 507, 520, 525, 530, 598} {
		weather[fmt.Sprint("a page of a CDN with ", status)] = respondWith(status, page)
	}
	for _, status := range []int{402, 405, 409, 418, 429, 451, 500, 501, 503, 507} {
		weather[fmt.Sprint("the envelope with ", status)] = respondWith(status, refused("Not now."))
	}
	for name, response := range weather {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, withdrawalIn("PENDING"), response, response, withdrawalIn("COMPLETED"))
				got, err := p.client.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
				assertInvariants(t, got, err)
				require.NoError(t, err)
				assert.Equal(t, gateway.WithdrawalCompleted, got.Status)
				assert.Len(t, p.at, 4)
			})
		})
	}
}

// The service's own refusal ends a wait.
func TestClient_WaitWithdrawal_refused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		since    time.Duration // of the wait at which the response comes first
		sentinel error
	}{
		{"400 in the envelope", 400, refused("No."), 0, nil},
		{"400 of a framework", 400, `{"statusCode":400,"message":["withdrawRequestId must be a UUID"],"error":"Bad Request"}`, 0, nil},
		{"401 in the envelope", 401, refused("x-api-key header is required"), 0, gateway.ErrMissingAPIKey},
		{"401 of a framework", 401, `{"error":"Unauthorized"}`, 0, gateway.ErrUnauthorized},
		{"403 in the envelope", 403, refused("Merchant is blocked."), 0, gateway.ErrForbidden},
		{"404 after the first minute", 404, refused("No such request."), time.Minute, gateway.ErrNotFound},
		{"404 of a framework after the first minute", 404, `{"title":"Not Found","status":404}`, time.Minute, gateway.ErrNotFound},
		{"410 as problem+json", 410, `{"type":"about:blank","title":"Gone","detail":"It was deleted."}`, 0, nil},
		{"422 of a framework", 422, `{"detail":[{"loc":["path"],"msg":"not a UUID","input":"x"}]}`, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				begun := time.Now()
				c := newClient(t, "http://localhost", once(), through(func(*http.Request) (*http.Response, error) {
					if tt.since > 0 && time.Since(begun) < tt.since/2 {
						return withdrawalIn("PENDING")()
					}
					return reply(tt.status, tt.body), nil
				}))
				got, err := c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
				assertInvariants(t, got, err)
				wait, ok := errors.AsType[*gateway.WaitError](err)
				require.True(t, ok, "%v", err)
				if tt.since == 0 {
					assert.Equal(t, 1, wait.Polls)
				}
				assert.GreaterOrEqual(t, time.Since(begun), tt.since)
				assert.Less(t, time.Since(begun), tt.since+30*time.Second+1)
				refusal, ok := errors.AsType[*gateway.APIError](err)
				require.True(t, ok, "%v", err)
				assert.Equal(t, tt.status, refusal.StatusCode)
				assert.NotEmpty(t, refusal.Message)
				if tt.sentinel != nil {
					assert.ErrorIs(t, err, tt.sentinel)
				}
			})
		})
	}
}

// A status that somebody has named as final ends a wait; what it means is for the caller to know.
func TestClient_WaitWithdrawal_final(t *testing.T) {
	t.Parallel()
	unreadable := func(status string) func() (*http.Response, error) {
		return respondWith(201, enveloped(strings.NewReplacer("PENDING", status, `"fee":"1.5"`, `"fee":null`).Replace(withdrawalJSON)))
	}
	named := gateway.WaitOptions{Final: []gateway.WithdrawalStatus{"CANCELED", "paid"}}
	for _, tt := range []struct {
		name     string
		options  gateway.WaitOptions
		response func() (*http.Response, error)
		last     gateway.WithdrawalStatus // as it was seen
	}{
		{"one of the options", named, withdrawalIn("CANCELED"), "CANCELED"},
		{"one of a record of which a field cannot be read", named, unreadable("CANCELED"), "PENDING"},
		{"COMPLETED in a record of which a field cannot be read", gateway.WaitOptions{}, unreadable("COMPLETED"), "PENDING"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				p := scriptedClient(t, withdrawalIn("PENDING"), withdrawalIn("canceled"), withdrawalIn("PENDING"), tt.response)
				p.connect(t)
				got, err := p.client.WaitWithdrawal(ctx, requestID, tt.options)
				assertInvariants(t, got, err)
				wait, ok := errors.AsType[*gateway.WaitError](err)
				require.True(t, ok, "it is an error, because nobody has said that it is paid: %v", err)
				assert.Contains(t, []gateway.WithdrawalStatus{"CANCELED", "COMPLETED"}, gateway.WithdrawalStatusOf(err))
				require.NotNil(t, wait.Last)
				assert.Equal(t, tt.last, wait.Last.Status)
				assert.Len(t, p.at, 4)
				assert.Equal(t, wait.Status == "CANCELED", errors.Is(err, gateway.ErrFinalStatus))
				last := err
				for _, last = range p.client.WatchWithdrawal(ctx, requestID, tt.options) {
				}
				assert.Equal(t, wait.Status == "CANCELED", errors.Is(last, gateway.ErrFinalStatus), "a watch ends likewise")
			})
		})
	}
}

// A program that polls by itself has the same rule.
func TestClient_PollWithdrawal(t *testing.T) {
	t.Parallel()
	canceled := gateway.WaitOptions{Final: []gateway.WithdrawalStatus{"CANCELED"}}
	for _, tt := range []struct {
		name     string
		response func() (*http.Response, error)
		waited   time.Duration
		over     bool
		status   gateway.WithdrawalStatus // of the withdrawal; empty for an error
	}{
		{"it is pending", withdrawalIn("PENDING"), 0, false, "PENDING"},
		{"it is completed", withdrawalIn("COMPLETED"), 0, true, "COMPLETED"},
		{"it has failed", withdrawalIn("FAILED"), 0, true, ""},
		{"it has a status that is named as final", withdrawalIn("CANCELED"), 0, true, ""},
		{"a page", respondWith(403, page), 0, false, ""},
		{"the connection is lost", func() (*http.Response, error) { return nil, refusedConnection("read") }, 0, false, ""},
		{"it is not found at first", respondWith(404, refused("No.")), 59 * time.Second, false, ""},
		{"it is not found", respondWith(404, refused("No.")), time.Minute, true, ""},
		{"it is refused", respondWith(401, refused("No.")), 0, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, tt.response)
				got, over, err := p.client.PollWithdrawal(t.Context(), requestID, time.Now().Add(-tt.waited), canceled)
				assertInvariants(t, got, err)
				assert.Equal(t, tt.over, over)
				assert.Len(t, p.at, 1)
				if tt.status == "" {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, tt.status, got.Status)
			})
		})
	}
	c := newClient(t, "http://localhost")
	_, over, err := c.PollWithdrawal(t.Context(), "..", time.Now(), gateway.WaitOptions{})
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.True(t, over, "it is not a matter of time")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, over, err = c.PollWithdrawal(ended, requestID, time.Now(), gateway.WaitOptions{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.False(t, over)
}

// The error at the end of the context has what was seen last, and the last failure.
func TestClient_WaitWithdrawal_ContextEnds(t *testing.T) {
	t.Parallel()
	const name = `gateway: waiting for withdrawal "` + requestID + `": `
	for _, tt := range []struct {
		name      string
		responses []func() (*http.Response, error)
		last      gateway.WithdrawalStatus
		fault     bool
		begins    string
	}{
		{"it is pending", []func() (*http.Response, error){withdrawalIn("PENDING")}, "PENDING", false, name + `last seen "PENDING", polls: `},
		{"its status is unknown", []func() (*http.Response, error){withdrawalIn("ON_HOLD")}, "ON_HOLD", false, name + `last seen "ON_HOLD", polls: `},
		{"it is never seen", []func() (*http.Response, error){saysStatus(500)}, "", true, name + "never seen, polls: "},
		{
			"it is seen once, and then the service is down",
			[]func() (*http.Response, error){withdrawalIn("PENDING"), saysStatus(502)},
			"PENDING", true, name + `last seen "PENDING", polls: `,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					if errors.Is(cause, context.Canceled) {
						time.AfterFunc(time.Minute, cancel)
					}
					p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, tt.responses...)
					got, err := p.client.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
					assertInvariants(t, got, err)
					assert.ErrorIs(t, err, cause)
					assert.True(t, strings.HasPrefix(err.Error(), tt.begins), err.Error())
					assertWaitError(t, err, len(p.at), tt.last, tt.fault)
				})
			}
		})
	}
}

// assertWaitError asserts how far a wait came: its polls, the status seen last, "" for
// none, and whether a poll failed.
func assertWaitError(t *testing.T, err error, polls int, last gateway.WithdrawalStatus, failed bool) {
	t.Helper()
	var wait *gateway.WaitError
	require.ErrorAs(t, err, &wait)
	assert.Equal(t, polls, wait.Polls)
	assert.Equal(t, requestID, wait.WithdrawRequestID)
	assert.Equal(t, last == "", wait.Last == nil)
	if wait.Last != nil {
		assert.Equal(t, last, wait.Last.Status)
	}
	assert.Equal(t, failed, wait.Fault != nil)
	assert.Equal(t, failed, strings.Contains(err.Error(), "(last fault: withdrawal: 50"), err.Error())
}

// A context that ends during a poll ends the wait too.
func TestClient_WaitWithdrawal_ContextEndsInAPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		polls := 0
		c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
			if polls++; polls == 1 {
				return withdrawalIn("PENDING")()
			}
			cancel()
			<-req.Context().Done()
			return nil, req.Context().Err()
		}))
		got, err := c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, context.Canceled)
		var wait *gateway.WaitError
		require.ErrorAs(t, err, &wait)
		assert.Equal(t, 2, wait.Polls)
		assert.Equal(t, gateway.WithdrawalPending, wait.Last.Status)
	})
}

func TestClient_WaitWithdrawal_Arguments(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(201, enveloped(strings.Replace(withdrawalJSON, "PENDING", "COMPLETED", 1)))) // what is sent ends at once
	c := newClient(t, w.URL)
	keyless, err := gateway.New(w.URL, "")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		client  *gateway.Client
		id      string
		options gateway.WaitOptions
		want    error
	}{
		{"a negative MinInterval", t.Context(), c, requestID, gateway.WaitOptions{MinInterval: -1}, gateway.ErrInvalidArgument},
		{"a negative MaxInterval", t.Context(), c, requestID, gateway.WaitOptions{MaxInterval: -1}, gateway.ErrInvalidArgument},
		{"a MinInterval above the MaxInterval", t.Context(), c, requestID, gateway.WaitOptions{MinInterval: 2, MaxInterval: 1}, gateway.ErrInvalidArgument},
		{"a little over a day", t.Context(), c, requestID, gateway.WaitOptions{MaxInterval: 24*time.Hour + 1}, gateway.ErrInvalidArgument},
		{"the longest MinInterval", t.Context(), c, requestID, gateway.WaitOptions{MinInterval: math.MaxInt64}, gateway.ErrInvalidArgument},
		{"the longest of both", t.Context(), c, requestID, gateway.WaitOptions{MinInterval: math.MaxInt64, MaxInterval: math.MaxInt64}, gateway.ErrInvalidArgument},
		{"intervals that overflow by a half", t.Context(), c, requestID, gateway.WaitOptions{MinInterval: math.MaxInt64 / 3 * 2, MaxInterval: math.MaxInt64}, gateway.ErrInvalidArgument},
		{"from the shortest to the longest", t.Context(), c, requestID, gateway.WaitOptions{MinInterval: 1, MaxInterval: math.MaxInt64}, gateway.ErrInvalidArgument},
		{"a final status that is documented", t.Context(), c, requestID, gateway.WaitOptions{Final: []gateway.WithdrawalStatus{"PENDING"}}, gateway.ErrInvalidArgument},
		{"an empty final status", t.Context(), c, requestID, gateway.WaitOptions{Final: []gateway.WithdrawalStatus{""}}, gateway.ErrInvalidArgument},
		{"no identifier", t.Context(), c, "", gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"a bad identifier", t.Context(), c, "../balance", gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"no context", nil, c, requestID, gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"a zero client", t.Context(), &gateway.Client{}, requestID, gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"no client", t.Context(), nil, requestID, gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"no key", t.Context(), keyless, requestID, gateway.WaitOptions{}, gateway.ErrMissingAPIKey},
		{"a context that has ended", ended, c, requestID, gateway.WaitOptions{}, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.client.WaitWithdrawal(tt.ctx, tt.id, tt.options)
			assertInvariants(t, got, err)
			assert.ErrorIs(t, err, tt.want)
			yielded := 0
			for seen, err := range tt.client.WatchWithdrawal(tt.ctx, tt.id, tt.options) {
				yielded++
				assert.Nil(t, seen)
				assert.ErrorIs(t, err, tt.want)
			}
			assert.Equal(t, 1, yielded)
		})
	}
	assert.Empty(t, w.Requests())
}

// Each change is yielded once: of the status, and of anything else.
// I-142
func TestClient_WatchWithdrawal(t *testing.T) {
	t.Parallel()
	feeOf := func(fee string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return reply(201, enveloped(strings.Replace(withdrawalJSON, `"fee":"1.5"`, `"fee":"`+fee+`"`, 1))), nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := paced(
			t, gateway.RetryPolicy{MaxAttempts: 1},
			withdrawalIn("PENDING"), withdrawalIn("PENDING"), saysStatus(500), withdrawalIn("PENDING"),
			withdrawalIn("REVIEW"), withdrawalIn("REVIEW"), withdrawalIn("PENDING"), feeOf("1.50"), feeOf("2"), withdrawalIn("FAILED"),
		)
		var seen []string
		for got, err := range p.client.WatchWithdrawal(t.Context(), requestID, gateway.WaitOptions{}) {
			require.NoError(t, err)
			seen = append(seen, fmt.Sprint(got.Status, " ", got.Fee))
			got.Status = "changed by the caller, whose copy it is"
		}
		assert.Equal(t, []string{"PENDING 1.5", "REVIEW 1.5", "PENDING 1.5", "PENDING 2", "FAILED 1.5"}, seen)
		assert.Len(t, p.at, 10)
	})
}

func TestClient_WatchWithdrawal_YieldsItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"), saysStatus(401))
		var errs []error
		for got, err := range p.client.WatchWithdrawal(t.Context(), requestID, gateway.WaitOptions{}) {
			assert.Equal(t, err != nil, got == nil)
			errs = append(errs, err)
		}
		require.Len(t, errs, 2)
		assert.NoError(t, errs[0])
		assert.ErrorIs(t, errs[1], gateway.ErrUnauthorized)
	})
}

// A queue is a service with many withdrawals, in a bubble.
type queue struct {
	client *gateway.Client
	begun  time.Time

	mu      sync.Mutex
	polls   map[string]int
	at      []time.Time
	running int
	most    int // requests in flight at a time
}

// queued makes a service that takes some time for each response, which is that of state
// for the n-th poll of a withdrawal.
func queued(t *testing.T, took time.Duration, state func(id string, n int) (*http.Response, error)) *queue {
	t.Helper()
	q := &queue{begun: time.Now(), polls: map[string]int{}}
	q.client = newClient(t, "http://localhost", once(), through(func(req *http.Request) (*http.Response, error) {
		id := path.Base(req.URL.Path)
		q.mu.Lock()
		q.polls[id]++
		n := q.polls[id]
		q.at = append(q.at, time.Now())
		q.running++
		q.most = max(q.most, q.running)
		q.mu.Unlock()
		defer func() { q.mu.Lock(); q.running--; q.mu.Unlock() }()
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(took):
			return state(id, n)
		}
	}))
	return q
}

func inState(id, status string) (*http.Response, error) {
	return reply(201, enveloped(strings.NewReplacer("PENDING", status, requestID, id).Replace(withdrawalJSON))), nil
}

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("w-%d", i)
	}
	return all
}

// Each is yielded once, when it ends, with its own result.
func TestClient_WaitWithdrawals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued(t, time.Millisecond, func(id string, n int) (*http.Response, error) {
			switch {
			case id == "late" && n < 5:
				return inState(id, "PENDING")
			case id == "odd" && n < 2:
				return inState(id, "HELD")
			case id == "flaky" && n < 3:
				return reply(502, "<html>"), nil
			case id == "failed":
				return inState(id, "FAILED")
			case id == "gone":
				return reply(410, refused("No such request.")), nil
			}
			return inState(id, "COMPLETED")
		})
		ends := map[string]string{}
		var order []string
		for w, err := range q.client.WaitWithdrawals(t.Context(), []string{"late", "odd", "flaky", "failed", "gone", "done"}, gateway.WaitOptions{}) {
			assertInvariants(t, w, err)
			var failed *gateway.WithdrawalFailedError
			var ended *gateway.WaitError
			switch {
			case errors.As(err, &failed):
				ends[failed.Withdrawal.WithdrawRequestID] = "failed"
			case errors.As(err, &ended):
				ends[ended.WithdrawRequestID] = err.Error()
			default:
				require.NoError(t, err)
				ends[w.WithdrawRequestID] = string(w.Status)
				order = append(order, w.WithdrawRequestID)
			}
		}
		assert.Equal(t, map[string]string{
			"late": "COMPLETED", "odd": "COMPLETED", "flaky": "COMPLETED", "done": "COMPLETED", "failed": "failed",
			"gone": `gateway: waiting for withdrawal "gone": never seen, polls: 1: withdrawal: 410: "No such request."`,
		}, ends)
		assert.Equal(t, []string{"done", "odd", "flaky", "late"}, order, "as they ended, not as they were listed")
	})
}

// Where the service asks for a wait, all wait.
func TestClient_WaitWithdrawals_rateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var limited atomic.Bool
		q := queued(t, time.Millisecond, func(id string, _ int) (*http.Response, error) {
			if limited.CompareAndSwap(false, true) {
				return reply(429, refused("Slow down."), "Retry-After", "600"), nil
			}
			return inState(id, "COMPLETED")
		})
		for _, err := range q.client.WaitWithdrawals(t.Context(), ids(200), gateway.WaitOptions{}) {
			require.NoError(t, err)
		}
		early := 0
		for _, at := range q.at {
			if at.Sub(q.begun) < 10*time.Minute {
				early++
			}
		}
		assert.LessOrEqual(t, early, 9, "those in flight, and no more")
		assert.Len(t, q.at, 201)
	})
}

// When the loop is left, no request is in flight.
func TestClient_WaitWithdrawals_left(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued(t, 10*time.Second, func(id string, _ int) (*http.Response, error) { return inState(id, "COMPLETED") })
		for w, err := range q.client.WaitWithdrawals(t.Context(), ids(100), gateway.WaitOptions{}) {
			require.NoError(t, err)
			require.NotNil(t, w)
			break
		}
		assert.Zero(t, q.running)
		assert.Less(t, len(q.at), 100)
	})
}

// When the context ends, each that is left is named, with what was seen last.
func TestClient_WaitWithdrawals_contextEnds(t *testing.T) {
	t.Parallel()
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			q := queued(t, time.Second, func(id string, _ int) (*http.Response, error) { return inState(id, "PENDING") })
			parent, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ctx, cancelAll := context.WithTimeout(parent, 2*time.Minute)
			defer cancelAll()
			if want == context.Canceled {
				time.AfterFunc(90*time.Second, func() { cancel(errors.New("the shop closes")) })
			}
			ended := map[string]bool{}
			for w, err := range q.client.WaitWithdrawals(ctx, ids(100), gateway.WaitOptions{}) {
				assertInvariants(t, w, err)
				require.ErrorIs(t, err, want)
				assert.Equal(t, want == context.Canceled, strings.Contains(err.Error(), "the shop closes"), err.Error())
				var end *gateway.WaitError
				require.ErrorAs(t, err, &end)
				require.NotNil(t, end.Last)
				assert.Equal(t, gateway.WithdrawalPending, end.Last.Status)
				ended[end.WithdrawRequestID] = true
			}
			assert.Len(t, ended, 100)
			assert.Zero(t, q.running)
		})
	}
}

func TestClient_WaitWithdrawals_refuses(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	good := newClient(t, w.URL)
	keyless, err := gateway.New(w.URL, "")
	require.NoError(t, err)
	for _, tt := range []struct {
		name    string
		client  *gateway.Client
		ctx     context.Context
		ids     []string
		options gateway.WaitOptions
		want    string
	}{
		{"no context", good, nil, []string{"a"}, gateway.WaitOptions{}, "ctx: must not be nil"},
		{"no client", nil, t.Context(), []string{"a"}, gateway.WaitOptions{}, "client: was not made by New"},
		{"bad options", good, t.Context(), []string{"a"}, gateway.WaitOptions{MinInterval: -1}, "w: intervals must not be negative"},
		{"no key", keyless, t.Context(), []string{"a", "b", "c"}, gateway.WaitOptions{}, "apiKey: is required for this call: give it to New, WithAPIKeySource or WithAPIKey"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []error
			for seen, err := range tt.client.WaitWithdrawals(tt.ctx, tt.ids, tt.options) {
				assertInvariants(t, seen, err)
				all = append(all, err)
			}
			require.Len(t, all, 1)
			assert.EqualError(t, all[0], "gateway: withdrawal: "+tt.want)
			assert.ErrorIs(t, all[0], gateway.ErrInvalidArgument)
		})
	}
	assert.Empty(t, w.Requests(), "nothing was sent")
}

// An identifier that cannot be sent ends its own wait.
func TestClient_WaitWithdrawals_badIdentifier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued(t, 0, func(id string, _ int) (*http.Response, error) { return inState(id, "COMPLETED") })
		var ended, refused []string
		for w, err := range q.client.WaitWithdrawals(t.Context(), []string{"a", "..", "", "b", "a"}, gateway.WaitOptions{}) {
			if wait, ok := err.(*gateway.WaitError); ok {
				assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
				refused = append(refused, wait.WithdrawRequestID)
				continue
			}
			require.NoError(t, err)
			ended = append(ended, w.WithdrawRequestID)
		}
		assert.ElementsMatch(t, []string{"a", "b", "a"}, ended)
		assert.ElementsMatch(t, []string{"..", ""}, refused)
	})
}

// the status of a withdrawal is not lost with another field.
func TestClient_WaitWithdrawal_unreadableField(t *testing.T) {
	t.Parallel()
	completed := strings.Replace(withdrawalJSON, "PENDING", "COMPLETED", 1)
	for _, fee := range []string{`""`, `"n/a"`, `"1 USDT"`} {
		broken := strings.Replace(completed, `"fee":"1.5"`, `"fee":`+fee, 1)
		require.NotEqual(t, completed, broken)
		last := strings.Replace(strings.Replace(broken, `"status":"COMPLETED",`, "", 1), "}", `,"status":"COMPLETED"}`, 1)
		for _, result := range []string{broken, last, "[" + broken + "]", `{"status":"COMPLETED"}`, `{"status":"COMPLETED","note":"` + strings.Repeat("x", 20<<10) + `"}`} {
			c := cannedClient(t, 201, enveloped(result))
			_, err := c.Withdrawal(t.Context(), requestID)
			var wrong *gateway.DecodeError
			require.ErrorAs(t, err, &wrong, result)
			assert.Equal(t, gateway.WithdrawalCompleted, gateway.WithdrawalStatusOf(err), result)
			assert.ErrorContains(t, err, `(the status is "COMPLETED")`)
			_, err = c.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			var ended *gateway.WaitError
			require.ErrorAs(t, err, &ended, result)
			assert.Equal(t, gateway.WithdrawalCompleted, ended.Status)
			assert.Equal(t, gateway.WithdrawalCompleted, gateway.WithdrawalStatusOf(err))
			assert.Nil(t, ended.Last)
			assert.ErrorContains(t, err, `last seen "COMPLETED"`)
		}
	}
}
