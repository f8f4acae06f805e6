package gateway

import (
	"net/url"
	"strings"
)

// A base is what the URLs of all requests have in common.
type base struct {
	scheme, host string
	path         string // without a slash at the end
	rawPath      string // the same, as it is sent
	plain        bool   // whether net/url escapes path into rawPath by itself
}

func newBase(u *url.URL) base {
	return base{
		scheme: u.Scheme, host: u.Host, path: u.Path, rawPath: u.RawPath,
		plain: (&url.URL{Path: u.Path}).EscapedPath() == u.RawPath,
	}
}

// aim makes target the URL of a call.
func (b base) aim(target *url.URL, what *call) (name, reason string) {
	path, plain, name, reason := b.fill(what)
	if reason != "" {
		return name, reason
	}
	target.Scheme, target.Host, target.Path = b.scheme, b.host, path
	if !plain {
		target.RawPath = b.rawPath + escapePath(path[len(b.path):])
	}
	for _, p := range what.query {
		if reason := checkText(p.value, maxPathText); reason != "" {
			return p.name, reason
		}
		if p.value != "" {
			target.RawQuery += "&" + p.name + "=" + escape(p.value)
		}
	}
	target.RawQuery = strings.TrimPrefix(target.RawQuery, "&")
	return "", ""
}

// fill puts the arguments of a call into its route, after the base. The path is
// plain if net/url escapes it as it has to be.
func (b base) fill(what *call) (path string, plain bool, name, reason string) {
	before, rest, found := strings.Cut(what.route, "{")
	if !found {
		return b.path + what.route, b.plain, "", ""
	}
	var buffer [128]byte
	filled, plain := append(buffer[:0], b.path...), b.plain
	for _, arg := range what.args {
		name, after, _ := strings.Cut(rest, "}")
		if reason := checkPathText(arg); reason != "" {
			return "", false, name, reason
		}
		plain = plain && isUnreserved(arg)
		filled = append(append(filled, before...), arg...)
		if before, rest, found = strings.Cut(after, "{"); !found {
			filled = append(filled, after...)
			break
		}
	}
	return string(filled), plain, "", ""
}

// escapePath escapes the segments of a path, none of which holds a slash.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = escape(segment)
	}
	return strings.Join(segments, "/")
}

// escape escapes everything but the unreserved characters of RFC 3986.
func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// isUnreserved reports whether text has unreserved characters of RFC 3986 only.
func isUnreserved(text string) bool {
	for i := range len(text) {
		char := text[i]
		switch {
		case 'a' <= char && char <= 'z', 'A' <= char && char <= 'Z', '0' <= char && char <= '9':
		case char == '-', char == '.', char == '_', char == '~':
		default:
			return false
		}
	}
	return true
}
