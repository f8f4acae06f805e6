package strictjson

import "strings"

// maxChunk bounds a chunk of an arena, in bytes.
const maxChunk = 4 << 10

// An arena keeps texts side by side in chunks, so that many texts cost few allocations. A
// text that is in use keeps its chunk. The zero arena is empty.
type arena struct{ chunk strings.Builder }

// text returns a copy of b. One that takes much of a chunk has its own memory.
func (a *arena) text(b []byte) string {
	if len(b) > maxChunk/8 {
		return string(b)
	}
	if a.chunk.Cap()-a.chunk.Len() < len(b) {
		size := min(max(2*a.chunk.Cap(), maxChunk/8), maxChunk)
		a.chunk = strings.Builder{}
		a.chunk.Grow(size)
	}
	start := a.chunk.Len()
	a.chunk.Write(b)
	return a.chunk.String()[start:]
}
