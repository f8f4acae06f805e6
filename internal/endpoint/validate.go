package endpoint

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How long texts in a request may be, in bytes.
const (
	MaxURLText  = 256  // an argument in the URL, and the name of a header
	MaxBodyText = 1024 // a text in the body, and the value of a header

	maxCurrency = 64
	maxAPIKey   = 4096
)

// pathSegment checks an argument that becomes one segment of a path, escaped: 1 to 256
// bytes of valid UTF-8, not a dot segment, without control characters and surrounding space.
func pathSegment(text string) (reason string) {
	switch text {
	case "":
		return "is required"
	case ".", "..":
		return "must not be a dot segment"
	default:
		return Text(text, MaxURLText)
	}
}

// Text checks a text of at most limit bytes: valid UTF-8 without control
// characters or surrounding space. It may be empty.
func Text(text string, limit int) (reason string) {
	switch {
	case len(text) > limit:
		return "is longer than " + strconv.Itoa(limit) + " bytes"
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "must not contain control characters"
	case text != strings.TrimSpace(text):
		return "must not begin or end with a space"
	default:
		return ""
	}
}

// Identifier checks what [Text] does, and that no character is invisible: of two identifiers that look the
// same, a guard would make two orders.
func Identifier(text string, limit int) (reason string) {
	if strings.ContainsFunc(text, isInvisible) {
		return "must not contain invisible characters"
	}
	return Text(text, limit)
}

func isInvisible(char rune) bool {
	return unicode.In(char, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Currency checks a currency code of at most 64 bytes. It may be empty.
func Currency(code string) (reason string) {
	if strings.ContainsFunc(code, unicode.IsSpace) {
		return "must not contain spaces"
	}
	return Text(code, maxCurrency)
}

// APIKey checks an API key: 1 to 4,096 printable ASCII characters without
// surrounding space.
func APIKey(key string) (reason string) {
	switch {
	case key == "":
		return "is required"
	case len(key) > maxAPIKey:
		return "is longer than 4,096 bytes"
	case !IsHeaderValue(key):
		return "must be printable ASCII: no line end, tab or other control character"
	case strings.TrimSpace(key) == "":
		return "is blank"
	case key != strings.TrimSpace(key):
		return "must not begin or end with a space"
	default:
		return ""
	}
}

// MaxAPIKeyFile is how many bytes a file with a key and a line end may have.
const MaxAPIKeyFile = maxAPIKey + len("\r\n")

// IsHeaderValue reports whether text is printable ASCII.
func IsHeaderValue(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// IsHeaderName reports whether text is a token of RFC 9110 of at most 256 bytes.
func IsHeaderName(text string) bool {
	for i := range len(text) {
		char := text[i]
		if char <= ' ' || char > '~' || strings.IndexByte(`"(),/:;<=>?@[\]{}`, char) >= 0 {
			return false
		}
	}
	return text != "" && len(text) <= MaxURLText
}

// SameID reports whether two identifiers are equal. Those of UUID form, 8-4-4-4-12
// hexadecimal digits, are equal in either case, as RFC 9562 has it; others as they are.
func SameID(a, b string) bool { return a == b || isUUID(a) && strings.EqualFold(a, b) }

// IDKey returns an identifier in the form that equal ones share, by [SameID]: a UUID in lower case, any
// other identifier as it is.
func IDKey(id string) string {
	if isUUID(id) {
		return strings.ToLower(id)
	}
	return id
}

func isUUID(text string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		char := text[i]
		isHex := '0' <= char && char <= '9' || 'a' <= char && char <= 'f' || 'A' <= char && char <= 'F'
		if isDash := char == '-'; isDash != (form[i] == '-') || !isDash && !isHex {
			return false
		}
	}
	return true
}
