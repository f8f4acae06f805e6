package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
)

const testKey = "CANARY-5f1d/8e0b7a64c932"

// spelledInUnicode writes every character of text as an escape.
func spelledInUnicode(text string) string {
	var out strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&out, `\u%04x`, text[i])
	}
	return out.String()
}

func TestSecret_snippet(t *testing.T) {
	t.Parallel()
	s := newRedactor(newSecret(testKey))
	for _, tt := range []struct{ name, body, want string }{
		{"nothing", "", ""},
		{"no key", "abc", "abc"},
		{"the key alone", testKey, "[REDACTED]"},
		{"the key in words", "a " + testKey + " b", "a [REDACTED] b"},
		{"the key twice", testKey + testKey, "[REDACTED][REDACTED]"},
		{"after a part of it", "CANARY-" + testKey, "CANARY-[REDACTED]"},
		{"with a slash in an escape", strings.ReplaceAll(testKey, "/", `\/`), "[REDACTED]"},
		{"with its first letter in an escape", `\u0043` + testKey[1:], "[REDACTED]"},
		{"all in escapes", spelledInUnicode(testKey), "[REDACTED]"},
		{"in escapes of upper case", strings.ToUpper(spelledInUnicode(testKey)), strings.ToUpper(spelledInUnicode(testKey))},
		{"hexadecimal digits of upper case", strings.ReplaceAll(spelledInUnicode(testKey), `\u002d`, `\u002D`), "[REDACTED]"},
		{"after a backslash of its own", `\\` + testKey, `[REDACTED]`},
		{"in an escape that was escaped again", strings.ReplaceAll(testKey, "/", `\\\/`), "[REDACTED]"},
		{"all in escapes that were escaped again", strings.ReplaceAll(spelledInUnicode(testKey), `\`, `\\`), "[REDACTED]"},
		{"a start at the end", "a " + testKey[:8], "a [REDACTED]"},
		{"a start at the end, too short to tell", "a " + testKey[:7], "a " + testKey[:7]},
		{"half an escape at the end", "a " + testKey[:10] + `\u00`, "a [REDACTED]"},
		{"another key", testKey[:20] + "xxxx", testKey[:20] + "xxxx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := []byte(tt.body)
			got := string(s.snippet(body, maxKept))
			assert.Equal(t, tt.want, got)
			assert.NotContains(t, got, testKey)
			assert.Equal(t, tt.body, string(body), "the body is not changed")
		})
	}
}

// A key that is cut by the limit of a snippet leaves no more of itself than
// could be anybody's.
func TestSecret_snippetLimit(t *testing.T) {
	t.Parallel()
	s := newRedactor(newSecret(testKey))
	for _, spelled := range []string{testKey, spelledInUnicode(testKey)} {
		for before := maxKept - len(spelled) - 1; before <= maxKept+1; before++ {
			whole := strings.Repeat("x", before) + spelled + strings.Repeat("y", 100)
			kept := whole[:min(len(whole), maxKept+s.overlap())]
			got := string(s.snippet([]byte(kept), maxKept))
			assert.NotContains(t, got, spelled[:shortestSearched], "%d bytes before", before)
			assert.LessOrEqual(t, len(got), maxKept+len(redacted))
		}
	}
}

func TestSecret_awkwardKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		`back\slash-key`, `\u0041bcdefgh`, `quote"key-77`, `slash/key-77`, `<tag>&key-77`, "aaaaaaaa", "12345678", "key with spaces",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			s := newRedactor(newSecret(key))
			assert.NotContains(t, string(s.snippet([]byte("plain: "+key+" end"), maxKept)), key)
			assert.NotContains(t, s.text("plain: "+key+" end"), key)
			assert.NotContains(t, s.text("plain: "+key+" end"), key)
			quoted, _ := jsontext.AppendQuote(nil, key)
			html, _ := json.Marshal(key)
			for _, spelled := range []string{string(quoted), string(html)} {
				assert.NotContains(t, string(s.snippet([]byte(`{"a":`+spelled+`}`), maxKept)), strings.Trim(spelled, `"`))
				assertValueHides(t, s, `{"a":`+spelled+`}`, key)
				assertValueHides(t, s, `{`+spelled+`:1}`, key)
			}
		})
	}
}

