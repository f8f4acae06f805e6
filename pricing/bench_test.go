package pricing_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

// The floor of a conversion is a division, rounded up, by a rate from a map.
func BenchmarkToCoin(b *testing.B) {
	rates, price := testRates(), decimal.RequireFromString("10.50")
	b.Run("client", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := pricing.ToCoin(rates, price, "usd", "BTC", 8); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		usd := map[string]decimal.Decimal{"BTC": decimal.RequireFromString("64123.55"), "USDT": decimal.RequireFromString("1.0001")}
		b.ReportAllocs()
		for b.Loop() {
			_ = price.DivRound(usd["BTC"], 9).RoundUp(8)
		}
	})
}

// The floor of a cache is a value and its time behind a lock.
func BenchmarkCache_Get(b *testing.B) {
	ctx := context.Background()
	cache := pricing.NewTestCache(func(context.Context) (*int, error) { return new(int), nil }, pricing.CacheOptions{TTL: time.Hour})
	require.NoError(b, cache.Refresh(ctx))
	var mu sync.RWMutex
	value, loaded := new(int), time.Now()
	byHand := func() *int {
		mu.RLock()
		defer mu.RUnlock()
		if time.Since(loaded) < time.Hour {
			return value
		}
		return nil
	}
	b.Run("cache", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := cache.Get(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if byHand() == nil {
				b.Fatal("expired")
			}
		}
	})
	b.Run("parallel/cache", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := cache.Get(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("parallel/by hand", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if byHand() == nil {
					b.Error("expired")
				}
			}
		})
	})
}

// The floor of a lookup among 5,000 pairs is a map of names joined into one
// text, or a search through the listing.
func BenchmarkCatalog(b *testing.B) {
	snapshot := pricing.NewCatalog(bigListing())
	pairs := slices.Collect(snapshot.All())
	joined := map[string]*gateway.CoinNetwork{}
	for _, p := range pairs {
		joined[p.Coin.Symbol+"\x00"+p.Network.Name] = p
	}
	symbol, network := pairs[4321].Coin.Symbol, pairs[4321].Network.Name
	for _, bench := range []struct {
		name string
		look func() bool
	}{
		{"FindID", func() bool { _, ok := snapshot.FindID("id-4321"); return ok }},
		{"Find", func() bool { _, ok := snapshot.Find(symbol, network); return ok }},
		{"Find/by a joined key", func() bool { return joined[symbol+"\x00"+network] != nil }},
		{"Find/by a search", func() bool {
			return slices.ContainsFunc(pairs, func(p *gateway.CoinNetwork) bool {
				return p.Coin.Symbol == symbol && p.Network.Name == network
			})
		}},
		{"Networks", func() bool { return len(snapshot.Networks(symbol)) == 5 }},
		{"All/one", func() bool {
			for p := range snapshot.All() {
				return p != nil
			}
			return false
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !bench.look() {
					b.Fatal("not found")
				}
			}
		})
	}
}
