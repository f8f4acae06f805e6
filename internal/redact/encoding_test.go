package redact_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/redact"
)

// each writes every character of text in a format.
func each(format, text string) string {
	var out strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&out, format, text[i])
	}
	return out.String()
}

// encodings are what services and printers make of a text.
func encodings() map[string]func(string) string {
	return map[string]func(string) string{
		"as it is":                        func(s string) string { return s },
		"in upper case":                   strings.ToUpper,
		"in lower case":                   strings.ToLower,
		"percent-encoded":                 url.QueryEscape,
		"percent-encoded for a path":      url.PathEscape,
		"percent-encoded in lower case":   func(s string) string { return each("%%%02x", s) },
		"percent-encoded in upper case":   func(s string) string { return each("%%%02X", s) },
		"in HTML":                         html.EscapeString,
		"in HTML, by name":                strings.NewReplacer("&", "&AMP;", `"`, "&quot;", "<", "&lt;", ">", "&GT;", "'", "&apos;").Replace,
		"in decimal entities":             func(s string) string { return each("&#%d;", s) },
		"in padded decimal entities":      func(s string) string { return each("&#%04d;", s) },
		"in hexadecimal entities":         func(s string) string { return each("&#x%02x;", s) },
		"in entities of upper case":       func(s string) string { return each("&#X%02X;", s) },
		"in escapes of JSON":              inUnicode,
		"in escapes of Go":                func(s string) string { return each(`\x%02x`, s) },
		"quoted by Go":                    func(s string) string { return fmt.Sprintf("%q", s) },
		"quoted as JSON":                  func(s string) string { return nested(s, 1) },
		"in a JSON pointer":               func(s string) string { return string(jsontext.Pointer("").AppendToken(s)) },
		"in a JSON pointer, put together": strings.NewReplacer("~1", "/", "~0", "~").Replace,
	}
}

var encodedKeys = []string{key, `quote"key-77`, `a~1b~0c/d~e`, `line\nend\tkey`, `<tag>&key%41;77`, "key with+spaces", "aaaaaaaaaaab", "&amp;abcdefgh%2541&#65;"}

// A key is removed in every encoding, and in every encoding of an encoding.
func TestRedactor_encodings(t *testing.T) {
	t.Parallel()
	for _, key := range encodedKeys {
		for first, encode := range encodings() {
			for second, again := range encodings() {
				text := "a, " + again(encode(key)) + ", b"
				got := of(key).Text(text)
				assert.Equal(t, 1, strings.Count(got, redact.Mask), "%q %s, then %s: %q is %q", key, first, second, text, got)
				assert.Less(t, len(got), len("a, , b")+len(redact.Mask)+16, "%q %s, then %s: %q is %q", key, first, second, text, got)
				assert.True(t, of(key).Contains(text))
				assert.False(t, of(key).Contains(got))
				body := jsontext.Value(nested(text, 1))
				assert.NotContains(t, strings.ToLower(string(of(key).JSON(body))), strings.ToLower(key))
			}
		}
	}
}

// Encoded characters of another text stay as they are.
func TestRedactor_otherEncodings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"100 %", "%zz %4", "a%20b&c=d", "&amp; &lt; &gt; &quot; &apos; &#65; &#x41; &#xzz; &#; &; &unknown; &#999999999;", "~0~1~2", `\x4 \xzz \u00 \u00zz \u00e9 \n`,
		strings.Repeat("%", 99), strings.Repeat("&", 99), strings.Repeat("~", 99), strings.Repeat("&#x00000041;", 9),
	} {
		assert.Equal(t, text+" [REDACTED]", of(key).Text(text+" "+key))
		assert.Equal(t, text, of(key).Text(text))
	}
}

// Each of several texts may have only a part of a key, which is whole when they are
// printed together.
func TestRedactor_joined(t *testing.T) {
	t.Parallel()
	t.Run("values of a header", func(t *testing.T) {
		t.Parallel()
		for key, values := range map[string][]string{
			"key with spaces": {"key with", "spaces"}, "key,commas": {"key", "commas"}, "key, spaces": {"key", "spaces"}, "key-number-1": {"key-num", "ber-1"},
		} {
			got := of(key).Header(http.Header{"A": values, "B": {"b"}})
			assert.Equal(t, http.Header{"A": {redact.Mask}, "B": {"b"}}, got, key)
		}
		got := of("one] B:[two").Header(http.Header{"A": {"one"}, "B": {"two"}})
		assert.Equal(t, http.Header{redact.Mask: {redact.Mask}}, got)
	})
	t.Run("values of JSON", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, `"[REDACTED]"`, string(of(`one","two`).JSON(jsontext.Value(`["one","two"]`))))
		assert.Equal(t, `["one","three"]`, string(of(`one","two`).JSON(jsontext.Value(`["one","three"]`))))
	})
}

// What has no key is neither copied nor decoded.
func TestRedactor_Text_allocations(t *testing.T) {
	r := of(key, "another-key-1")
	text := strings.Repeat("a text without a key, CANARY-5f1d/8e0b7a64c93! ", 20)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = r.Text(text) }))
}
