package redact

import (
	"strings"
	"unicode/utf8"
)

// Passwords removes from a text what could be a password in a URL: everything from the first // to the last @, and the
// account before an @ without a //. It removes more than passwords, because the password in an invalid URL can contain
// spaces, quotes and slashes. So it also removes everything after the words by which net/http reports an invalid proxy
// address, and the port that net/url reports as invalid. With cut, the text is the beginning of a longer one, whose @
// may be missing.
func Passwords(text string, cut bool) string {
	const badProxy = "invalid proxy address"
	if before, _, found := strings.Cut(text, badProxy); found {
		text, cut = before+badProxy, false
	}
	text = withoutPort(text)
	url := strings.Index(text, "//")
	if url < 0 {
		return withoutAccount(text)
	}
	before, after := withoutAccount(text[:url])+"//", text[url+len("//"):]
	if cut {
		return before + Mask
	}
	if at := strings.LastIndexByte(after, '@'); at >= 0 {
		return before + Mask + after[at:]
	}
	return before + after
}

// withoutPort removes what net/url takes for the port of a host: of user:pa/ss@host it
// is the beginning of the password.
func withoutPort(text string) string {
	const port, end = `invalid port `, ` after host`
	from, to := strings.Index(text, port), strings.LastIndex(text, end)
	if from < 0 || to < from+len(port) {
		return text
	}
	return text[:from+len(port)] + Mask + text[to:]
}

// withoutAccount removes the account before the last @ of a text that has no //: everything from the
// first word with a colon inside, or else the word before the @.
func withoutAccount(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	start := strings.LastIndexAny(text[:at], " \t\r\n\"'") + 1
	for colon := range at {
		if text[colon] == ':' && !strings.ContainsAny(text[colon+1:colon+2], " \t\r\n\"'") {
			start = min(start, strings.LastIndexAny(text[:colon], " \t\r\n\"'")+1)
			break
		}
	}
	return text[:start] + Mask + text[at:]
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
