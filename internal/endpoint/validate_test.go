package endpoint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/endpoint"
)

const (
	required = "is required"
	spaces   = "must not begin or end with a space"
	control  = "must not contain control characters"
	notUTF8  = "is not valid UTF-8"
	dotted   = "must not be a dot segment"
	unseen   = "must not contain invisible characters"
	tooLong  = "is longer than 256 bytes"
	notASCII = "must be printable ASCII: no line end, tab or other control character"
)

// A check is a text and the whole reason why it is refused, which does not contain
// the text, or "".
type check struct{ name, text, reason string }

func run(t *testing.T, validate func(text string) string, checks []check) {
	t.Helper()
	for _, tt := range checks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.reason, validate(tt.text))
		})
	}
}

func TestPathSegment(t *testing.T) {
	t.Parallel()
	run(t, endpoint.PathSegment, []check{
		{"an identifier", "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11", ""},
		{"all unreserved characters", "azAZ09-._~", ""},
		{"spaces and parentheses", "Binance Smart Chain (BEP20)", ""},
		{"an accent that is a character of its own", "e\u0301", ""},
		{"characters that are escaped", "!\"$&'()*+,:;<=>@[]^`{|}", ""},
		{"nothing", "", required},
		{"a dot", ".", dotted},
		{"two dots", "..", dotted},
		{"three dots are a name", "...", ""},
		{"a path that climbs", "../balance", ""},
		{"an escaped dot segment", "%2e%2e", ""},
		{"a zero-width joiner", "a\u200db", ""},
		{"a byte-order mark", "\ufeffa", ""},
		{"a broken byte", "a\xff", notUTF8},
		{"a space in front", " a", spaces},
		{"a space at the end", "a ", spaces},
		{"an ideographic space at the end", "a\u3000", spaces},
		{"256 unreserved bytes", strings.Repeat("a", 256), ""},
		{"256 bytes, one of them a space", strings.Repeat("a", 254) + " b", ""},
		{"257 unreserved bytes", strings.Repeat("a", 257), tooLong},
		{"257 bytes, one of them a space", strings.Repeat("a", 255) + " b", tooLong},
		{"86 characters of 3 bytes", strings.Repeat("世", 86), tooLong},
	})
}

