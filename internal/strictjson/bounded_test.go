package strictjson_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

const mark = "\ufeff"

// script is a source that returns its steps one by one: a text, an error, or with
// an empty text nothing.
type script []any

func (s *script) Read(p []byte) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	step := (*s)[0]
	*s = (*s)[1:]
	switch step := step.(type) {
	case error:
		return 0, step
	case string:
		n := copy(p, step)
		if n < len(step) {
			*s = append(script{step[n:]}, *s...)
		}
		return n, nil
	}
	panic("no text and no error")
}

// nothing is a source that returns nothing, so often, and then the steps.
func nothing(times int, steps ...any) script {
	all := make(script, times, times+len(steps))
	for i := range all {
		all[i] = ""
	}
	return append(all, steps...)
}

func TestReader(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	errSource := errors.New("cut")
	for _, tt := range []struct {
		name string
		src  script
		want string
		err  error
	}{
		{"nothing", nil, "", nil},
		{"a text", script{"abc"}, "abc", nil},
		{"a text in pieces", script{"a", "", "bc"}, "abc", nil},
		{"a byte-order mark", script{mark + "abc"}, "abc", nil},
		{"a byte-order mark alone", script{mark}, "", nil},
		{"a byte-order mark in pieces", script{"\xef", "", "\xbb", "", "\xbf", "abc"}, "abc", nil},
		{"a second byte-order mark is kept", script{mark + mark + "a"}, mark + "a", nil},
		{"a byte-order mark later is kept", script{"a" + mark}, "a" + mark, nil},
		{"a byte-order mark in a second piece is kept", script{"abc", mark}, "abc" + mark, nil},
		{"half a byte-order mark is kept", script{"\xef\xbb"}, "\xef\xbb", nil},
		{"half a byte-order mark and more is kept", script{"\xef\xbb", "ab"}, "\xef\xbbab", nil},
		{"an error after a text", script{"abc", errSource}, "abc", errSource},
		{"an error first", script{errSource, "abc"}, "", errSource},
		{"an error after half a byte-order mark", script{"\xef", errSource}, "\xef", errSource},
		{"99 empty reads", nothing(99, "abc"), "abc", nil},
		{"99 empty reads twice", slices.Concat(script{"a"}, nothing(99, "b"), nothing(99, "c")), "abc", nil},
		{"200 empty reads", nothing(200, "abc"), "", io.ErrNoProgress},
		{"100 empty reads later", append(script{"abc"}, nothing(100, "d")...), "abc", io.ErrNoProgress},
		{"99 empty reads after half a byte-order mark", append(script{"\xef"}, nothing(99, "\xbb\xbfa")...), "a", nil},
		{"200 empty reads after half a byte-order mark", append(script{"\xef"}, nothing(200, "\xbb\xbfa")...), "\xef", io.ErrNoProgress},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r strictjson.Reader
			r.Reset(&tt.src, limit, limit)
			got, err := io.ReadAll(&r)
			assert.Equal(t, tt.want, string(got))
			assert.Equal(t, tt.want, string(r.Kept()))
			assert.Equal(t, tt.err, err)
			assert.Equal(t, tt.err, r.Err())
			if tt.err != nil {
				n, err := r.Read(make([]byte, 8))
				assert.Zero(t, n, "an error is final")
				assert.Equal(t, tt.err, err)
			}
		})
	}
}

func TestReader_limit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		limit      int64
		want       string
		err        error
	}{
		{"exactly the limit", "abcd", 4, "abcd", nil},
		{"one byte over the limit", "abcde", 4, "abcd", strictjson.ErrTooLarge},
		{"far over the limit", strings.Repeat("abcd", 1<<20), 4, "abcd", strictjson.ErrTooLarge},
		{"a limit of one byte", "a", 1, "a", nil},
		{"a limit of nothing", "a", 0, "", strictjson.ErrTooLarge},
		{"a byte-order mark does not count", mark + "abcd", 4, "abcd", nil},
		{"a byte-order mark does not raise the limit", mark + "abcde", 4, "abcd", strictjson.ErrTooLarge},
		{"a byte-order mark over the limit", mark + "a", 1, "a", nil},
		{"a byte-order mark and too much over the limit", mark + "ab", 1, "a", strictjson.ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, src := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text)), iotest.DataErrReader(strings.NewReader(tt.text))} {
				counted := &counter{src: src}
				var r strictjson.Reader
				r.Reset(counted, tt.limit, 1<<20)
				got, err := io.ReadAll(&r)
				assert.Equal(t, tt.want, string(got))
				assert.Equal(t, tt.want, string(r.Kept()))
				assert.Equal(t, tt.err, err)
				assert.Equal(t, tt.err, r.Err())
				most := tt.limit + 1
				if strings.HasPrefix(tt.text, mark) {
					most = max(most, int64(len(mark))) + int64(len(mark))
				}
				assert.LessOrEqual(t, counted.taken, most, "no more is taken than it needs")
			}
		})
	}
}

