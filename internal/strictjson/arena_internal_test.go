package strictjson

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Texts stay as they were, whatever comes after them.
func TestArena(t *testing.T) {
	t.Parallel()
	var a arena
	var texts, want []string
	for n := range 2000 {
		text := strings.Repeat(string(rune('a'+n%26)), n%700)
		texts, want = append(texts, a.text([]byte(text))), append(want, text)
	}
	assert.Equal(t, want, texts)
}

// A chunk is bounded, and many short texts share one.
func TestArena_chunks(t *testing.T) {
	var a arena
	text := []byte(strings.Repeat("x", 36))
	assert.Less(t, testing.AllocsPerRun(100, func() {
		for range 1000 {
			a.text(text)
		}
	}), 12.0)
	assert.Equal(t, maxChunk, a.chunk.Cap())
	before := a.chunk.Len()
	assert.Len(t, a.text(make([]byte, minChunk+1)), minChunk+1)
	assert.Equal(t, before, a.chunk.Len(), "a long text has its own memory")
}
