package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Exchange rates that are at most half a minute old, or, while the service is
// down, ten minutes.
func ExampleNewCache() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	rates := gateway.NewCache(func(ctx context.Context) (*gateway.ExchangeRates, error) {
		return client.ExchangeRates(ctx)
	}, gateway.CacheOptions{TTL: 30 * time.Second, MaxStale: 10 * time.Minute})

	for range 1000 {
		if _, err := rates.Get(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("requests:", len(gw.Requests()))
	// Output: requests: 1
}

func ExampleCache_Get() {
	loads := 0
	cache := gateway.NewCache(func(context.Context) (string, error) {
		loads++
		return fmt.Sprint("the value of load ", loads), nil
	}, gateway.CacheOptions{})

	for range 2 {
		value, err := cache.Get(context.Background())
		fmt.Println(value, err)
	}
	// Output:
	// the value of load 1 <nil>
	// the value of load 1 <nil>
}

// A refresh that fails leaves the value that is held.
func ExampleCache_Refresh() {
	var down error
	cache := gateway.NewCache(func(context.Context) (string, error) {
		return "a value", down
	}, gateway.CacheOptions{})

	fmt.Println(cache.Refresh(context.Background()))
	down = errors.New("the service is down")
	fmt.Println(cache.Refresh(context.Background()))
	fmt.Println(cache.Get(context.Background()))
	// Output:
	// <nil>
	// the service is down
	// a value <nil>
}

func ExampleCache_Age() {
	cache := gateway.NewCache(func(context.Context) (string, error) {
		return "a value", nil
	}, gateway.CacheOptions{})
	fmt.Println(cache.Age()) // nothing is held

	if err := cache.Refresh(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cache.Age() > 0, cache.Age() < time.Minute)
	// Output:
	// 0s
	// true true
}

func ExampleClient_Catalog() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	// Once, and shared.
	catalog := client.Catalog(gateway.CacheOptions{TTL: 5 * time.Minute})

	// Wherever a pair is looked up.
	snapshot, err := catalog.Snapshot(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if pair, ok := snapshot.Find("USDT", "Tron"); ok {
		fmt.Println("the fee is", pair.WithdrawalFee, pair.Coin.Symbol)
	}
	// Output: the fee is 1 USDT
}

// While the service is down, the last listing is served.
func ExampleCatalog_Snapshot() {
	gw := gatewaytest.NewServer()
	client := connect(gw, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
	catalog := client.Catalog(gateway.CacheOptions{TTL: time.Nanosecond})

	before, err := catalog.Snapshot(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	gw.Close()
	after, err := catalog.Snapshot(context.Background())
	fmt.Println(before == after, err)
	fmt.Println(time.Since(after.FetchedAt) < time.Minute)
	// Output:
	// true <nil>
	// true
}

func ExampleCatalog_Refresh() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	catalog := connect(gw).Catalog(gateway.CacheOptions{})

	// At the start of a program, so that it ends here if the gateway is not there.
	if err := catalog.Refresh(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("requests:", len(gw.Requests()))
	// Output: requests: 1
}

func ExampleCatalog_Age() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	catalog := connect(gw).Catalog(gateway.CacheOptions{})
	fmt.Println(catalog.Age()) // nothing is held

	if err := catalog.Refresh(context.Background()); err != nil {
		log.Fatal(err)
	}
	if catalog.Age() > 10*time.Minute {
		fmt.Println("fees may have changed")
	}
	// Output: 0s
}

// snapshotOf returns the catalogue of a stand-in.
func snapshotOf(gw *gatewaytest.Server) *gateway.CatalogSnapshot {
	snapshot, err := connect(gw).Catalog(gateway.CacheOptions{}).Snapshot(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return snapshot
}

func ExampleCatalogSnapshot_ByID() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	snapshot := snapshotOf(gw)

	pair, ok := snapshot.ByID(gw.Catalog()[0].ID)
	fmt.Println(pair.Coin.Symbol, pair.Network.Name, ok)
	// Output: BTC Bitcoin true
}

func ExampleCatalogSnapshot_Find() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	snapshot := snapshotOf(gw)

	if pair, ok := snapshot.Find("ETH", "Ethereum"); ok {
		fmt.Println(pair.Confirmations, "confirmations")
	}
	_, ok := snapshot.Find("eth", "Ethereum") // names match exactly
	fmt.Println(ok)
	// Output:
	// 12 confirmations
	// false
}

func ExampleCatalogSnapshot_Networks() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	snapshot := snapshotOf(gw)

	for _, pair := range snapshot.Networks("ETH") {
		fmt.Println(pair.Network.Name)
	}
	// Output:
	// Ethereum
	// Arbitrum One
	// BNB Smart Chain (BEP20)
}

func ExampleCatalogSnapshot_All() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	snapshot := snapshotOf(gw)

	for pair := range snapshot.All() {
		if !pair.Coin.IsActive {
			fmt.Println(pair.Coin.Name, "on", pair.Network.Name, "is not active")
		}
	}
	// Output: Monero on Monero is not active
}