// counter counts what is taken of a source.
type counter struct {
	src   io.Reader
	taken int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	c.taken += int64(n)
	return n, err
}

func TestReader_keeps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		keep       int
		want       string
	}{
		{"nothing", "abcdef", 0, ""},
		{"the beginning", "abcdef", 3, "abc"},
		{"all of it", "abcdef", 6, "abcdef"},
		{"more than there is", "abcdef", 7, "abcdef"},
		{"the beginning after a byte-order mark", mark + "abcdef", 3, "abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, src := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				var r strictjson.Reader
				r.Reset(src, 100, tt.keep)
				got, err := io.ReadAll(&r)
				require.NoError(t, err)
				assert.Equal(t, strings.TrimPrefix(tt.text, mark), string(got))
				assert.Equal(t, tt.want, string(r.Kept()))
			}
		})
	}
}

func TestReader_Fill(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 300)
	t.Run("reads on until enough is kept", func(t *testing.T) {
		t.Parallel()
		src := &counter{src: strings.NewReader(text)}
		var r strictjson.Reader
		r.Reset(src, 1<<20, 1000)
		_, _ = r.Read(make([]byte, 10))
		r.Fill()
		assert.Equal(t, text[:1000], string(r.Kept()))
		assert.Less(t, src.taken, int64(1000+512), "and no further")
		taken := src.taken
		r.Fill()
		assert.Equal(t, taken, src.taken, "what is full is not filled")
	})
	t.Run("reads to the end", func(t *testing.T) {
		t.Parallel()
		var r strictjson.Reader
		r.Reset(strings.NewReader(text), 1<<20, 1<<20)
		r.Fill()
		assert.Equal(t, text, string(r.Kept()))
		assert.NoError(t, r.Err())
	})
	t.Run("ends at an error", func(t *testing.T) {
		t.Parallel()
		var r strictjson.Reader
		r.Reset(&script{"ab", io.ErrUnexpectedEOF, "cd"}, 1<<20, 1<<20)
		r.Fill()
		r.Fill()
		assert.Equal(t, "ab", string(r.Kept()))
		assert.Equal(t, io.ErrUnexpectedEOF, r.Err())
	})
	t.Run("ends at the limit", func(t *testing.T) {
		t.Parallel()
		var r strictjson.Reader
		r.Reset(strings.NewReader(text), 100, 1<<20)
		r.Fill()
		assert.Equal(t, text[:100], string(r.Kept()))
		assert.Equal(t, strictjson.ErrTooLarge, r.Err())
	})
}

// A Reader that is used again has nothing of the text before.
func TestReader_Reset(t *testing.T) {
	t.Parallel()
	var r strictjson.Reader
	r.Reset(strings.NewReader(mark+"abcdef"), 3, 3)
	r.Fill()
	_, err := io.ReadAll(&r)
	require.Equal(t, strictjson.ErrTooLarge, err)
	r.Reset(strings.NewReader(mark+"xy"), 3, 3)
	assert.Empty(t, r.Kept())
	assert.NoError(t, r.Err())
	got, err := io.ReadAll(&r)
	require.NoError(t, err)
	assert.Equal(t, "xy", string(got))
	assert.Equal(t, "xy", string(r.Kept()))
}

func TestReader_Release(t *testing.T) {
	t.Parallel()
	var r strictjson.Reader
	read := func(n int) {
		r.Reset(strings.NewReader(strings.Repeat("x", n)), 1<<20, 16)
		_, err := io.Copy(io.Discard, &r)
		require.NoError(t, err)
	}
	read(64 << 10)
	assert.True(t, r.Release(), "64 KiB")
	assert.Empty(t, r.Kept())
	read(64<<10 + 1)
	assert.False(t, r.Release(), "one byte more")
	read(40 << 10)
	read(40 << 10)
	assert.False(t, r.Release(), "two texts of 40 KiB: attempts of one call")
	read(10)
	assert.True(t, r.Release(), "a small one after a release")
}
