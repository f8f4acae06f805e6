package redact

import (
	"slices"
	"strconv"
	"strings"
)

// A char is a character of a text that was decoded, with its place in the text.
// Incomplete marks the last ones of a text, from the beginning of an encoded
// character that is cut.
type char struct {
	b          byte
	start, end int
	decoded    bool
	incomplete bool
}

// A normalizer decodes the escapes of JSON and Go, of URLs, HTML and JSON pointers,
// in whatever order they were applied to each other: what a decoded character
// completes is decoded too. Each decoding makes the window shorter, so that the time
// is linear in the text. Backslashes side by side are one, because
// each level of escapes doubles them; readers skip those that are left.
type normalizer struct {
	window [4 * longestCode]char
	n      int
	since  int // how many bytes of the text came after what can begin a code
}

// longestCode bounds how many characters encode another one: &#x000041;
const longestCode = 10

// run hands every character of text to yield.
func (n *normalizer) run(text []byte, yield func(char)) {
	for i, b := range text {
		if n.since++; beginsCode(b) {
			n.since = 0
		}
		if n.since > longestCode { // nothing completes what the window has
			n.shift(n.n, yield)
			yield(char{b: b, start: i, end: i + 1})
			continue
		}
		if n.n == len(n.window) {
			n.shift(len(n.window)-longestCode, yield)
		}
		n.push(char{b: b, start: i, end: i + 1})
	}
	n.markIncomplete()
	n.shift(n.n, yield)
}

// shift hands on the first characters of the window.
func (n *normalizer) shift(count int, yield func(char)) {
	if count == 0 {
		return
	}
	for _, c := range n.window[:count] {
		yield(c)
	}
	n.n = copy(n.window[:], n.window[count:n.n])
}

// push adds a character, and decodes what it completes.
func (n *normalizer) push(c char) {
	for {
		b, width := n.complete(c.b)
		if width == 0 {
			break
		}
		n.n -= width - 1
		c = char{b: b, start: n.window[n.n].start, end: c.end, decoded: true}
	}
	if c.b == '\\' && n.before(1) == '\\' && c.decoded == n.window[n.n-1].decoded {
		n.window[n.n-1].end = c.end
		return
	}
	if beginsCode(c.b) {
		n.since = 0
	}
	n.window[n.n] = c
	n.n++
}

func beginsCode(b byte) bool { return b == '\\' || b == '%' || b == '&' || b == '~' }

// complete returns the character that last completes, and how many characters encode
// it, the last included; 0 for none.
func (n *normalizer) complete(last byte) (b byte, width int) {
	switch {
	case last == ';':
		return n.entity()
	case last == '0' && n.before(1) == '~':
		return '~', 2
	case last == '1' && n.before(1) == '~':
		return '/', 2
	case !isHex(last):
		return 0, 0
	case n.before(2) == '%':
		if b, ok := n.number(1, last); ok {
			return b, len("%41")
		}
	case fold(n.before(2)) == 'x' && n.before(3) == '\\':
		if b, ok := n.number(1, last); ok {
			return b, len(`\x41`)
		}
	case fold(n.before(4)) == 'u' && n.before(5) == '\\':
		if b, ok := n.number(3, last); ok {
			return b, len(`\u0041`)
		}
	}
	return 0, 0
}

// number reads the hexadecimal digits at the end of the window, and one more.
func (n *normalizer) number(count int, last byte) (byte, bool) {
	var digits [longestCode]byte
	for i := range count {
		digits[i] = n.before(count - i)
	}
	digits[count] = last
	code, err := strconv.ParseUint(string(digits[:count+1]), 16, 7)
	return byte(code), err == nil
}

// entity returns the character of an entity of which only the ; is missing.
func (n *normalizer) entity() (b byte, width int) {
	var name [longestCode]byte
	at := len(name)
	for back := 1; back < longestCode; back++ {
		c := n.before(back)
		if c == '&' {
			b, ok := entityNamed(string(name[at:]))
			if !ok {
				return 0, 0
			}
			return b, back + 1
		}
		at--
		name[at] = fold(c)
	}
	return 0, 0
}

// entityNamed returns the character of an entity that an encoder of HTML writes.
func entityNamed(name string) (byte, bool) {
	switch name {
	case "amp":
		return '&', true
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	digits, numeric := strings.CutPrefix(name, "#")
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	code, err := strconv.ParseUint(digits, base, 7)
	return byte(code), numeric && err == nil
}

// before returns a character of the window, counted from its end; 0 for none.
func (n *normalizer) before(back int) byte {
	if back > n.n {
		return 0
	}
	return n.window[n.n-back].b
}

// markIncomplete marks the first character of an encoded one that is cut at the end
// of the text.
func (n *normalizer) markIncomplete() {
	for back := min(n.n, longestCode); back > 0; back-- {
		code := n.window[n.n-back : n.n]
		if isBeginning(code) {
			n.window[n.n-back].incomplete = true
		}
	}
}

// isBeginning reports whether code can be the beginning of an encoded character.
func isBeginning(code []char) bool {
	inner := code[1:]
	switch code[0].b {
	case '~':
		return len(inner) == 0
	case '%':
		return len(inner) < 2 && allHex(inner)
	case '&':
		return !slices.ContainsFunc(inner, func(c char) bool {
			return c.b != '#' && !('0' <= c.b && c.b <= '9') && !('a' <= fold(c.b) && fold(c.b) <= 'z')
		})
	case '\\':
		return len(inner) == 0 || fold(inner[0].b) == 'u' && len(inner) < 5 && allHex(inner[1:]) || fold(inner[0].b) == 'x' && len(inner) < 3 && allHex(inner[1:])
	default:
		return false
	}
}

func allHex(code []char) bool {
	return !slices.ContainsFunc(code, func(c char) bool { return !isHex(c.b) })
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}
