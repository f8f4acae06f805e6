package endpoint_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/endpoint"
)

const (
	scheme    = "must begin with https://"
	noHost    = "has no host"
	notURL    = "is not a URL"
	hasQuery  = "must not have a query or fragment"
	port      = "has a port that is not from 1 to 65535"
	invisible = "must not contain spaces or control characters"
	user      = "must not hold a user or password"
	climbs    = "must not have dot segments in its path"
)

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, url, reason string }{
		{"an empty URL", "", "is required"},
		{"513 bytes", "https://h/" + strings.Repeat("a", 503), "must be at most 512 bytes"},
		{"two colons", "::", notURL},
		{"a NUL", "https://h/\x00", invisible},
		{"a space in the path", "https://h/a b", invisible},
		{"a space in front", " https://h", invisible},
		{"another scheme", "ftp://h", scheme},
		{"a bare host with a port", "h.com:443", scheme},
		{"a user and a password", "https://user:s3cret@h", user},
		{"an empty user", "https://@h", user},
		{"a query", "https://h?x=1", hasQuery},
		{"an empty query", "https://h/p?", hasQuery},
		{"an empty fragment", "https://h/p#", hasQuery},
		{"no host", "https:///p", noHost},
		{"opaque", "https:opaque", noHost},
		{"a zone that a URL cannot hold", "http://[::1%25é]", "has a host that a URL cannot hold"},
		{"a port too large", "https://h:65536", port},
		{"port zero", "https://h:0", port},
		{"a colon and no port", "https://h:", port},
		{"a port that is a word", "https://h:https", notURL},
		{"a path that climbs", "https://h/a/../b", climbs},
		{"a path that climbs in escapes", "https://h/a/%2e%2E/b", climbs},
		{"a dot segment", "https://h/./b", climbs},
	} {
		base, reason := endpoint.Parse(tt.url)
		assert.Equal(t, tt.reason, reason, tt.name)
		assert.Equal(t, endpoint.Base{}, base, tt.name)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url, host string
		cleartext       bool
		want            string // the URL of /api/balance/
	}{
		{"no path", "https://gateway.example", "gateway.example", false, "https://gateway.example/api/balance/"},
		{"the largest port", "https://gateway.example:65535", "gateway.example:65535", false, "https://gateway.example:65535/api/balance/"},
		{"a slash at the end", "https://h/", "h", false, "https://h/api/balance/"},
		{"a prefix with many slashes at the end", "https://h/a/b///", "h", false, "https://h/a/b/api/balance/"},
		{"slashes within a prefix", "https://h/a//b", "h", false, "https://h/a//b/api/balance/"},
		{"escapes in a prefix", "https://h/a%20b%3F", "h", false, "https://h/a%20b%3F/api/balance/"},
		{"an escape that is not needed", "https://h/%61", "h", false, "https://h/%61/api/balance/"},
		{"letters beyond ASCII", "https://h/é", "h", false, "https://h/%C3%A9/api/balance/"},
		{"a name that begins with two dots", "https://h/..a", "h", false, "https://h/..a/api/balance/"},
		{"plain http", "http://api.example", "api.example", true, "http://api.example/api/balance/"},
		{"a host that only looks local", "http://localhost.example", "localhost.example", true, "http://localhost.example/api/balance/"},
		{"all interfaces", "http://0.0.0.0", "0.0.0.0", true, "http://0.0.0.0/api/balance/"},
		{"this machine by its IPv4 address", "http://127.0.0.1", "127.0.0.1", false, "http://127.0.0.1/api/balance/"},
		{"this machine by its IPv6 address and port", "http://[::1]:8080", "[::1]:8080", false, "http://[::1]:8080/api/balance/"},
		{"this machine by its name", "http://localhost", "localhost", false, "http://localhost/api/balance/"},
		{"this machine by its name in capitals", "http://LOCALHOST:1", "LOCALHOST:1", false, "http://LOCALHOST:1/api/balance/"},
	} {
		base, reason := endpoint.Parse(tt.url)
		require.Empty(t, reason, tt.name)
		assert.Equal(t, tt.host, base.Host(), tt.name)
		assert.Equal(t, tt.cleartext, base.Cleartext(), tt.name)
		assert.Equal(t, tt.want, target(t, base, "/api/balance/", nil), tt.name)
	}
}

