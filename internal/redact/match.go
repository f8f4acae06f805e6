package redact

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A span is a part of a text.
type span struct{ start, end int }

// A pattern finds one key, in time that is linear in the text whatever the key.
type pattern struct {
	folded []byte      // the key, each byte as fold writes it
	back   []int       // by how many bytes match, how many still match after the next one differs
	skip   [256]uint16 // by how far the key moves on, by the byte at its end
}

func newPattern(folded []byte) *pattern {
	p := &pattern{folded: folded, back: make([]int, len(folded)+1)}
	for i, state := 1, 0; i < len(folded); i++ {
		for state > 0 && folded[i] != folded[state] {
			state = p.back[state]
		}
		if folded[i] == folded[state] {
			state++
		}
		p.back[i+1] = state
	}
	for i := range p.skip {
		p.skip[i] = uint16(min(len(folded), math.MaxUint16))
	}
	for i, b := range folded[:len(folded)-1] {
		p.skip[b] = uint16(min(len(folded)-1-i, math.MaxUint16))
	}
	return p
}

// next returns how many bytes of the key match after one more byte of the text, and
// how many comparisons that took: at most 2 for each byte, over a whole text.
func (p *pattern) next(state int, b byte) (matched, steps int) {
	if state == len(p.folded) {
		state = p.back[state]
	}
	steps = 1
	for state > 0 && p.folded[state] != b {
		state = p.back[state]
		steps++
	}
	if p.folded[state] == b {
		state++
	}
	return state, steps
}

// find reports whether the key is in text, in any case of letters, without decoding,
// and how many comparisons that took. It skips most of a text without the key. A key
// that repeats itself can make that slow; then the rest is read byte by byte.
func (p *pattern) find(text string) (found bool, steps int) {
	last := len(p.folded) - 1
	at := 0
	for ; at+last < len(text) && steps <= len(text)/4+len(p.folded); steps++ {
		i := last
		for i >= 0 && fold(text[at+i]) == p.folded[i] {
			i--
			steps++
		}
		if i < 0 {
			return true, steps
		}
		at += int(p.skip[fold(text[at+last])])
	}
	if at+last >= len(text) {
		return false, steps
	}
	found, more := p.read(text[at:])
	return found, steps + more
}

// read is find without skipping.
func (p *pattern) read(text string) (found bool, steps int) {
	key, back, state := p.folded, p.back, 0
	for i := range len(text) {
		b := fold(text[i])
		for state > 0 && key[state] != b {
			state = back[state]
			steps++
		}
		steps++
		if key[state] == b {
			state++
		}
		if state == len(key) {
			return true, steps
		}
	}
	return false, steps
}

// fold returns the byte that stands for b: letters of both cases are one, and so are
// a space and the + of a query.
func fold(b byte) byte {
	switch {
	case 'A' <= b && b <= 'Z':
		return b + 'a' - 'A'
	case b == '+':
		return ' '
	default:
		return b
	}
}

func folded(text []byte) []byte {
	out := make([]byte, len(text))
	for i, b := range text {
		out[i] = fold(b)
	}
	return out
}

// A pair is the two patterns of one key.
type pair struct {
	plain *pattern // the key as it is
	read  *pattern // as a normalizer reads it, without backslashes; nil where that is too short
}

func newPair(key string) pair {
	plain := newPattern(folded([]byte(key)))
	if !mayEncode(key) {
		return pair{plain, plain}
	}
	var read []byte
	var n normalizer
	n.run([]byte(key), func(c char) {
		if c.b != '\\' {
			read = append(read, fold(c.b))
		}
	})
	if len(read) < shortestKey {
		return pair{plain, nil}
	}
	return pair{plain, newPattern(read)}
}

// A tracker follows one pattern through the characters of one text. Starts has
// the start of as many characters as the pattern has, in a ring.
type tracker struct {
	pattern *pattern
	state   int
	fed     int
	starts  []int
	spans   []span
}

func newTracker(p *pattern) *tracker {
	return &tracker{pattern: p, starts: make([]int, len(p.folded))}
}

// feed takes one more character.
func (t *tracker) feed(b byte, start, end int) {
	t.starts[t.fed%len(t.starts)] = start
	t.fed++
	t.state, _ = t.pattern.next(t.state, fold(b))
	if t.state == len(t.starts) {
		t.add(span{t.start(), end})
	}
}

// start is where what matches at present begins.
func (t *tracker) start() int { return t.starts[(t.fed-t.state)%len(t.starts)] }

// add adds a span, joined with the last one if they overlap.
func (t *tracker) add(s span) {
	if last := len(t.spans) - 1; last >= 0 && s.start < t.spans[last].end {
		t.spans[last].end = s.end
		return
	}
	t.spans = append(t.spans, s)
}

// cut ends the text: what matches at present may be the beginning of a key.
func (t *tracker) cut(end int) {
	if t.state >= shortestKey && t.state < len(t.starts) {
		t.add(span{t.start(), end})
	}
}

// spans returns where the keys are in text, plainly or encoded, in order and without
// overlap. A text that is cut after at least shortestKey characters of a key has it
// too.
func (k *keys) spans(text []byte, cut bool) []span {
	var all []span
	encoded := mayEncode(string(text))
	for _, key := range k.patterns() {
		all = append(all, key.plain.spans(text, cut)...)
		if encoded && key.read != nil {
			all = append(all, key.read.encodedSpans(text, cut)...)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	merged := all[:0]
	for _, s := range all {
		if last := len(merged) - 1; last >= 0 && s.start < merged[last].end {
			merged[last].end = max(merged[last].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// spans returns where the key is in text as it is.
func (p *pattern) spans(text []byte, cut bool) []span {
	t := newTracker(p)
	for i, b := range text {
		t.feed(b, i, i+1)
	}
	if cut {
		t.cut(len(text))
	}
	return t.spans
}

// encodedSpans returns where the key is in text when it is decoded. With cut, what
// may be the beginning of an encoded character ends the text.
func (p *pattern) encodedSpans(text []byte, cut bool) []span {
	t := newTracker(p)
	run := -1 // where the backslashes before a character begin; -1 for none
	var n normalizer
	n.run(text, func(c char) {
		if cut && c.incomplete {
			t.cut(len(text))
		}
		switch {
		case c.b == '\\' && run < 0:
			run = c.start
		case c.b != '\\' && run >= 0:
			t.feed(c.b, run, c.end)
			run = -1
		case c.b != '\\':
			t.feed(c.b, c.start, c.end)
		}
	})
	if cut {
		t.cut(len(text))
	}
	return t.spans
}

// mayEncode reports whether a text has what begins an encoded character.
func mayEncode(text string) bool {
	return strings.IndexByte(text, '\\') >= 0 || strings.IndexByte(text, '%') >= 0 ||
		strings.IndexByte(text, '&') >= 0 || strings.IndexByte(text, '~') >= 0
}
