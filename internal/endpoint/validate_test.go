package endpoint_test

import (
	"net/url"
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

type check struct{ name, text, reason string }

func run(t *testing.T, validate func(text string) string, checks []check) {
	t.Helper()
	for _, tt := range checks {
		assert.Equal(t, tt.reason, validate(tt.text), tt.name)
	}
}

// The whole reason why a text is refused does not contain the text.
func TestReasons(t *testing.T) {
	t.Parallel()
	const key, spaced = "CANARY-5f1d8e0b7a64c932", "must not contain spaces"
	run(t, func(text string) string {
		_, reason := endpoint.Base{}.URL(new(url.URL), "/{x}", []string{text}, nil)
		return reason
	}, []check{
		{"an identifier", "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11", ""},
		{"spaces and parentheses", "Binance Smart Chain (BEP20)", ""},
		{"characters that are escaped", "!\"$&'()*+,:;<=>@[]^`{|}", ""},
		{"nothing", "", required},
		{"a dot", ".", dotted},
		{"two dots", "..", dotted},
		{"three dots are a name", "...", ""},
		{"a path that climbs", "../balance", ""},
		{"an ideographic space at the end", "a\u3000", spaces},
		{"256 unreserved bytes", strings.Repeat("a", 256), ""},
		{"257 unreserved bytes", strings.Repeat("a", 257), tooLong},
	})
	run(t, func(text string) string { return endpoint.Identifier(text, 20) }, []check{
		{"nothing", "", ""},
		{"letters beyond ASCII", "é链", ""},
		{"a zero-width space", "A-1\u200b", unseen},
		{"a byte-order mark", "\ufeffA", unseen},
		{"a variation selector", "A-1\ufe0f", unseen},
		{"a joiner of letters", "A\u034f1", unseen},
		{"a Hangul filler", "A-1\u3164", unseen},
		{"a line end", "a\nb", control},
		{"21 bytes", strings.Repeat("o", 21), "is longer than 20 bytes"},
	})
	run(t, func(text string) string { return endpoint.Text(text, 20) }, []check{
		{"nothing", "", ""},
		{"a text", "order 17", ""},
		{"characters that a path must not have", `a/b\c%d?e#f`, ""},
		{"20 bytes", strings.Repeat("o", 20), ""},
		{"21 bytes", strings.Repeat("o", 21), "is longer than 20 bytes"},
		{"a line end", "a\nb", control},
		{"a C1 control", "a\u0085b", control},
		{"a broken byte", "a\xff", notUTF8},
		{"half a character, which would be sent as U+FFFD", "a\xe4\xb8", notUTF8},
		{"a space in front", " a", spaces},
		{"a space at the end", "a ", spaces},
	})
	run(t, endpoint.Currency, []check{
		{"nothing", "", ""},
		{"a code", "usd", ""},
		{"64 bytes", strings.Repeat("u", 64), ""},
		{"65 bytes", strings.Repeat("u", 65), "is longer than 64 bytes"},
		{"a no-break space", "US\u00a0D", spaced},
		{"DEL", "usd\x7f", control},
		{"a broken byte", "usd\xff", notUTF8},
	})
	run(t, endpoint.APIKey, []check{
		{"a key", key, ""},
		{"every kind of character", "a Z0!\"/\\~", ""},
		{"nothing", "", required},
		{"spaces", "   ", "is blank"},
		{"a line end at the end is not trimmed", key + "\n", notASCII},
		{"a tab", key + "\t", notASCII},
		{"a space at the end is not trimmed", key + " ", spaces},
		{"a space in front is not trimmed", " " + key, spaces},
		{"DEL", key + "\x7f", notASCII},
		{"4,096 bytes", strings.Repeat("k", 4096), ""},
		{"4,097 bytes", strings.Repeat("k", 4097), "is longer than 4,096 bytes"},
	})
}

// The two functions below report about each byte on its own: every byte is tried
// in front, within and at the end of a text.

func TestIsHeaderValue(t *testing.T) {
	t.Parallel()
	assertBytes(t, endpoint.IsHeaderValue, ` !"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`+"`abcdefghijklmnopqrstuvwxyz{|}~")
	assert.True(t, endpoint.IsHeaderValue(strings.Repeat("v", 1<<20)), "the length is not checked")
}

func TestIsHeaderName(t *testing.T) {
	t.Parallel()
	assertBytes(t, endpoint.IsHeaderName, "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~")
	for text, want := range map[string]bool{strings.Repeat("x", 256): true, strings.Repeat("x", 257): false, "": false} {
		assert.Equal(t, want, endpoint.IsHeaderName(text), text)
	}
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
		{"a UUID in the other case", lower, upper, true},
		{"two UUIDs", lower, "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6c", false},
		{"a text and itself", "w-1", "w-1", true},
		{"a text in the other case", "w-1", "W-1", false},
		{"a UUID without its dashes", strings.ReplaceAll(lower, "-", ""), strings.ReplaceAll(upper, "-", ""), false},
		{"a letter beyond f", "gee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "GEE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B", false},
		{"a dash in another place", "8ee7457-60bcf-4bfa-9c0c-de1a8cc8fa6b", "8EE7457-60BCF-4BFA-9C0C-DE1A8CC8FA6B", false},
		{"a dash in the place of a digit", "-ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "-EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B", false},
		{"nothing and a UUID", "", lower, false},
	} {
		assert.Equal(t, tt.same, endpoint.SameID(tt.a, tt.b), tt.name)
		assert.Equal(t, tt.same, endpoint.SameID(tt.b, tt.a), tt.name)
		assert.Equal(t, tt.same, endpoint.IDKey(tt.a) == endpoint.IDKey(tt.b), tt.name)
	}
	assert.Equal(t, lower, endpoint.IDKey(upper))
	assert.Equal(t, "W-1", endpoint.IDKey("W-1"))
}