// target is the URL of a route that is accepted.
func target(t *testing.T, base endpoint.Base, route string, args []string, query ...endpoint.Param) string {
	t.Helper()
	var dst url.URL
	name, reason := base.URL(&dst, route, args, query)
	require.Empty(t, name+reason)
	again, err := url.Parse(dst.String())
	require.NoError(t, err)
	assert.Equal(t, dst.Path, again.Path, "the path and its escaped form are one")
	return dst.String()
}

// prefixed is a base whose path is escaped.
func prefixed(t testing.TB) endpoint.Base {
	t.Helper()
	base, reason := endpoint.Parse("https://h/p%2Fq/%C3%A9")
	require.Empty(t, reason)
	return base
}

func TestBase_URL_path(t *testing.T) {
	t.Parallel()
	const pair = "/api/networks-coins/{coinSymbol}/{networkName}"
	for _, tt := range []struct {
		name, route string
		args        []string
		want        string
	}{
		{"no argument", "/api/exchange-rate", nil, "/api/exchange-rate"},
		{"an argument", "/api/networks-coins/{id}", []string{"USDT"}, "/api/networks-coins/USDT"},
		{"an argument before the end, and an unused one", "/api/{id}/status", []string{"7", "8"}, "/api/7/status"},
		{"two arguments and a text between and after them", "/a/{x}/b/{y}/c", []string{"1", "2"}, "/a/1/b/2/c"},
		{"the second is escaped", pair, []string{"USDT", "Binance Smart Chain (BEP20)"}, "/api/networks-coins/USDT/Binance%20Smart%20Chain%20%28BEP20%29"},
		{"a slash", pair, []string{"USDT", "BSC/BEP20"}, "/api/networks-coins/USDT/BSC%2FBEP20"},
		{"a path that climbs stays a segment", pair, []string{"../x", "a/.."}, "/api/networks-coins/..%2Fx/a%2F.."},
		{"a percent sign", pair, []string{"100%", "%2e%2e"}, "/api/networks-coins/100%25/%252e%252e"},
		{"a question mark and a hash", pair, []string{"a?x=1", "b#f"}, "/api/networks-coins/a%3Fx%3D1/b%23f"},
		{"256 bytes that are all escaped", pair, []string{strings.Repeat("/", 256), "Tron"}, "/api/networks-coins/" + strings.Repeat("%2F", 256) + "/Tron"},
		{"letters beyond ASCII", pair, []string{"é", "链"}, "/api/networks-coins/%C3%A9/%E9%93%BE"},
	} {
		assert.Equal(t, "https://h/p%2Fq/%C3%A9"+tt.want, target(t, prefixed(t), tt.route, tt.args), tt.name)
	}
}

func TestBase_URL_query(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, coin, network, want string
	}{
		{"nothing", "", "", ""},
		{"a coin and a network", "USDT", "Tron (TRC20)", "?coinSymbol=USDT&networkName=Tron%20%28TRC20%29"},
		{"a network without a coin", "", "Tron", "?networkName=Tron"},
		{"an ampersand does not begin another value", "a&apiKey=x", "", "?coinSymbol=a%26apiKey%3Dx"},
		{"a plus is no space, and a percent sign is data", "a+b%", "", "?coinSymbol=a%2Bb%25"},
		{"a hash does not end the query", "a#b;c", "", "?coinSymbol=a%23b%3Bc"},
		{"letters beyond ASCII", "é", "", "?coinSymbol=%C3%A9"},
	} {
		query := []endpoint.Param{{Name: "coinSymbol", Value: tt.coin}, {Name: "networkName", Value: tt.network}}
		assert.Equal(t, "https://h/p%2Fq/%C3%A9/api/balance/"+tt.want, target(t, prefixed(t), "/api/balance/", nil, query...), tt.name)
	}
}

