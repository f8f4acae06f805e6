package endpoint

import (
	"net/url"
	"strings"
)

// A Param is a query parameter.
type Param struct{ Name, Value string }

// URL makes dst, which is zero, the URL of a route, in which each {name} is replaced by the next
// of args, escaped. Query parameters with an empty value are left out. An argument that
// cannot be sent is named, with the reason.
func (b Base) URL(dst *url.URL, route string, args []string, query []Param) (name, reason string) {
	plain := b.plain // net/url escapes the path by itself
	for i, arg := range args {
		name := Name(route, i)
		if name == "" {
			break
		}
		if reason := PathSegment(arg); reason != "" {
			return name, reason
		}
		plain = plain && IsUnreserved(arg)
	}
	dst.Scheme, dst.Host, dst.Path = b.scheme, b.host, expand(b.path, route, args)
	if !plain {
		escaped := make([]string, len(args))
		for i, arg := range args {
			escaped[i] = escape(arg)
		}
		dst.RawPath = expand(b.rawPath, route, escaped)
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

// expand puts arguments into a route, after the path of the base.
func expand(base, route string, args []string) string {
	if !strings.Contains(route, "{") {
		return base + route // without an allocation, if base is empty
	}
	var buffer [128]byte
	path := append(buffer[:0], base...)
	for _, arg := range args {
		before, rest, found := strings.Cut(route, "{")
		if !found {
			break
		}
		path = append(append(path, before...), arg...)
		_, route, _ = strings.Cut(rest, "}")
	}
	return string(append(path, route...))
}

// escape escapes everything but the unreserved characters of RFC 3986.
func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
