package pricing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/pricing"
)

// A snapshot finds every pair that the listing has, and no other.
func TestCatalog(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	snapshot, err := catalogOf(t, client, pricing.CacheOptions{}).Get(t.Context())
	require.NoError(t, err)
	pairs, err := client.CoinNetworks(t.Context())
	require.NoError(t, err)

	var all []gateway.CoinNetwork
	for p := range snapshot.All() {
		all = append(all, *p)
	}
	assert.Equal(t, pairs, all)
	bySymbol := map[string][]gateway.CoinNetwork{}
	for _, p := range pairs {
		bySymbol[p.Coin.Symbol] = append(bySymbol[p.Coin.Symbol], p)
		findID, ok := snapshot.FindID(p.ID)
		require.True(t, ok)
		assert.Equal(t, p, *findID)
		found, ok := snapshot.Find(p.Coin.Symbol, p.Network.Name)
		require.True(t, ok)
		assert.Same(t, findID, found, "there is one record")
	}
	require.Greater(t, len(bySymbol["USDT"]), 1)
	for symbol, want := range bySymbol {
		var got []gateway.CoinNetwork
		for _, p := range snapshot.Networks(symbol) {
			got = append(got, *p)
		}
		assert.Equal(t, want, got, symbol)
	}
	for range snapshot.All() {
		break // without a panic
	}
}

func TestCatalog_notFound(t *testing.T) {
	t.Parallel()
	snapshot := pricing.NewCatalog([]gateway.CoinNetwork{pairOf("a", "BTC", "Bitcoin"), pairOf("b", "ETH", "Ethereum")})
	for _, names := range [][2]string{
		{"", ""},
		{"BTC", ""},
		{"", "Bitcoin"},
		{"BTC ", "Bitcoin"},
		{"BTC", "Ethereum"},
		{"BTCB", "itcoin"},
	} {
		p, ok := snapshot.Find(names[0], names[1])
		assert.False(t, ok, names)
		assert.Nil(t, p)
	}
	for _, id := range []string{"", "A", "a ", "c"} {
		p, ok := snapshot.FindID(id)
		assert.False(t, ok, id)
		assert.Nil(t, p)
	}
	for _, symbol := range []string{"", "BTC ", "LTC"} {
		assert.Nil(t, snapshot.Networks(symbol), symbol)
	}
}

