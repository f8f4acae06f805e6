package gateway

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	redacted = "[REDACTED]"

	// shortestSearched is the length of the shortest key that is looked for in
	// what the service says. A shorter one would be found in ordinary words.
	shortestSearched = 8
)

// A secret holds an API key behind a function, where no formatting verb, no
// encoder and no dump by reflection can reach it.
type secret struct {
	reveal func() string
}

func newSecret(key string) secret {
	return secret{reveal: func() string { return key }}
}

func (s secret) empty() bool { return s.reveal == nil || s.reveal() == "" }

// A redactor takes keys out of what the service says.
type redactor struct {
	keys func() []string // those that are looked for
}

func newRedactor(secrets ...secret) redactor {
	var keys []string
	for _, s := range secrets {
		if !s.empty() && len(s.reveal()) >= shortestSearched {
			keys = append(keys, s.reveal())
		}
	}
	if keys == nil {
		return redactor{}
	}
	return redactor{keys: func() []string { return keys }}
}

// with returns a redactor that looks for another key, too.
func (r redactor) with(key secret) redactor {
	all := []secret{key}
	if r.keys != nil {
		for _, known := range r.keys() {
			all = append(all, newSecret(known))
		}
	}
	return newRedactor(all...)
}

// mayFind reports whether text holds a key, or escapes that could spell one.
func (r redactor) mayFind(text string) bool {
	if r.keys == nil || len(text) < shortestSearched {
		return false
	}
	return r.finds(text) || strings.Contains(text, `\`)
}

// finds reports whether a key stands in text as it is.
func (r redactor) finds(text string) bool {
	return slices.ContainsFunc(r.keys(), func(key string) bool { return strings.Contains(text, key) })
}

// text returns text without the keys.
func (r redactor) text(text string) string {
	if !r.mayFind(text) {
		return text
	}
	return string(r.cut([]byte(text), len(text)))
}

// snippet returns a copy of the first limit bytes of body, without the keys.
// Of body it looks at more than it returns, so that a key across the limit is
// not cut into a part that nobody recognises.
func (r redactor) snippet(body []byte, limit int) []byte {
	if r.keys == nil {
		return bytes.Clone(body[:min(len(body), limit)])
	}
	return r.cut(body, limit)
}

// overlap is how much of a body must be kept beyond the limit of a snippet.
func (r redactor) overlap() int {
	longest := 0
	if r.keys != nil {
		for _, key := range r.keys() {
			longest = max(longest, len(key)*len(`\u0000`))
		}
	}
	return longest
}

// header returns a copy of h without the keys. In the name of a header HTTP
// changes the case of letters.
func (r redactor) header(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		if r.inName(name) {
			name = redacted
		}
		for _, value := range values {
			clean[name] = append(clean[name], r.text(value))
		}
	}
	return clean
}

func (r redactor) inName(name string) bool {
	if r.keys == nil {
		return false
	}
	for _, key := range r.keys() {
		if strings.Contains(strings.ToLower(name), strings.ToLower(key)) {
			return true
		}
	}
	return false
}

// value returns a JSON value of its own without the keys, and still valid.
func (r redactor) value(v jsontext.Value) jsontext.Value {
	if !r.mayFind(string(v)) {
		return v.Clone()
	}
	clean, changed, err := r.redactTokens(v)
	switch {
	case err != nil:
		return jsontext.Value(strconv.Quote(redacted))
	case changed || bytes.Contains(v, []byte(`\u`)) && r.finds(string(v)): // the end of an escape can be the beginning of the key
		return clean
	default:
		return v.Clone()
	}
}

// redactTokens rewrites v token by token, which leaves it valid and leaves
// numbers, which are money, as they are unless they are a key.
func (r redactor) redactTokens(v jsontext.Value) (clean jsontext.Value, changed bool, err error) {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return bytes.TrimSpace(out.Bytes()), changed, ignoreEOF(err)
		}
		if kind := token.Kind(); kind == '"' || kind == '0' && r.text(token.String()) == redacted {
			if text := r.quotable(r.text(token.String())); text != token.String() {
				token, changed = jsontext.String(text), true
			}
		}
		if err := enc.WriteToken(token); err != nil {
			return nil, false, err
		}
	}
}

// quotable returns text, unless its escapes would complete a key.
func (r redactor) quotable(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text) // valid: the decoder has read it
	if r.finds(string(quoted)) {
		return redacted
	}
	return text
}

// cut copies the part of text before limit and puts redacted in the place of
// each key that starts there.
func (r redactor) cut(text []byte, limit int) []byte {
	out := make([]byte, 0, min(len(text), limit)+len(redacted))
	for i := 0; i < min(len(text), limit); {
		n := 0
		for _, key := range r.keys() {
			n = max(n, matchKey(text[i:], key))
		}
		if n > 0 {
			out = append(out, redacted...)
			i += n
			continue
		}
		out = append(out, text[i])
		i++
	}
	return out
}

// matchKey returns how many bytes at the start of text spell key, plainly or
// with the escapes of JSON, which may themselves be escaped; or 0. A text that
// ends within a long part of the key spells it too: it was cut there.
func matchKey(text []byte, key string) int {
	if whole := min(len(text), len(key)); whole >= shortestSearched && string(text[:whole]) == key[:whole] {
		return whole
	}
	at := 0
	for k := range len(key) {
		if k >= shortestSearched && endsInEscape(text[at:]) {
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

// longestRun bounds the backslashes that are looked at as one escape: six levels
// of it. A service could send a run that is as long as its answer.
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
