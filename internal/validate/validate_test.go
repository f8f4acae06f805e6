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
	{"row 31: spaces and parentheses", "Binance Smart Chain (BEP20)", ""},
	{"letters beyond ASCII", "链上", ""},
	{"an accent that is a character of its own", "e\u0301", ""},
	{"characters that are escaped", "!\"$&'()*+,:;<=>@[]^`{|}", ""},
	{"row 22: nothing", "", required},
	{"row 23: a dot", ".", dotted},
	{"row 23: two dots", "..", dotted},
	{"row 23: three dots are a name", "...", ""},
	{"row 24: a path that climbs", "../balance", separator},
	{"row 24: two segments", "a/b", separator},
	{"row 24: a slash", "/", separator},
	{"row 24: two slashes", "//", separator},
	{"row 24: a slash at the end", "a/", separator},
	{"row 24: an escaped slash", "a%2Fb", separator},
	{"row 24: an escaped dot segment", "%2e%2e", separator},
	{"row 25: a query", "a?x=1", separator},
	{"row 25: a fragment", "a#f", separator},
	{"row 26: a backslash", `a\b`, separator},
	{"row 27: a NUL", "a\x00b", control},
	{"row 27: a line end", "a\r\nb", control},
	{"row 27: a line end at the end", "a\n", control},
	{"row 27: a tab", "a\tb", control},
	{"row 27: DEL", "a\x7fb", control},
	{"row 27: a C1 control", "a\u0085b", control},
	{"row 27: a zero-width joiner", "a\u200db", invisible},
	{"row 27: an override of the direction", "a\u202eb", invisible},
	{"row 27: a byte-order mark", "\ufeffa", invisible},
	{"row 28: a broken byte", "a\xff", notUTF8},
	{"row 28: half a character", "\xc3", notUTF8},
	{"row 28: an encoded surrogate", "\xed\xa0\x80", notUTF8},
	{"row 29: a space in front", " a", spaces},
	{"row 29: a space at the end", "a ", spaces},
	{"row 29: a space and nothing else", " ", spaces},
	{"row 29: an ideographic space at the end", "a\u3000", spaces},
	{"256 unreserved bytes", strings.Repeat("a", 256), ""},
	{"256 bytes, one of them a space", strings.Repeat("a", 254) + " b", ""},
	{"row 30: 257 unreserved bytes", strings.Repeat("a", 257), tooLong},
	{"row 30: 257 bytes, one of them a space", strings.Repeat("a", 255) + " b", tooLong},
	{"row 30: 10 KB", strings.Repeat("a", 10<<10), tooLong},
	{"row 30: 86 characters of 3 bytes", strings.Repeat("世", 86), tooLong},
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
		{"row 45: a number", "000123", ""},
		{"JSON", `{"a":"b"}`, ""},
		{"characters that a path must not have", `a/b\c%d?e#f`, ""},
		{"an invisible character", "a\u200db", ""},
		{"the character U+FFFD", "a\ufffd", ""},
		{"20 bytes", strings.Repeat("o", 20), ""},
		{"row 30: 21 bytes", strings.Repeat("o", 21), "is longer than 20 bytes"},
		{"row 30: 7 characters of 3 bytes", strings.Repeat("世", 7), "is longer than 20 bytes"},
		{"row 27: a NUL", "a\x00b", control},
		{"row 44: a line end", "a\nb", control},
		{"row 44: a line end at the end", "a\r\n", control},
		{"row 44: DEL", "a\x7f", control},
		{"row 44: a C1 control", "a\u0085b", control},
		{"row 43: a broken byte", "a\xff", notUTF8},
		{"row 43: half a character, which would be sent as U+FFFD", "a\xe4\xb8", notUTF8},
		{"row 28: an encoded surrogate", "\xed\xa0\x80", notUTF8},
		{"row 29: a space in front", " a", spaces},
		{"row 29: a space at the end", "a ", spaces},
		{"row 29: a no-break space at the end", "a\u00a0", spaces},
	})
}

func TestCurrency(t *testing.T) {
	t.Parallel()
	const spaced = "must not contain spaces"
	run(t, validate.Currency, []check{
		{"row 46: nothing", "", ""},
		{"a code", "usd", ""},
		{"row 48: a code that nobody knows", "XYZ", ""},
		{"64 bytes", strings.Repeat("u", 64), ""},
		{"row 47: 65 bytes", strings.Repeat("u", 65), "is longer than 64 bytes"},
		{"row 47: 1 KB", strings.Repeat("u", 1024), "is longer than 64 bytes"},
		{"row 47: a space", "US D", spaced},
		{"row 47: a line end", "usd\n", spaced},
		{"row 29: a space in front", " usd", spaced},
		{"a no-break space", "US\u00a0D", spaced},
		{"row 44: DEL", "usd\x7f", control},
		{"row 43: a broken byte", "usd\xff", notUTF8},
	})
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	const key = "CANARY-5f1d8e0b7a64c932"
	run(t, validate.APIKey, []check{
		{"a key", key, ""},
		{"one character", "k", ""},
		{"every kind of character", "a Z0!\"/\\~", ""},
		{"row 10: nothing", "", required},
		{"row 10: spaces", "   ", "is blank"},
		{"row 11: a line end at the end is not trimmed", key + "\n", notASCII},
		{"row 11: a header after the key", key + "\r\nX: y", notASCII},
		{"row 11: a NUL", key + "\x00", notASCII},
		{"row 11: a tab", key + "\t", notASCII},
		{"row 11: a space at the end is not trimmed", key + " ", spaces},
		{"row 11: a space in front is not trimmed", " " + key, spaces},
		{"row 11: DEL", key + "\x7f", notASCII},
		{"row 12: a letter beyond ASCII", key + "é", notASCII},
		{"row 12: invalid UTF-8", key + "\xff", notASCII},
		{"row 12: 4,096 bytes", strings.Repeat("k", 4096), ""},
		{"row 12: 4,097 bytes", strings.Repeat("k", 4097), "is longer than 4,096 bytes"},
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
		{"row 18: nothing", "", false},
		{"row 18: a space", "X Y", false},
		{"row 18: a colon", "X:", false},
		{"row 18: a line end", "X\r\nY", false},
		{"row 18: a letter beyond ASCII", "É", false},
		{"row 18: a pseudo header", ":authority", false},
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
