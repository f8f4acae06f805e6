// Package redact removes API keys and passwords from texts that leave the client.
//
// A [Secret] holds a key where nothing prints it. A [Redactor] puts [Mask] in the place of
// each key that it finds: as it is, and as JSON and URLs write it. It looks for keys of at
// least 8 characters: a shorter one would be found in ordinary words.
package redact

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
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
	// reveal returns the spellings of every key, the longest first: a function hides them from package fmt and
	// from reflection, and behind a pointer it leaves copies of a Redactor equal. It is nil for no keys.
	reveal *func() []spelling
}

// A spelling is how one encoder writes a key.
type spelling struct {
	text  string
	bytes []byte
}

// New returns a redactor that removes the keys of secrets.
func New(secrets ...Secret) Redactor { return Redactor{}.With(secrets...) }

// With returns a redactor that removes more keys.
func (r Redactor) With(secrets ...Secret) Redactor {
	all := slices.Clone(r.spellings())
	for _, s := range secrets {
		if key := s.Reveal(); len(key) >= shortestKey {
			for _, text := range spellings(key) {
				all = append(all, spelling{text, []byte(text)})
			}
		}
	}
	if len(all) == 0 {
		return Redactor{}
	}
	slices.SortFunc(all, func(a, b spelling) int { return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text)) })
	all = slices.CompactFunc(all, func(a, b spelling) bool { return a.text == b.text })
	reveal := func() []spelling { return all }
	return Redactor{&reveal}
}

func (r Redactor) spellings() []spelling {
	if r.reveal == nil {
		return nil
	}
	return (*r.reveal)()
}

var jsonEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// spellings returns a key, which is printable ASCII, as it is and as JSON and URLs write it. Most keys have
// one spelling: none of them changes letters, digits and - _ . ~
func spellings(key string) []string {
	query := url.QueryEscape(key)
	if query == key {
		return []string{key}
	}
	return []string{key, jsonEscapes.Replace(key), query, url.PathEscape(key)}
}

// Text returns text without the keys.
func (r Redactor) Text(text string) string {
	for _, s := range r.spellings() {
		text = strings.ReplaceAll(text, s.text, Mask)
	}
	return text
}

// Contains reports whether [Redactor.Text] would change text.
func (r Redactor) Contains(text string) bool {
	return slices.ContainsFunc(r.spellings(), func(s spelling) bool { return strings.Contains(text, s.text) })
}

// bytes is [Redactor.Text] for bytes. It returns text itself where nothing is found.
func (r Redactor) bytes(text []byte) (clean []byte, found bool) {
	for _, s := range r.spellings() {
		if bytes.Contains(text, s.bytes) {
			text, found = bytes.ReplaceAll(text, s.bytes, []byte(Mask)), true
		}
	}
	return text, found
}

// Snippet returns a copy of the first limit bytes of body, without the keys. It looks at more bytes, if body
// has them, so that a key across the limit is found. The end of body may have been cut within a key: of one,
// 8 characters or more are removed there.
func (r Redactor) Snippet(body []byte, limit int) []byte {
	overlap := 0
	if all := r.spellings(); len(all) > 0 {
		overlap = len(all[0].text)
	}
	text, _ := r.bytes(body[:min(len(body), limit+overlap)])
	text = r.withoutPart(text)
	return bytes.Clone(text[:min(len(text), limit)])
}

// withoutPart removes the beginning of a key at the end of text.
func (r Redactor) withoutPart(text []byte) []byte {
	for _, s := range r.spellings() {
		for n := min(len(s.bytes)-1, len(text)); n >= shortestKey; n-- {
			if before, found := bytes.CutSuffix(text, s.bytes[:n]); found {
				return slices.Concat(before, []byte(Mask))
			}
		}
	}
	return text
}

// Header returns a copy of h without the keys in its values.
func (r Redactor) Header(h http.Header) http.Header {
	clean := make(http.Header, len(h))
	for name, values := range h {
		for _, value := range values {
			clean[name] = append(clean[name], r.Text(value))
		}
	}
	return clean
}

// JSON returns a copy of a valid value without the keys, which is valid too: [Mask] alone
// where it would not be.
func (r Redactor) JSON(v jsontext.Value) jsontext.Value {
	clean, found := r.bytes(v)
	switch {
	case !found:
		return v.Clone()
	case !jsontext.Value(clean).IsValid():
		return jsontext.Value(strconv.Quote(Mask))
	default:
		return clean
	}
}
