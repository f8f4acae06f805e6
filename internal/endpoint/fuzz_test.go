package endpoint_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/cryptogw/gateway/internal/endpoint"
)

// Whatever is accepted for a path stays one segment of it, below the prefix of
// the base URL, and arrives as it was; the same holds for a query.
func FuzzBase_URL(f *testing.F) {
	for _, seed := range []string{
		"", ".", "..", "...", "a", "USDT", "Binance Smart Chain (BEP20)", "../balance", "a/b", "/", "a?x=1", "a#f", "a&b", `a\b`, "a;v=1",
		"%2e%2e", "%", "a+b", "a=b", "é", "世", "\x00", "\r\n", "\x7f", "\u0085", "\u200d", "\xff", " a", "a ", "\u2028", "\u00a0", strings.Repeat("a", 257),
	} {
		f.Add(seed)
	}
	base, reason := endpoint.Parse("https://gateway.example/p%20q/é")
	if reason != "" {
		f.Fatal(reason)
	}
	const prefix = "/p%20q/%C3%A9"
	f.Fuzz(func(t *testing.T, text string) {
		checkPath(t, base, prefix+"/api/networks-coins/", text)
		checkQuery(t, base, prefix+"/api/balance/?coinSymbol=", text)
	})
}

func checkPath(t *testing.T, base endpoint.Base, before, text string) {
	t.Helper()
	var target url.URL
	name, reason := base.URL(&target, "/api/networks-coins/{id}", []string{text, ""}, nil)
	if reason != "" {
		if name != "id" || endpoint.PathSegment(text) != reason {
			t.Fatalf("%q: %s %s", text, name, reason)
		}
		return
	}
	segment, found := strings.CutPrefix(target.RequestURI(), before)
	if !found || segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "/?#\\ ") {
		t.Fatalf("%q is requested as %q", text, target.RequestURI())
	}
	if back, err := url.PathUnescape(segment); err != nil || back != text {
		t.Fatalf("%q arrives as %q, %v", text, back, err)
	}
	if again, err := url.Parse(target.String()); err != nil || again.RequestURI() != target.RequestURI() || again.Host != target.Host {
		t.Fatalf("%q: %v is read as %v, %v", text, &target, again, err)
	}
}

func checkQuery(t *testing.T, base endpoint.Base, before, text string) {
	t.Helper()
	var target url.URL
	_, reason := base.URL(&target, "/api/balance/", nil, []endpoint.Param{{Name: "coinSymbol", Value: text}, {Name: "networkName", Value: "n"}})
	if reason != endpoint.Text(text, endpoint.MaxURLText) {
		t.Fatalf("%q: %s", text, reason)
	}
	if reason != "" || text == "" {
		return
	}
	if !strings.HasPrefix(target.RequestURI(), before) || !strings.HasSuffix(target.RequestURI(), "&networkName=n") {
		t.Fatalf("%q is requested as %q", text, target.RequestURI())
	}
	got, err := url.ParseQuery(target.RawQuery)
	if err != nil || len(got) != 2 || len(got["coinSymbol"]) != 1 || got.Get("coinSymbol") != text {
		t.Fatalf("%q arrives as %v, %v", text, got, err)
	}
}

// A base URL is accepted or refused, without a panic; an accepted one has its
// host, and its path in front of every route.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "::", "https://h", "http://h", "https://h/", "https://h//", "https://h/a%2Fb/%61", "https://h/é", "https://h/a/../b", "https://h/%2e",
		"https://user:s3cret@h", "https://h?x", "https://h#", "https://h:0", "https://h:65535", "https://[::1]:1", "https:opaque", "https://[fe80::1%25en0]", "HTTPS://H",
		"http://[::%25\xb0]", "http://[::1%25é]", "http://münchen.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		base, reason := endpoint.Parse(text)
		if reason != "" {
			return
		}
		var target url.URL
		if name, reason := base.URL(&target, "/api/x", nil, nil); reason != "" {
			t.Fatalf("%q: %s %s", text, name, reason)
		}
		again, err := url.Parse(target.String())
		if err != nil || again.Host != base.Host() || again.Hostname() == "" || again.User != nil || again.RawQuery != "" || again.Fragment != "" {
			t.Fatalf("%q became %q, read as %v, %v", text, target.String(), again, err)
		}
		if !strings.HasSuffix(again.EscapedPath(), "/api/x") || again.EscapedPath() != target.EscapedPath() {
			t.Fatalf("%q became %q", text, target.String())
		}
	})
}