// A pair that cannot be read does not close the others, and the catalog says so, also after JSON.
// I-52
func TestCatalog_Skipped(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	pairs, err := connect(gw).CoinNetworks(t.Context())
	require.NoError(t, err)
	text, err := json.Marshal(pairs[:2])
	require.NoError(t, err)
	odd := strings.Replace(string(text), `"maxWithdraw":"`, `"maxWithdraw":"n/a `, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"message":"Operation was successful.","meta":{},"result":%s}`, odd)
	}))
	defer server.Close()
	client, err := gateway.New(server.URL, "", gateway.WithoutAPIKey())
	require.NoError(t, err)
	snapshot, err := catalogOf(t, client, pricing.CacheOptions{}).Get(t.Context())
	require.NoError(t, err)
	_, ok := snapshot.FindID(pairs[1].ID)
	assert.True(t, ok)
	_, ok = snapshot.FindID(pairs[0].ID)
	assert.False(t, ok)
	require.Len(t, snapshot.Skipped, 1)
	assert.Equal(t, "/result/0/maxWithdraw", snapshot.Skipped[0].Pointer)
	assert.Equal(t, pairs[0].Coin.Symbol, snapshot.Skipped[0].CoinSymbol)
	assert.Equal(t, pairs[0].Network.Name, snapshot.Skipped[0].NetworkName)
	text, err = json.Marshal(snapshot)
	require.NoError(t, err)
	var back pricing.Catalog
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, snapshot.Skipped, back.Skipped)
}

// A pair is not found by what a record that could not be read has, too: that can be the one that counts.
// I-48
func TestCatalog_Skipped_twice(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	pairs, err := connect(gw).CoinNetworks(t.Context())
	require.NoError(t, err)
	one, err := json.Marshal(pairs[0])
	require.NoError(t, err)
	symbol, network, id := pairs[0].Coin.Symbol, pairs[0].Network.Name, pairs[0].ID
	odd := strings.Replace(string(one), `"maxWithdraw":"`, `"maxWithdraw":"n/a `, 1)
	for _, tt := range []struct {
		name, second              string
		byName, inOtherCase, byID bool
	}{
		{"it has the names and the identifier", odd, false, false, false},
		{"it has the names", strings.ReplaceAll(odd, id, "other"), false, false, true},
		{"it has the names in another case", strings.ReplaceAll(strings.ReplaceAll(odd, id, "other"), `"`+symbol+`"`, `"`+strings.ToLower(symbol)+`"`), true, false, true},
		{"it has the identifier", strings.ReplaceAll(odd, `"`+symbol+`"`, `"QQT"`), true, true, false},
		{"it has neither", strings.ReplaceAll(strings.ReplaceAll(odd, id, "other"), `"`+symbol+`"`, `"QQT"`), true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"message":"Operation was successful.","meta":{},"result":[%s,%s]}`, one, tt.second)
			}))
			defer server.Close()
			client, err := gateway.New(server.URL, "", gateway.WithoutAPIKey())
			require.NoError(t, err)
			snapshot, err := catalogOf(t, client, pricing.CacheOptions{}).Get(t.Context())
			require.NoError(t, err)
			require.Len(t, snapshot.Skipped, 1)
			text, err := json.Marshal(snapshot)
			require.NoError(t, err)
			var back pricing.Catalog
			require.NoError(t, json.Unmarshal(text, &back))
			for _, c := range []*pricing.Catalog{snapshot, &back} {
				_, found := c.Find(symbol, network)
				assert.Equal(t, tt.byName, found)
				_, found = c.Find(strings.ToLower(symbol[:1])+symbol[1:], network)
				assert.Equal(t, tt.inOtherCase, found)
				_, found = c.FindID(id)
				assert.Equal(t, tt.byID, found)
				offers, err := pricing.NewOffers(c, &gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: symbol, USD: decimal.NewNullDecimal(decimal.New(1, 0))}}}, decimal.New(1, 0), "usd")
				require.NoError(t, err)
				assert.Equal(t, tt.byName && tt.byID, len(offers.Payable()) == 1)
			}
		})
	}
}

// Names in another case find the pair, if there is one only.
// I-25
func TestCatalog_Find_case(t *testing.T) {
	t.Parallel()
	snapshot := pricing.NewCatalog([]gateway.CoinNetwork{
		pairOf("a", "USDT", "Tron"), pairOf("b", "USDT", "TRON"), pairOf("c", "BTC", "Bitcoin"), pairOf("d", "ETH", "Ethereum"), pairOf("e", "ETH", "Ethereum"),
	})
	for _, tt := range []struct{ name, coin, network, id string }{
		{"the names as they are", "USDT", "Tron", "a"},
		{"the names as they are of another", "USDT", "TRON", "b"},
		{"two differ in case alone", "USDT", "tron", ""},
		{"a coin in lower case", "btc", "Bitcoin", "c"},
		{"a network in upper case", "BTC", "BITCOIN", "c"},
		{"a pair that is listed twice", "ETH", "Ethereum", ""},
		{"a pair that is listed twice, in lower case", "eth", "ethereum", ""},
		{"another spelling", "BTC", "Bit coin", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, ok := snapshot.Find(tt.coin, tt.network)
			require.Equal(t, tt.id != "", ok)
			if ok {
				assert.Equal(t, tt.id, p.ID)
			}
		})
	}
}

// I-25
func TestCatalog_Networks_case(t *testing.T) {
	t.Parallel()
	snapshot := pricing.NewCatalog([]gateway.CoinNetwork{
		pairOf("a", "USDT", "Tron"), pairOf("b", "USDT", "Ethereum"), pairOf("c", "ABC", "Tron"), pairOf("d", "Abc", "Tron"),
	})
	for symbol, want := range map[string]int{"USDT": 2, "usdt": 2, "ABC": 1, "Abc": 1, "abc": 0, "": 0} {
		assert.Len(t, snapshot.Networks(symbol), want, symbol)
	}
}

