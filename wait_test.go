package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

func withdrawalIn(status string) func() (*http.Response, error) {
	body := enveloped(strings.Replace(withdrawalJSON, `"PENDING"`, fmt.Sprintf("%q", status), 1))
	return func() (*http.Response, error) { return reply(201, body), nil }
}

func TestClient_WaitWithdrawal(t *testing.T) {
	t.Parallel()
	cut := func() (*http.Response, error) { return nil, refusedConnection("read") }
	for _, tt := range []struct {
		name    string
		answers []func() (*http.Response, error)
	}{
		{"it is completed at once", []func() (*http.Response, error){withdrawalIn("COMPLETED")}},
		{"it is pending for a while", []func() (*http.Response, error){withdrawalIn("PENDING"), withdrawalIn("PENDING"), withdrawalIn("COMPLETED")}},
		{
			"statuses that nobody knows are waited through",
			[]func() (*http.Response, error){withdrawalIn("PROCESSING"), withdrawalIn("completed"), withdrawalIn("Failed"), withdrawalIn("COMPLETED")},
		},
		{
			"faults that may pass are waited through, though all attempts of a call meet them",
			[]func() (*http.Response, error){
				cut, cut, cut, saysStatus(500), saysStatus(502), saysStatus(503), saysStatus(429), saysStatus(408), cut,
				withdrawalIn("COMPLETED"),
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := paced(t, gateway.RetryPolicy{}, tt.answers...)
				got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
				require.NoError(t, err)
				assert.Equal(t, gateway.WithdrawalCompleted, got.Status)
				assert.Equal(t, requestID, got.WithdrawRequestID)
				assert.Len(t, p.at, len(tt.answers))
			})
		})
	}
}

// A week of PENDING is waited through at the longest interval and no faster.
func TestClient_WaitWithdrawal_AWeek(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const week = 7 * 24 * time.Hour
		var p *pace
		p = paced(t, gateway.RetryPolicy{}, func() (*http.Response, error) {
			if time.Since(p.begun) > week {
				return withdrawalIn("COMPLETED")()
			}
			return withdrawalIn("PENDING")()
		})
		got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{MinInterval: time.Minute, MaxInterval: time.Hour})
		require.NoError(t, err)
		assert.True(t, got.Status.Terminal())
		polls := len(p.at)
		assert.Greater(t, polls, int(week/time.Hour))
		assert.Less(t, polls, int(week/time.Hour)*4)
	})
}

func TestClient_WaitWithdrawal_Intervals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		options     gateway.WaitOptions
		least, most time.Duration
	}{
		{"the defaults", gateway.WaitOptions{}, 2 * time.Second, 30 * time.Second},
		{"both are set", gateway.WaitOptions{MinInterval: time.Second, MaxInterval: time.Minute}, time.Second, time.Minute},
		{"the shortest alone, above the default longest", gateway.WaitOptions{MinInterval: time.Minute}, time.Minute, time.Minute},
		{"the longest alone, below the default shortest", gateway.WaitOptions{MaxInterval: time.Second}, time.Second, time.Second},
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

// What the service asks to wait is waited, for an hour at most.
func TestClient_WaitWithdrawal_RetryAfter(t *testing.T) {
	t.Parallel()
	for asked, most := range map[string]time.Duration{"600": 10 * time.Minute, "999999999": time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{}, saysStatus(429, "Retry-After", asked), withdrawalIn("PENDING"), withdrawalIn("COMPLETED"))
			_, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			require.NoError(t, err)
			waits := p.waits()
			require.Len(t, waits, 2)
			assert.Equal(t, most, waits[0])
			assert.LessOrEqual(t, waits[1], 30*time.Second, "it asked once")
		})
	}
}

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

