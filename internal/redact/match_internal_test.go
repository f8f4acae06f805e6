package redact

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The comparisons are counted: whatever the key, they are about twice as many as there
// are bytes at most.
func TestPattern_isLinear(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	keys := map[string]string{
		"random":        "q8Zk2vXw7LrT5nYb9MdF3hJs6GpC1tVx4QeA0uWiOyKlPzNmBjHgRfDcSaEoIuQw",
		"repeated":      strings.Repeat("a", 63) + "b",
		"repeated end":  "b" + strings.Repeat("a", 63),
		"only repeated": strings.Repeat("a", 64),
		"periodic":      strings.Repeat("ab", 31) + "ac",
	}
	texts := map[string]string{"no letter of the key": strings.Repeat("-", size)}
	for name, key := range keys {
		texts["all but the end: "+name] = strings.Repeat(key[:len(key)-1], size/(len(key)-1))
		texts["all but the start: "+name] = strings.Repeat(key[1:], size/(len(key)-1))
	}
	texts["one letter"] = strings.Repeat("a", size)
	for name, key := range keys {
		p := newPattern(folded([]byte(key)))
		for place, text := range texts {
			found, steps := p.find(text)
			assert.Equal(t, strings.Contains(strings.ToLower(text), strings.ToLower(key)), found, "%s in %s", name, place)
			assert.LessOrEqual(t, steps, 9*len(text)/4+3*len(key), "%s in %s", name, place)
			state, all := 0, 0
			for i := range len(text) {
				next, steps := p.next(state, fold(text[i]))
				state, all = next, all+steps
			}
			assert.LessOrEqual(t, all, 2*len(text), "%s in %s", name, place)
		}
	}
}

// Keys that overlap themselves are found wherever they are: all keys of 5 letters in all
// texts of up to 11, with an alphabet of two.
func TestPattern_overlaps(t *testing.T) {
	t.Parallel()
	for _, key := range words(5) {
		p := newPattern([]byte(key))
		for length := 1; length <= 11; length++ {
			for _, text := range words(length) {
				want := strings.Contains(text, key)
				found, _ := p.find(text)
				read, _ := p.read(text)
				var ends []int
				for i, state := 0, 0; i < len(text); i++ {
					if state, _ = p.next(state, text[i]); state == len(key) {
						ends = append(ends, i+1)
					}
				}
				if found != want || read != want || !slices.Equal(ends, endsOf(key, text)) {
					t.Fatalf("%q in %q: found %t, read %t, ends %v", key, text, found, read, ends)
				}
			}
		}
	}
}

// words are all texts of a length with the letters a and b.
func words(length int) []string {
	all := []string{""}
	for range length {
		var longer []string
		for _, word := range all {
			longer = append(longer, word+"a", word+"b")
		}
		all = longer
	}
	return all
}

// endsOf are the ends of all occurrences of a key, which may overlap.
func endsOf(key, text string) (ends []int) {
	for end := len(key); end <= len(text); end++ {
		if text[end-len(key):end] == key {
			ends = append(ends, end)
		}
	}
	return ends
}

// A text without any part of the key is mostly skipped.
func TestPattern_find_skips(t *testing.T) {
	t.Parallel()
	p := newPattern([]byte("0123456789abcdef"))
	_, steps := p.find(strings.Repeat("-", 1<<16))
	assert.LessOrEqual(t, steps, 1<<16/16+64)
}

// The window of a normalizer hands on every character once, however much was
// decoded: no escape makes it longer.
func TestNormalizer_window(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("a", 1000), strings.Repeat(`\`, 1000), strings.Repeat("%2541", 200), strings.Repeat("%25", 333) + "41",
		strings.Repeat("&amp;", 200) + "#65;", strings.Repeat("&#x41;", 200), strings.Repeat(`\u0041`, 200), strings.Repeat("~0", 500) + "1",
	} {
		var n normalizer
		end := 0
		n.run([]byte(text), func(c char) {
			assert.Equal(t, end, c.start)
			assert.Greater(t, c.end, c.start)
			end = c.end
		})
		assert.Equal(t, len(text), end, "%.20q", text)
	}
}

// Only letters and + are folded.
func TestFold(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		want := byte(b)
		switch {
		case b == '+':
			want = ' '
		case strings.Contains("ABCDEFGHIJKLMNOPQRSTUVWXYZ", string(rune(b))):
			want = strings.ToLower(string(rune(b)))[0]
		}
		assert.Equal(t, want, fold(byte(b)), "%q", b)
	}
}

// decoded is what a normalizer hands on.
func decoded(text string) string {
	var all []byte
	var n normalizer
	n.run([]byte(text), func(c char) { all = append(all, c.b) })
	return string(all)
}

func TestNormalizer_decodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`\u0041`: "A", `\U0041`: "A", `\x41`: "A", "%41": "A", "%4a": "J", "%4A": "J", "&#65;": "A", "&#x41;": "A", "&#x000041;": "A",
		"&amp;": "&", "&lt;&gt;&quot;&apos;": `<>"'`, "~0~1": "~/", "%2541": "A", "&amp;#65;": "A",
		// What is no code stays as it is.
		`\a0041`: `\a0041`, "u0041": "u0041", "x41": "x41", "%4g": "%4g", "%g4": "%g4", "&41;": "&41;", "&x41;": "&x41;", "&none;": "&none;",
		"&aaaaaaaaaaaa;": "&aaaaaaaaaaaa;", "~2": "~2", ";": ";", "%e9": "%e9",
	} {
		assert.Equal(t, want, decoded(text), "%s", text)
	}
}

func TestIsBeginning(t *testing.T) {
	t.Parallel()
	for want, codes := range map[bool][]string{
		true:  {"~", "%", "%4", "&", "&amp", "&#x41", "&0", "&9", "&a", "&z", "&Z", `\`, `\u`, `\u0`, `\u004`, `\x`, `\X4`},
		false: {"~0", "%41", "%g", "& ", "&;", "&/", "&:", "&{", `\u0041`, `\u00g`, `\x41`, `\xg`, `\n`, "a"},
	} {
		for _, code := range codes {
			var all []char
			for _, b := range []byte(code) {
				all = append(all, char{b: b})
			}
			assert.Equal(t, want, isBeginning(all), "%s", code)
		}
	}
}

func TestIsHex(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		assert.Equal(t, strings.Contains("0123456789abcdefABCDEF", string(rune(b))), isHex(byte(b)), "%q", b)
	}
}

// A text is decoded if a code begins anywhere in it, also with its first byte.
func TestMayEncode(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{`\`, "%", "&", "~"} {
		assert.True(t, mayEncode(begin), begin)
		assert.True(t, mayEncode("a"+begin), begin)
		assert.True(t, beginsCode(begin[0]), begin)
	}
	assert.False(t, mayEncode("plain/text+1"))
	assert.False(t, beginsCode('a'))
}

// A key is looked for without its backslashes if enough of it is left.
func TestNewPair(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "abcdefgh", string(newPair(`abcd\efgh`).read.folded))
	assert.Nil(t, newPair(`abcd\efg`).read)
	assert.Equal(t, newPair("abcdefgh").plain, newPair("abcdefgh").read)
}
