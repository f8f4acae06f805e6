package redact

import (
	"bytes"
	"strconv"
)

// matchKey returns how many bytes at the start of text spell key, plainly or with
// the escapes of JSON, which may themselves be escaped; or 0. A text that ends
// after at least shortestKey characters of the key matches too: it was cut there.
func matchKey(text []byte, key string) int {
	if whole := min(len(text), len(key)); whole >= shortestKey && string(text[:whole]) == key[:whole] {
		return whole
	}
	at := 0
	for k := range len(key) {
		if k >= shortestKey && endsInEscape(text[at:]) {
			return len(text)
		}
		n := spells(text[at:], key[k])
		if n == 0 {
			return 0
		}
		at += n
	}
	return at
}

// spells returns how many bytes at the start of text spell a character, or 0.
// Each level of escapes doubles the backslashes before it.
func spells(text []byte, char byte) int {
	rest := bytes.TrimLeft(text[:min(len(text), longestRun)], `\`)
	run := min(len(text), longestRun) - len(rest)
	rest = text[run:]
	switch {
	case run > 0 && char == '\\':
		return run
	case len(rest) == 0:
		return 0
	case run > 0 && isUnicode(rest, char):
		return run + len("u0000")
	case rest[0] == char:
		return run + 1
	default:
		return 0
	}
}

// longestRun bounds the backslashes that are read as one escape, six levels of it: a
// service could send a run as long as its response.
const longestRun = 64

// isUnicode reports whether text begins with the u0041 of an escape of char.
func isUnicode(text []byte, char byte) bool {
	if len(text) < len("u0000") || text[0] != 'u' {
		return false
	}
	code, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	return err == nil && code == uint64(char)
}

// endsInEscape reports whether nothing is left of a text, or only the
// beginning of an escape.
func endsInEscape(text []byte) bool {
	if len(text) > longestRun+len("u0000") {
		return false
	}
	rest := bytes.TrimLeft(text, `\`)
	return len(rest) == 0 || len(rest) < len(text) && rest[0] == 'u' && len(rest) < len("u0000")
}
