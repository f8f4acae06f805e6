package redact

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// escapeSigns begin the escapes of JSON and of programming languages, of URLs, and of HTML.
const escapeSigns = `\%&`

// levels are the signs whose escapes are undone, one level after the other. The escapes of JSON are undone alone at
// first: a percent sign before an escaped key belongs to no escape.
var levels = [...]string{`\`, escapeSigns, escapeSigns, escapeSigns}

// longestEscape is how many bytes an escape of one character has, in a text that was quoted twice.
const longestEscape = 12

// A span is a part of a text that has a key.
type span struct {
	start, end int
	quoted     bool // its replacement is a text of JSON
}

// find returns the parts of text that are keys, in their order, at this level of escapes and below. The beginning of a
// key at the end of text counts, because text may be cut.
func (r Redactor) find(text []byte, level int) (found []span) {
	for _, p := range r.patterns() {
		count := bytes.Count(text, p.bytes)
		found = slices.Grow(found, count)
		for at := 0; count > 0; count-- {
			at += bytes.Index(text[at:], p.bytes)
			found = append(found, span{start: at, end: at + len(p.bytes)})
			at += len(p.bytes)
		}
		if n := beginning(text, p.bytes); n >= 0 {
			found = append(found, span{start: n, end: len(text)})
		}
	}
	return merged(append(found, r.findEscaped(text, level)...))
}

// findEscaped returns the parts of text that are keys once its escapes are undone: those of this level or, if text has
// none of these, of the next one.
func (r Redactor) findEscaped(text []byte, level int) []span {
	for ; r.reveal != nil && level < len(levels); level++ {
		signs := levels[level]
		if plain := unescape(text, signs); len(plain) < len(text) {
			return escaped(text, signs, r.find(plain, level+1))
		}
		if signs == escapeSigns { // as at the levels below
			break
		}
	}
	return nil
}

// beginning returns where the beginning of a key is at the end of text, which may have been cut within an escape: -1
// for none.
func beginning(text, key []byte) int {
	whole := text // without an escape that was cut
	if sign := bytes.LastIndexAny(text, escapeSigns); sign >= max(len(text)-len(`\u004`), 0) {
		if _, size := character(text[sign:], escapeSigns); size == 1 {
			whole = text[:sign]
		}
	}
	for _, end := range [...][]byte{text, whole} {
		for n := min(len(key)-1, len(end)); n >= shortestKey; n-- {
			if bytes.HasSuffix(end, key[:n]) {
				return len(end) - n
			}
		}
	}
	return -1
}

// merged sorts spans, and joins those that overlap.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	all := spans[:0]
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.start < all[last].end {
			all[last].end = max(all[last].end, s.end)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// without returns text with [Mask] in the place of spans.
func without(text []byte, spans []span) []byte {
	if len(spans) == 0 {
		return text
	}
	clean, at := make([]byte, 0, len(text)), 0
	for _, s := range spans {
		clean = append(clean, text[at:s.start]...)
		if s.quoted {
			clean = strconv.AppendQuote(clean, Mask)
		} else {
			clean = append(clean, Mask...)
		}
		at = s.end
	}
	return append(clean, text[at:]...)
}

// unescape returns text with a character in the place of each escape that begins with one of the signs: text itself
// if it has no sign.
func unescape(text []byte, signs string) []byte {
	if !bytes.ContainsAny(text, signs) {
		return text
	}
	plain := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		c, size := character(text[at:], signs)
		plain, at = append(plain, c), at+size
	}
	return plain
}

// escaped returns the places in text of spans in what [unescape] makes of it.
func escaped(text []byte, signs string, spans []span) []span {
	at, plain := 0, 0
	reach := func(place int) int {
		for ; plain < place; plain++ {
			_, size := character(text[at:], signs)
			at += size
		}
		return at
	}
	for i := range spans {
		spans[i] = span{start: reach(spans[i].start), end: reach(spans[i].end)}
	}
	return spans
}

// character returns the character that text begins with, and its length with an escape that begins with one of the
// signs. Of a character beyond ASCII, which no key has, it returns a part.
func character(text []byte, signs string) (c byte, size int) {
	switch c := text[0]; {
	case c != '\\' && c != '%' && c != '&', strings.IndexByte(signs, c) < 0, len(text) == 1:
		return c, 1
	case c == '%':
		return numbered(text, 1, 3)
	case c == '&':
		return entity(text)
	case text[1] == 'u':
		return numbered(text, 2, 6)
	case text[1] == 'x':
		return numbered(text, 2, 4)
	default:
		return text[1], 2
	}
}

// numbered returns the character whose hexadecimal number text has from one place to another.
func numbered(text []byte, from, to int) (c byte, size int) {
	var number [2]byte
	if len(text) >= to && text[from] >= '0' { // for speed: no sign begins a number
		if n, err := hex.Decode(number[:], text[from:to]); err == nil {
			return number[n-1], to
		}
	}
	return text[0], 1
}

// entity returns the character of an entity of HTML.
func entity(text []byte) (c byte, size int) {
	size = bytes.IndexByte(text[:min(len(text), len("&#x0027;"))], ';') + 1
	switch string(text[:size]) {
	case "&amp;":
		return '&', size
	case "&lt;":
		return '<', size
	case "&gt;":
		return '>', size
	case "&quot;":
		return '"', size
	}
	if size > len("&#x;") && text[1] == '#' {
		digits, base := string(text[2:size-1]), 10
		if digits[0]|0x20 == 'x' {
			digits, base = digits[1:], 16
		}
		if number, err := strconv.ParseUint(digits, base, 7); err == nil {
			return byte(number), size
		}
	}
	return text[0], 1
}
