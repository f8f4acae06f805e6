package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A pace is a client in a bubble whose transport records when it is used.
type pace struct {
	client    *gateway.Client
	responses gateway.Option // the transport
	begun     time.Time
	at        []time.Time
}

// paced makes a client whose n-th request, from 0, gets responses[n], and those after
// the last like the last.
func paced(t *testing.T, policy gateway.RetryPolicy, responses ...func() (*http.Response, error)) *pace {
	t.Helper()
	p := &pace{begun: time.Now()}
	p.responses = through(func(*http.Request) (*http.Response, error) {
		p.at = append(p.at, time.Now())
		return responses[min(len(p.at), len(responses))-1]()
	})
	options := []gateway.Option{p.responses}
	if policy != (gateway.RetryPolicy{}) {
		options = append(options, gateway.WithRetry(policy))
	}
	p.client = newClient(t, "http://localhost", options...)
	return p
}

// waits are the waits between the requests.
func (p *pace) waits() []time.Duration {
	var all []time.Duration
	for i := 1; i < len(p.at); i++ {
		all = append(all, p.at[i].Sub(p.at[i-1]))
	}
	return all
}

func (p *pace) withdrawal(ctx context.Context) error {
	_, err := p.client.Withdrawal(ctx, requestID)
	return err
}

func says503(headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return reply(503, refused("Not now."), headers...), nil }
}

func saysStatus(status int, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return reply(status, refused("No."), headers...), nil }
}

func saysGood() (*http.Response, error) { return reply(201, enveloped(withdrawalJSON)), nil }

// The fields of a RetryPolicy, and their defaults, reach the loop: over many calls the
// waits stay under their ceilings, and come near both ends. The waits are tested in internal/retry.
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
		{"all are set", gateway.RetryPolicy{MaxAttempts: 4, BaseDelay: 3e9, MaxDelay: 7e9}, 500, []time.Duration{3e9, 6e9, 7e9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { assertJitter(t, tt.policy, tt.status, tt.ceilings) })
		})
	}
}

// assertJitter asserts that many calls wait up to these ceilings, each with a budget of
// its own.
func assertJitter(t *testing.T, policy gateway.RetryPolicy, status int, ceilings []time.Duration) {
	t.Helper()
	most := make([]time.Duration, len(ceilings))
	least := slices.Repeat([]time.Duration{math.MaxInt64}, len(ceilings))
	for range 300 {
		p := paced(t, policy, saysStatus(status))
		require.Error(t, p.withdrawal(t.Context()))
		waits := p.waits()
		require.Len(t, waits, len(ceilings))
		for i, wait := range waits {
			most[i] = max(most[i], wait)
			least[i] = min(least[i], wait)
		}
	}
	for i, ceiling := range ceilings {
		assert.Less(t, most[i], ceiling+1, "wait %d", i)
		assert.Greater(t, most[i], ceiling*9/10, "wait %d of many comes near the ceiling", i)
		assert.Less(t, least[i], ceiling/10, "wait %d of many comes near 0", i)
	}
}

// A Retry-After is a floor under the wait of a read, and is in the error, also of an
// invoice, which never waits. The spellings of the header are tested in internal/retry.
// I-161
func TestRetry_RetryAfter(t *testing.T) {
	t.Parallel()
	// Bubbles begin at this time.
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		name    string
		headers []string
		floor   time.Duration // the RetryAfter of the error, too
		sent    int
	}{
		{"row N34: 30 s, the longest that is waited for", []string{"Retry-After", "30"}, 30 * time.Second, 3},
		{"row N35: 31 s", []string{"Retry-After", "31"}, 31 * time.Second, 1},
		{"row N36: none", nil, 0, 3},
		{
			"row N52: this clock is an hour behind the service's",
			[]string{"Date", date(time.Hour), "Retry-After", date(time.Hour + 5*time.Second)},
			5 * time.Second, 3,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{429, 503} {
				synctest.Test(t, func(t *testing.T) { assertReadRetryAfter(t, status, tt.floor, tt.sent, tt.headers) })
				synctest.Test(t, func(t *testing.T) { assertInvoiceRetryAfter(t, status, tt.floor, tt.headers) })
			}
		})
	}
}

// assertReadRetryAfter asserts how often a read is sent, and that it waits long enough.
func assertReadRetryAfter(t *testing.T, status int, floor time.Duration, sent int, headers []string) {
	t.Helper()
	p := paced(t, gateway.RetryPolicy{}, saysStatus(status, headers...))
	err := p.withdrawal(t.Context())
	var refusal *gateway.APIError
	require.ErrorAs(t, err, &refusal)
	assert.Len(t, p.at, sent)
	assert.Equal(t, floor, refusal.RetryAfter, "RetryAfter of %v", err)
	for _, wait := range p.waits() {
		assert.GreaterOrEqual(t, wait, floor)
		assert.LessOrEqual(t, wait, max(floor, 2*time.Second))
	}
	if sent == 1 {
		assert.Zero(t, time.Since(p.begun), "it returns at once")
	}
}

