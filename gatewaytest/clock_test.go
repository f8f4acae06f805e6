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

// All times in responses and in the journal come from the server's clock.
func TestServer_Advance_is_visible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t)
		s.Advance(100 * 24 * time.Hour)
		got := post(s, invoice(s, "o", ""))
		require.NoError(t, got.err)
		want := time.Date(2000, 4, 10, 0, 0, 0, 0, time.UTC) // bubbles start at 2000-01-01
		assert.Equal(t, "Mon, 10 Apr 2000 00:00:00 GMT", got.header.Get("Date"))
		assert.Contains(t, got.body, `"createdAt":"2000-04-10T00:00:00Z"`)
		assert.Equal(t, want, s.Invoices()[0].CreatedAt)
		assert.True(t, s.Requests()[0].At.Equal(want))
	})
}

func TestServer_SetStatusAfter(t *testing.T) {
	t.Parallel()
	type step struct {
		wait time.Duration
		want string
	}
	type plan struct {
		after  time.Duration
		status string
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name  string
		plans []plan
		steps []step
	}{
		{"not early", []plan{{day, "COMPLETED"}}, []step{{0, "PENDING"}, {day - 1, "PENDING"}, {1, "COMPLETED"}, {day, "COMPLETED"}}},
		{"at once", []plan{{0, "FAILED"}}, []step{{0, "FAILED"}}},
		{"any text", []plan{{day, "on hold"}, {2 * day, ""}}, []step{{day, "on hold"}, {day, ""}}},
		{"in chronological order", []plan{{3 * day, "C"}, {day, "A"}, {2 * day, "B"}}, []step{{day, "A"}, {day, "B"}, {day, "C"}}},
		{"several at once", []plan{{2 * day, "B"}, {day, "A"}}, []step{{3 * day, "B"}}},
		{"the later call for the same time", []plan{{day, "A"}, {day, "B"}}, []step{{day, "B"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				waiting, advanced := startInMemory(t), startInMemory(t)
				for _, s := range []*gatewaytest.Server{waiting, advanced} {
					s.AddWithdrawal(gatewaytest.Withdrawal{WithdrawRequestID: "w"})
					for _, p := range tt.plans {
						require.NoError(t, s.SetStatusAfter("w", p.after, p.status))
					}
				}
				for _, step := range tt.steps {
					// Advance moves one clock; the other follows the bubble.
					advanced.Advance(step.wait)
					assert.Equal(t, step.want, statusOf(t, advanced, "w"))
				}
				for _, step := range tt.steps {
					<-time.After(step.wait)
					assert.Equal(t, step.want, statusOf(t, waiting, "w"))
				}
			})
		})
	}
}

func TestServer_Now(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other := startInMemory(t), startInMemory(t)
		s.Advance(0)
		assert.True(t, s.Now().Equal(time.Now()), "it follows the bubble")
		s.Advance(time.Minute)
		s.Advance(time.Second)
		<-time.After(time.Hour)
		assert.True(t, s.Now().Equal(time.Now().Add(time.Minute+time.Second)), "ahead, and running")
		assert.True(t, other.Now().Equal(time.Now()), "each server has its own")
		s.Advance(math.MaxInt64)
		s.Advance(math.MaxInt64)
		assert.True(t, s.Now().Equal(time.Now().Add(math.MaxInt64)), "at most")
	})
}
