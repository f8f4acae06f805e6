package attempt_test

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/testing/clocks"
)

const sealedText = "gateway: the attempt is over"

func TestBody_readBeforeSeal(t *testing.T) {
	t.Parallel()
	b := attempt.NewBody([]byte("body"), time.Time{})
	got, err := io.ReadAll(b)
	assert.NoError(t, err)
	assert.Equal(t, "body", string(got))
	assert.False(t, b.Seal(), "what was read may have been sent")
	assert.False(t, b.Seal(), "a second Seal reports the same")
}

// A body of which a part was read can be read to its end.
func TestBody_sealBetweenReads(t *testing.T) {
	t.Parallel()
	b := attempt.NewBody([]byte("body"), time.Time{})
	part := make([]byte, 2)
	_, err := io.ReadFull(b, part)
	assert.NoError(t, err)
	assert.False(t, b.Seal())
	rest, err := io.ReadAll(b)
	assert.NoError(t, err)
	assert.Equal(t, "body", string(part)+string(rest))
}

// Of a body that is stopped nothing more is read, and it stays one that was read, or not.
func TestBody_Stop(t *testing.T) {
	t.Parallel()
	fresh := attempt.NewBody([]byte("body"), time.Time{})
	fresh.Stop()
	nothing, err := io.ReadAll(fresh)
	assert.Empty(t, nothing)
	assert.EqualError(t, err, sealedText)
	assert.True(t, fresh.Seal())

	b := attempt.NewBody([]byte("body"), time.Time{})
	_, err = io.ReadFull(b, make([]byte, 2))
	assert.NoError(t, err)
	b.Stop()
	rest, err := io.ReadAll(b)
	assert.Empty(t, rest)
	assert.EqualError(t, err, sealedText)
	assert.False(t, b.Seal())
}

// A sealed body stays sealed.
func TestBody_stopAfterSeal(t *testing.T) {
	t.Parallel()
	b := attempt.NewBody([]byte("body"), time.Time{})
	assert.True(t, b.Seal())
	b.Stop()
	assert.True(t, b.Seal())
}

func TestBody_sealBeforeRead(t *testing.T) {
	t.Parallel()
	b := attempt.NewBody([]byte("body"), time.Time{})
	assert.True(t, b.Seal())
	assert.True(t, b.Seal(), "a second Seal reports the same")
	for range 3 {
		got, err := io.ReadAll(b)
		assert.Empty(t, got)
		assert.EqualError(t, err, sealedText)
	}
	assert.True(t, b.Seal())
}

func TestBody_anEmptyReadCounts(t *testing.T) {
	t.Parallel()
	b := attempt.NewBody([]byte("body"), time.Time{})
	n, err := b.Read(nil)
	assert.Zero(t, n)
	assert.NoError(t, err)
	assert.False(t, b.Seal())
}

// The HTTP libraries close the body before they send anything.
func TestBody_closeDoesNotCount(t *testing.T) {
	t.Parallel()
	b := attempt.NewBody([]byte("body"), time.Time{})
	assert.NoError(t, b.Close())
	assert.True(t, b.Seal())
}

// No other method may give out the text without marking the body as read.
func TestBody_readsInOneWayOnly(t *testing.T) {
	t.Parallel()
	var b any = attempt.NewBody([]byte("body"), time.Time{})
	_, writes := b.(io.WriterTo)
	_, seeks := b.(io.Seeker)
	_, at := b.(io.ReaderAt)
	_, bytewise := b.(io.ByteReader)
	assert.False(t, writes || seeks || at || bytewise)
}

// Of a Read and a Seal that race one wins, and after a Seal that won no byte is ever
// read.
func TestBody_race(t *testing.T) {
	t.Parallel()
	for range 2000 {
		b := attempt.NewBody([]byte("body"), time.Time{})
		var read strings.Builder
		var failure error
		var sealed bool
		var start, done sync.WaitGroup
		start.Add(1)
		done.Go(func() {
			start.Wait()
			_, failure = io.Copy(&read, struct{ io.Reader }{b})
		})
		done.Go(func() {
			start.Wait()
			sealed = b.Seal()
		})
		start.Done()
		done.Wait()
		if sealed {
			assert.Empty(t, read.String())
			assert.EqualError(t, failure, sealedText)
		} else {
			assert.Equal(t, "body", read.String())
			assert.NoError(t, failure)
		}
		assert.Equal(t, sealed, b.Seal(), "the first report stays true")
	}
}

// After its time a body is not begun, and one that was begun is read to its end.
func TestBody_until(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := attempt.NewBody([]byte("ab"), time.Now().Add(time.Second))
		begun := attempt.NewBody([]byte("ab"), time.Now().Add(time.Second))
		_, err := begun.Read(make([]byte, 1))
		require.NoError(t, err)
		time.Sleep(time.Second)
		_, err = late.Read(make([]byte, 1))
		assert.Error(t, err)
		assert.True(t, late.Seal(), "nothing of it was read")
		rest, err := io.ReadAll(begun)
		require.NoError(t, err)
		assert.Equal(t, "b", string(rest))
		assert.False(t, begun.Seal())
	})
}

func TestHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		assert.False(t, attempt.HasPassed(time.Time{}), "never")
		until := time.Now().Add(time.Second)
		for _, at := range []time.Time{until, until.Round(0)} {
			assert.False(t, attempt.HasPassed(at))
		}
		time.Sleep(time.Second)
		for _, at := range []time.Time{until, until.Round(0)} {
			assert.True(t, attempt.HasPassed(at))
		}
	})
}

// While the machine is suspended one of its clocks stands still, and the other can be set.
func TestHasPassed_oneClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	assert.True(t, attempt.HasPassed(clocks.Later(t, now, time.Hour, -time.Second)), "by the wall clock")
	assert.True(t, attempt.HasPassed(clocks.Later(t, now, -time.Second, time.Hour)), "by the monotonic clock")
	assert.False(t, attempt.HasPassed(clocks.Later(t, now, time.Hour, 2*time.Hour)))
}
