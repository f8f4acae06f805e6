package pricing_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/pricing"
)

// Lookups in a listing. A name or an identifier that two records share finds neither, even if one of them was skipped.
// I-25, I-48, I-52, I-163
func TestCatalog(t *testing.T) {
	t.Parallel()
	const lower, upper = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b", "8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"
	type listing [][3]string // the identifier, the coin and the network of each pair
	skipped := func(id, coinSymbol, networkName string) []gateway.Skipped {
		return []gateway.Skipped{{ID: id, CoinSymbol: coinSymbol, NetworkName: networkName}}
	}
	for _, tt := range []struct {
		name    string
		pairs   listing
		skipped []gateway.Skipped
		want    map[string]string // by "#ID", "SYMBOL/NETWORK" and "SYMBOL": the identifiers that are found
	}{
		{"names and identifiers find their pair, and nothing else does", listing{{"a", "BTC", "One"}, {"b", "BTC", "Two"}, {"c", "ETH", "One"}}, nil, map[string]string{
			"#a": "a", "#b": "b", "BTC/One": "a", "BTC/Two": "b", "BTC": "a b", "ETH": "c",
			"": "", "/": "", "BTC/": "", "/One": "", "BTC /One": "", "ETH/Two": "", "BTCO/ne": "", "#": "", "#A": "", "#d": "", "BTC ": "", "LTC": "",
		}},
		{"another case finds the only pair of these letters", listing{{"a", "USDT", "Tron"}, {"b", "USDT", "TRON"}, {"c", "BTC", "Bitcoin"}}, nil, map[string]string{
			"USDT/Tron": "a", "USDT/TRON": "b", "USDT/tron": "", "btc/Bitcoin": "c", "BTC/BITCOIN": "c", "usdt": "a b", "BTC/Bit coin": "",
		}},
		{"another case finds no symbol of two that differ in case", listing{{"a", "ABC", "Tron"}, {"b", "Abc", "Tron"}}, nil, map[string]string{"ABC": "a", "Abc": "b", "abc": ""}},
		{"an identifier of UUID form is the same in both cases", listing{{upper, "BTC", "One"}}, nil, map[string]string{"#" + lower: upper, "#" + upper: upper}},
		{"a pair listed twice", listing{{"a", "BTC", "One"}, {"z", "ETH", "One"}, {"b", "BTC", "One"}, {"c", "BTC", "Two"}}, nil, map[string]string{
			"#a": "a", "#b": "b", "BTC/One": "", "btc/one": "", "BTC/Two": "c", "BTC": "c",
		}},
		{"a pair listed three times, and nothing else", listing{{"a", "BTC", "One"}, {"b", "BTC", "One"}, {"c", "BTC", "One"}}, nil, map[string]string{"#c": "c", "BTC/One": "", "BTC": ""}},
		{"an identifier listed three times", listing{{"a", "BTC", "One"}, {"a", "BTC", "Two"}, {"z", "ETH", "One"}, {"a", "BTC", "Three"}}, nil, map[string]string{"#a": "", "#z": "z", "BTC/Two": "a", "BTC": "a a a"}},
		{"an identifier listed twice in two cases", listing{{upper, "BTC", "One"}, {lower, "ETH", "One"}}, nil, map[string]string{"#" + lower: "", "#" + upper: ""}},
		{"a skipped record of the same names and identifier", listing{{"a", "BTC", "One"}}, skipped("a", "BTC", "One"), map[string]string{"#a": "", "BTC/One": "", "btc/One": "", "BTC": ""}},
		{"a skipped record of the same names", listing{{"a", "BTC", "One"}}, skipped("b", "BTC", "One"), map[string]string{"#a": "a", "#b": "", "BTC/One": ""}},
		{"a skipped record of the same names in another case", listing{{"a", "BTC", "One"}}, skipped("b", "btc", "One"), map[string]string{"#a": "a", "BTC/One": "a", "btc/One": "", "bTC/One": ""}},
		{"a skipped record of the same identifier", listing{{"a", "BTC", "One"}}, skipped("a", "ETH", "One"), map[string]string{"#a": "", "BTC/One": "a"}},
		{"a skipped record of something else", listing{{"a", "BTC", "One"}}, skipped("b", "ETH", "One"), map[string]string{"#a": "a", "BTC/One": "a", "btc/One": "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var pairs []gateway.CoinNetwork
			for _, p := range tt.pairs {
				pairs = append(pairs, pairOf(p[0], p[1], p[2]))
			}
			catalog := pricing.NewCatalog(pairs, tt.skipped...)
			assert.Equal(t, pairs, listed(catalog))
			assert.Equal(t, tt.skipped, catalog.Skipped)
			for range catalog.All() {
				break // without a panic
			}
			for key, want := range tt.want {
				var found []*gateway.CoinNetwork
				one := func(p *gateway.CoinNetwork, ok bool) {
					assert.Equal(t, ok, p != nil, key)
					if ok {
						found = append(found, p)
					}
				}
				if id, ok := strings.CutPrefix(key, "#"); ok {
					one(catalog.FindID(id))
				} else if symbol, network, ok := strings.Cut(key, "/"); ok {
					one(catalog.Find(symbol, network))
				} else {
					found = catalog.Networks(key)
				}
				var ids []string
				for _, p := range found {
					ids = append(ids, p.ID)
				}
				assert.Equal(t, want, strings.Join(ids, " "), key)
			}
		})
	}
}

