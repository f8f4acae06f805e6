package gatewaytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// redacted replaces a key.
const redacted = "[REDACTED]"

// A redactor redacts one key in every spelling and case, and every value in the place of a
// key: a merchant may send a real key to a stand-in by mistake.
type redactor struct {
	lower string         // the key; "" if a plain text may have it otherwise
	key   *regexp.Regexp // the key itself
	field *regexp.Regexp // a member apiKey of a JSON text, valid or not
	query *regexp.Regexp // a parameter apiKey of a query
}

func newRedactor(key string) redactor {
	lower, _ := isPlain(key)
	return redactor{
		lower: lower,
		key:   regexp.MustCompile(`(?i:` + spellings(key) + `)`),
		field: regexp.MustCompile(`("(?i:(?:x-)?api[-_]?key)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|[^\s"{}\[\],]+)`),
		query: regexp.MustCompile(`((?:^|[?&])(?i:(?:x-)?api[-_]?key)=)[^&#]*`),
	}
}

// spellings returns a pattern that matches a text with each of its characters
// plain, percent-encoded or escaped as in JSON.
func spellings(key string) string {
	var pattern strings.Builder
	for _, r := range key {
		var percent, units strings.Builder
		for _, b := range []byte(string(r)) {
			fmt.Fprintf(&percent, "%%%02x", b)
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&units, `\\u%04x`, unit)
		}
		short, _ := json.Marshal(string(r)) // \n, \" and the like
		fmt.Fprintf(&pattern, `(?:\\?%s|%s|%s|(?i:%s|%s))`,
			regexp.QuoteMeta(string(r)),
			regexp.QuoteMeta(url.QueryEscape(string(r))),
			regexp.QuoteMeta(strings.Trim(string(short), `"`)),
			percent.String(), units.String())
	}
	return pattern.String()
}

// isPlain reports whether a text is ASCII without an escape: each of its characters is spelled
// in one way. It returns the text in lower case too.
func isPlain(s string) (lower string, plain bool) {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || s[i] == '\\' || s[i] == '%' || s[i] == '+' {
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// text returns a text without keys: those in the place that pattern finds, and this one. Most
// texts have none, which is found out without an expression.
func (r redactor) text(s string, pattern *regexp.Regexp, replacement string) string {
	if lower, plain := isPlain(s); !plain || strings.Contains(lower, "api") {
		s = pattern.ReplaceAllString(s, replacement)
	}
	if lower, plain := isPlain(s); !plain || strings.Contains(lower, r.lower) {
		s = r.key.ReplaceAllLiteralString(s, redacted)
	}
	return s
}

// target returns a copy of a URL, or of a text that may contain one, without keys.
func (r redactor) target(s string) string { return r.text(s, r.query, "${1}"+redacted) }

// body returns a copy of a JSON text, valid or not, without keys.
func (r redactor) body(b []byte) []byte {
	return []byte(r.text(string(b), r.field, `${1}"`+redacted+`"`))
}

// header returns a copy in which the values of the credential headers are
// redacted, and the keys in the names and values of the others.
func (r redactor) header(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		shown := r.target(name)
		for _, value := range values {
			switch name {
			case "X-Api-Key", "Authorization", "Proxy-Authorization", "Cookie":
				if value != "" {
					value = redacted
				}
			}
			clean[shown] = append(clean[shown], r.target(value)) // a Referer has a query too
		}
	}
	return clean
}
