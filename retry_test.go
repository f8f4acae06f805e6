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

// paced is a scriptedClient with a policy.
func paced(t *testing.T, policy gateway.RetryPolicy, responses ...func() (*http.Response, error)) *scripted {
	t.Helper()
	p := scriptedClient(t, responses...)
	if policy != (gateway.RetryPolicy{}) {
		p.connect(t, gateway.WithRetry(policy))
	}
	return p
}

// waits are the waits between the requests.
func (s *scripted) waits() []time.Duration {
	var all []time.Duration
	for i := 1; i < len(s.at); i++ {
		all = append(all, s.at[i].Sub(s.at[i-1]))
	}
	return all
}

func (s *scripted) withdrawal(ctx context.Context) error {
	_, err := s.client.Withdrawal(ctx, requestID)
	return err
}

func says503(headers ...string) func() (*http.Response, error) {
	return respondWith(503, refused("Not now."), headers...)
}

func saysStatus(status int, headers ...string) func() (*http.Response, error) {
	return respondWith(status, refused("No."), headers...)
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
		policy  gateway.RetryPolicy
		headers []string
		floor   time.Duration // the RetryAfter of the error, too
		sent    int
	}{
		{"30 s, the longest that is waited for", gateway.RetryPolicy{}, []string{"Retry-After", "30"}, 30 * time.Second, 3},
		{"31 s", gateway.RetryPolicy{}, []string{"Retry-After", "31"}, 31 * time.Second, 1},
		{"an hour, which MaxRetryAfter allows", gateway.RetryPolicy{MaxRetryAfter: time.Hour}, []string{"Retry-After", "3600"}, time.Hour, 3},
		{
			"this clock is an hour behind the service's",
			gateway.RetryPolicy{},
			[]string{"Date", date(time.Hour), "Retry-After", date(time.Hour + 5*time.Second)},
			5 * time.Second, 3,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := paced(t, tt.policy, saysStatus(429, tt.headers...))
				var refusal *gateway.APIError
				require.ErrorAs(t, p.withdrawal(t.Context()), &refusal)
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
		})
	}
}

// A wait that would end after the caller's deadline does not begin: what is known is worth
// more than the end of the time. A budget that is empty ends a call as well.
func TestRetry_noFurtherAttempt(t *testing.T) {
	t.Parallel()
	const late, empty = "(the next one would be after the deadline)", "the retry budget was empty"
	long, quick := gateway.RetryPolicy{BaseDelay: 1000 * time.Hour, MaxDelay: 1000 * time.Hour}, gateway.RetryPolicy{BaseDelay: 1, MaxDelay: 1}
	lost := func() (*http.Response, error) { return nil, refusedConnection("connect") }
	for _, tt := range []struct {
		name     string
		write    bool
		policy   gateway.RetryPolicy
		response func() (*http.Response, error)
		calls    int
		retries  int // of all calls
		text     string
	}{
		{"a read after a status with a long Retry-After", false, quick, says503("Retry-After", "20"), 1, 0, late},
		{"a read without a response", false, long, lost, 1, 0, late},
		{"an invoice that was not sent", true, long, lost, 1, 0, late},
		{"80 reads fail with 500", false, quick, saysStatus(500), 80, 35, empty},
		{"80 reads are limited by 429, which costs nothing", false, quick, saysStatus(429), 80, 160, `429: "No." (3 attempts)`},
		{"80 invoices are not sent", true, quick, lost, 80, 35, empty},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				tries := 0
				c := newClient(t, "http://localhost", gateway.WithRetry(tt.policy), gateway.WithHTTPClient(&http.Client{
					Transport: tripper(func(*http.Request) (*http.Response, error) {
						tries++
						return tt.response()
					}),
				}))
				var err error
				for n := range tt.calls {
					if tt.write {
						_, err = c.CreateInvoice(ctx, order(fmt.Sprint("A-", n)))
					} else {
						_, err = c.Withdrawal(ctx, requestID)
					}
				}
				assert.Equal(t, tt.calls+tt.retries, tries)
				assertInvariants(t, nil, err)
				assert.ErrorContains(t, err, tt.text)
				assert.NotErrorIs(t, err, context.DeadlineExceeded)
				assert.NotErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
			})
		})
	}
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
func TestRetry_lastAttempt(t *testing.T) {
	t.Parallel()
	lost := func() (*http.Response, error) { return nil, refusedConnection("read") }
	for _, tt := range []struct {
		responses []func() (*http.Response, error)
		want      string // of the error; "" for none
	}{
		{[]func() (*http.Response, error){lost, says503(), saysStatus(404)}, `gateway: withdrawal: 404: "No." (3 attempts)`},
		{[]func() (*http.Response, error){says503(), lost}, "gateway: withdrawal: dial: dial tcp: read: connection refused; last status 503 (3 attempts)"},
		{[]func() (*http.Response, error){says503(), lost, saysGood}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{}, tt.responses...)
			err := p.withdrawal(t.Context())
			assert.Len(t, p.at, 3)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tt.want)
		})
	}
}

// Attempts have a timeout each, and a create-invoice a longer one. The Timeout of the
// caller's http.Client is that of one attempt, too.
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
		{"that of the caller's client", gateway.RetryPolicy{}, 7 * time.Second, 7 * time.Second, 7 * time.Second},
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
