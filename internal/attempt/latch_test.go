package attempt_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/testing/clocks"
)

const sealedText = "gateway: the attempt is over"

// A body that nobody has read can be sealed; a body that was begun can be read to its end, unless it is stopped.
func TestBody(t *testing.T) {
	t.Parallel()
	type body = *attempt.Body
	read := func(n int64) func(body) string {
		return func(b body) string {
			text, _ := io.ReadAll(io.LimitReader(b, n))
			return string(text)
		}
	}
	touch := func(b body) string { _, _ = b.Read(nil); return "" }
	seal := func(b body) string { b.Seal(); return "" }
	stop := func(b body) string { b.Stop(); return "" }
	pass := func(body) string { time.Sleep(time.Second); return "" }
	for _, tt := range []struct {
		name   string
		steps  []func(body) string
		read   string
		sealed bool
	}{
		{"nothing is done with it", nil, "", true},
		{"it is read", []func(body) string{read(9)}, "body", false},
		{"an empty read counts", []func(body) string{touch}, "", false},
		{"it is sealed before it is read", []func(body) string{seal, read(9), seal, read(9)}, "", true},
		{"it is sealed between reads", []func(body) string{read(2), seal, read(9)}, "body", false},
		{"it is stopped before it is read", []func(body) string{stop, read(9)}, "", true},
		{"it is stopped between reads", []func(body) string{read(2), stop, read(9)}, "bo", false},
		{"its time passes before it is read", []func(body) string{pass, read(9)}, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, got := attempt.NewBody([]byte("body"), time.Now().Add(time.Second)), ""
				for _, step := range tt.steps {
					got += step(b)
				}
				assert.Equal(t, tt.read, got)
				assert.Equal(t, tt.sealed, b.Seal())
				assert.Equal(t, tt.sealed, b.Seal(), "a second Seal reports the same")
				if tt.sealed {
					_, err := b.Read(make([]byte, 1))
					assert.EqualError(t, err, sealedText)
				}
			})
		})
	}
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

// When a Read and a Seal race, one wins, and after a Seal that won no byte is ever read.
func TestBody_race(t *testing.T) {
	t.Parallel()
	for range 2000 {
		b := attempt.NewBody([]byte("body"), time.Time{})
		read := make(chan string)
		go func() {
			text, err := io.ReadAll(b)
			read <- string(text) + textOf(err)
		}()
		want := "body"
		if b.Seal() {
			want = sealedText
		}
		assert.Equal(t, want, <-read)
		assert.Equal(t, want == sealedText, b.Seal(), "the first report stays true")
	}
}

// When a deadline and the first byte race, one wins: who decides at the deadline that nothing is sent is right.
func TestBody_raceWithDeadline(t *testing.T) {
	t.Parallel()
	for range 2000 {
		var mu sync.Mutex
		begun, over := false, false
		b := attempt.BodyThatBegins([]byte("body"), func() bool {
			mu.Lock()
			defer mu.Unlock()
			begun = !over
			return begun
		})
		read := make(chan string)
		go func() {
			text, err := io.ReadAll(b)
			read <- string(text) + textOf(err)
		}()
		mu.Lock()
		over = !begun
		want := map[bool]string{true: sealedText, false: "body"}[over]
		mu.Unlock()
		assert.Equal(t, want, <-read)
		assert.Equal(t, over, b.Seal())
	}
}

// A time has passed by either clock: while the machine is suspended one stands still, and the other can be set.
func TestHasPassed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name string
		at   time.Time
		want bool
	}{
		{"never", time.Time{}, false},
		{"the present", now, true},
		{"the present, by the wall clock alone", now.Round(0), true},
		{"the future by the wall clock alone", now.Add(time.Hour).Round(0), false},
		{"the past by the wall clock", clocks.Later(t, now, time.Hour, -time.Second), true},
		{"the past by the monotonic clock", clocks.Later(t, now, -time.Second, time.Hour), true},
		{"the future by both", clocks.Later(t, now, time.Hour, 2*time.Hour), false},
	} {
		assert.Equal(t, tt.want, attempt.HasPassed(tt.at), tt.name)
	}
}
