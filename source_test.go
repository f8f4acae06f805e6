package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// The client has the routes of the interface and no others: none for what is
// undocumented, such as events, a request to withdraw, or the inquiry of an invoice.
func TestClient_routes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			found = append(found, routesIn(t, file)...)
		}
	}
	slices.Sort(found)
	var routes []string
	for _, s := range subjects() {
		routes = append(routes, s.route)
	}
	slices.Sort(routes)
	assert.Equal(t, routes, found)
}

// routesIn are the routes of the calls in a file. One that is not a constant is
// an empty route, which the interface does not have.
func routesIn(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var found []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		literal, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if name, ok := literal.Type.(*ast.Ident); !ok || name.Name != "call" {
			return true
		}
		found = append(found, routeOf(literal))
		return true
	})
	return found
}

func routeOf(call *ast.CompositeLit) string {
	for _, element := range call.Elts {
		pair, _ := element.(*ast.KeyValueExpr)
		if key, ok := pair.Key.(*ast.Ident); !ok || key.Name != "route" {
			continue
		}
		if value, ok := pair.Value.(*ast.BasicLit); ok {
			route, _ := strconv.Unquote(value.Value) // a literal: it unquotes
			return route
		}
	}
	return ""
}

// A coin on two networks, and a network of two coins, are a record for each
// pair.
func TestClient_CoinNetworks_pairings(t *testing.T) {
	t.Parallel()
	pair := func(id, coin, network string) string {
		return strings.NewReplacer(pairID, id, `"USDT"`, strconv.Quote(coin), `"Tron (TRC20)"`, strconv.Quote(network)).Replace(pairJSON)
	}
	body := enveloped("[" + pair("1", "USDT", "Tron") + "," + pair("2", "USDT", "Ethereum") + "," + pair("3", "ETH", "Ethereum") + "]")
	c := cannedClient(t, 200, body)
	pairs, err := c.CoinNetworks(t.Context())
	require.NoError(t, err)
	var seen []string
	for _, p := range pairs {
		seen = append(seen, p.ID+" "+p.Coin.Symbol+" "+p.Network.Name)
	}
	assert.Equal(t, []string{"1 USDT Tron", "2 USDT Ethereum", "3 ETH Ethereum"}, seen)

	listing, err := c.Catalog(gateway.CacheOptions{}).Snapshot(t.Context())
	require.NoError(t, err)
	assert.Len(t, listing.Networks("USDT"), 2)
	found, ok := listing.Find("USDT", "Ethereum")
	require.True(t, ok)
	assert.Equal(t, "2", found.ID)
}
