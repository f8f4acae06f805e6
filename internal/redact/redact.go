// Package redact removes API keys and passwords from what is handed out.
//
// A [Secret] holds a key where nothing prints it. A [Redactor] puts [Mask] in the
// place of each key that it finds in a text, a header or a JSON value, in any case of
// letters, plainly or with the escapes of JSON, Go, URLs, HTML and JSON pointers, also
// one within the other. It looks for keys of at least 8 characters: a shorter one
// would be found in ordinary words. Its time is linear in the text.
package redact

import (
	"bytes"
	"fmt"
	"io"
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
	keys *keys // those that are looked for; nil for none
}

// keys hides what is looked for behind functions. It is behind a pointer, so that
// copies of a Redactor are equal.
type keys struct {
	texts    func() []string
	patterns func() []pair
}

// New returns a redactor that removes the keys of secrets.
func New(secrets ...Secret) Redactor {
	var texts []string
	var patterns []pair
	for _, s := range secrets {
		if text := s.Reveal(); len(text) >= shortestKey {
			texts, patterns = append(texts, text), append(patterns, newPair(text))
		}
	}
	if texts == nil {
		return Redactor{}
	}
	return Redactor{&keys{
		texts:    func() []string { return texts },
		patterns: func() []pair { return patterns },
	}}
}

// With returns a redactor that removes one more key.
func (r Redactor) With(key Secret) Redactor {
	all := []Secret{key}
	if r.keys != nil {
		for _, known := range r.keys.texts() {
			all = append(all, NewSecret(known))
		}
	}
	return New(all...)
}

// mayContain reports whether text has a key in it, or what could encode one.
func (r Redactor) mayContain(text string) bool {
	if r.keys == nil || len(text) < shortestKey {
		return false
	}
	return mayEncode(text) || r.contains(text)
}

// contains reports whether a key is in text without decoding.
func (r Redactor) contains(text string) bool {
	for _, key := range r.keys.patterns() {
		if found, _ := key.plain.find(text); found {
			return true
		}
	}
	return false
}

// Text returns text without the keys.
func (r Redactor) Text(text string) string {
	if !r.mayContain(text) {
		return text
	}
	if spans := r.keys.spans([]byte(text), false); len(spans) > 0 {
		return string(replace([]byte(text), spans, len(text)))
	}
	return text
}

// Contains reports whether [Redactor.Text] would change text.
func (r Redactor) Contains(text string) bool {
	return r.mayContain(text) && len(r.keys.spans([]byte(text), false)) > 0
}

// Snippet returns a copy of the first limit bytes of body, without the keys. It
// looks at [Redactor.Overlap] bytes more, if body has them, so that a key across
// the limit is not cut into a part that is not recognized.
func (r Redactor) Snippet(body []byte, limit int) []byte {
	if r.keys == nil {
		return bytes.Clone(body[:min(len(body), limit)])
	}
	text := body[:min(len(body), limit+r.Overlap())]
	return replace(text, r.keys.spans(text, true), limit)
}

// Overlap is how many bytes beyond the limit of a [Redactor.Snippet] may belong to
// a key that begins before it.
func (r Redactor) Overlap() int {
	longest := 0
	if r.keys != nil {
		for _, key := range r.keys.texts() {
			longest = max(longest, len(key)*len(`\u0000`))
		}
	}
	return longest
}

// Header returns a copy of h without the keys. Values that are a key when they are
// printed together are removed too.
func (r Redactor) Header(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		if r.Contains(name) {
			name = Mask
		}
		for _, value := range values {
			clean[name] = append(clean[name], r.Text(value))
		}
		for _, between := range [...]string{"", " ", ",", ", "} {
			if len(values) > 1 && r.Contains(strings.Join(clean[name], between)) {
				clean[name] = []string{Mask}
			}
		}
	}
	if r.hasPunctuation() && r.Contains(fmt.Sprint(clean)) {
		return http.Header{Mask: {Mask}}
	}
	return clean
}

// hasPunctuation reports whether a key has what stands between the values of a
// printed header or of a JSON value: those together can be a key of which each has
// only a part.
func (r Redactor) hasPunctuation() bool {
	return r.keys != nil && slices.ContainsFunc(r.keys.texts(), func(key string) bool {
		return strings.ContainsAny(key, ` :,"[]{}`)
	})
}

// JSON returns a copy of a valid value without the keys, which is valid too.
func (r Redactor) JSON(v jsontext.Value) jsontext.Value {
	text, clean := string(v), v.Clone()
	if !r.mayContain(text) {
		return clean
	}
	changes, err := r.changesTokens(v)
	if changes || strings.Contains(text, `\u`) && r.contains(text) { // the end of an escape can be the beginning of the key
		clean, err = r.redactTokens(v)
	}
	if err != nil || r.hasPunctuation() && r.Contains(string(clean)) {
		return jsontext.Value(strconv.Quote(Mask))
	}
	return clean
}

// changesTokens reports whether redactTokens changes v, which is rare, in less memory:
// the decoder and the encoder of a large object keep all its names.
func (r Redactor) changesTokens(v jsontext.Value) (bool, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, changed := r.redactToken(token); changed {
			return true, nil
		}
	}
}

// redactTokens rewrites v token by token, which keeps it valid.
func (r Redactor) redactTokens(v jsontext.Value) (jsontext.Value, error) {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err != nil {
			return nil, err
		}
		clean, _ := r.redactToken(token)
		if err := enc.WriteToken(clean); err != nil {
			return nil, err
		}
	}
}

// redactToken returns a string without the keys, and reports whether it had one. A number,
// which may be an amount, is kept unless it is a key.
func (r Redactor) redactToken(token jsontext.Token) (clean jsontext.Token, changed bool) {
	if kind := token.Kind(); kind != '"' && (kind != '0' || !slices.Contains(r.keys.texts(), token.String())) {
		return token, false
	}
	text := r.quotable(r.Text(token.String()))
	if text == token.String() {
		return token, false
	}
	return jsontext.String(text), true
}

// quotable returns text, unless its escapes would complete a key.
func (r Redactor) quotable(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text) // valid: the decoder has read it
	if r.contains(string(quoted)) {
		return Mask
	}
	return text
}

// replace copies the part of text before limit and puts Mask in the place of each
// span that starts there.
func replace(text []byte, spans []span, limit int) []byte {
	limit = min(limit, len(text))
	out := make([]byte, 0, limit+len(Mask))
	at := 0
	for _, s := range spans {
		if s.start >= limit {
			break
		}
		out = append(append(out, text[at:s.start]...), Mask...)
		at = s.end
	}
	return append(out, text[min(at, limit):limit]...)
}
