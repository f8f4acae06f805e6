package endpoint

import (
	"net/url"
	"strings"
)

// A Param is a query parameter.
type Param struct{ Name, Value string }

// URL makes dst, which is zero, the URL of a route, in which each {name} is replaced by the next
// of args. Query parameters with an empty value are left out. An argument that
// cannot be sent is named, with the reason.
func (b Base) URL(dst *url.URL, route string, args []string, query []Param) (name, reason string) {
	path, plain, name, reason := b.expand(route, args)
	if reason != "" {
		return name, reason
	}
	dst.Scheme, dst.Host, dst.Path = b.scheme, b.host, path
	if !plain {
		dst.RawPath = b.rawPath + escapePath(path[len(b.path):])
	}
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

// Name returns the name of the argument i of a route.
func Name(route string, i int) string {
	for range i + 1 {
		_, route, _ = strings.Cut(route, "{")
	}
	name, _, _ := strings.Cut(route, "}")
	return name
}

// expand puts the arguments into the route, after the base. The path is plain if
// net/url escapes it correctly by itself.
func (b Base) expand(route string, args []string) (path string, plain bool, name, reason string) {
	before, rest, found := strings.Cut(route, "{")
	if !found {
		return b.path + route, b.plain, "", ""
	}
	var buffer [128]byte
	expanded, plain := append(buffer[:0], b.path...), b.plain
	for _, arg := range args {
		name, after, _ := strings.Cut(rest, "}")
		if reason := PathSegment(arg); reason != "" {
			return "", false, name, reason
		}
		plain = plain && IsUnreserved(arg)
		expanded = append(append(expanded, before...), arg...)
		if before, rest, found = strings.Cut(after, "{"); !found {
			expanded = append(expanded, after...)
			break
		}
	}
	return string(expanded), plain, "", ""
}

// escapePath escapes the segments of a path.
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
