package caller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/caller"
)

// endless is a context that never ends, whatever its deadline claims.
type endless struct{ context.Context }

func (endless) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
func (endless) Done() <-chan struct{}       { return nil }
func (endless) Err() error                  { return nil }

func TestAwait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		takes    time.Duration
		ctx      func(t *testing.T) context.Context
		waited   time.Duration
		finished bool
	}{
		{"a function that returns at once", 0, (*testing.T).Context, 0, true},
		{"one that takes its time", time.Minute, (*testing.T).Context, time.Minute, true},
		{"one that returns a little too late", time.Minute + 400*time.Millisecond, (*testing.T).Context, time.Minute + 400*time.Millisecond, true},
		{"one that returns much later", time.Hour, (*testing.T).Context, time.Minute + caller.Grace, false},
		{"one that returns after the context", time.Hour, func(t *testing.T) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}, time.Second + caller.Grace, false},
		{"a context that never ends", time.Hour, func(t *testing.T) context.Context { return endless{t.Context()} }, time.Minute + caller.Grace, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, dropped := time.Now(), ""
				got, finished := caller.Await(tt.ctx(t), time.Minute, func() string {
					time.Sleep(tt.takes)
					return "result"
				}, func(late string) { dropped = late })
				assert.Equal(t, tt.waited, time.Since(begun))
				assert.Equal(t, tt.finished, finished)
				assert.Equal(t, tt.finished, got == "result")
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				assert.Equal(t, !tt.finished, dropped == "result", "a result that comes too late is dropped")
			})
		})
	}
}

// A panic is passed on with its stack; a late one is dropped.
func TestAwait_panics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, recovered := passed(endOf(func() {
			_, _ = caller.Await(t.Context(), time.Minute, func() int { panic("of the function") }, nil)
		}))
		assert.Equal(t, "of the function", recovered.(*caller.Panic).Value)
		_, finished := caller.Await(t.Context(), time.Minute, func() int {
			time.Sleep(time.Hour)
			panic("too late")
		}, nil)
		assert.False(t, finished)
		time.Sleep(2 * time.Hour)
	})
}
