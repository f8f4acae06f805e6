package redact_test

import (
	"bytes"
	"fmt"
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

// characters are the ways to write one character of a key.
var characters = []func(c byte) string{
	func(c byte) string { return string(rune(c)) },
	func(c byte) string { return strings.ToUpper(string(rune(c))) },
	func(c byte) string { return strings.ToLower(string(rune(c))) },
	func(c byte) string { return fmt.Sprintf("%%%02x", c) },
	func(c byte) string { return fmt.Sprintf("%%%02X", c) },
	func(c byte) string { return fmt.Sprintf("%%25%02x", c) },
	func(c byte) string { return fmt.Sprintf("&#%d;", c) },
	func(c byte) string { return fmt.Sprintf("&#x%02x;", c) },
	func(c byte) string { return fmt.Sprintf("&#X%02X;", c) },
	func(c byte) string { return fmt.Sprintf("&amp;#x%02x;", c) },
	func(c byte) string { return fmt.Sprintf(`\u%04x`, c) },
	func(c byte) string { return fmt.Sprintf(`\\\u%04X`, c) },
	func(c byte) string { return fmt.Sprintf(`\x%02x`, c) },
}

// However each character of a key is written, and wherever the text is cut, no 8
// characters of the key side by side are left.
func FuzzRedactor_variants(f *testing.F) {
	f.Add(key, []byte{0}, "a text ", " and more", 20)
	f.Add(key, []byte{0, 3, 6, 10}, `{"message":"`, `"}`, 1000)
	f.Add("aaaaaaaaaaab", []byte{5, 9, 11}, "aaaaaaaaaa", "aaaaaaaa", 70)
	for i := range characters {
		f.Add("key with+spaces/<&>", []byte{byte(i)}, "%4", ";1", 60)
	}
	f.Fuzz(func(t *testing.T, key string, styles []byte, before, after string, cut int) {
		// The own characters of escapes are for TestRedactor_encodings. Between a part
		// of an escape and the key there is a space, which ends the escape.
		if validate.APIKey(key) != "" || len(key) < 8 || len(styles) == 0 || strings.ContainsAny(key, `[]\%&~`) ||
			strings.Contains(strings.ToLower(redact.Mask), strings.ToLower(key)) {
			return
		}
		written := make([]string, len(key))
		for i := range key {
			written[i] = characters[int(styles[i%len(styles)])%len(characters)](key[i])
		}
		text := before + " " + strings.Join(written, "") + " " + after
		whole := of(key).Text(text)
		text = text[:min(max(cut, 0), len(text))]
		part := string(of(key).Snippet([]byte(text), len(text)))
		for i := range len(written) - 7 {
			part8 := strings.Join(written[i:i+8], "")
			if strings.Contains(before+" ", part8) || strings.Contains(" "+after, part8) || strings.Contains(redact.Mask, part8) {
				return
			}
			if strings.Contains(whole, part8) || i == 0 && strings.Contains(part, part8) {
				t.Fatalf("%q became %q and %q, which have %q", text, whole, part, part8)
			}
		}
	})
}
