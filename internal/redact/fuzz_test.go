package redact_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/validate"
)

// The key is in nothing that a redactor returns.
func FuzzRedactor(f *testing.F) {
	for _, key := range []string{key, `back\slash-key`, `quote"key-77`, "aaaaaaaa", "12345678", `\\\\\\\\`, "abababab"} {
		quoted, _ := jsontext.AppendQuote(nil, key)
		for _, text := range []string{
			key, key + key, "a" + key[1:] + key, string(quoted), `{"a":[` + string(quoted) + `],` + string(quoted) + `:1}`,
			`"` + inUnicode(key) + `"`, `\` + key, key[:7] + `\u00`, "<html>" + key[:len(key)-1], `{"a":12345678}`,
		} {
			f.Add(key, text, 20)
			f.Add(key, text, len(text)/2)
		}
	}
	f.Fuzz(func(t *testing.T, key, text string, limit int) {
		// A key that could arise from the mask itself, or is too short, is not
		// looked for.
		if validate.APIKey(key) != "" || len(key) < 8 || strings.ContainsAny(key, "[]") || strings.Contains(redact.Mask, key) {
			return
		}
		r := of(key)
		for _, got := range []string{
			string(r.Snippet([]byte(text), min(max(limit, 0), len(text)))), string(r.Snippet([]byte(text), len(text))), r.Text(text),
		} {
			if strings.Contains(got, key) {
				t.Fatalf("%q has %q", got, key)
			}
		}
		checkJSON(t, r, key, text)
	})
}

// checkJSON asserts of a JSON value that it is JSON afterwards, and that no text in
// it is the key however it is escaped.
func checkJSON(t *testing.T, r redact.Redactor, key, text string) {
	t.Helper()
	if !jsontext.Value(text).IsValid() {
		return
	}
	clean := r.JSON(jsontext.Value(text))
	if !clean.IsValid() {
		t.Fatalf("%s became %s", text, clean)
	}
	for dec := jsontext.NewDecoder(bytes.NewReader(clean)); ; {
		token, err := dec.ReadToken()
		if err != nil {
			return
		}
		if token.Kind() == '"' && strings.Contains(token.String(), key) {
			t.Fatalf("%s has %q", clean, key)
		}
	}
}

// A text that is cut stays UTF-8, and loses no more than one character.
func FuzzTruncate(f *testing.F) {
	for _, seed := range []string{"", "abc", "aé", "世界", "🪙🪙", "\xff\x80\x80\x80\x80", "a\u0301"} {
		for limit := range 9 {
			f.Add(seed, limit)
		}
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 {
			return
		}
		got := redact.Truncate(text, limit)
		if !strings.HasPrefix(text, got) || len(got) > limit || len(got) < min(len(text), limit-utf8.UTFMax+1) {
			t.Fatalf("%q at %d is %q", text, limit, got)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatalf("%q at %d is cut within a character: %q", text, limit, got)
		}
	})
}
