package gatewaytest

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// redacted replaces a key.
const redacted = "[REDACTED]"

// A redactor redacts one key as it is and as URLs and JSON write it, in any case, and every value in the place of a
// key: a merchant may send a real key to a stand-in by mistake.
type redactor struct {
	key   *regexp.Regexp // the key itself
	field *regexp.Regexp // a member apiKey of a JSON text, valid or not
	query *regexp.Regexp // a parameter apiKey of a query
}

func newRedactor(key string) redactor {
	var spellings []string
	quoted := quote(key)
	for _, spelling := range []string{key, url.QueryEscape(key), url.PathEscape(key), quoted[1 : len(quoted)-1]} {
		spellings = append(spellings, regexp.QuoteMeta(spelling))
	}
	return redactor{
		key:   regexp.MustCompile(`(?i:` + strings.Join(spellings, "|") + `)`),
		field: regexp.MustCompile(`("(?i:(?:x-)?api[-_]?key)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|[^\s"{}\[\],]+)`),
		query: regexp.MustCompile(`((?:^|[?&])(?i:(?:x-)?api[-_]?key)=)[^&#]*`),
	}
}

// target returns a copy of a URL, or of a text that may contain one, without keys.
func (r redactor) target(s string) string {
	return r.key.ReplaceAllLiteralString(r.query.ReplaceAllString(s, "${1}"+redacted), redacted)
}

// body returns a copy of a JSON text, valid or not, without keys.
func (r redactor) body(b []byte) []byte {
	return r.key.ReplaceAllLiteral(r.field.ReplaceAll(b, []byte(`${1}"`+redacted+`"`)), []byte(redacted))
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