func TestIdentifier(t *testing.T) {
	t.Parallel()
	run(t, func(text string) string { return endpoint.Identifier(text, 20) }, []check{
		{"nothing", "", ""},
		{"letters beyond ASCII", "é链", ""},
		{"a zero-width space", "A-1\u200b", unseen},
		{"a zero-width joiner", "A\u200d-1", unseen},
		{"a byte-order mark", "\ufeffA", unseen},
		{"a variation selector", "A-1\ufe0f", unseen},
		{"a Mongolian variation selector", "A\u180b1", unseen},
		{"a joiner of letters", "A\u034f1", unseen},
		{"a Hangul filler", "A-1\u3164", unseen},
		{"a line end", "a\nb", control},
		{"21 bytes", strings.Repeat("o", 21), "is longer than 20 bytes"},
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	run(t, func(text string) string { return endpoint.Text(text, 20) }, []check{
		{"nothing", "", ""},
		{"a text", "order 17", ""},
		{"a number", "000123", ""},
		{"characters that a path must not have", `a/b\c%d?e#f`, ""},
		{"an unseen character", "a\u200db", ""},
		{"the character U+FFFD", "a\ufffd", ""},
		{"20 bytes", strings.Repeat("o", 20), ""},
		{"21 bytes", strings.Repeat("o", 21), "is longer than 20 bytes"},
		{"7 characters of 3 bytes", strings.Repeat("世", 7), "is longer than 20 bytes"},
		{"a NUL", "a\x00b", control},
		{"a line end", "a\nb", control},
		{"DEL", "a\x7f", control},
		{"a C1 control", "a\u0085b", control},
		{"a broken byte", "a\xff", notUTF8},
		{"half a character, which would be sent as U+FFFD", "a\xe4\xb8", notUTF8},
		{"a space in front", " a", spaces},
		{"a space at the end", "a ", spaces},
	})
}

func TestCurrency(t *testing.T) {
	t.Parallel()
	const spaced = "must not contain spaces"
	run(t, endpoint.Currency, []check{
		{"nothing", "", ""},
		{"a code", "usd", ""},
		{"64 bytes", strings.Repeat("u", 64), ""},
		{"65 bytes", strings.Repeat("u", 65), "is longer than 64 bytes"},
		{"a line end", "usd\n", spaced},
		{"a space in front", " usd", spaced},
		{"a no-break space", "US\u00a0D", spaced},
		{"DEL", "usd\x7f", control},
		{"a broken byte", "usd\xff", notUTF8},
	})
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	const key = "CANARY-5f1d8e0b7a64c932"
	run(t, endpoint.APIKey, []check{
		{"a key", key, ""},
		{"every kind of character", "a Z0!\"/\\~", ""},
		{"nothing", "", required},
		{"spaces", "   ", "is blank"},
		{"a line end at the end is not trimmed", key + "\n", notASCII},
		{"a header after the key", key + "\r\nX: y", notASCII},
		{"a NUL", key + "\x00", notASCII},
		{"a tab", key + "\t", notASCII},
		{"a space at the end is not trimmed", key + " ", spaces},
		{"a space in front is not trimmed", " " + key, spaces},
		{"DEL", key + "\x7f", notASCII},
		{"4,096 bytes", strings.Repeat("k", 4096), ""},
		{"4,097 bytes", strings.Repeat("k", 4097), "is longer than 4,096 bytes"},
	})
}

// The three functions below report about each byte on its own: every byte is tried
// in front, within and at the end of a text.

func TestIsHeaderValue(t *testing.T) {
	t.Parallel()
	assertBytes(t, endpoint.IsHeaderValue, ` !"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`+"`abcdefghijklmnopqrstuvwxyz{|}~")
	assert.True(t, endpoint.IsHeaderValue(""))
	assert.True(t, endpoint.IsHeaderValue(strings.Repeat("v", 1<<20)), "the length is not checked")
	assert.False(t, endpoint.IsHeaderValue("v\r\nX-Api-Key: z"))
}

func TestIsHeaderName(t *testing.T) {
	t.Parallel()
	assertBytes(t, endpoint.IsHeaderName, "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~")
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"a name", "X-Request-Id", true},
		{"256 bytes", strings.Repeat("x", 256), true},
		{"257 bytes", strings.Repeat("x", 257), false},
		{"nothing", "", false},
		{"a space", "X Y", false},
		{"a line end", "X\r\nY", false},
		{"a letter beyond ASCII", "É", false},
	} {
		assert.Equal(t, tt.want, endpoint.IsHeaderName(tt.text), tt.name)
	}
}

func TestIsUnreserved(t *testing.T) {
	t.Parallel()
	assertBytes(t, endpoint.IsUnreserved, "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")
	assert.True(t, endpoint.IsUnreserved(""))
	assert.False(t, endpoint.IsUnreserved("é"))
}

// assertBytes asserts which bytes a text may have, wherever they are in it.
func assertBytes(t *testing.T, accepts func(text string) bool, accepted string) {
	t.Helper()
	for i := range 256 {
		char := string([]byte{byte(i)})
		for _, text := range []string{char, char + "a", "a" + char, "a" + char + "a"} {
			assert.Equal(t, strings.Contains(accepted, char), accepts(text), "%q", text)
		}
	}
}

func TestSameID(t *testing.T) {
	t.Parallel()
	const lower, upper = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"a UUID and itself", lower, lower, true},
		{"a UUID in the other case", lower, upper, true},
		{"two UUIDs", lower, "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6c", false},
		{"a text and itself", "w-1", "w-1", true},
		{"a text in the other case", "w-1", "W-1", false},
		{"a UUID without its dashes", strings.ReplaceAll(lower, "-", ""), strings.ReplaceAll(upper, "-", ""), false},
		{"a UUID in braces", "{" + lower + "}", "{" + upper + "}", false},
		{"a letter beyond f", "gee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "GEE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B", false},
		{"a dash in another place", "8ee7457-60bcf-4bfa-9c0c-de1a8cc8fa6b", "8EE7457-60BCF-4BFA-9C0C-DE1A8CC8FA6B", false},
		{"a dash in the place of a digit", "-ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "-EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B", false},
		{"nothing and a UUID", "", lower, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.same, endpoint.SameID(tt.a, tt.b))
			assert.Equal(t, tt.same, endpoint.SameID(tt.b, tt.a))
			assert.Equal(t, tt.same, endpoint.IDKey(tt.a) == endpoint.IDKey(tt.b))
		})
	}
	assert.Equal(t, lower, endpoint.IDKey(upper))
	assert.Equal(t, "W-1", endpoint.IDKey("W-1"))
}