// assertInvoiceRetryAfter asserts that no Retry-After makes an invoice wait.
func assertInvoiceRetryAfter(t *testing.T, status int, floor time.Duration, headers []string) {
	t.Helper()
	p := paced(t, gateway.RetryPolicy{}, saysStatus(status, headers...))
	got, err := p.client.CreateInvoice(t.Context(), order("A-17"))
	assertInvariants(t, got, err)
	assert.Len(t, p.at, 1)
	assert.Zero(t, time.Since(p.begun))
	if status == 503 {
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		return
	}
	var refusal *gateway.APIError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
	assert.ErrorIs(t, err, gateway.ErrRateLimited)
	assert.Equal(t, floor, refusal.RetryAfter)
}

func TestRetry_maxRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := paced(t, gateway.RetryPolicy{MaxRetryAfter: time.Hour}, says503("Retry-After", "3600"), saysGood)
		assert.NoError(t, p.withdrawal(t.Context()))
		assert.GreaterOrEqual(t, time.Since(p.begun), time.Hour)
	})
}

// A wait that would end after the caller's deadline does not begin: the response of the
// service is worth more than the end of the time.
func TestRetry_waitPastTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p := paced(t, gateway.RetryPolicy{}, says503("Retry-After", "20"))
		err := p.withdrawal(ctx)
		assertInvariants(t, (*gateway.Withdrawal)(nil), err)
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, 503, refusal.StatusCode)
		assert.Equal(t, 20*time.Second, refusal.RetryAfter)
		assert.Equal(t, "Not now.", refusal.Message)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, err.Error(), "(the next one would be after the deadline)")
		assert.Len(t, p.at, 1)
		assert.Zero(t, time.Since(p.begun), "it returns at once")
	})
}

// The same for an attempt without a response, of a read and of an invoice.
func TestRetry_waitPastTheDeadlineWithoutAResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		policy := gateway.RetryPolicy{BaseDelay: 1000 * time.Hour, MaxDelay: 1000 * time.Hour}
		c := newClient(t, "http://localhost", gateway.WithRetry(policy), gateway.WithHTTPClient(&http.Client{
			Transport: tripper(func(*http.Request) (*http.Response, error) { return nil, refusedConnection("connect") }),
		}))
		for _, s := range subjects() {
			got, err := s.call(ctx, c)
			assertInvariants(t, got, err)
			assert.Contains(t, err.Error(), "(the next one would be after the deadline)")
			assert.NotErrorIs(t, err, gateway.ErrTimeout)
			assert.Equal(t, s.write, errors.Is(err, gateway.ErrNotSent))
		}
	})
}

func TestRetry_cancelled(t *testing.T) {
	t.Parallel()
	errShutdown := errors.New("shutting down")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := paced(t, gateway.RetryPolicy{}, func() (*http.Response, error) {
			time.AfterFunc(10*time.Second, func() { cancel(errShutdown) })
			return reply(503, refused("Not now."), "Retry-After", "20"), nil
		})
		err := p.withdrawal(ctx)
		assertInvariants(t, (*gateway.Withdrawal)(nil), err)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, errShutdown)
		var failure *gateway.TransportError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, gateway.PhaseBackoff, failure.Phase)
		assert.Equal(t, 503, failure.LastStatus)
		assert.Equal(t, 1, failure.Attempts)
		assert.Equal(t, "gateway: withdrawal: backoff: context canceled: shutting down; last status 503", err.Error())
		assert.False(t, gateway.SafeToRetry(err))
		assert.Equal(t, 10*time.Second, time.Since(p.begun), "it returns when it is cancelled")
	})
}

// The last attempt is the error, though attempts before it failed otherwise.
// I-159
func TestRetry_mixedFailures(t *testing.T) {
	t.Parallel()
	lost := func() (*http.Response, error) { return nil, refusedConnection("read") }
	for _, tt := range []struct {
		name      string
		responses []func() (*http.Response, error)
		want      string // of the error; "" for none
		sent      int
	}{
		{"no response, then 503 twice", []func() (*http.Response, error){lost, says503(), says503()}, `gateway: withdrawal: 503: "Not now." (3 attempts)`, 3},
		{"503, then 404", []func() (*http.Response, error){says503(), saysStatus(404)}, `gateway: withdrawal: 404: "No." (2 attempts)`, 2},
		{
			"503 twice, then no response",
			[]func() (*http.Response, error){says503(), says503(), lost},
			"gateway: withdrawal: dial: dial tcp: read: connection refused; last status 503 (3 attempts)", 3,
		},
		{"503, no response, then a good one", []func() (*http.Response, error){says503(), lost, saysGood}, "", 3},
		{"429, then 500, then a good response", []func() (*http.Response, error){saysStatus(429), saysStatus(500), saysGood}, "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := paced(t, gateway.RetryPolicy{}, tt.responses...)
				err := p.withdrawal(t.Context())
				assert.Len(t, p.at, tt.sent)
				if tt.want == "" {
					assert.NoError(t, err)
					return
				}
				assert.EqualError(t, err, tt.want)
			})
		})
	}
}

