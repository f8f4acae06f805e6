package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A queue is a service with many withdrawals, in a bubble.
type queue struct {
	client *gateway.Client
	begun  time.Time

	mu      sync.Mutex
	polls   map[string]int
	at      []time.Time
	running int
	most    int // how many requests were under way at a time
}

// queued makes a service that takes a while for each answer, and gives what
// state says of a withdrawal that is asked for the n-th time.
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

// Each is yielded once, as it ends, in the way it ended.
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
				return reply(404, refused("No such request.")), nil
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
			"gone": `gateway: waiting for withdrawal "gone": never seen, polls: 1: withdrawal: 404: "No such request."`,
		}, ends)
		assert.Equal(t, []string{"done", "odd", "flaky", "late"}, order, "as they ended, not as they were asked for")
	})
}

// Ten thousand are asked for in turn: each often enough, none while others wait
// for longer, never more than 8 at a time or 100 in a MinInterval.
func TestClient_WaitWithdrawals_TenThousand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, polls = 10_000, 3
		q := queued(t, 100*time.Millisecond, func(id string, n int) (*http.Response, error) {
			if n < polls {
				return inState(id, "PENDING")
			}
			return inState(id, "COMPLETED")
		})
		ended := 0
		for _, err := range q.client.WaitWithdrawals(t.Context(), ids(many), gateway.WaitOptions{MinInterval: time.Second, MaxInterval: time.Minute}) {
			require.NoError(t, err)
			if ended == 0 {
				least := polls
				for _, id := range ids(many) {
					least = min(least, q.polls[id])
				}
				assert.Positive(t, least, "nobody's third turn comes before everybody's first")
			}
			ended++
		}
		assert.Equal(t, many, ended)
		assert.Len(t, q.at, many*polls, "and none was asked for in vain")
		assert.Equal(t, 8, q.most, "the bound is reached and kept")
		for i := 100; i < len(q.at); i++ {
			require.GreaterOrEqual(t, q.at[i].Sub(q.at[i-100]), time.Second)
		}
	})
}

// One for which nobody finds time would be starved: here none ends for an hour,
// and all are asked for alike.
func TestClient_WaitWithdrawals_NobodyIsStarved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued(t, time.Second, func(id string, n int) (*http.Response, error) { return inState(id, "PENDING") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ended := 0
		for w, err := range q.client.WaitWithdrawals(ctx, ids(500), gateway.WaitOptions{}) {
			assert.Nil(t, w)
			var end *gateway.WaitError
			require.ErrorAs(t, err, &end)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, gateway.WithdrawalPending, end.Last.Status)
			ended++
		}
		assert.Equal(t, 500, ended, "each that is left is named")
		least, most := len(q.at), 0
		for _, n := range q.polls {
			least, most = min(least, n), max(most, n)
		}
		assert.Greater(t, least, most/2)
	})
}

// Where the service asks for a wait, all wait.
func TestClient_WaitWithdrawals_RateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued(t, time.Millisecond, func(id string, n int) (*http.Response, error) {
			if id == "w-0" && n == 1 {
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
		assert.LessOrEqual(t, early, 9, "those that were under way, and no more")
		assert.Len(t, q.at, 201)
	})
}

// A loop that is left takes its requests with it.
func TestClient_WaitWithdrawals_Left(t *testing.T) {
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

func TestClient_WaitWithdrawals_Cancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queued(t, time.Second, func(id string, _ int) (*http.Response, error) { return inState(id, "PENDING") })
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(90*time.Second, func() { cancel(errors.New("the shop closes")) })
		ended := map[string]bool{}
		for w, err := range q.client.WaitWithdrawals(ctx, ids(100), gateway.WaitOptions{}) {
			assertInvariants(t, w, err)
			require.ErrorIs(t, err, context.Canceled)
			assert.Contains(t, err.Error(), "the shop closes")
			var end *gateway.WaitError
			require.ErrorAs(t, err, &end)
			ended[end.WithdrawRequestID] = true
		}
		assert.Len(t, ended, 100)
		assert.Zero(t, q.running)
	})
}

func TestClient_WaitWithdrawals_refuses(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(201, enveloped(withdrawalJSON)))
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
		{"a bad identifier", good, t.Context(), []string{"a", ".."}, gateway.WaitOptions{}, "withdrawRequestIds[1]: must not be a dot segment"},
		{"an empty identifier", good, t.Context(), []string{""}, gateway.WaitOptions{}, "withdrawRequestIds[0]: is required"},
		{"an identifier that is listed twice", good, t.Context(), []string{"a", "b", "a"}, gateway.WaitOptions{}, "withdrawRequestIds[2]: is listed twice"},
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

// Nobody to wait for is nothing to yield.
func TestClient_WaitWithdrawals_None(t *testing.T) {
	t.Parallel()
	for range newClient(t, "http://localhost").WaitWithdrawals(t.Context(), nil, gateway.WaitOptions{}) {
		assert.Fail(t, "there is nobody")
	}
}
