// Package endpoint checks arguments before anything is sent, and builds the URL of a request from a base URL, a
// route and its arguments.
//
// An argument stays one path segment or one query value, whatever it contains, or is refused. The path of the
// base URL stays in front of every route. A function that returns a reason says why it refuses its argument, in words
// that follow the argument's name in an error text, or "". No reason contains the argument itself, which may be a key
// or a password.
package endpoint

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// A Base is the common part of the URLs of all requests. It never changes.
type Base struct {
	scheme, host string
	path         string // escaped, without a slash at the end
	text         string // the whole in one form
}

// Host returns the host and, where it has one, the port.
func (b Base) Host() string { return b.host }

// String returns the base URL in one form: the host in lower case, no default port and no slash
// at the end.
func (b Base) String() string { return b.text }

// Moved returns the base URL that a redirect from one URL to another asks for, in the form of String. It returns ""
// unless the paths differ at most in a slash at the end, and the new URL has no query, fragment or user.
func (b Base) Moved(from, to *url.URL) string {
	there, reason := Parse(to.String())
	if reason != "" || strings.HasSuffix(to.Path, "//") || there.path != strings.TrimSuffix(from.EscapedPath(), "/") {
		return ""
	}
	return strings.TrimSuffix(there.text, there.path) + b.path
}

// Loopback reports whether the host is this machine.
func (b Base) Loopback() bool { return isLoopback((&url.URL{Host: b.host}).Hostname()) }

// Cleartext reports whether requests travel unencrypted to a host that is not
// this machine.
func (b Base) Cleartext() bool { return b.scheme == "http" && !b.Loopback() }

// Parse checks a base URL: http or https, a host, no user, password, query,
// fragment or dot segment. The reason why it is refused, or "", does not contain
// the URL, which may hold a password.
func Parse(text string) (b Base, reason string) {
	switch {
	case text == "":
		return Base{}, "is required"
	case len(text) > 512:
		return Base{}, "must be at most 512 bytes"
	}
	if strings.ContainsFunc(text, func(char rune) bool { return unicode.IsSpace(char) || unicode.IsControl(char) }) {
		return Base{}, "must not contain spaces or control characters"
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return Base{}, "is not a URL"
	}
	if strings.Contains(text, "#") { // an empty fragment leaves no trace in the URL
		return Base{}, "must not have a query or fragment"
	}
	if reason := check(parsed); reason != "" {
		return Base{}, reason
	}
	escaped := strings.TrimRight(parsed.EscapedPath(), "/")
	return Base{
		scheme: parsed.Scheme, host: parsed.Host, path: escaped,
		text: parsed.Scheme + "://" + withoutDefaultPort(parsed.Scheme, strings.ToLower(parsed.Host)) + escaped,
	}, ""
}

func withoutDefaultPort(scheme, host string) string {
	if scheme == "http" {
		return strings.TrimSuffix(host, ":80")
	}
	return strings.TrimSuffix(host, ":443")
}

func check(u *url.URL) (reason string) {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "must begin with https://"
	case u.Opaque != "" || u.Hostname() == "":
		return "has no host"
	case !canBeWritten(u):
		return "has a host that a URL cannot hold"
	case u.User != nil:
		return "must not hold a user or password"
	case u.RawQuery != "" || u.ForceQuery:
		return "must not have a query or fragment"
	case !hasValidPort(u):
		return "has a port that is not from 1 to 65535"
	case hasDotSegment(u.Path):
		return "must not have dot segments in its path"
	default:
		return ""
	}
}

// canBeWritten reports whether the host is read again as it is written: net/url
// accepts a zone of an IPv6 address that it then cannot read.
func canBeWritten(u *url.URL) bool {
	again, err := url.Parse((&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	return err == nil && again.Host == u.Host
}

func hasValidPort(u *url.URL) bool {
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

// A Param is a query parameter.
type Param struct{ Name, Value string }

// URL makes dst, which is zero, the URL of a route, in which each {name} is replaced by the next
// of args, escaped. Query parameters with an empty value are left out. An argument that
// cannot be sent is named, with the reason.
func (b Base) URL(dst *url.URL, route string, args []string, query []Param) (name, reason string) {
	path := b.path
	for _, arg := range args {
		before, rest, found := strings.Cut(route, "{")
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		if reason := pathSegment(arg); reason != "" {
			return name, reason
		}
		path, route = path+before+escape(arg), after
	}
	dst.Scheme, dst.Host, dst.RawPath = b.scheme, b.host, path+route
	dst.Path, _ = url.PathUnescape(dst.RawPath) // it is escaped above
	for _, p := range query {
		if reason := Text(p.Value, MaxURLText); reason != "" {
			return p.Name, reason
		}
		if p.Value != "" {
			dst.RawQuery += "&" + p.Name + "=" + escape(p.Value)
		}
	}
	dst.RawQuery = strings.TrimPrefix(dst.RawQuery, "&")
	return "", ""
}

// escape escapes everything but the unreserved characters of RFC 3986.
func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
