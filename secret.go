package gateway

import (
	"bytes"
	"net/http"
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

// searched is the key to look for in what the service says, or "" for none.
func (s secret) searched() string {
	if s.reveal == nil || len(s.reveal()) < shortestSearched {
		return ""
	}
	return s.reveal()
}

// text returns text without the key.
func (s secret) text(text string) string {
	key := s.searched()
	if key == "" || !s.mayHold(text) {
		return text
	}
	out, _ := redactText([]byte(text), key, len(text))
	return string(out)
}

// mayHold reports whether text holds the key, or escapes that could spell it.
func (s secret) mayHold(text string) bool {
	return strings.Contains(text, s.searched()) || strings.Contains(text, `\`)
}

// decoded returns a decoded string without the key.
func (s secret) decoded(text string) string {
	if key := s.searched(); key != "" && strings.Contains(text, key) {
		return strings.ReplaceAll(text, key, redacted)
	}
	return text
}

// snippet returns a copy of the first limit bytes of body, without the key.
// Of body it looks at more than it returns, so that a key across the limit is
// not cut into a part that nobody recognises.
func (s secret) snippet(body []byte, limit int) []byte {
	if key := s.searched(); key != "" {
		out, _ := redactText(body, key, limit)
		return out
	}
	return bytes.Clone(body[:min(len(body), limit)])
}

// overlap is how much of a body must be kept beyond the limit of a snippet.
func (s secret) overlap() int {
	return len(s.searched()) * len(`\u0000`)
}

// header returns a copy of h without the key.
func (s secret) header(h http.Header) http.Header {
	clean := h.Clone()
	for name, values := range clean {
		if s.inName(name) {
			delete(clean, name)
			name = redacted
		}
		for i := range values {
			values[i] = s.text(values[i])
		}
		clean[name] = values
	}
	return clean
}

// inName reports whether a header's name, the case of which HTTP changes,
// holds the key.
func (s secret) inName(name string) bool {
	key := s.searched()
	return key != "" && strings.Contains(strings.ToLower(name), strings.ToLower(key))
}

// value returns a JSON value of its own without the key, and still valid.
func (s secret) value(v jsontext.Value) jsontext.Value {
	v = v.Clone()
	if key := s.searched(); key == "" || !s.mayHold(string(v)) {
		return v
	}
	clean, changed, err := s.redactTokens(v)
	switch {
	case err != nil:
		return jsontext.Value(strconv.Quote(redacted))
	case changed:
		return clean
	default:
		return v
	}
}

// redactTokens rewrites v token by token, which finds a key however its
// characters are escaped and leaves numbers, which are money, as they are.
func (s secret) redactTokens(v jsontext.Value) (clean jsontext.Value, changed bool, err error) {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return bytes.TrimSpace(out.Bytes()), changed, ignoreEOF(err)
		}
		if kind := token.Kind(); kind == '"' || kind == '0' && token.String() == s.reveal() {
			if text := s.decoded(token.String()); text != token.String() {
				token, changed = jsontext.String(text), true
			}
		}
		if err := enc.WriteToken(token); err != nil {
			return nil, false, err
		}
	}
}

// redactText copies the part of text before limit and puts redacted in the
// place of each key that starts there. It reports whether it found one.
func redactText(text []byte, key string, limit int) (out []byte, found bool) {
	for i := 0; i < min(len(text), limit); {
		if n := matchKey(text[i:], key); n > 0 {
			out, found = append(out, redacted...), true
			i += n
			continue
		}
		out = append(out, text[i])
		i++
	}
	return out, found
}

// matchKey returns how many bytes at the start of text spell key, plainly or
// with the escapes of JSON, or 0. A text that ends within a long part of the
// key spells it too: the connection was cut there.
func matchKey(text []byte, key string) int {
	if whole := min(len(text), len(key)); whole >= shortestSearched && string(text[:whole]) == key[:whole] {
		return whole
	}
	at := 0
	for k := range len(key) {
		if k >= shortestSearched && endsInEscape(text[at:]) {
			return len(text)
		}
		if at == len(text) {
			return 0
		}
		char, n := unescape(text[at:])
		if char != key[k] {
			return 0
		}
		at += n
	}
	return at
}

// endsInEscape reports whether nothing is left of a text, or only the
// beginning of an escape.
func endsInEscape(rest []byte) bool {
	return len(rest) == 0 || rest[0] == '\\' && len(rest) < len(`\u0000`) && (len(rest) == 1 || rest[1] == 'u')
}

// unescape returns the first character of text and how many bytes spell it.
func unescape(text []byte) (char byte, n int) {
	if text[0] != '\\' || len(text) < 2 {
		return text[0], 1
	}
	if text[1] != 'u' {
		return text[1], 2
	}
	if len(text) >= 6 {
		if code, err := strconv.ParseUint(string(text[2:6]), 16, 8); err == nil {
			return byte(code), 6
		}
	}
	return text[0], 1
}
