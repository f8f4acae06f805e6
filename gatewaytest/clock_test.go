package gatewaytest_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The clock follows the bubble, ahead by what Advance adds. All times in responses and in the journal come from it.
func TestServer_Advance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other := startInMemory(t), startInMemory(t)
		assert.True(t, s.Now().Equal(time.Now()))
		s.Advance(99 * 24 * time.Hour)
		s.Advance(23 * time.Hour)
		<-time.After(time.Hour)
		got := post(s, invoice(s, "o", ""))
		require.NoError(t, got.err)
		want := time.Date(2000, 4, 10, 0, 0, 0, 0, time.UTC) // bubbles start at 2000-01-01
		assert.Equal(t, "Mon, 10 Apr 2000 00:00:00 GMT", got.header.Get("Date"))
		assert.Contains(t, got.body, `"createdAt":"2000-04-10T00:00:00Z","expiresAt":"2000-04-11T00:00:00Z"`)
		assert.Equal(t, want, s.Invoices()[0].CreatedAt)
		assert.True(t, s.Requests()[0].At.Equal(want))
		assert.True(t, other.Now().Equal(time.Now()), "each server has its own")
		s.Advance(math.MaxInt64)
		assert.True(t, s.Now().Equal(time.Now().Add(math.MaxInt64)), "at most")
	})
}

func TestServer_SetStatusAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t)
		id := s.AddWithdrawal(gatewaytest.Withdrawal{})
		const day = 24 * time.Hour
		for _, plan := range []struct {
			after  time.Duration
			status string
		}{{3 * day, "C"}, {day, "A"}, {2 * day, "B"}, {4 * day, "D"}, {5 * day, "E"}, {4 * day, "the later call wins"}, {5 * day, "F"}, {0, "FAILED"}} {
			require.NoError(t, s.SetStatusAfter(id, plan.after, plan.status))
		}
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "FAILED"}, {day - 1, "FAILED"}, {1, "A"}, {2 * day, "C"}, {day, "the later call wins"}} {
			s.Advance(step.wait)
			assert.Equal(t, step.want, statusOf(t, s, id))
		}
		<-time.After(day)
		assert.Equal(t, "F", s.Withdrawals()[2].Status, "the clock follows the bubble, too")
		require.EqualError(t, s.SetStatusAfter(id, -1, "FAILED"), "gatewaytest: SetStatusAfter with -1ns, want 0 or more")
	})
}
