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
		{"two colons", "::", notURL},
		{"a percent sign that escapes nothing", "https://h/%zz", notURL},
		{"a NUL", "https://h/\x00", invisible},
		{"a C1 control", "https://h/\u0085", invisible},
		{"a space in the path", "https://h/a b", invisible},
		{"a space in front", " https://h", invisible},
		{"an unreadable URL with a password", "https://user:s3cret@h:x", notURL},
		{"another scheme", "ftp://h", scheme},
		{"no scheme", "//h", scheme},
		{"a bare host with a port", "h.com:443", scheme},
		{"a user and a password", "https://user:s3cret@h", user},
		{"an empty user", "https://@h", user},
		{"a query", "https://h?x=1", hasQuery},
		{"an empty query", "https://h/p?", hasQuery},
		{"an empty fragment", "https://h/p#", hasQuery},
		{"no host", "https:///p", noHost},
		{"opaque", "https:opaque", noHost},
		{"a zone that a URL cannot hold", "http://[::1%25é]", "has a host that a URL cannot hold"},
		{"a port and no host", "https://:443", noHost},
		{"a port too large", "https://h:65536", port},
		{"port zero", "https://h:0", port},
		{"a colon and no port", "https://h:", port},
		{"a port that is a word", "https://h:https", notURL},
		{"a path that climbs", "https://h/a/../b", climbs},
		{"a path that climbs in escapes", "https://h/a/%2e%2E/b", climbs},
		{"a dot segment", "https://h/./b", climbs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, reason := endpoint.Parse(tt.url)
			assert.Equal(t, tt.reason, reason)
			assert.Equal(t, endpoint.Base{}, base)
			assert.NotContains(t, reason, "s3cret")
		})
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
		{"a scheme in upper case", "HTTPS://gateway.example", "gateway.example", false, "https://gateway.example/api/balance/"},
		{"the largest port", "https://gateway.example:65535", "gateway.example:65535", false, "https://gateway.example:65535/api/balance/"},
		{"a slash at the end", "https://h/", "h", false, "https://h/api/balance/"},
		{"many slashes at the end", "https://h//", "h", false, "https://h/api/balance/"},
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
		{"any other address of this machine", "http://127.8.9.10:8080/p", "127.8.9.10:8080", false, "http://127.8.9.10:8080/p/api/balance/"},
		{"this machine by its IPv6 address and port", "http://[::1]:8080", "[::1]:8080", false, "http://[::1]:8080/api/balance/"},
		{"this machine by its name", "http://localhost", "localhost", false, "http://localhost/api/balance/"},
		{"this machine by its name in capitals", "http://LOCALHOST:1", "LOCALHOST:1", false, "http://LOCALHOST:1/api/balance/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, reason := endpoint.Parse(tt.url)
			require.Empty(t, reason)
			assert.Equal(t, tt.host, base.Host())
			assert.Equal(t, tt.cleartext, base.Cleartext())
			assert.Equal(t, tt.want, target(t, base, "/api/balance/", nil))
		})
	}
}

// target is the URL of a route that is accepted.
func target(t *testing.T, base endpoint.Base, route string, args []string, query ...endpoint.Param) string {
	t.Helper()
	var dst url.URL
	name, reason := base.URL(&dst, route, args, query)
	require.Empty(t, reason)
	require.Empty(t, name)
	again, err := url.Parse(dst.String())
	require.NoError(t, err)
	assert.Equal(t, dst.Path, again.Path, "the path and its escaped form are one")
	assert.Equal(t, dst.RequestURI(), again.RequestURI())
	return dst.String()
}

