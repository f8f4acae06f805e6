package redact_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/redact"
)

const (
	key = "CANARY-5f1d/8e0b7a64c932"

	limit = 256 // of a snippet, where it does not matter
)

func of(keys ...string) redact.Redactor {
	var secrets []redact.Secret
	for _, key := range keys {
		secrets = append(secrets, redact.NewSecret(key))
	}
	return redact.New(secrets...)
}

// runs is so many backslashes.
func runs(n int) string { return strings.Repeat(`\`, n) }

// inUnicode writes every character of text as an escape.
func inUnicode(text string) string {
	var out strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&out, `\u%04x`, text[i])
	}
	return out.String()
}

// A key is removed however it is spelled, and what is not a key stays. Text and
// Snippet remove the same.
func TestRedactor_spellings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"no key", "abc", "abc"},
		{"the key alone", key, "[REDACTED]"},
		{"the key in words", "a " + key + " b", "a [REDACTED] b"},
		{"the key twice", key + key, "[REDACTED][REDACTED]"},
		{"after a part of it", "CANARY-" + key, "CANARY-[REDACTED]"},
		{"with a slash in an escape", strings.ReplaceAll(key, "/", `\/`), "[REDACTED]"},
		{"with its first letter in an escape", `\u0043` + key[1:], "[REDACTED]"},
		{"with its last letter in an escape", key[:len(key)-1] + `\u0032 b`, "[REDACTED] b"},
		{"all in escapes", inUnicode(key), "[REDACTED]"},
		{"in escapes of upper case", strings.ToUpper(inUnicode(key)), "[REDACTED]"},
		{"hexadecimal digits of upper case", strings.ReplaceAll(inUnicode(key), `\u002d`, `\u002D`), "[REDACTED]"},
		{"escapes of other characters", strings.ReplaceAll(inUnicode(key), `\u002d`, `\u002e`), strings.ReplaceAll(inUnicode(key), `\u002d`, `\u002e`)},
		{"an escape without its backslash", `u0043` + key[1:], `u0043` + key[1:]},
		{"no hexadecimal digits", `\u004x` + key[1:], `\u004x` + key[1:]},
		{"after a backslash of its own", `\\` + key, "[REDACTED]"},
		{"in an escape that was escaped again", strings.ReplaceAll(key, "/", `\\\/`), "[REDACTED]"},
		{"all in escapes that were escaped again", strings.ReplaceAll(inUnicode(key), `\`, `\\`), "[REDACTED]"},
		{"64 backslashes in one escape", `\u0043` + strings.Replace(key[1:], "/", runs(64)+"/", 1), "[REDACTED]"},
		{"many backslashes", `\` + strings.Replace(key, "/", runs(1000)+"/", 1), "[REDACTED]"},
		{"another key", key[:20] + "xxxx", key[:20] + "xxxx"},
		{"a short text with an escape", `a\`, `a\`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := []byte(tt.text)
			assert.Equal(t, tt.want, string(of(key).Snippet(body, 1<<10)))
			assert.Equal(t, tt.want, of(key).Text(tt.text))
			assert.Equal(t, tt.text, string(body), "the body is not changed")
		})
	}
}

var cutTexts = []struct{ name, text, want string }{
	{"8 characters", key[:8], "[REDACTED]"},
	{"all characters but one", key[:len(key)-1], "[REDACTED]"},
	{"7 characters, too few to tell", key[:7], key[:7]},
	{"8 characters with more behind", key[:8] + " b", key[:8] + " b"},
	{"8 characters and one of another text", key[:8] + "x", key[:8] + "x"},
	{"8 characters in escapes", inUnicode(key[:8]), "[REDACTED]"},
	{"7 characters in escapes", inUnicode(key[:7]), inUnicode(key[:7])},
	{"a backslash", key[:10] + `\`, "[REDACTED]"},
	{"a backslash after 7 characters", key[:7] + `\`, key[:7] + `\`},
	{"the u of an escape", key[:10] + `\u`, "[REDACTED]"},
	{"half an escape", key[:10] + `\u00`, "[REDACTED]"},
	{"an escape without its last digit", key[:10] + `\u003`, "[REDACTED]"},
	{"half an escape that was escaped again", key[:10] + `\\u00`, "[REDACTED]"},
	{"half an escape after 8 characters", key[:8] + `\u00`, "[REDACTED]"},
	{"half an escape after 7 characters", key[:7] + `\u00`, key[:7] + `\u00`},
	{"digits without a backslash", key[:10] + "u00", key[:10] + "u00"},
	{"an escape of one character", key[:10] + `\n`, key[:10] + `\n`},
	{"a whole escape of another character", key[:10] + `\u0078`, key[:10] + `\u0078`},
	{"64 backslashes", key[:10] + runs(64), "[REDACTED]"},
	{"65 backslashes and half an escape", key[:10] + runs(65) + "u000", "[REDACTED]"},
	{"many backslashes and half an escape", key[:10] + runs(1000) + "u000", "[REDACTED]"},
	{"a part of a percent-encoded character", key[:10] + "%2", "[REDACTED]"},
	{"a percent sign", key[:10] + "%", "[REDACTED]"},
	{"a part of a percent sign that is encoded", key[:10] + "%252", "[REDACTED]"},
	{"a percent-encoded character of another text", key[:10] + "%2a", key[:10] + "%2a"},
	{"a percent sign and no digits", key[:10] + "% x", key[:10] + "% x"},
	{"a part of an entity", key[:10] + "&#x3", "[REDACTED]"},
	{"an entity without its end", key[:10] + "&amp", "[REDACTED]"},
	{"no entity", key[:10] + "& b", key[:10] + "& b"},
	{"a part of an escape of a pointer", key[:10] + "~", "[REDACTED]"},
	{"a part of a hexadecimal escape", key[:10] + `\x3`, "[REDACTED]"},
	{"no hexadecimal escape", key[:10] + `\xy`, key[:10] + `\xy`},
}

// A text may be cut within a key. At least 8 characters of it are removed, fewer
// could be a word.
func TestRedactor_keyCutAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range cutTexts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "a "+tt.want, string(of(key).Snippet([]byte("a "+tt.text), limit)))
		})
	}
}

// A key across the limit of a snippet leaves no more of itself than could be
// anybody's.
func TestRedactor_Snippet_limit(t *testing.T) {
	t.Parallel()
	r := of(key)
	for _, spelled := range []string{key, inUnicode(key)} {
		for before := limit - len(spelled) - 1; before <= limit+1; before++ {
			whole := strings.Repeat("x", before) + spelled + strings.Repeat("y", 100)
			body := whole[:min(len(whole), limit+r.Overlap())]
			got := string(r.Snippet([]byte(body), limit))
			want := strings.Repeat("x", min(before, limit))
			if before < limit {
				want += "[REDACTED]"
			}
			if end := before + len(spelled); end < limit {
				want += strings.Repeat("y", limit-end)
			}
			assert.Equal(t, want, got, "%d bytes before", before)
		}
	}
}

func TestRedactor_Snippet_copies(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]redact.Redactor{"no key": {}, "a key": of(key)} {
		body := []byte("abcdef")
		got := r.Snippet(body, 3)
		assert.Equal(t, "abc", string(got), name)
		body[0] = 'x'
		assert.Equal(t, "abc", string(got), name)
		assert.Equal(t, "xbcdef", string(r.Snippet(body, 7)), name)
	}
}

func TestRedactor_Overlap(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 6*8, of("12345678").Overlap(), "every character may be an escape")
	assert.Equal(t, 6*10, of("12345678", "1234567890", "123456789").Overlap(), "the longest key counts")
}

// nested quotes text as JSON so many times.
func nested(text string, times int) string {
	for range times {
		quoted, _ := jsontext.AppendQuote(nil, text)
		text = string(quoted)
	}
	return text
}

// Keys with characters that JSON escapes are found too, up to six levels of it.
func TestRedactor_awkwardKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		`back\slash-key`, `\u0041bcdefgh`, `quote"key-77`, `slash/key-77`, `<tag>&key-77`, "aaaaaaaa", "12345678", "key with spaces",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			r := of(key)
			assert.Equal(t, "plain: [REDACTED] end", string(r.Snippet([]byte("plain: "+key+" end"), limit)))
			assert.Equal(t, "plain: [REDACTED] end", r.Text("plain: "+key+" end"))
			html, _ := json.Marshal(key) // which escapes < and >
			for _, spelled := range []string{nested(key, 1), string(html)} {
				assert.NotContains(t, string(r.Snippet([]byte(`{"a":`+spelled+`}`), limit)), strings.Trim(spelled, `"`))
				assertHidden(t, r, `{"a":`+spelled+`}`, key)
				assertHidden(t, r, `{`+spelled+`:1}`, key)
			}
			for times := 1; times <= 6; times++ {
				got := r.Text("<" + nested(key, times) + ">")
				assert.Equal(t, 1, strings.Count(got, redact.Mask), "%d levels: %s", times, got)
				assert.Empty(t, strings.Trim(got, `<>\"REDACT[]`), "%d levels", times)
			}
		})
	}
}