// The argument that is refused is named.
func TestBase_URL_refuses(t *testing.T) {
	t.Parallel()
	const pair = "/api/{coinSymbol}/{networkName}"
	for _, tt := range []struct {
		name, route  string
		args         []string
		query        []endpoint.Param
		want, reason string
	}{
		{"the first argument", pair, []string{"", "Tron"}, nil, "coinSymbol", "is required"},
		{"the second argument", pair, []string{"USDT", ""}, nil, "networkName", "is required"},
		{"both: the first is named", pair, []string{"..", "a\tb"}, nil, "coinSymbol", "must not be a dot segment"},
		{"a value that is not UTF-8", "/a", nil, []endpoint.Param{{Name: "x", Value: "1"}, {Name: "y", Value: "\xff"}}, "y", "is not valid UTF-8"},
		{"an argument is named before a value", pair, []string{"USDT", "."}, []endpoint.Param{{Name: "x", Value: "\xff"}}, "networkName", "must not be a dot segment"},
	} {
		name, reason := prefixed(t).URL(new(url.URL), tt.route, tt.args, tt.query)
		assert.Equal(t, tt.want, name, tt.name)
		assert.Equal(t, tt.reason, reason, tt.name)
	}
}

// Whatever is accepted for a path stays one segment of it, below the prefix of
// the base URL, and arrives as it was; the same holds for a query.
func FuzzBase_URL(f *testing.F) {
	for _, seed := range []string{
		"", ".", "..", "...", "a", "USDT", "Binance Smart Chain (BEP20)", "../balance", "a/b", "/", "a?x=1", "a#f", "a&b", `a\b`, "a;v=1",
		"%2e%2e", "%", "a+b", "a=b", "é", "世", "\x00", "\r\n", "\x7f", "\u0085", "\u200d", "\xff", " a", "a ", "\u2028", "\u00a0", strings.Repeat("a", 257),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkPath(t, text)
		checkQuery(t, text)
	})
}

func checkPath(t *testing.T, text string) {
	t.Helper()
	var target url.URL
	name, reason := prefixed(t).URL(&target, "/{id}", []string{text, ""}, nil)
	if reason != "" {
		require.Equal(t, "id", name)
		return
	}
	segment, found := strings.CutPrefix(target.RequestURI(), "/p%2Fq/%C3%A9/")
	require.True(t, found, target.RequestURI())
	assert.NotContains(t, []string{"", ".", ".."}, segment)
	assert.False(t, strings.ContainsAny(segment, "/?#\\ "), segment)
	back, err := url.PathUnescape(segment)
	require.NoError(t, err)
	assert.Equal(t, text, back)
	again, err := url.Parse(target.String())
	require.NoError(t, err)
	assert.Equal(t, target.Host+target.RequestURI(), again.Host+again.RequestURI())
}

func checkQuery(t *testing.T, text string) {
	t.Helper()
	var target url.URL
	_, reason := prefixed(t).URL(&target, "/a", nil, []endpoint.Param{{Name: "coinSymbol", Value: text}, {Name: "networkName", Value: "n"}})
	require.Equal(t, endpoint.Text(text, endpoint.MaxURLText), reason)
	if reason != "" || text == "" {
		return
	}
	assert.Regexp(t, `^/p%2Fq/%C3%A9/a\?coinSymbol=[^&]+&networkName=n$`, target.RequestURI())
	got, err := url.ParseQuery(target.RawQuery)
	require.NoError(t, err)
	assert.Equal(t, url.Values{"coinSymbol": {text}, "networkName": {"n"}}, got)
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
		_, reason = base.URL(&target, "/api/x", nil, nil)
		require.Empty(t, reason)
		again, err := url.Parse(target.String())
		require.NoError(t, err)
		assert.NotEmpty(t, again.Hostname())
		assert.True(t, strings.HasSuffix(again.EscapedPath(), "/api/x"), again)
		assert.Equal(t, []string{base.Host(), target.EscapedPath(), "", "", ""}, []string{again.Host, again.EscapedPath(), again.User.String(), again.RawQuery, again.Fragment})
	})
}