// An identifier of UUID form is one in both cases, and listed twice if it is in both.
// I-163
func TestCatalog_FindID_case(t *testing.T) {
	t.Parallel()
	const lower, upper = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"
	snapshot := pricing.NewCatalog([]gateway.CoinNetwork{pairOf(upper, "BTC", "Bitcoin"), pairOf("a", "ETH", "Ethereum")})
	for _, id := range []string{lower, upper} {
		p, ok := snapshot.FindID(id)
		require.True(t, ok)
		assert.Equal(t, upper, p.ID)
	}
	snapshot = pricing.NewCatalog([]gateway.CoinNetwork{pairOf(upper, "BTC", "Bitcoin"), pairOf(lower, "ETH", "Ethereum")})
	_, ok := snapshot.FindID(lower)
	assert.False(t, ok)
}

// What is listed twice is not found under the name that it shares.
// I-48
func TestCatalog_listedTwice(t *testing.T) {
	t.Parallel()
	other := pairOf("z", "ETH", "Ethereum")
	for _, tt := range []struct {
		name     string
		pairs    []gateway.CoinNetwork
		findID   map[string]int // the element that is found; -1 for none
		find     map[string]int // by the network of BTC
		networks []int          // of BTC
	}{
		{
			"nothing",
			[]gateway.CoinNetwork{pairOf("a", "BTC", "One"), pairOf("b", "BTC", "Two")},
			map[string]int{"a": 0, "b": 1},
			map[string]int{"One": 0, "Two": 1},
			[]int{0, 1},
		},
		{
			"a pair",
			[]gateway.CoinNetwork{pairOf("a", "BTC", "One"), other, pairOf("b", "BTC", "One"), pairOf("c", "BTC", "Two")},
			map[string]int{"a": 0, "b": 2, "c": 3},
			map[string]int{"One": -1, "Two": 3},
			[]int{3},
		},
		{
			"a pair, three times, and nothing else",
			[]gateway.CoinNetwork{pairOf("a", "BTC", "One"), pairOf("b", "BTC", "One"), pairOf("c", "BTC", "One")},
			map[string]int{"a": 0, "b": 1, "c": 2},
			map[string]int{"One": -1},
			nil,
		},
		{
			"an identifier",
			[]gateway.CoinNetwork{pairOf("a", "BTC", "One"), pairOf("a", "BTC", "Two"), other, pairOf("a", "BTC", "Three")},
			map[string]int{"a": -1, "z": 2},
			map[string]int{"One": 0, "Two": 1, "Three": 3},
			[]int{0, 1, 3},
		},
		{
			"a whole record",
			[]gateway.CoinNetwork{other, pairOf("a", "BTC", "One"), pairOf("a", "BTC", "One")},
			map[string]int{"a": -1},
			map[string]int{"One": -1},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			snapshot := pricing.NewCatalog(tt.pairs)
			all := slices.Collect(snapshot.All())
			require.Len(t, all, len(tt.pairs), "all are listed")
			element := func(p *gateway.CoinNetwork, ok bool) int {
				assert.Equal(t, ok, p != nil)
				return slices.Index(all, p)
			}
			for id, want := range tt.findID {
				assert.Equal(t, want, element(snapshot.FindID(id)), id)
			}
			for network, want := range tt.find {
				assert.Equal(t, want, element(snapshot.Find("BTC", network)), network)
			}
			var networks []int
			for _, p := range snapshot.Networks("BTC") {
				networks = append(networks, element(p, true))
			}
			assert.Equal(t, tt.networks, networks)
			assert.Equal(t, tt.networks == nil, snapshot.Networks("BTC") == nil)
		})
	}
}

