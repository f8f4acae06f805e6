package redact_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/redact"
)

const (
	key = "CANARY-5f1d/8e0b7a64c932"

	// oddKey has what encoders change, and a letter between.
	oddKey = `Key+a/b=c&d<e>f'g"h\i` + "`j k"
)

func of(keys ...string) redact.Redactor {
	var secrets []redact.Secret
	for _, key := range keys {
		secrets = append(secrets, redact.NewSecret(key))
	}
	return redact.New(secrets...)
}

func TestRedactor_spellings(t *testing.T) {
	t.Parallel()
	r := of(oddKey)
	for _, tt := range []struct{ name, text string }{
		{"as it is", oddKey},
		{"JSON", `Key+a/b=c&d<e>f'g\"h\\i` + "`j k"},
		{"a query", `Key%2Ba%2Fb%3Dc%26d%3Ce%3Ef%27g%22h%5Ci%60j+k`},
		{"a path", `Key+a%2Fb=c&d%3Ce%3Ef%27g%22h%5Ci%60j%20k`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, around := range []string{"%s", "a %s b", "%[1]s%[1]s", "Key+%s", `{"%s":"%[1]s"}`} {
				text, want := fmt.Sprintf(around, tt.text), fmt.Sprintf(around, redact.Mask)
				assert.Equal(t, want, r.Text(text))
				assert.True(t, r.Contains(text))
				assert.Equal(t, want, string(r.Snippet([]byte(text), len(text)+1)))
			}
			if value := jsontext.Value(`["a ` + tt.text + `"]`); value.IsValid() {
				assert.Equal(t, `["a [REDACTED]"]`, string(r.JSON(value)))
			}
		})
	}
}

// A key that is too short to be told from words is not looked for; the zero secret
// has none.
func TestNew_shortKeys(t *testing.T) {
	t.Parallel()
	const body = `{"message":"an error of 7654321"}`
	for _, r := range []redact.Redactor{
		{},
		redact.New(redact.Secret{}), of(""), of("error", "7654321"), redact.Redactor{}.With(redact.NewSecret("error")),
	} {
		assert.Equal(t, redact.Redactor{}, r)
		assert.Equal(t, body, r.Text(body))
		assert.False(t, r.Contains(body))
		assert.Equal(t, body, string(r.JSON(jsontext.Value(body))))
		assert.Equal(t, body[:20], string(r.Snippet([]byte(body), 20)))
		assert.Equal(t, http.Header{"X-Error": {body}}, r.Header(http.Header{"X-Error": {body}}))
		assert.Zero(t, r.Overlap())
	}
	assert.Equal(t, "a [REDACTED]", of("7654321", "87654321").Text("a 87654321"), "8 characters are enough")
}

func TestRedactor_With(t *testing.T) {
	t.Parallel()
	const text = "first/key-1 second-key-2 third-key-3"
	first := of("first/key-1")
	second := first.With(redact.NewSecret("second-key-2"))
	third := second.With(redact.NewSecret("third-key-3"))
	assert.Equal(t, "[REDACTED] second-key-2 third-key-3", first.Text(text), "a redactor never changes")
	assert.Equal(t, "[REDACTED] [REDACTED] third-key-3", second.Text(text))
	assert.Equal(t, "[REDACTED] [REDACTED] [REDACTED]", third.Text(text))
	for _, keys := range [][]string{{"key-number-1", "key-number-12"}, {"key-number-12", "key-number-1"}} {
		assert.Equal(t, "[REDACTED] [REDACTED]3", of(keys...).Text("key-number-12 key-number-13"), "the longest first")
	}
}