// assertValueHides asserts that a JSON value is cleaned, and stays JSON.
func assertValueHides(t *testing.T, s redactor, value, key string) {
	t.Helper()
	got := s.value(jsontext.Value(value))
	assert.True(t, got.IsValid(), "%s", got)
	dec := jsontext.NewDecoder(strings.NewReader(string(got)))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return
		}
		assert.NotContains(t, token.String(), key)
	}
}

func TestSecret_value(t *testing.T) {
	t.Parallel()
	s := newRedactor(newSecret(testKey))
	for _, tt := range []struct{ name, value, want string }{
		{"nothing to hide, byte for byte", `{ "a" : 1.50 ,"b":"\u00e9\/"}`, `{ "a" : 1.50 ,"b":"\u00e9\/"}`},
		{"a text", `"` + testKey + `"`, `"[REDACTED]"`},
		{"a part of a text", `["a ` + testKey + ` b"]`, `["a [REDACTED] b"]`},
		{"in escapes", `["` + spelledInUnicode(testKey) + `"]`, `["[REDACTED]"]`},
		{"a name", `{"` + testKey + `":1}`, `{"[REDACTED]":1}`},
		{"deep down", `{"a":[{"b":"` + testKey + `"}]}`, `{"a":[{"b":"[REDACTED]"}]}`},
		{"digits beside it stay", `{"a":10.500,"b":"` + testKey + `","c":1e3}`, `{"a":10.500,"b":"[REDACTED]","c":1e3}`},
		{"its first letter ends an escape", `{"\u004` + testKey + `":"\u004` + testKey + `"}`, `{"L` + testKey[1:] + `":"L` + testKey[1:] + `"}`},
		{"two names that become one", `{"` + testKey + `":1,"[REDACTED]":2}`, `"[REDACTED]"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, string(s.value(jsontext.Value(tt.value))))
		})
	}
	t.Run("a key of digits as a number", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, `{"a":"[REDACTED]","b":123456789}`, string(newRedactor(newSecret("12345678")).value(jsontext.Value(`{"a":12345678,"b":123456789}`))))
	})
	t.Run("a key whose first letter ends an escape that no other spelling avoids", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, `["[REDACTED]",1]`, string(newRedactor(newSecret("c4nary-key")).value(jsontext.Value(`["\u001c4nary-key",1]`))))
	})
	t.Run("no value", func(t *testing.T) {
		t.Parallel()
		assert.Nil(t, s.value(nil))
	})
}

func TestSecret_header(t *testing.T) {
	t.Parallel()
	s := newRedactor(newSecret(testKey))
	given := http.Header{"A": {"x", "y " + testKey}, "B": {"z"}, "X-" + testKey: {"v"}}
	got := s.header(given)
	assert.Equal(t, http.Header{"A": {"x", "y [REDACTED]"}, "B": {"z"}, "[REDACTED]": {"v"}}, got)
	assert.Equal(t, "y "+testKey, given["A"][1], "the given header is not changed")
	assert.Empty(t, s.header(nil))
}

// A key that is too short to be told from words is not looked for; the zero
// secret has none.
func TestSecret_short(t *testing.T) {
	t.Parallel()
	for _, s := range []redactor{
		{}, newRedactor(), newRedactor(secret{}), newRedactor(newSecret("")), newRedactor(newSecret("error"), newSecret("7654321")),
	} {
		const body = `{"message":"an error of 7654321"}`
		assert.Equal(t, body, string(s.snippet([]byte(body), maxKept)))
		assert.Equal(t, body, string(s.value(jsontext.Value(body))))
		assert.Equal(t, body, s.text(body))
		assert.Equal(t, http.Header{"A": {body}}, s.header(http.Header{"A": {body}}))
		assert.Zero(t, s.overlap())
	}
	assert.True(t, secret{}.empty())
	assert.True(t, newSecret("").empty())
	assert.False(t, newSecret("k").empty())
}
