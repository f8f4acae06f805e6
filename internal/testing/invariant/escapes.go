package invariant

import (
	"fmt"
	"html"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// InJSON returns a key as the texts of JSON, without their quotes, in which encoders write it: with the escapes that
// JSON allows, and in texts of another format within a text of JSON.
func InJSON(key string) []string {
	quoted := func(text string) string {
		all, _ := jsontext.AppendQuote(nil, text) // the key is ASCII
		return string(all[1 : len(all)-1])
	}
	least := func(c byte) string { return quoted(string(c)) }
	lower := func(c byte) string { return fmt.Sprintf(`\u%04x`, c) }
	upper := func(c byte) string { return fmt.Sprintf(`\u%04X`, c) }
	slash := func(c byte) string {
		if c == '/' {
			return `\/`
		}
		return least(c)
	}
	write := func(escape func(i int, c byte) string) string {
		var text strings.Builder
		for i := range len(key) {
			text.WriteString(escape(i, key[i]))
		}
		return text.String()
	}
	some := func(characters string, as, others func(byte) string) string {
		return write(func(_ int, c byte) string {
			if strings.IndexByte(characters, c) >= 0 {
				return as(c)
			}
			return others(c)
		})
	}
	at := func(isEscaped func(i int) bool) string {
		return write(func(i int, c byte) string {
			if isEscaped(i) {
				return lower(c)
			}
			return least(c)
		})
	}
	const letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "0123456789"
	all := lower
	return []string{
		quoted(key),
		some("", least, slash),                   // PHP
		some("&<>", lower, least),                // Go
		some("&<>='", lower, least),              // Gson
		some("&<>+'`\"", upper, least),           // System.Text.Json
		some(`&<>'"`, upper, slash),              // PHP, JSON_HEX_*
		some("/", lower, least),                  // against scripts
		some(letters, lower, least),              // letters
		some(digits, upper, least),               // digits
		some(letters+digits, least, upper),       // the others
		some("", least, lower),                   // each, in lower case
		some("", least, upper),                   // each, in upper case
		at(func(i int) bool { return i == 0 }),   // the first
		at(func(i int) bool { return i%2 == 1 }), // each second
		at(func(i int) bool { return i == len(key)-1 }),
		quoted(quoted(key)), // JSON in a text
		quoted(some("", least, slash)),
		quoted(some("", all, lower)),
		quoted(quoted(some("&<>", lower, slash))), // twice
		quoted(url.QueryEscape(key)),
		quoted(url.PathEscape(key)),
		quoted(some("/+=&<>\"'\\ `%", func(c byte) string { return fmt.Sprintf("%%%02x", c) }, func(c byte) string { return string(c) })),
		quoted(url.QueryEscape(url.QueryEscape(key))),
		quoted(html.EscapeString(key)),
		quoted(some("/=`'\"&<>+", func(c byte) string { return fmt.Sprintf("&#x%X;", c) }, func(c byte) string { return string(c) })),
	}
}