// A key across the limit of a snippet is removed, and so is most of one at the end of the
// text, which may be cut.
func TestRedactor_Snippet(t *testing.T) {
	t.Parallel()
	escaped := url.QueryEscape(key)
	for _, tt := range []struct {
		name, body string
		limit      int
		want       string
	}{
		{"no key", "abcdef", 3, "abc"},
		{"a key before the limit", "a " + key + " bcd", 14, "a [REDACTED] b"},
		{"a key across the limit", "a " + key + " b", 13, "a [REDACTED] "},
		{"of a key across the limit nothing is left", "a " + key + " b", 10, "a [REDACTE"},
		{"a key that begins at the last byte", "abc" + key + " b", 4, "abc["},
		{"8 characters at the end", "a " + key[:8], 99, "a [REDACTED]"},
		{"7 characters at the end, too few to tell", "a " + key[:7], 99, "a " + key[:7]},
		{"8 characters before the end", key[:8] + " b", 99, key[:8] + " b"},
		{"half an escape at the end", "a " + escaped[:12], 99, "a [REDACTED]"},
		{"a key and a part of it", key + key[:8], 99, "[REDACTED][REDACTED]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := []byte(tt.body)
			got := of(key).Snippet(body, tt.limit)
			assert.Equal(t, tt.want, string(got))
			clear(got)
			assert.Equal(t, tt.body, string(body), "the snippet is a copy")
		})
	}
	assert.Equal(t, 3*1+len("12345678")-1, of("1234567/", "12345678").Overlap(), "the longest spelling counts")
}

func TestRedactor_JSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, key, value, want string }{
		{"no key, byte for byte", key, `{ "a" : 1.50 ,"b":"\u00e9\/"}`, `{ "a" : 1.50 ,"b":"\u00e9\/"}`},
		{"a text", key, `"` + key + `"`, `"[REDACTED]"`},
		{"a name", key, `{"` + key + `":1}`, `{"[REDACTED]":1}`},
		{"deep down, beside digits", key, `{"a":[{"b":"` + key + `","c":10.500}]}`, `{"a":[{"b":"[REDACTED]","c":10.500}]}`},
		{"JSON in a text", `quote"key`, `["{\"a\":1}","quote\"key"]`, `["{\"a\":1}","[REDACTED]"]`},
		{"a name that is there twice then", key, `{"` + key + `":1,"[REDACTED]":2}`, `"[REDACTED]"`},
		{"a number", "12345678", `{"a":12345678}`, `"[REDACTED]"`},
		{"across texts", `one","two`, `["one","two"]`, `["[REDACTED]"]`},
		{"a backslash of another character", `backs\\lash\`, `["backs\\lash\""]`, `"[REDACTED]"`},
		{"after a backslash", "u0041bcd", `["\u0041bcd"]`, `"[REDACTED]"`},
		{"a text that is not JSON", key, `{"` + key + `":`, `"[REDACTED]"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			value := jsontext.Value(tt.value)
			got := of(tt.key).JSON(value)
			assert.Equal(t, tt.want, string(got))
			clear(got)
			assert.Equal(t, tt.value, string(value), "the result is a copy")
		})
	}
	assert.Nil(t, of(key).JSON(nil))
}

func TestRedactor_Header(t *testing.T) {
	t.Parallel()
	given := http.Header{"A": {"x", "y " + key}, "B": {"z"}, "Empty": {}}
	got := of("another-key", key).Header(given)
	assert.Equal(t, http.Header{"A": {"x", "y [REDACTED]"}, "B": {"z"}}, got)
	assert.Equal(t, "y "+key, given["A"][1], "the given header is not changed")
	assert.Empty(t, of(key).Header(nil))
}

// A text without a key is not copied, unless the result must be a copy.
func TestRedactor_allocations(t *testing.T) {
	r := of(oddKey, key, "another-key-1")
	text := strings.Repeat("a text without a key, CANARY-5f1d/8e0b7a64c93! ", 20)
	body := []byte(text)
	for name, tt := range map[string]struct {
		most float64
		do   func()
	}{
		"Text":     {0, func() { _ = r.Text(text) }},
		"Contains": {0, func() { _ = r.Contains(text) }},
		"Snippet":  {1, func() { _ = r.Snippet(body, len(body)) }},
		"JSON":     {1, func() { _ = r.JSON(body) }},
	} {
		assert.LessOrEqual(t, testing.AllocsPerRun(100, tt.do), tt.most, name)
	}
}
