package redact_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/testing/invariant"
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

// A key is behind a function, where nothing prints, encodes or finds it.
func TestSecret(t *testing.T) {
	t.Parallel()
	secret := redact.NewSecret(key)
	assert.Equal(t, key, secret.Reveal())
	assert.Equal(t, []bool{false, true, true}, []bool{secret.IsEmpty(), redact.NewSecret("").IsEmpty(), redact.Secret{}.IsEmpty()})
	for _, v := range []any{secret, &secret, struct{ hidden redact.Secret }{secret}, of(key, key+"2")} {
		assert.Empty(t, invariant.Shows(v, key))
	}
}

// A key, in whatever spelling, is in nothing that a redactor returns, wherever it is in a
// text; and JSON stays JSON.
func FuzzRedactor(f *testing.F) {
	for _, key := range []string{key, oddKey, `back\slash-key`, `quote"key-77`, "aaaaaaaa", "12345678", `\\\\\\\\`, "abababab"} {
		f.Add(key, "", "", 20)
		f.Add(key, "a "+key[:7], key[1:]+" b", 9)
		f.Add(key, `{"a":["`, `"],"b":1}`, 1000)
		f.Add(key, `["\`, `"]`, 12)
	}
	f.Fuzz(func(t *testing.T, key, before, after string, limit int) {
		// A key that could arise from the mask itself, or is too short, is not looked for.
		if endpoint.APIKey(key) != "" || len(key) < 8 || strings.ContainsAny(key, "[]") || strings.Contains(redact.Mask, key) {
			return
		}
		quoted, _ := jsontext.AppendQuote(nil, key)
		for _, spelling := range []string{key, string(quoted[1 : len(quoted)-1]), url.QueryEscape(key), url.PathEscape(key)} {
			text := before + spelling + after
			limit := min(max(limit, 0), len(text))
			got := map[string]string{
				"text": of(key).Text(text), "snippet": string(of(key).Snippet([]byte(text), limit)), "cut text": string(of(key).Snippet([]byte(text[:limit]), 1<<20)),
			}
			if value := jsontext.Value(text); value.IsValid() {
				clean := of(key).JSON(value)
				require.True(t, clean.IsValid(), "%s became %s", text, clean)
				got["JSON"] = string(clean)
			}
			for name, got := range got {
				require.NotContains(t, got, spelling, "%s of %q", name, text)
				require.NotContains(t, got, key, "%s of %q", name, text)
			}
			for n := len(spelling) - 1; n >= 8; n-- {
				part := spelling[:n]
				require.False(t, strings.HasSuffix(got["cut text"], part) && !strings.Contains(redact.Mask, part), "%q became %q", text[:limit], got["cut text"])
			}
		}
	})
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
		for _, around := range []string{"%s", "a %s b", "%[1]s%[1]s", "Key+%s", `{"%s":"%[1]s"}`} {
			text, want := fmt.Sprintf(around, tt.text), fmt.Sprintf(around, redact.Mask)
			assert.Equal(t, want, r.Text(text), tt.name)
			assert.True(t, r.Contains(text), tt.name)
			assert.Equal(t, want, string(r.Snippet([]byte(text), len(text)+1)), tt.name)
		}
		if value := jsontext.Value(`["a ` + tt.text + `"]`); value.IsValid() {
			assert.Equal(t, `["a [REDACTED]"]`, string(r.JSON(value)), tt.name)
		}
	}
}

// A key that is too short to be told from words is not looked for; the zero secret has none.
func TestNew_shortKeys(t *testing.T) {
	t.Parallel()
	const body = `{"message":"an error of 7654321"}`
	for _, r := range []redact.Redactor{redact.New(redact.Secret{}), of("error", "7654321"), redact.Redactor{}.With(redact.NewSecret("error"))} {
		assert.Equal(t, redact.Redactor{}, r)
		assert.Equal(t, []string{body, body, body[:20]}, []string{r.Text(body), string(r.JSON(jsontext.Value(body))), string(r.Snippet([]byte(body), 20))})
		assert.False(t, r.Contains(body))
		assert.Equal(t, http.Header{"X-Error": {body}}, r.Header(http.Header{"X-Error": {body}}))
	}
	assert.Equal(t, "a [REDACTED]", of("7654321", "87654321").Text("a 87654321"), "8 characters are enough")
}

func TestRedactor_With(t *testing.T) {
	t.Parallel()
	first := of("first/key-1")
	second := first.With(redact.NewSecret("second-key-2"))
	assert.Equal(t, "[REDACTED] second-key-2", first.Text("first/key-1 second-key-2"), "a redactor never changes")
	assert.Equal(t, "[REDACTED] [REDACTED]", second.Text("first/key-1 second-key-2"))
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
		body := []byte(tt.body)
		got := of(key).Snippet(body, tt.limit)
		assert.Equal(t, tt.want, string(got), tt.name)
		clear(got)
		assert.Equal(t, tt.body, string(body), "the snippet is a copy")
	}
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
		value := jsontext.Value(tt.value)
		got := of(tt.key).JSON(value)
		assert.Equal(t, tt.want, string(got), tt.name)
		clear(got)
		assert.Equal(t, tt.value, string(value), "the result is a copy")
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
