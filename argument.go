package gateway

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what is sent, in bytes.
const (
	maxPathText     = 256  // of an argument in the URL
	maxBodyText     = 1024 // of a text in the body
	maxCurrencyText = 64   // of a currency code
	maxKey          = 4096 // of an API key
)

// checkPathText says what is wrong with an argument that becomes one segment
// of a path, or "".
func checkPathText(text string) string {
	switch {
	case text == "":
		return "is required"
	case text == "." || text == "..":
		return "must not be a dot segment"
	case len(text) <= maxPathText && isUnreserved(text):
		return "" // as nearly all are
	case strings.ContainsAny(text, `/\%?#`):
		return `must not contain any of / \ % ? #`
	case strings.ContainsFunc(text, isFormat):
		return "must not contain invisible characters"
	default:
		return checkText(text, maxPathText)
	}
}

// checkText says what is wrong with a text, or "". It may be empty.
func checkText(text string, most int) string {
	switch {
	case len(text) > most:
		return "is longer than " + strconv.Itoa(most) + " bytes"
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "must not contain control characters"
	case text != strings.TrimSpace(text):
		return "must not begin or end with a space"
	default:
		return ""
	}
}

func isFormat(char rune) bool { return unicode.Is(unicode.Cf, char) }

// checkCurrency says what is wrong with a currency code, or "". Which codes
// there are is not shown: INTERFACE.md, "Create invoice".
func checkCurrency(code string) string {
	if strings.ContainsFunc(code, unicode.IsSpace) {
		return "must not contain spaces"
	}
	return checkText(code, maxCurrencyText)
}

// checkKey says what is wrong with an API key, or "". It never says the key.
func checkKey(key string) string {
	switch {
	case key == "":
		return "is required"
	case len(key) > maxKey:
		return "is longer than 4,096 bytes"
	case !isHeaderValue(key):
		return "must be printable ASCII: no line end, tab or other control character"
	case strings.TrimSpace(key) == "":
		return "is blank"
	case key != strings.TrimSpace(key):
		return "must not begin or end with a space"
	default:
		return ""
	}
}

// isHeaderValue reports whether text is printable ASCII.
func isHeaderValue(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// isToken reports whether text is a header's name by RFC 9110.
func isToken(text string) bool {
	for i := range len(text) {
		char := text[i]
		if char <= ' ' || char > '~' || strings.IndexByte(`"(),/:;<=>?@[\]{}`, char) >= 0 {
			return false
		}
	}
	return text != "" && len(text) <= maxPathText
}

// parseBase checks a base URL and returns what all requests have in common:
// scheme, host and path prefix, without a slash at the end. What is wrong is
// said without the URL, in which there could be a password.
func parseBase(text string, plainHTTP bool) (base *url.URL, reason string) {
	if text == "" {
		return nil, "is required"
	}
	if strings.ContainsFunc(text, func(char rune) bool { return unicode.IsSpace(char) || unicode.IsControl(char) }) {
		return nil, "must not contain spaces or control characters"
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, "is not a URL"
	}
	if strings.Contains(text, "#") { // an empty fragment leaves no trace in the URL
		return nil, "must not have a query or fragment"
	}
	if reason := checkBase(parsed, plainHTTP); reason != "" {
		return nil, reason
	}
	escaped := strings.TrimRight(parsed.EscapedPath(), "/")
	path, _ := url.PathUnescape(escaped) // the URL was parsed: it unescapes
	return &url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: path, RawPath: escaped}, ""
}

func checkBase(u *url.URL, plainHTTP bool) string {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "must begin with https://"
	case u.Opaque != "" || u.Hostname() == "":
		return "has no host"
	case u.User != nil:
		return "must not hold a user or password"
	case u.RawQuery != "" || u.ForceQuery:
		return "must not have a query or fragment"
	case !isPort(u):
		return "has a port that is not from 1 to 65535"
	case hasDotSegment(u.Path):
		return "must not have dot segments in its path"
	case u.Scheme == "http" && !plainHTTP && !isLoopback(u.Hostname()):
		return "must begin with https://: plain http is for this machine only, or with WithPlainHTTP"
	default:
		return ""
	}
}

func isPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
