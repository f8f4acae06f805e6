package redact

import (
	"strings"
	"unicode/utf8"
)

// Passwords removes from a text what could be a password in a URL: what is before
// the @ of each URL, and all of a proxy's address that net/http quotes because it
// is invalid. With cut, the text is the beginning of a longer one, and the @ may be
// missing.
func Passwords(text string, cut bool) string {
	const badProxy = "invalid proxy address"
	if before, _, found := strings.Cut(text, badProxy); found {
		text = before + badProxy
	}
	var clean strings.Builder
	for {
		before, after, found := strings.Cut(text, "://")
		clean.WriteString(before)
		if !found {
			return clean.String()
		}
		clean.WriteString("://")
		end := strings.IndexAny(after, "/ \"'")
		if end < 0 && cut {
			return clean.String() + Mask
		}
		if end < 0 {
			end = len(after)
		}
		if at := strings.LastIndex(after[:end], "@"); at >= 0 {
			clean.WriteString(Mask)
			after = after[at:]
		}
		text = after
	}
}

// Truncate cuts text to at most limit bytes, between two characters where it is
// UTF-8. A text must be redacted before it is truncated.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for cut := limit; cut >= 0 && cut > limit-utf8.UTFMax; cut-- {
		if utf8.RuneStart(text[cut]) {
			return text[:cut]
		}
	}
	return text[:limit]
}
