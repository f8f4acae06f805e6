package gateway

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLatch_ReadBeforeSeal(t *testing.T) {
	t.Parallel()
	l := newLatch([]byte("body"))
	got, err := io.ReadAll(l)
	assert.NoError(t, err)
	assert.Equal(t, "body", string(got))
	assert.False(t, l.seal(), "what was read may have been sent")
	assert.False(t, l.seal(), "for good")
}

func TestLatch_SealBeforeRead(t *testing.T) {
	t.Parallel()
	l := newLatch([]byte("body"))
	assert.True(t, l.seal())
	assert.True(t, l.seal(), "for good")
	for range 3 {
		got, err := io.ReadAll(l)
		assert.Empty(t, got)
		assert.ErrorIs(t, err, errSealed)
	}
	assert.True(t, l.seal())
}

func TestLatch_ReadOfNothingCountsAsRead(t *testing.T) {
	t.Parallel()
	l := newLatch([]byte("body"))
	n, err := l.Read(nil)
	assert.Zero(t, n)
	assert.NoError(t, err)
	assert.False(t, l.seal())
}

// Neither is reading: the HTTP libraries do both before they send anything.
func TestLatch_LenAndCloseDoNotCountAsRead(t *testing.T) {
	t.Parallel()
	l := newLatch([]byte("body"))
	assert.Equal(t, 4, l.Len())
	assert.NoError(t, l.Close())
	assert.True(t, l.seal())
}

// It must not be possible to read the body around the latch.
func TestLatch_OnlyReads(t *testing.T) {
	t.Parallel()
	var l any = newLatch([]byte("body"))
	_, writes := l.(io.WriterTo)
	_, seeks := l.(io.Seeker)
	_, at := l.(io.ReaderAt)
	_, bytewise := l.(io.ByteReader)
	assert.False(t, writes || seeks || at || bytewise)
}

// Of a reader and a seal that race, one wins; after a seal that won no byte is
// ever given out.
func TestLatch_Race(t *testing.T) {
	t.Parallel()
	var sealedFirst, readFirst int
	for range 5000 {
		l := newLatch([]byte("body"))
		var read strings.Builder
		var sealed bool
		var start, done sync.WaitGroup
		start.Add(1)
		done.Go(func() {
			start.Wait()
			_, err := io.Copy(&read, struct{ io.Reader }{l})
			if err != nil && !errors.Is(err, errSealed) {
				assert.NoError(t, err)
			}
		})
		done.Go(func() {
			start.Wait()
			sealed = l.seal()
		})
		start.Done()
		done.Wait()
		if sealed {
			sealedFirst++
			assert.Empty(t, read.String())
		} else {
			readFirst++
			assert.Equal(t, "body", read.String())
		}
		assert.Equal(t, sealed, l.seal(), "what was said once stays true")
	}
	t.Logf("sealed first %d times, read first %d times", sealedFirst, readFirst)
}

func TestBudget_NeverOverdrawn(t *testing.T) {
	t.Parallel()
	var b budget
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if b.take(retryCost) {
					b.refund(retryCost)
				}
				if spent := b.spent.Load(); spent < 0 || spent > budgetSize {
					t.Errorf("spent %d", spent)
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, b.spent.Load())
	b.refund(retryCost)
	assert.Zero(t, b.spent.Load(), "it is never more than full")
}

// No wait is negative or beyond the cap, however extreme the policy.
func TestRetryPolicy_DelayOfExtremes(t *testing.T) {
	t.Parallel()
	const forever = 1<<63 - 1
	for _, p := range []RetryPolicy{
		{BaseDelay: 1, MaxDelay: 1},
		{BaseDelay: 1, MaxDelay: forever},
		{BaseDelay: forever, MaxDelay: forever},
		{BaseDelay: forever/2 + 1, MaxDelay: forever},
	} {
		p = p.withDefaults()
		for attempts := 1; attempts < mostAttempts; attempts++ {
			for _, throttled := range []bool{false, true} {
				for range 100 {
					wait := p.delay(attempts, throttled)
					assert.GreaterOrEqual(t, int64(wait), int64(0))
					assert.LessOrEqual(t, wait, p.MaxDelay)
				}
			}
		}
	}
}

// A doubling that stays under the cap is not stretched to it.
func TestRetryPolicy_DelayUnderAnOddCap(t *testing.T) {
	t.Parallel()
	p := RetryPolicy{BaseDelay: 2, MaxDelay: 5}
	for range 1000 {
		assert.Less(t, p.delay(2, false), time.Duration(4))
		assert.Less(t, p.delay(3, false), time.Duration(5))
	}
}

// What a call pays to the budget: a success one look, a retry one swap, and
// neither a lock.
func BenchmarkBudget(b *testing.B) {
	b.Run("a success, the budget is full", func(b *testing.B) {
		var full budget
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				full.refund(0)
			}
		})
	})
	b.Run("a retry and its success", func(b *testing.B) {
		var used budget
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if used.take(retryCost) {
					used.refund(retryCost)
				}
			}
		})
	})
}