// prefixed are two bases: net/url escapes the path of the first by itself.
func prefixed(t testing.TB) map[string]endpoint.Base {
	t.Helper()
	all := map[string]endpoint.Base{}
	for _, prefix := range []string{"/p", "/p%2Fq/%C3%A9"} {
		base, reason := endpoint.Parse("https://h" + prefix)
		require.Empty(t, reason)
		all[prefix] = base
	}
	return all
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
		{"arguments that the route does not take", "/api/exchange-rate", []string{"", ""}, "/api/exchange-rate"},
		{"an argument", "/api/networks-coins/{id}", []string{"USDT"}, "/api/networks-coins/USDT"},
		{"more arguments than the route takes", "/api/networks-coins/{id}", []string{"USDT", ""}, "/api/networks-coins/USDT"},
		{"an argument before the end, and an unused one", "/api/{id}/status", []string{"7", "8"}, "/api/7/status"},
		{"two arguments", pair, []string{"USDT", "Tron"}, "/api/networks-coins/USDT/Tron"},
		{"two arguments and a text between and after them", "/a/{x}/b/{y}/c", []string{"1", "2"}, "/a/1/b/2/c"},
		{"the first is escaped", pair, []string{"a b", "Tron"}, "/api/networks-coins/a%20b/Tron"},
		{"the second is escaped", pair, []string{"USDT", "Binance Smart Chain (BEP20)"}, "/api/networks-coins/USDT/Binance%20Smart%20Chain%20%28BEP20%29"},
		{"a plus is no space", pair, []string{"a+b", "Tron"}, "/api/networks-coins/a%2Bb/Tron"},
		{"a slash", pair, []string{"USDT", "BSC/BEP20"}, "/api/networks-coins/USDT/BSC%2FBEP20"},
		{"a path that climbs stays a segment", pair, []string{"../x", "a/.."}, "/api/networks-coins/..%2Fx/a%2F.."},
		{"a percent sign", pair, []string{"100%", "%2e%2e"}, "/api/networks-coins/100%25/%252e%252e"},
		{"a question mark and a hash", pair, []string{"a?x=1", "b#f"}, "/api/networks-coins/a%3Fx%3D1/b%23f"},
		{"256 bytes that are all escaped", pair, []string{strings.Repeat("/", 256), "Tron"}, "/api/networks-coins/" + strings.Repeat("%2F", 256) + "/Tron"},
		{"braces", pair, []string{"{networkName}", "{x"}, "/api/networks-coins/%7BnetworkName%7D/%7Bx"},
		{"letters beyond ASCII", pair, []string{"é", "链"}, "/api/networks-coins/%C3%A9/%E9%93%BE"},
		{"more bytes than the buffer has", pair, []string{strings.Repeat("a", 256), strings.Repeat("b", 256)}, "/api/networks-coins/" + strings.Repeat("a", 256) + "/" + strings.Repeat("b", 256)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for prefix, base := range prefixed(t) {
				assert.Equal(t, "https://h"+prefix+tt.want, target(t, base, tt.route, tt.args))
			}
		})
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
		{"a plus is no space", "a+b", "", "?coinSymbol=a%2Bb"},
		{"a percent sign is data", "100%", "", "?coinSymbol=100%25"},
		{"a hash does not end the query", "a#b;c", "", "?coinSymbol=a%23b%3Bc"},
		{"letters beyond ASCII", "é", "", "?coinSymbol=%C3%A9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for prefix, base := range prefixed(t) {
				query := []endpoint.Param{{Name: "coinSymbol", Value: tt.coin}, {Name: "networkName", Value: tt.network}}
				assert.Equal(t, "https://h"+prefix+"/api/balance/"+tt.want, target(t, base, "/api/balance/", nil, query...))
			}
		})
	}
}

// The argument that is refused is named.
func TestBase_URL_refuses(t *testing.T) {
	t.Parallel()
	const pair = "/api/{coinSymbol}/{networkName}"
	long := strings.Repeat("a", 257)
	for _, tt := range []struct {
		name, route  string
		args         []string
		query        []endpoint.Param
		want, reason string
	}{
		{"the first argument", pair, []string{"", "Tron"}, nil, "coinSymbol", "is required"},
		{"the second argument", pair, []string{"USDT", ""}, nil, "networkName", "is required"},
		{"both: the first is named", pair, []string{"..", "a\tb"}, nil, "coinSymbol", "must not be a dot segment"},
		{"a line end", pair, []string{"USDT", "a\nb"}, nil, "networkName", "must not contain control characters"},
		{"a value that is not UTF-8", "/a", nil, []endpoint.Param{{Name: "x", Value: "1"}, {Name: "y", Value: "\xff"}}, "y", "is not valid UTF-8"},
		{"a long value", "/a", nil, []endpoint.Param{{Name: "x", Value: long}, {Name: "y", Value: "\xff"}}, "x", "is longer than 256 bytes"},
		{"an argument is named before a value", pair, []string{"USDT", "."}, []endpoint.Param{{Name: "x", Value: long}}, "networkName", "must not be a dot segment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, base := range prefixed(t) {
				name, reason := base.URL(new(url.URL), tt.route, tt.args, tt.query)
				assert.Equal(t, tt.want, name)
				assert.Equal(t, tt.reason, reason)
			}
		})
	}
}