// catalogOf returns a cache of the listing.
func catalogOf(t testing.TB, c *gateway.Client, o pricing.CacheOptions) *pricing.Cache[*pricing.Catalog] {
	t.Helper()
	catalog, err := pricing.NewCatalogCache(c, o)
	require.NoError(t, err)
	return catalog
}

// A catalog comes back whole: the time, the order and what is found.
func TestCatalog_json(t *testing.T) {
	t.Parallel()
	pairs := []gateway.CoinNetwork{pairOf("a", "BTC", "One"), pairOf("b", "BTC", "Two"), pairOf("c", "ETH", "One"), pairOf("a", "ETH", "Two")}
	for i := range pairs {
		p := &pairs[i]
		for n, amount := range []*decimal.Decimal{&p.WithdrawalFee, &p.SwapFee, &p.MinWithdraw, &p.MaxWithdraw, &p.Coin.MinAmount} {
			*amount = decimal.New(int64(10*i+n+1), -8)
		}
	}
	catalog := pricing.NewCatalog(pairs)
	for name, v := range map[string]any{"a pointer": catalog, "a value": *catalog} {
		text, err := json.Marshal(v)
		require.NoError(t, err, name)
		var back *pricing.Catalog
		require.NoError(t, json.Unmarshal(text, &back), name)
		assert.True(t, catalog.FetchedAt.Equal(back.FetchedAt), name)
		assert.Equal(t, slices.Collect(catalog.All()), slices.Collect(back.All()), name)
		assert.Equal(t, catalog.Networks("BTC"), back.Networks("BTC"), name)
		found, ok := back.FindID("b")
		require.True(t, ok, name)
		assert.Equal(t, pairs[1], *found, name)
		_, ok = back.FindID("a")
		assert.False(t, ok, name)
	}
}

// What is no catalog is an error, and leaves the one that there is.
func TestCatalog_json_broken(t *testing.T) {
	t.Parallel()
	const at = `"fetchedAt":"2026-01-02T03:04:05Z"`
	for _, text := range []string{
		`null`, `[]`, `{}`, `{` + at + `}`, `{` + at + `,"coinNetworks":null}`, `{` + at + `,"coinNetworks":[]}`, `{` + at + `,"coinNetworks":{}}`,
		`{"coinNetworks":[` + everycall.PairJSON + `]}`, `[` + everycall.PairJSON + `]`, `{"fetchedAt":1,"coinNetworks":[` + everycall.PairJSON + `]}`,
	} {
		c := pricing.NewCatalog([]gateway.CoinNetwork{pairOf("a", "BTC", "One")})
		before := *c
		require.ErrorContains(t, c.UnmarshalJSON([]byte(text)), "gateway: catalog: ", text)
		assert.Equal(t, before, *c, text)
	}
}

// A listing keeps the documented names and the digits of its amounts, and a pair that lacks an
// amount, or has null for it, is an error and no pair that costs nothing.
func TestCatalog_json_strict(t *testing.T) {
	t.Parallel()
	client := through(t, func(*http.Request) (*http.Response, error) {
		return reply(200, everycall.Enveloped("["+everycall.PairJSON+"]")), nil
	})
	catalog, err := catalogOf(t, client, pricing.CacheOptions{}).Get(t.Context())
	require.NoError(t, err)
	text, err := json.Marshal(catalog)
	require.NoError(t, err)
	for _, member := range []string{`"withdrawalFee":"?1\.5"?[,}]`, `"minAmount":"?0\.000001"?[,}]`, `"confirmation":20[,}]`, `"created_at":"2023-05-14T09:21:43`} {
		assert.Regexp(t, member, string(text))
	}

	fee := regexp.MustCompile(`"withdrawalFee":"?[0-9.]+"?`)
	require.Len(t, fee.FindAll(text, -1), 1)
	for _, other := range []string{`"withdrawalFee":null`, `"other":"1"`, `"withdrawalFee":""`, `"withdrawalFee":"n/a"`} {
		assert.Error(t, new(pricing.Catalog).UnmarshalJSON(fee.ReplaceAll(text, []byte(other))), other)
	}
}