// assertHidden asserts that a JSON value is cleaned, and stays JSON.
func assertHidden(t *testing.T, r redact.Redactor, value, key string) {
	t.Helper()
	got := r.JSON(jsontext.Value(value))
	assert.True(t, got.IsValid(), "%s", got)
	dec := jsontext.NewDecoder(strings.NewReader(string(got)))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			break
		}
		assert.NotContains(t, token.String(), key)
	}
	assert.Equal(t, 1, strings.Count(string(got), redact.Mask), "%s", got)
}

func TestRedactor_JSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, key, value, want string }{
		{"nothing to hide, byte for byte", key, `{ "a" : 1.50 ,"b":"\u00e9\/"}`, `{ "a" : 1.50 ,"b":"\u00e9\/"}`},
		{"a text", key, `"` + key + `"`, `"[REDACTED]"`},
		{"a part of a text", key, `["a ` + key + ` b"]`, `["a [REDACTED] b"]`},
		{"in escapes", key, `["` + inUnicode(key) + `"]`, `["[REDACTED]"]`},
		{"a name", key, `{"` + key + `":1}`, `{"[REDACTED]":1}`},
		{"deep down", key, `{"a":[{"b":"` + key + `"}]}`, `{"a":[{"b":"[REDACTED]"}]}`},
		{"digits beside it stay", key, `{"a":10.500,"b":"` + key + `","c":1e3}`, `{"a":10.500,"b":"[REDACTED]","c":1e3}`},
		{"spaces around it", key, ` [ "` + key + `" ] `, `["[REDACTED]"]`},
		{"its first letter ends an escape", key, `{"\u004` + key + `":"\u004` + key + `"}`, `{"L` + key[1:] + `":"L` + key[1:] + `"}`},
		{"two names that become one", key, `{"` + key + `":1,"[REDACTED]":2}`, `"[REDACTED]"`},
		{"what is not JSON", key, `{"` + key + `":`, `"[REDACTED]"`},
		{"a key of digits as a number", "12345678", `{"a":12345678,"b":123456789}`, `{"a":"[REDACTED]","b":123456789}`},
		{"a key of digits within a text", "12345678", `["a12345678"]`, `["a[REDACTED]"]`},
		{"a key that is the word of a literal is no text", "truefalse", `[true,false,"truefalse"]`, `[true,false,"[REDACTED]"]`},
		{"its first letter ends an escape that no other spelling avoids", "c4nary-key", `["\u001c4nary-key",1]`, `["[REDACTED]",1]`},
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
	t.Run("no value", func(t *testing.T) {
		t.Parallel()
		assert.Nil(t, of(key).JSON(nil))
	})
}

