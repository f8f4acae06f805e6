package redact_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/redact"
)

const account = "http://user:hunter2@proxy:3128"

func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		cut        bool
		want       string
	}{
		{"an account without a URL", "at user:hunter2@host", false, "at [REDACTED]@host"},
		{"an account without a URL or a password", "at hunter2@host", false, "at [REDACTED]@host"},
		{"a space in a password without a URL", "proxy: at user:hunt er2@host", false, "proxy: at [REDACTED]@host"},
		{"a quote in a password without a URL", `at user:hunt"er2@host`, false, "at [REDACTED]@host"},
		{"a space in a password", "at http://user:hunt er2@proxy", false, "at http://[REDACTED]@proxy"},
		{"quotes in a password", `at "http://user:hu"nt'er2@proxy" b`, false, `at "http://[REDACTED]@proxy" b`},
		{
			"accounts without and with a URL", "at user:hunter2@host http://user:hunter2@host", false,
			"at [REDACTED]@host http://[REDACTED]@host",
		},
		{
			"a part of a password as a port", `parse "http://user:hun/ter2@proxy": invalid port ":hun" after host`, false,
			`parse "http://[REDACTED]@proxy": invalid port [REDACTED] after host`,
		},
		{
			"a part of a password with quotes as a port", `invalid port ":hu" after host"nt" after host`, false,
			`invalid port [REDACTED] after host`,
		},
		{"a host without a port", `nobody answers here after host`, false, `nobody answers here after host`},
		{"a port without a host", `invalid port ":hun`, false, `invalid port ":hun`},
		{"no scheme, at the beginning", "//user:hunt er2@proxy", false, "//[REDACTED]@proxy"},
		{"an empty account", "http://@host", false, "http://[REDACTED]@host"},
		{"a URL without an account", "at http://host/p?q failed", false, "at http://host/p?q failed"},
		{"several @", "http://user:@hun@ter2@proxy", false, "http://[REDACTED]@proxy"},
		{"an @ after the path began", "http://host/@user", false, "http://[REDACTED]@user"},
		{"several URLs", account + " " + account + " http://host", false, "http://[REDACTED]@proxy:3128 http://host"},
		{"empty URLs before it", "://://" + account, false, "://[REDACTED]@proxy:3128"},
		{
			"a proxy's address that is invalid", `x: invalid proxy address "http://us/er:hunter2@h": parse "hunter2": bad`,
			false, "x: invalid proxy address",
		},
		{
			"that and a URL before it", account + ` invalid proxy address "hunter2"`, false,
			"http://[REDACTED]@proxy:3128 invalid proxy address",
		},
		{"a text that is cut in a password", "at http://user:hunt", true, "at http://[REDACTED]"},
		{"a text that is cut in a path, without an account", "at http://host/pa", true, "at http://[REDACTED]"},
		{"a text that is cut without a URL", "at ho", true, "at ho"},
		{"a text that is not cut", "at http://user:hunt", false, "at http://user:hunt"},
	} {
		assert.Equal(t, tt.want, redact.Passwords(tt.text, tt.cut), tt.name)
	}
}

// Whatever stands before them, passwords are removed in one pass over the text.
func TestPasswords_long(t *testing.T) {
	t.Parallel()
	urls := strings.Repeat("://", 80_000) + strings.Repeat("http://user:hunter2@host/ ", 5_000)
	assert.Equal(t, "://[REDACTED]@host/ ", redact.Passwords(urls, false))
	assert.Equal(t, "[REDACTED]@", redact.Passwords(strings.Repeat("user:hunter2@", 80_000), false))
	assert.Equal(t, strings.Repeat(": ", 80_000)+"[REDACTED]@",
		redact.Passwords(strings.Repeat(": ", 80_000)+"hunter2@", false))
}

// A text is cut between two characters, unless it is not UTF-8.
func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aé b", 3, "aé"},
		{"aé", 2, "a"},
		{"aaa世", 4, "aaa"},
		{"aaaa🪙", 5, "aaaa"},
		{"世", 2, ""},
		{"aaaa" + strings.Repeat("\x80", 8), 8, "aaaa" + strings.Repeat("\x80", 4)},
		{"\x80\x80\x80", 2, "\x80\x80"},
	} {
		assert.Equal(t, tt.want, redact.Truncate(tt.text, tt.limit), "%q at %d", tt.text, tt.limit)
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
		assert.True(t, strings.HasPrefix(text, got), "%q became %q", text, got)
		assert.LessOrEqual(t, len(got), limit)
		assert.GreaterOrEqual(t, len(got), min(len(text), limit-utf8.UTFMax+1))
		assert.True(t, utf8.ValidString(got) || !utf8.ValidString(text), "%q at %d is cut within a character: %q", text,
			limit, got)
	})
}
