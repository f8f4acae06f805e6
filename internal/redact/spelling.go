package redact

import (
	"html"
	"net/url"
	"strings"
)

// spellings returns how encoders write a key, which is printable ASCII. Most keys have one
// spelling: no encoder changes letters, digits and - _ . ~
func spellings(key string) []string {
	query := url.QueryEscape(key)
	if query == key {
		return []string{key}
	}
	path, page, quoted := url.PathEscape(key), html.EscapeString(key), inJSON(key, "", lowerHex)
	return []string{
		key,

		query, withLowerHex(query),
		path, withLowerHex(path),

		page,
		strings.ReplaceAll(page, "+", "&#43;"), // html/template

		quoted,
		strings.ReplaceAll(quoted, "/", `\/`), // PHP
		inJSON(key, `<>&`, lowerHex),          // encoding/json
		inJSON(key, `<>&='`, lowerHex),        // Gson
		inJSON(key, "<>&'+`\"", upperHex),     // .NET
	}
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// inJSON writes key as an encoder of JSON does that writes some characters as \u and digits.
func inJSON(key, some, digits string) string {
	text := make([]byte, 0, len(`\u0000`)*len(key))
	for i := range len(key) {
		switch b := key[i]; {
		case strings.IndexByte(some, b) >= 0:
			text = append(text, '\\', 'u', '0', '0', digits[b>>4], digits[b&0xF])
		case b == '"' || b == '\\':
			text = append(text, '\\', b)
		default:
			text = append(text, b)
		}
	}
	return string(text)
}

// withLowerHex writes the digits of percent-encoded characters as .NET does.
func withLowerHex(encoded string) string {
	parts := strings.Split(encoded, "%")
	for i, part := range parts[1:] {
		parts[i+1] = strings.ToLower(part[:2]) + part[2:]
	}
	return strings.Join(parts, "%")
}
