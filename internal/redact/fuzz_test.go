package redact_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

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
				if !clean.IsValid() {
					t.Fatalf("%s became %s", text, clean)
				}
				got["JSON"] = string(clean)
			}
			for name, got := range got {
				if strings.Contains(got, spelling) || strings.Contains(got, key) {
					t.Fatalf("%s: %q became %q, which has %q", name, text, got, spelling)
				}
			}
			for n := len(spelling) - 1; n >= 8; n-- {
				if part := spelling[:n]; strings.HasSuffix(got["cut text"], part) && !strings.Contains(redact.Mask, part) {
					t.Fatalf("%q became %q, which ends in %q", text[:limit], got["cut text"], part)
				}
			}
		}
	})
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
