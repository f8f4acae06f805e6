package doc

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// mend returns a copy of a text with U+FFFD in the place of what is no character: bytes that are not UTF-8, and escapes
// of half a surrogate pair.
func mend(text []byte) []byte {
	mended := bytes.ToValidUTF8(text, []byte("\ufffd"))
	for at := 0; ; {
		next := bytes.IndexByte(mended[at:], '\\')
		if next < 0 {
			return mended
		}
		at += next
		switch first := escaped(mended[at:]); {
		case !utf16.IsSurrogate(first):
			at = min(at+len(`\n`), len(mended))
		case utf16.DecodeRune(first, escaped(mended[at+len(`\ud83d`):])) != unicode.ReplacementChar:
			at += len(`\ud83d\ude00`)
		default:
			at += copy(mended[at:], `\ufffd`)
		}
	}
}

// escaped returns the code unit whose escape text begins with, or -1.
func escaped(text []byte) rune {
	if len(text) < len(`\u0041`) || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // 0 for other characters, which is no surrogate either
	return rune(unit)                                       // #nosec G115 -- 16 bits
}
