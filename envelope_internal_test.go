package gateway

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		most       int
		want       string
	}{
		{"nothing", "", 3, ""},
		{"shorter", "ab", 3, "ab"},
		{"exactly as long", "abc", 3, "abc"},
		{"longer", "abcd", 3, "abc"},
		{"between two characters", "éa", 2, "é"},
		{"within a character of two bytes", "aé", 2, "a"},
		{"after three of four bytes", "a\U0001f600", 4, "a"},
		{"within the first character", "é", 1, ""},
		{"no character is as long as that", "a\x80\x80\x80\x80\x80", 4, "a\x80\x80\x80"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, bounded(tt.text, tt.most))
		})
	}
}

// A result of which not all is there is nothing.
func TestEnvelope_cut(t *testing.T) {
	t.Parallel()
	const body = `{"result": [1] }`
	for _, tt := range []struct {
		name       string
		start, end int64
		want       any
	}{
		{"a result", 9, 14, "[1]"},
		{"to the last byte", 9, 16, "[1] }"},
		{"beyond the last byte", 9, 17, nil},
		{"no result", 0, 0, nil},
		{"a result without an end", 9, 0, nil},
		{"a result without a byte", 9, 9, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := envelope{start: tt.start, end: tt.end}.cut([]byte(body))
			if tt.want == nil {
				assert.Nil(t, got)
				return
			}
			assert.Equal(t, tt.want, string(got))
		})
	}
}
