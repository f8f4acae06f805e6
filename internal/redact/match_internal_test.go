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
