package doc

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// mend returns a copy of a text with U+FFFD in the place of each character that is none, which is a byte that is not
// UTF-8 or an escape of half a surrogate pair. It returns nil if there is none.
func mend(text []byte) []byte {
	mended := bytes.ToValidUTF8(text, []byte(string(unicode.ReplacementChar))) // always a copy
	isMended := !bytes.Equal(mended, text)
	for rest := mended; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 || at+2 > len(rest) {
			break
		}
		rest = rest[at:]
		switch first := escaped(rest); {
		case !utf16.IsSurrogate(first):
			rest = rest[2:]
		case utf16.DecodeRune(first, escaped(rest[6:])) != unicode.ReplacementChar:
			rest = rest[12:]
		default:
			copy(rest, `\ufffd`)
			rest, isMended = rest[6:], true
		}
	}
	if !isMended {
		return nil
	}
	return mended
}

// escaped returns the code unit whose escape text begins with, or -1.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit) // #nosec G115 -- 16 bits
}
