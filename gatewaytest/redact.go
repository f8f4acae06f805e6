package gatewaytest

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

const redacted = "[REDACTED]" // replaces a key

// A redactor replaces one key as it is and as URLs and JSON write it, in any case, and every value in the place of a
// key: a merchant may send a real key to a stand-in by mistake.
type redactor struct{ member, parameter, key *regexp.Regexp }

func newRedactor(key string) redactor {
	quoted := quote(key)
	var spellings []string
	for _, spelling := range []string{key, url.QueryEscape(key), url.PathEscape(key), quoted[1 : len(quoted)-1]} {
		spellings = append(spellings, regexp.QuoteMeta(spelling))
	}
	return redactor{
		member:    regexp.MustCompile(`("(?i:(?:x-)?api[-_]?key)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|[^\s"{}\[\],]+)`),
		parameter: regexp.MustCompile(`((?:^|[?&])(?i:(?:x-)?api[-_]?key)=)[^&#"\s]*`),
		key:       regexp.MustCompile(`(?i:` + strings.Join(spellings, "|") + `)`),
	}
}

// text returns a text without keys.
func (r redactor) text(s string) string {
	s = r.member.ReplaceAllString(s, `${1}"`+redacted+`"`)
	s = r.parameter.ReplaceAllString(s, "${1}"+redacted)
	return r.key.ReplaceAllLiteralString(s, redacted)
}

// header returns a copy without keys, and without the values of credentials.
func (r redactor) header(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		for _, value := range values {
			switch name {
			case "X-Api-Key", "Authorization", "Proxy-Authorization", "Cookie":
				value = redacted
			}
			clean.Add(r.text(name), r.text(value))
		}
	}
	return clean
}
