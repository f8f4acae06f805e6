package redact_test

import (
	"strings"
	"testing"

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
		{"no scheme", "at //user:hunter2@proxy", false, "at //[REDACTED]@proxy"},
		{"accounts without and with a URL", "at user:hunter2@host http://user:hunter2@host", false, "at [REDACTED]@host http://[REDACTED]@host"},
		{"a part of a password as a port", `parse "http://user:hun/ter2@proxy": invalid port ":hun" after host`, false, `parse "http://[REDACTED]@proxy": invalid port [REDACTED] after host`},
		{"a part of a password with quotes as a port", `invalid port ":hu" after host"nt" after host`, false, `invalid port [REDACTED] after host`},
		{"a port without a host", `invalid port ":hun`, false, `invalid port ":hun`},
		{"no scheme, at the beginning", "//user:hunt er2@proxy", false, "//[REDACTED]@proxy"},
		{"an empty account", "http://@host", false, "http://[REDACTED]@host"},
		{"a URL without an account", "at http://host/p?q failed", false, "at http://host/p?q failed"},
		{"a user and a password", "at " + account + "/p", false, "at http://[REDACTED]@proxy:3128/p"},
		{"several @", "http://user:@hun@ter2@proxy", false, "http://[REDACTED]@proxy"},
		{"an @ after the path began", "http://host/@user", false, "http://[REDACTED]@user"},
		{"an @ after a space", "http://host me@home", false, "http://[REDACTED]@home"},
		{"several URLs", account + " " + account + " http://host", false, "http://[REDACTED]@proxy:3128 http://host"},
		{"empty URLs before it", "://://" + account, false, "://[REDACTED]@proxy:3128"},
		{"a proxy's address that is invalid", `x: invalid proxy address "http://us/er:hunter2@h": parse "hunter2": bad`, false, "x: invalid proxy address"},
		{"that and a URL before it", account + ` invalid proxy address "hunter2"`, false, "http://[REDACTED]@proxy:3128 invalid proxy address"},
		{"a text that is cut in a password", "at http://user:hunt", true, "at http://[REDACTED]"},
		{"a text that is cut in a path, without an account", "at http://host/pa", true, "at http://[REDACTED]"},
		{"a text that is cut without a URL", "at ho", true, "at ho"},
		{"a text that is not cut", "at http://user:hunt", false, "at http://user:hunt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, redact.Passwords(tt.text, tt.cut))
		})
	}
}

// Whatever stands before them, passwords are removed in one pass over the text.
func TestPasswords_long(t *testing.T) {
	t.Parallel()
	urls := strings.Repeat("://", 80_000) + strings.Repeat("http://user:hunter2@host/ ", 5_000)
	assert.Equal(t, "://[REDACTED]@host/ ", redact.Passwords(urls, false))
	assert.Equal(t, "[REDACTED]@", redact.Passwords(strings.Repeat("user:hunter2@", 80_000), false))
	assert.Equal(t, strings.Repeat(": ", 80_000)+"[REDACTED]@", redact.Passwords(strings.Repeat(": ", 80_000)+"hunter2@", false))
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"a text at the limit", "abc", 3, "abc"},
		{"a text over the limit", "abcd", 3, "abc"},
		{"a character of 2 bytes that fits", "aé b", 3, "aé"},
		{"a character of 2 bytes that does not fit", "aé", 2, "a"},
		{"a character of 3 bytes, two bytes too long", "aaa世", 4, "aaa"},
		{"a character of 4 bytes, three bytes too long", "aaaa🪙", 5, "aaaa"},
		{"a character that does not fit", "世", 2, ""},
		{"a text that is not UTF-8 is cut at the limit", "aaaa" + strings.Repeat("\x80", 8), 8, "aaaa" + strings.Repeat("\x80", 4)},
		{"a text that is not UTF-8, and shorter than a character", "\x80\x80\x80", 2, "\x80\x80"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, redact.Truncate(tt.text, tt.limit))
		})
	}
}
