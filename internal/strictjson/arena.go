package strictjson

import "strings"

// The sizes of a chunk of an arena, in bytes. The first one of an arena has minChunk.
const (
	minChunk = 512
	maxChunk = 4 << 10
)

// An arena stores texts in chunks, so that many texts cost few allocations. A text that is
// in use keeps its whole chunk in memory. The zero arena is empty.
type arena struct{ chunk strings.Builder }

// text returns a copy of b. A long text is allocated alone: it would keep a chunk of
// others in memory, or leave much of the last one unused.
func (a *arena) text(b []byte) string {
	if len(b) > minChunk {
		return string(b)
	}
	if a.chunk.Cap()-a.chunk.Len() < len(b) {
		size := min(max(2*a.chunk.Cap(), minChunk), maxChunk)
		a.chunk = strings.Builder{}
		a.chunk.Grow(size)
	}
	start := a.chunk.Len()
	a.chunk.Write(b)
	return a.chunk.String()[start:]
}
