package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/validate"
)

const (
	required  = "is required"
	spaces    = "must not begin or end with a space"
	control   = "must not contain control characters"
	notUTF8   = "is not valid UTF-8"
	separator = `must not contain any of / \ % ? #`
	dotted    = "must not be a dot segment"
	invisible = "must not contain invisible characters"
	tooLong   = "is longer than 256 bytes"
	notASCII  = "must be printable ASCII: no line end, tab or other control character"
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

var pathSegments = []check{
	{"a symbol", "USDT", ""},
	{"an identifier", "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11", ""},
	{"all unreserved characters", "azAZ09-._~", ""},
	{"row A13: spaces and parentheses", "Binance Smart Chain (BEP20)", ""},
	{"letters beyond ASCII", "链上", ""},
	{"an accent that is a character of its own", "e\u0301", ""},
	{"characters that are escaped", "!\"$&'()*+,:;<=>@[]^`{|}", ""},
	{"row A12: nothing", "", required},
	{"row A12: a dot", ".", dotted},
	{"row A12: two dots", "..", dotted},
	{"row A12: three dots are a name", "...", ""},
	{"row A12: a path that climbs", "../balance", separator},
	{"row A12: two segments", "a/b", separator},
	{"row A12: a slash", "/", separator},
	{"row A12: two slashes", "//", separator},
	{"row A12: a slash at the end", "a/", separator},
	{"row A12: an escaped slash", "a%2Fb", separator},
	{"row A12: an escaped dot segment", "%2e%2e", separator},
	{"row A12: a query", "a?x=1", separator},
	{"row A12: a fragment", "a#f", separator},
	{"row A12: a backslash", `a\b`, separator},
	{"row A12: a NUL", "a\x00b", control},
	{"row A12: a line end", "a\r\nb", control},
	{"row A12: a line end at the end", "a\n", control},
	{"row A12: a tab", "a\tb", control},
	{"row A12: DEL", "a\x7fb", control},
	{"row A12: a C1 control", "a\u0085b", control},
	{"row A12: a zero-width joiner", "a\u200db", invisible},
	{"row A12: an override of the direction", "a\u202eb", invisible},
	{"row A12: a byte-order mark", "\ufeffa", invisible},
	{"row A12: a broken byte", "a\xff", notUTF8},
	{"row A12: half a character", "\xc3", notUTF8},
	{"row A12: an encoded surrogate", "\xed\xa0\x80", notUTF8},
	{"row A12: a space in front", " a", spaces},
	{"row A12: a space at the end", "a ", spaces},
	{"row A12: a space and nothing else", " ", spaces},
	{"row A12: an ideographic space at the end", "a\u3000", spaces},
	{"256 unreserved bytes", strings.Repeat("a", 256), ""},
	{"256 bytes, one of them a space", strings.Repeat("a", 254) + " b", ""},
	{"row A12: 257 unreserved bytes", strings.Repeat("a", 257), tooLong},
	{"row A12: 257 bytes, one of them a space", strings.Repeat("a", 255) + " b", tooLong},
	{"row A12: 10 KB", strings.Repeat("a", 10<<10), tooLong},
	{"row A12: 86 characters of 3 bytes", strings.Repeat("世", 86), tooLong},
}

func TestPathSegment(t *testing.T) {
	t.Parallel()
	run(t, validate.PathSegment, pathSegments)
}

func TestText(t *testing.T) {
	t.Parallel()
	run(t, func(text string) string { return validate.Text(text, 20) }, []check{
		{"nothing", "", ""},
		{"a text", "order 17", ""},
		{"row A22: a number", "000123", ""},
		{"JSON", `{"a":"b"}`, ""},
		{"characters that a path must not have", `a/b\c%d?e#f`, ""},
		{"an invisible character", "a\u200db", ""},
		{"the character U+FFFD", "a\ufffd", ""},
		{"20 bytes", strings.Repeat("o", 20), ""},
		{"row A12: 21 bytes", strings.Repeat("o", 21), "is longer than 20 bytes"},
		{"row A12: 7 characters of 3 bytes", strings.Repeat("世", 7), "is longer than 20 bytes"},
		{"row A12: a NUL", "a\x00b", control},
		{"row A22: a line end", "a\nb", control},
		{"row A22: a line end at the end", "a\r\n", control},
		{"row A22: DEL", "a\x7f", control},
		{"row A22: a C1 control", "a\u0085b", control},
		{"row A22: a broken byte", "a\xff", notUTF8},
		{"row A22: half a character, which would be sent as U+FFFD", "a\xe4\xb8", notUTF8},
		{"row A12: an encoded surrogate", "\xed\xa0\x80", notUTF8},
		{"row A12: a space in front", " a", spaces},
		{"row A12: a space at the end", "a ", spaces},
		{"row A12: a no-break space at the end", "a\u00a0", spaces},
	})
}

func TestCurrency(t *testing.T) {
	t.Parallel()
	const spaced = "must not contain spaces"
	run(t, validate.Currency, []check{
		{"row A23: nothing", "", ""},
		{"a code", "usd", ""},
		{"row A23: a code that nobody knows", "XYZ", ""},
		{"64 bytes", strings.Repeat("u", 64), ""},
		{"row A23: 65 bytes", strings.Repeat("u", 65), "is longer than 64 bytes"},
		{"row A23: 1 KB", strings.Repeat("u", 1024), "is longer than 64 bytes"},
		{"row A23: a space", "US D", spaced},
		{"row A23: a line end", "usd\n", spaced},
		{"row A12: a space in front", " usd", spaced},
		{"a no-break space", "US\u00a0D", spaced},
		{"row A22: DEL", "usd\x7f", control},
		{"row A22: a broken byte", "usd\xff", notUTF8},
	})
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	const key = "CANARY-5f1d8e0b7a64c932"
	run(t, validate.APIKey, []check{
		{"a key", key, ""},
		{"one character", "k", ""},
		{"every kind of character", "a Z0!\"/\\~", ""},
		{"row A6: nothing", "", required},
		{"row A6: spaces", "   ", "is blank"},
		{"row A7: a line end at the end is not trimmed", key + "\n", notASCII},
		{"row A7: a header after the key", key + "\r\nX: y", notASCII},
		{"row A7: a NUL", key + "\x00", notASCII},
		{"row A7: a tab", key + "\t", notASCII},
		{"row A7: a space at the end is not trimmed", key + " ", spaces},
		{"row A7: a space in front is not trimmed", " " + key, spaces},
		{"row A7: DEL", key + "\x7f", notASCII},
		{"row A7: a letter beyond ASCII", key + "é", notASCII},
		{"row A7: invalid UTF-8", key + "\xff", notASCII},
		{"row A7: 4,096 bytes", strings.Repeat("k", 4096), ""},
		{"row A7: 4,097 bytes", strings.Repeat("k", 4097), "is longer than 4,096 bytes"},
	})
}

// The three functions below report about each byte on its own: every byte is tried
// in front, within and at the end of a text.

func TestIsHeaderValue(t *testing.T) {
	t.Parallel()
	assertBytes(t, validate.IsHeaderValue, ` !"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`+"`abcdefghijklmnopqrstuvwxyz{|}~")
	assert.True(t, validate.IsHeaderValue(""))
	assert.True(t, validate.IsHeaderValue(strings.Repeat("v", 1<<20)), "the length is not checked")
	assert.False(t, validate.IsHeaderValue("v\r\nX-Api-Key: z"))
}

func TestIsHeaderName(t *testing.T) {
	t.Parallel()
	assertBytes(t, validate.IsHeaderName, "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~")
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"a name", "X-Request-Id", true},
		{"256 bytes", strings.Repeat("x", 256), true},
		{"257 bytes", strings.Repeat("x", 257), false},
		{"row A10: nothing", "", false},
		{"row A10: a space", "X Y", false},
		{"row A10: a colon", "X:", false},
		{"row A10: a line end", "X\r\nY", false},
		{"row A10: a letter beyond ASCII", "É", false},
		{"row A10: a pseudo header", ":authority", false},
	} {
		assert.Equal(t, tt.want, validate.IsHeaderName(tt.text), tt.name)
	}
}

func TestIsUnreserved(t *testing.T) {
	t.Parallel()
	assertBytes(t, validate.IsUnreserved, "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")
	assert.True(t, validate.IsUnreserved(""))
	assert.False(t, validate.IsUnreserved("é"))
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

func TestLimits(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 256, validate.MaxURLText)
	assert.Equal(t, 1024, validate.MaxBodyText)
	assert.Equal(t, 4098, validate.MaxAPIKeyFile, "a key of 4,096 bytes and a line end of two")
}
