// Package redact removes API keys and passwords from what is handed out.
//
// A [Secret] holds a key where nothing prints it. A [Redactor] puts [Mask] in the
// place of each key that it finds in a text, a header or a JSON value, plainly or
// spelled with the escapes of JSON. It looks for keys of at least 8 characters: a
// shorter one would be found in ordinary words.
package redact

import (
	"bytes"
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
	keys func() []string // those that are looked for
}

// New returns a redactor that removes the keys of secrets.
func New(secrets ...Secret) Redactor {
	var keys []string
	for _, s := range secrets {
		if !s.IsEmpty() && len(s.Reveal()) >= shortestKey {
			keys = append(keys, s.Reveal())
		}
	}
	if keys == nil {
		return Redactor{}
	}
	return Redactor{keys: func() []string { return keys }}
}

// With returns a redactor that removes one more key.
func (r Redactor) With(key Secret) Redactor {
	all := []Secret{key}
	if r.keys != nil {
		for _, known := range r.keys() {
			all = append(all, NewSecret(known))
		}
	}
	return New(all...)
}

// mayContain reports whether text has a key in it, or escapes that could spell one.
func (r Redactor) mayContain(text string) bool {
	if r.keys == nil || len(text) < shortestKey {
		return false
	}
	return r.contains(text) || strings.Contains(text, `\`)
}

// contains reports whether a key is in text as it is.
func (r Redactor) contains(text string) bool {
	return slices.ContainsFunc(r.keys(), func(key string) bool { return strings.Contains(text, key) })
}

// Text returns text without the keys.
func (r Redactor) Text(text string) string {
	if !r.mayContain(text) {
		return text
	}
	return string(r.replace([]byte(text), len(text)))
}

// Snippet returns a copy of the first limit bytes of body, without the keys. It
// looks at [Redactor.Overlap] bytes more, if body has them, so that a key across
// the limit is not cut into a part that is not recognized.
func (r Redactor) Snippet(body []byte, limit int) []byte {
	if r.keys == nil {
		return bytes.Clone(body[:min(len(body), limit)])
	}
	return r.replace(body, limit)
}

// Overlap is how many bytes beyond the limit of a [Redactor.Snippet] may belong to
// a key that begins before it.
func (r Redactor) Overlap() int {
	longest := 0
	if r.keys != nil {
		for _, key := range r.keys() {
			longest = max(longest, len(key)*len(`\u0000`))
		}
	}
	return longest
}

// Header returns a copy of h without the keys. In the name of a header the case
// of letters does not matter, because HTTP changes it.
func (r Redactor) Header(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		if r.isInName(name) {
			name = Mask
		}
		for _, value := range values {
			clean[name] = append(clean[name], r.Text(value))
		}
	}
	return clean
}

func (r Redactor) isInName(name string) bool {
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

// JSON returns a copy of a valid value without the keys, which is valid too.
func (r Redactor) JSON(v jsontext.Value) jsontext.Value {
	if !r.mayContain(string(v)) {
		return v.Clone()
	}
	clean, changed, err := r.redactTokens(v)
	switch {
	case err != nil:
		return jsontext.Value(strconv.Quote(Mask))
	case changed || bytes.Contains(v, []byte(`\u`)) && r.contains(string(v)): // the end of an escape can be the beginning of the key
		return clean
	default:
		return v.Clone()
	}
}

// redactTokens rewrites v token by token, which keeps it valid. A number, which may
// be an amount, is kept unless it is a key.
func (r Redactor) redactTokens(v jsontext.Value) (clean jsontext.Value, changed bool, err error) {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return bytes.TrimSpace(out.Bytes()), changed, nil
		}
		if err != nil {
			return nil, false, err
		}
		if kind := token.Kind(); kind == '"' || kind == '0' && r.Text(token.String()) == Mask {
			if text := r.quotable(r.Text(token.String())); text != token.String() {
				token, changed = jsontext.String(text), true
			}
		}
		if err := enc.WriteToken(token); err != nil {
			return nil, false, err
		}
	}
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
// key that starts there.
func (r Redactor) replace(text []byte, limit int) []byte {
	out := make([]byte, 0, min(len(text), limit)+len(Mask))
	for i := 0; i < min(len(text), limit); {
		n := 0
		for _, key := range r.keys() {
			n = max(n, matchKey(text[i:], key))
		}
		if n > 0 {
			out = append(out, Mask...)
			i += n
			continue
		}
		out = append(out, text[i])
		i++
	}
	return out
}
