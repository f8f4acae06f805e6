package doc

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxMended is how many characters of a text are mended. One with more is not read: it is in another encoding.
const maxMended = 64 << 10

// mend returns a copy of a text with U+FFFD in the place of each character that is none: a byte that is not UTF-8, or
// an escape of half a surrogate pair. It returns nil if there is none, or if there are too many.
func mend(text []byte) (mended []byte) {
	if !utf8.Valid(text) {
		if mended = mendBytes(text); mended == nil {
			return nil
		}
		text = mended
	}
	for at, bad := 0, 0; bad <= maxMended; {
		next := bytes.IndexByte(text[at:], '\\')
		if next < 0 {
			return mended
		}
		at += next
		switch first := escaped(text[at:]); {
		case !utf16.IsSurrogate(first):
			at = min(at+len(`\n`), len(text))
		case utf16.DecodeRune(first, escaped(text[at+len(`\ud83d`):])) != unicode.ReplacementChar:
			at += len(`\ud83d\ude00`)
		default:
			if mended == nil {
				mended = bytes.Clone(text)
				text = mended
			}
			at += copy(text[at:], `\ufffd`)
			bad++
		}
	}
	return nil
}

func mendBytes(text []byte) []byte {
	mended := make([]byte, 0, len(text)+maxMended*(utf8.RuneLen(unicode.ReplacementChar)-1))
	for at, bad := 0, 0; at < len(text); {
		char, size := utf8.DecodeRune(text[at:])
		if char == utf8.RuneError {
			bad++
		}
		if bad > maxMended {
			return nil
		}
		mended, at = utf8.AppendRune(mended, char), at+size
	}
	return mended
}

// escaped returns the code unit whose escape text begins with, or -1.
func escaped(text []byte) rune {
	if len(text) < len(`\u0041`) || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // 0 for other characters, which is no surrogate either
	return rune(unit)                                       // #nosec G115 -- 16 bits
}
