// Package redact removes API keys and other secrets from texts that leave the client.
//
// A [Secret] holds a key where nothing prints it. A [Redactor] puts [Mask] in the place of
// each key that it finds, as it is or escaped. It looks for keys of at least 8 characters: a
// shorter one would be found in ordinary words.
package redact

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Mask stands where a key or a password was.
const Mask = "[REDACTED]"

// shortestKey is the length of the shortest key that is looked for.
const shortestKey = 8

// A Redactor removes keys. The zero value removes nothing. It never changes and is
// safe for concurrent use.
type Redactor struct {
	// reveal returns the patterns. A function hides them from package fmt and from reflection, and a pointer to it
	// keeps copies of a Redactor equal. It is nil for no keys.
	reveal *func() []pattern
}

// A pattern is a key, or what encoders make of one besides escapes.
type pattern struct {
	text  string
	bytes []byte
}

// New returns a redactor that removes the keys of secrets.
func New(secrets ...Secret) Redactor { return Redactor{}.With(secrets...) }

// With returns a redactor that removes more keys.
func (r Redactor) With(secrets ...Secret) Redactor {
	if len(secrets) == 0 {
		return r
	}
	all := slices.Clone(r.patterns())
	for _, s := range secrets {
		for _, text := range variants(s.Reveal()) {
			isKnown := slices.ContainsFunc(all, func(p pattern) bool { return p.text == text })
			if len(text) >= shortestKey && !isKnown {
				all = append(all, pattern{text, []byte(text)})
			}
		}
	}
	if len(all) == 0 {
		return Redactor{}
	}
	reveal := func() []pattern { return all }
	return Redactor{&reveal}
}

func (r Redactor) patterns() []pattern {
	if r.reveal == nil {
		return nil
	}
	return (*r.reveal)()
}

// variants returns a key, the key with plus signs for its spaces, as in a query, and, if the key has escapes itself,
// the texts that it becomes when a text with it is unescaped.
func variants(key string) []string {
	all := []string{key, strings.ReplaceAll(key, " ", "+")}
	for _, signs := range levels[1:] {
		for _, text := range all {
			all = append(all, string(unescape([]byte(text), signs)))
		}
	}
	return all
}

// Text returns text without the keys.
func (r Redactor) Text(text string) string {
	if !r.mayHave(text) {
		return text
	}
	return string(without([]byte(text), r.find([]byte(text), 0)))
}

// Contains reports whether [Redactor.Text] would change text.
func (r Redactor) Contains(text string) bool {
	return r.mayHave(text) && len(r.find([]byte(text), 0)) > 0
}

// mayHave reports whether a text has a key or an escape.
func (r Redactor) mayHave(text string) bool {
	has := func(p pattern) bool { return strings.Contains(text, p.text) }
	return r.reveal != nil && (strings.ContainsAny(text, escapeSigns) || slices.ContainsFunc(r.patterns(), has))
}

// Snippet returns a copy of the first limit bytes of body, without the keys. It looks at more bytes, if body
// has them, so that a key across the limit is found. If body was cut within a key, the rest of the key is removed from
// 8 characters on.
func (r Redactor) Snippet(body []byte, limit int) []byte {
	longest := 0
	for _, p := range r.patterns() {
		longest = max(longest, len(p.bytes))
	}
	text := body[:min(len(body), limit+longest*longestEscape)]
	text = without(text, r.find(text, 0))
	return bytes.Clone(text[:min(len(text), limit)])
}

// Header returns a copy of h without the keys in its values, and without the values of headers that hold a secret.
func (r Redactor) Header(h http.Header) http.Header {
	clean := make(http.Header, len(h))
	for name, values := range h {
		for _, value := range values {
			if HoldsSecret(name) {
				value = Mask
			}
			clean[name] = append(clean[name], r.Text(value))
		}
	}
	return clean
}

// JSON returns a copy of a valid value without the keys, which is valid too. A key is replaced in a text or name, and
// a number that has one becomes the text [Mask]; the rest stays as it is. Where that would not be valid, all of the
// value is [Mask].
func (r Redactor) JSON(v jsontext.Value) jsontext.Value {
	found := r.find(v, 0)
	if len(found) == 0 {
		return v.Clone()
	}
	clean := jsontext.Value(without(v, withNumbers(v, found)))
	if !clean.IsValid() {
		return jsontext.Value(strconv.Quote(Mask))
	}
	return clean
}

// withNumbers widens the spans that are in numbers of a JSON text.
func withNumbers(text []byte, found []span) []span {
	at, inText := 0, false
	for i := range found {
		s := &found[i]
		for ; at < s.start; at++ {
			switch {
			case text[at] == '"':
				inText = !inText
			case text[at] == '\\':
				at++ // a span may begin here, but not a text
			}
		}
		if inText {
			continue
		}
		for s.quoted = true; s.start > 0 && isOfNumber(text[s.start-1]); s.start-- {
		}
		for ; s.end < len(text) && isOfNumber(text[s.end]); s.end++ {
		}
	}
	return merged(found)
}

func isOfNumber(c byte) bool { return '0' <= c && c <= '9' || strings.IndexByte("+-.eE", c) >= 0 }