func TestRedactor_Header(t *testing.T) {
	t.Parallel()
	given := http.Header{
		"A": {"x", "y " + key}, "B": {"z"}, "X-" + key: {"v"}, "X-" + strings.ToLower(key): {"w"}, "X-" + strings.ToUpper(key) + "-Y": {"u"}, "Empty": {},
	}
	got := of("another-key", key).Header(given)
	assert.ElementsMatch(t, []string{"v", "w", "u"}, got["[REDACTED]"], "in the name of a header the case does not matter")
	delete(got, "[REDACTED]")
	assert.Equal(t, http.Header{"A": {"x", "y [REDACTED]"}, "B": {"z"}}, got)
	assert.Equal(t, "y "+key, given["A"][1], "the given header is not changed")
	assert.Empty(t, of(key).Header(nil))
}

// A key that is too short to be told from words is not looked for; the zero secret
// has none.
func TestNew_shortKeys(t *testing.T) {
	t.Parallel()
	const body = `{"message":"an error of 7654321"}`
	for _, r := range []redact.Redactor{
		{},
		redact.New(), redact.New(redact.Secret{}), of(""), of("error", "7654321"),
		redact.Redactor{}.With(redact.NewSecret("error")), redact.Redactor{}.With(redact.Secret{}),
	} {
		assert.Equal(t, body, string(r.Snippet([]byte(body), limit)))
		assert.Equal(t, body, string(r.JSON(jsontext.Value(body))))
		assert.Equal(t, body, r.Text(body))
		assert.Equal(t, http.Header{"X-Error": {body}}, r.Header(http.Header{"X-Error": {body}}))
		assert.Zero(t, r.Overlap())
	}
	assert.Equal(t, "a [REDACTED]", of("7654321", "87654321").Text("a 87654321"), "8 characters are enough")
	assert.Equal(t, "[REDACTED]", of("87654321").Text("87654321"))
}

// A text that is not JSON may have a backslash as it is beside escapes.
func TestRedactor_backslashBesideEscapes(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a [REDACTED]", of(`back\slash-key`).Text(`a \u0062ack\slash-key`))
}

// Of several keys that begin at one place, the longest is removed.
func TestNew_severalKeys(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"key-number-1", "key-number-12"}, {"key-number-12", "key-number-1"}} {
		assert.Equal(t, "[REDACTED] [REDACTED]3", of(keys...).Text("key-number-12 key-number-13"))
	}
}

func TestRedactor_With(t *testing.T) {
	t.Parallel()
	const text = "a first-key-1 b second-key-2 c third-key-3"
	first := of("first-key-1")
	second := first.With(redact.NewSecret("second-key-2"))
	third := second.With(redact.NewSecret("third-key-3"))
	assert.Equal(t, "a [REDACTED] b second-key-2 c third-key-3", first.Text(text), "a redactor never changes")
	assert.Equal(t, "a [REDACTED] b [REDACTED] c third-key-3", second.Text(text))
	assert.Equal(t, "a [REDACTED] b [REDACTED] c [REDACTED]", third.Text(text))
	assert.Equal(t, "a [REDACTED] b second-key-2 c third-key-3", redact.Redactor{}.With(redact.NewSecret("first-key-1")).Text(text))
}