// An answer that will not change ends the wait.
func TestClient_WaitWithdrawal_Refused(t *testing.T) {
	t.Parallel()
	other := func() (*http.Response, error) {
		return reply(201, enveloped(strings.Replace(withdrawalJSON, requestID, "another", 1))), nil
	}
	for _, tt := range []struct {
		name   string
		answer func() (*http.Response, error)
		want   error
	}{
		{"401", saysStatus(401), gateway.ErrUnauthorized},
		{"403", saysStatus(403), gateway.ErrForbidden},
		{"404", saysStatus(404), gateway.ErrNotFound},
		{"a redirect", saysStatus(302), gateway.ErrRedirect},
		{"another withdrawal", other, gateway.ErrResponseMismatch},
		{"a circuit breaker", func() (*http.Response, error) { return nil, errBreaker }, errBreaker},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"), tt.answer)
				got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
				assertInvariants(t, got, err)
				assert.ErrorIs(t, err, tt.want)
				var wait *gateway.WaitError
				require.ErrorAs(t, err, &wait)
				assert.Equal(t, 2, wait.Polls)
				require.NotNil(t, wait.Last)
				assert.Equal(t, gateway.WithdrawalPending, wait.Last.Status)
				assert.Len(t, p.at, 2)
			})
		})
	}
}

// The end of the context says what was seen last, and what was in the way.
func TestClient_WaitWithdrawal_ContextEnds(t *testing.T) {
	t.Parallel()
	const name = `gateway: waiting for withdrawal "` + requestID + `": `
	for _, tt := range []struct {
		name    string
		answers []func() (*http.Response, error)
		last    gateway.WithdrawalStatus
		fault   bool
		begins  string
	}{
		{"it is pending", []func() (*http.Response, error){withdrawalIn("PENDING")}, "PENDING", false, name + `last seen "PENDING", polls: `},
		{"nobody knows its status", []func() (*http.Response, error){withdrawalIn("ON_HOLD")}, "ON_HOLD", false, name + `last seen "ON_HOLD", polls: `},
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
					p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, tt.answers...)
					got, err := p.client.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
					assertInvariants(t, got, err)
					assert.ErrorIs(t, err, cause)
					assert.True(t, strings.HasPrefix(err.Error(), tt.begins), err.Error())
					var wait *gateway.WaitError
					require.ErrorAs(t, err, &wait)
					assert.Equal(t, len(p.at), wait.Polls)
					assert.Equal(t, requestID, wait.WithdrawRequestID)
					assert.Equal(t, tt.last == "", wait.Last == nil)
					if wait.Last != nil {
						assert.Equal(t, tt.last, wait.Last.Status)
					}
					assert.Equal(t, tt.fault, wait.Fault != nil)
					assert.Equal(t, tt.fault, strings.Contains(err.Error(), "(last fault: withdrawal: 50"), err.Error())
				})
			}
		})
	}
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
	w := serve(t, answer(201, enveloped(withdrawalJSON)))
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
		{"no identifier", t.Context(), c, "", gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"a bad identifier", t.Context(), c, "../balance", gateway.WaitOptions{}, gateway.ErrInvalidArgument},
		{"no context", nil, c, requestID, gateway.WaitOptions{}, gateway.ErrInvalidArgument},
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

func TestClient_WatchWithdrawal_Breaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"))
		for range p.client.WatchWithdrawal(t.Context(), requestID, gateway.WaitOptions{}) {
			break
		}
		assert.Len(t, p.at, 1)
		assert.Zero(t, time.Since(p.begun), "a loop that breaks does not wait")
	})
}

// A watch can be ranged over again: it begins anew.
func TestClient_WatchWithdrawal_Twice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := paced(t, gateway.RetryPolicy{}, withdrawalIn("COMPLETED"))
		watch := p.client.WatchWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
		for range 2 {
			yielded := 0
			for got, err := range watch {
				assert.NoError(t, err)
				assert.Equal(t, gateway.WithdrawalCompleted, got.Status)
				yielded++
			}
			assert.Equal(t, 1, yielded)
		}
	})
}

func TestClient_WatchWithdrawal_YieldsItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"), saysStatus(404))
		var errs []error
		for got, err := range p.client.WatchWithdrawal(t.Context(), requestID, gateway.WaitOptions{}) {
			assert.Equal(t, err != nil, got == nil)
			errs = append(errs, err)
		}
		require.Len(t, errs, 2)
		assert.NoError(t, errs[0])
		assert.ErrorIs(t, errs[1], gateway.ErrNotFound)
	})
}