// Attempts have a timeout each, and a create-invoice a longer one.
// I-11
func TestRetry_attemptTimeouts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		options       []gateway.Option
		read, invoice time.Duration
	}{
		{"the defaults", nil, 15 * time.Second, time.Minute},
		{
			"both are set",
			[]gateway.Option{gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: time.Second, InvoiceTimeout: 2 * time.Second})},
			time.Second, 2 * time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjects() {
				synctest.Test(t, func(t *testing.T) {
					var lasted []time.Duration
					c := newClient(t, "http://localhost", append(tt.options, through(func(req *http.Request) (*http.Response, error) {
						begun := time.Now()
						<-req.Context().Done()
						lasted = append(lasted, time.Since(begun))
						return nil, req.Context().Err()
					}))...)
					_, err := s.call(t.Context(), c)
					require.Error(t, err)
					if s.write {
						assert.Equal(t, []time.Duration{tt.invoice}, lasted)
						return
					}
					assert.ErrorIs(t, err, gateway.ErrTimeout)
					assert.Equal(t, []time.Duration{tt.read, tt.read, tt.read}, lasted)
				})
			}
		})
	}
}

// The Timeout of the caller's http.Client is that of one attempt.
func TestRetry_timeoutOfTheCallersClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lasted []time.Duration
		client := &http.Client{Timeout: 7 * time.Second, Transport: tripper(func(req *http.Request) (*http.Response, error) {
			begun := time.Now()
			drain(req)
			<-req.Context().Done()
			lasted = append(lasted, time.Since(begun))
			return nil, req.Context().Err()
		})}
		c := newClient(t, "http://localhost", gateway.WithHTTPClient(client))
		_, err := c.Withdrawal(t.Context(), requestID)
		assert.ErrorIs(t, err, gateway.ErrTimeout)
		_, err = c.CreateInvoice(t.Context(), order("A-17"))
		assert.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		assert.Equal(t, []time.Duration{7e9, 7e9, 7e9, 7e9}, lasted)
		assert.Equal(t, 7*time.Second, client.Timeout)
	})
}

// budgetText is in the error of a call that ended for want of tokens.
const budgetText = "the retry budget was empty"

// A service that fails everything gets first attempts, and no more retries than the
// client has tokens for: 500, of which a retry takes 14, or 5 where it is throttled.
func TestRetry_budget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		status  int
		retries int
	}{
		{"row N50: 80 calls fail with 500", 500, 35},
		{"row N50: 80 calls are throttled", 503, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const calls = 80
				p := paced(t, gateway.RetryPolicy{}, saysStatus(tt.status))
				var last error
				for range calls {
					last = p.withdrawal(t.Context())
				}
				assert.Equal(t, calls+tt.retries, len(p.at))
				assertInvariants(t, (*gateway.Withdrawal)(nil), last)
				assert.Contains(t, last.Error(), budgetText)
				var refusal *gateway.APIError
				require.ErrorAs(t, last, &refusal)
				assert.Equal(t, tt.status, refusal.StatusCode)
			})
		})
	}
}

// The budget holds for the retries of an invoice that was not sent.
func TestRetry_budgetOfInvoices(t *testing.T) {
	t.Parallel()
	t.Run("row N50: invoices that cannot be sent", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{
				Transport: tripper(func(*http.Request) (*http.Response, error) {
					tries++
					return nil, refusedConnection("connect")
				}),
			}))
			var last error
			for i := range 100 {
				_, last = c.CreateInvoice(t.Context(), order(fmt.Sprint("A-", i)))
				require.ErrorIs(t, last, gateway.ErrNotSent)
			}
			assert.Equal(t, 100+35, tries)
			assert.Contains(t, last.Error(), budgetText)
		})
	})
}

// Clients do not share a budget.
func TestRetry_budgetOfOneClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			p := paced(t, gateway.RetryPolicy{}, saysStatus(500))
			assert.Error(t, p.withdrawal(t.Context()))
			assert.Len(t, p.at, 3)
		}
	})
}
