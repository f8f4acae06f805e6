package redact_test

import (
	"bytes"
	"fmt"
	"io"
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
	assert.Equal(t, []bool{false, true, true}, []bool{
		secret.IsEmpty(), redact.NewSecret("").IsEmpty(),
		redact.Secret{}.IsEmpty(),
	})
	for _, v := range []any{secret, &secret, struct{ hidden redact.Secret }{secret}, of(key, key+"2")} {
		assert.Empty(t, invariant.Shows(v, key))
	}
}

// kinds are keys of each kind: of letters, in base64, with what encoders change, with what looks like an escape, of
// digits.
var kinds = []string{
	key, "sk_live_51H8xQ2eZvKYlo2C", "q83vEjRWeJC0r/+8kg==", oddKey, `back\slash-key`, `quote"key-77`, "a%2Fb%41cd-12",
	"x&lt;y&#47;z&amp;1234",
	`u0041bcd\u0042`, "20261128", "12345678901234567890", "-1.5e+10.25",
}

// A key, however it is escaped, is in nothing that a redactor returns, wherever it is in a text; and JSON stays JSON.
func FuzzRedactor(f *testing.F) {
	for i, key := range kinds {
		f.Add(key, "", "", i, 20)
		f.Add(key, "a "+key[:7], key[1:]+" b", 2*i, 9)
		f.Add(key, `{"a":["`, `"],"b":1}`, 3*i, 1000)
		f.Add(key, `["\`, `"]`, i, 12)
		f.Add(key, `[`, `]`, 0, 12)
	}
	for _, key := range []string{"aaaaaaaa", `\\\\\\\\`, "abababab", "%%%%%%%%", "&amp;&amp;"} {
		f.Add(key, "", "", 0, 20)
	}
	f.Fuzz(func(t *testing.T, key, before, after string, spelling, limit int) {
		// A key that could arise from the mask itself, or is too short, is not looked for.
		if endpoint.APIKey(key) != "" || len(key) < 8 || strings.ContainsAny(key, "[]") ||
			strings.Contains(redact.Mask, key) {
			return
		}
		all := invariant.InJSON(key)
		if strings.ContainsAny(key, `\%&`) {
			all = all[:15] // beyond JSON, the escapes of the key and those of an encoder cannot be told apart
		}
		spelled := all[max(spelling, -spelling, 0)%len(all)]
		text := before + spelled + after
		limit = min(max(limit, 0), len(text))
		r := of(key)
		got := map[string]string{
			"text": r.Text(text), "snippet": string(r.Snippet([]byte(text), limit)),
			"whole snippet": string(r.Snippet([]byte(text), len(text))),
		}
		value := jsontext.Value(text)
		if strings.ContainsAny(before, `\%&`) && !value.IsValid() {
			return // in other text than JSON, an escape that ends within the key hides it
		}
		if value.IsValid() {
			clean := r.JSON(value)
			require.True(t, clean.IsValid(), "%s became %s", text, clean)
			got["JSON"] = string(clean)
			for _, inner := range scalars(t, clean) {
				require.NotContains(t, inner, key, "%s became %s", text, clean)
			}
		}
		if strings.HasSuffix(before, `\`) {
			return // the key begins within an escape: once unquoted, the text does not have it
		}
		for name, got := range got {
			require.NotContains(t, got, spelled, "%s of %q", name, text)
			require.NotContains(t, got, key, "%s of %q", name, text)
		}
		cut := string(r.Snippet([]byte(before + key)[:min(limit, len(before+key))], 1<<20))
		for n := len(key) - 1; n >= 8; n-- {
			part := key[:n]
			require.False(t, strings.HasSuffix(cut, part) && !strings.Contains(redact.Mask, part), "%q became %q", before+key,
				cut)
		}
	})
}

// scalars returns the texts, names and numbers in a value.
func scalars(t *testing.T, value jsontext.Value) (all []string) {
	t.Helper()
	in := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		token, err := in.ReadToken()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		if kind := token.Kind(); kind == '"' || kind == '0' {
			all = append(all, token.String())
		}
	}
}

// Texts of JSON are compared unquoted, and other text with the escapes of encoders undone.
func TestRedactor_spellings(t *testing.T) {
	t.Parallel()
	for _, key := range kinds {
		r := of(key)
		for i, spelled := range invariant.InJSON(key) {
			surroundings := []string{"%s", "a %s b", "%[1]s%[1]s", "sk+%s", `{"%s":"%[1]s"}`, `it's 100%% \"%s\"`}
			if i < 15 { // JSON is unquoted before other escapes are undone
				surroundings = append(surroundings, "100%%%s", "&%s;")
			}
			for _, around := range surroundings {
				text, want := fmt.Sprintf(around, spelled), fmt.Sprintf(around, redact.Mask)
				assert.Equal(t, want, r.Text(text), "%s, %d", key, i)
				assert.True(t, r.Contains(text), "%s, %d", key, i)
				assert.Equal(t, want, string(r.Snippet([]byte(text), 1<<20)), "%s, %d", key, i)
			}
			value := jsontext.Value(`{"a":["a ` + spelled + ` b",1.50,"\u00e9\/"],"` + spelled + `":null}`)
			assert.Equal(t, `{"a":["a [REDACTED] b",1.50,"\u00e9\/"],"[REDACTED]":null}`, string(r.JSON(value)), "%s, %d", key,
				i)
		}
	}
}

// Programs escape a key in their own ways.
func TestRedactor_programs(t *testing.T) {
	t.Parallel()
	const key = `Key<a&b>"c'd/e`
	for _, spelled := range []string{
		`Key\x3ca\x26b\x3E\"c\'d\/e`, `Key&lt;a&amp;b&gt;&quot;c&#39;d/e`, `Key&#60;a&#x26;b&#X3E;&#034;c&#x0027;d&#47;e`,
		`Key%3Ca%26b%3e%22c%27d%2Fe`, `\x4b\x65\x79<a&amp;b>"c'd/e`,
	} {
		assert.Equal(t, "a [REDACTED] b", of(key).Text("a "+spelled+" b"))
		assert.True(t, of(key).Contains(spelled))
	}
	for _, other := range []string{
		`\`, `a\x4`, `\xzz`, `%4`, `%zz`, `&amp`, `&zz43;`, `&#;`, `&#zz;`, `&#1000;`,
		`a"b\"`,
	} {
		assert.Equal(t, other, of(key).Text(other))
		assert.False(t, of(key).Contains(other))
	}
}

// A key that is too short to be told from words is not looked for; the zero secret has none.
func TestNew_shortKeys(t *testing.T) {
	t.Parallel()
	const body = `{"message":"an error of 7654321"}`
	for _, r := range []redact.Redactor{
		redact.New(redact.Secret{}), of("error", "7654321"),
		redact.Redactor{}.With(redact.NewSecret("error")),
	} {
		assert.Equal(t, redact.Redactor{}, r)
		assert.Equal(t, []string{body, body, body[:20]}, []string{
			r.Text(body), string(r.JSON(jsontext.Value(body))),
			string(r.Snippet([]byte(body), 20)),
		})
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
		{"half of it escaped at the end", "a " + escaped[:12], 99, "a [REDACTED]"},
		{"an escape that is cut", `a "\u0043ANARY-5\u00`, 99, `a "[REDACTED]`},
		{
			"a text that is cut, and begins in escapes", `{"a":"\u0043\u0041\u004e\u0041\u0052\u0059\u002d\u0035\u0066`, 99,
			`{"a":"[REDACTED]`,
		},
		{"an escaped key across the limit", "a " + strings.Repeat("b", 8) + `\u0043` + key[1:] + " b", 11, "a bbbbbbbb["},
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
		{
			"a number that is the key, has it, or has not", "12345678",
			`{"a":12345678,"b":[-9123456789.50e1,1.0],"c":" 12345678 "}`,
			`{"a":"[REDACTED]","b":["[REDACTED]",1.0],"c":" [REDACTED] "}`,
		},
		{"a number alone", "12345678", `12345678`, `"[REDACTED]"`},
		{
			"numbers beside texts that end in a backslash", "12345678", `["a\\",12345678,"\\\"",12345678,"1 \\"]`,
			`["a\\","[REDACTED]","\\\"","[REDACTED]","1 \\"]`,
		},
		{"a number that has it twice", "12345678", `[1234567812345678]`, `["[REDACTED]"]`},
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