func listed(c *pricing.Catalog) (all []gateway.CoinNetwork) {
	for p := range c.All() {
		all = append(all, *p)
	}
	return all
}

// A catalog comes back whole from JSON, with documented names and exact amounts: its time, its order and what was skipped.
func TestCatalog_json(t *testing.T) {
	t.Parallel()
	first := strings.Replace(everycall.PairJSON, "0.00000100", "0.000001", 1) // JSON keeps no zeros at the end
	second := strings.NewReplacer(everycall.PairID, "second", `"Bitcoin"`, `"Two"`).Replace(first)
	odd := strings.Replace(first, `"minAmount":`, `"minAmount":"n/a","was":`, 1)
	client := (&answers{result: "[" + first + "," + second + "," + odd + "]"}).client(t)
	cache, err := pricing.NewCatalogCache(client, pricing.CacheOptions{})
	require.NoError(t, err)
	catalog, err := cache.Get(t.Context())
	require.NoError(t, err)
	require.Len(t, catalog.Skipped, 1)
	assert.Equal(t, "/result/2/coin/minAmount", catalog.Skipped[0].Pointer)
	assert.WithinDuration(t, time.Now(), catalog.FetchedAt, time.Minute)
	for _, v := range []any{catalog, *catalog} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		for _, member := range []string{`"withdrawalFee":"1.5"`, `"minAmount":"0.000001"`, `"confirmation":20`, `"created_at":"2023-05-14T09:21:43`} {
			assert.Contains(t, string(text), member)
		}
		var back pricing.Catalog
		require.NoError(t, json.Unmarshal(text, &back))
		assert.True(t, catalog.FetchedAt.Equal(back.FetchedAt))
		assert.Equal(t, listed(catalog), listed(&back))
		assert.Equal(t, catalog.Skipped, back.Skipped)
	}
}

// An incomplete catalog is an error and changes nothing. A missing amount is never zero.
func TestCatalog_json_broken(t *testing.T) {
	t.Parallel()
	const at, pair = `"fetchedAt":"2026-01-02T03:04:05Z"`, everycall.PairJSON
	whole := `{` + at + `,"coinNetworks":[` + pair + `]}`
	require.NoError(t, new(pricing.Catalog).UnmarshalJSON([]byte(whole)))
	for _, text := range []string{
		`null`, `[]`, `{}`, `{` + at + `}`, `{` + at + `,"coinNetworks":null}`, `{` + at + `,"coinNetworks":[]}`, `{` + at + `,"coinNetworks":{}}`,
		`{"coinNetworks":[` + pair + `]}`, `[` + pair + `]`, `{"fetchedAt":1,"coinNetworks":[` + pair + `]}`,
		strings.Replace(whole, `"1.5"`, `null`, 1), strings.Replace(whole, `"1.5"`, `""`, 1), strings.Replace(whole, `"withdrawalFee":"1.5",`, ``, 1),
	} {
		c := pricing.NewCatalog([]gateway.CoinNetwork{pairOf("a", "BTC", "One")})
		before := *c
		require.ErrorContains(t, c.UnmarshalJSON([]byte(text)), "gateway: catalog: ", text)
		assert.Equal(t, before, *c, text)
	}
}
