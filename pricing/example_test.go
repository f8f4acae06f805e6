package pricing_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/pricing"
)

// Exchange rates that are at most half a minute old, or, while the service is
// down, ten minutes.
func ExampleNewRatesCache() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	rates, err := pricing.NewRatesCache(connect(gw), pricing.CacheOptions{TTL: 30 * time.Second, MaxStale: 10 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}

	for range 1000 {
		if _, err := rates.Get(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("requests:", len(gw.Requests()))
	// Output: requests: 1
}

func ExampleNewCatalogCache() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	// Once, and shared.
	cache, err := pricing.NewCatalogCache(connect(gw), pricing.CacheOptions{TTL: 5 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}

	// Wherever a pair is looked up.
	catalog, err := cache.Get(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if pair, ok := catalog.Find("USDT", "Tron"); ok {
		fmt.Println("the fee is", pair.WithdrawalFee, pair.Coin.Symbol)
	}
	for _, pair := range catalog.Networks("ETH") {
		fmt.Println("ETH on", pair.Network.Name)
	}
	// Output:
	// the fee is 1 USDT
	// ETH on Ethereum
	// ETH on Arbitrum One
	// ETH on BNB Smart Chain (BEP20)
}

func ExampleCheckWithdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pair, err := client.CoinNetworkBySymbol(context.Background(), "USDT", "Tron")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pricing.CheckWithdrawal(pair, decimal.RequireFromString("25.50")))

	err = pricing.CheckWithdrawal(pair, decimal.RequireFromString("0.5"))
	fmt.Println(err)
	var limit *pricing.LimitError
	if errors.As(err, &limit) && limit.Limit == pricing.LimitMinWithdraw {
		fmt.Println("offer the customer", limit.Bound)
	}
	fmt.Println(pricing.NetWithdrawal(pair, decimal.RequireFromString("25.50")))
	fmt.Println(pricing.CheckPayment(pair, decimal.RequireFromString("1.2345678")))
	// Output:
	// <nil>
	// gateway: minWithdraw: 0.5 is below 10
	// offer the customer 10
	// 24.5 <nil>
	// gateway: coin.precision: 1.2345678 has more than 6 decimal places
}

// A price in each coin, for a page on which the buyer chooses one.
func ExampleNewOffers() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, ctx := connect(gw), context.Background()
	catalogs, err := pricing.NewCatalogCache(client, pricing.CacheOptions{TTL: 5 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	catalog, err := catalogs.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		log.Fatal(err)
	}

	pounds, dollarsPerPound := decimal.RequireFromString("9.99"), decimal.RequireFromString("1.27")
	price, err := pricing.PriceIn(pounds, dollarsPerPound)
	if err != nil {
		log.Fatal(err)
	}
	offers, err := pricing.NewOffers(catalog, rates, price, "usd")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(price, "USD is")
	for _, offer := range offers.Payable()[:3] {
		fmt.Println(offer.Amount, offer.Pair.Coin.Symbol, "on", offer.Pair.Network.Name)
	}
	// Output:
	// 12.69 USD is
	// 0.00019751 BTC on Bitcoin
	// 0.00019751 BTC on BNB Smart Chain (BEP20)
	// 0.004057618826839758 ETH on Ethereum
}

func ExampleToCoin() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pair, err := client.CoinNetworkBySymbol(context.Background(), "BTC", "Bitcoin")
	if err != nil {
		log.Fatal(err)
	}
	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	price := decimal.RequireFromString("25.00")
	amount, err := pricing.ToCoin(rates, price, "usd", pair) // rounded up
	fmt.Println(amount, err)

	worth, err := pricing.ToFiat(rates, amount, "eur", "BTC")
	fmt.Println(worth.StringFixed(2), err)

	_, err = pricing.ToCoin(rates, price, "gbp", pair)
	fmt.Println(err)
	// Output:
	// 0.00038911 <nil>
	// 23.08 <nil>
	// gateway: to_coin: fiat: must be usd or eur; convert another currency with PriceIn
}

// The form of a checkout sends back the coin and the network that the buyer has chosen.
func ExampleOffers_Find() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, ctx := connect(gw), context.Background()
	pairs, err := client.CoinNetworks(ctx)
	if err != nil {
		log.Fatal(err)
	}
	rates, err := client.ExchangeRates(ctx)
	if err != nil {
		log.Fatal(err)
	}

	offers, err := pricing.NewOffers(pricing.NewCatalog(pairs), rates, decimal.RequireFromString("12.69"), "usd")
	if err != nil {
		log.Fatal(err)
	}
	offer, listed := offers.Find("usdt", "Tron")
	fmt.Println(listed, offer.Amount, offer.Err)
	_, listed = offers.Find("USDT", "Bitcoin")
	fmt.Println(listed)
	// Output:
	// true 12.687463 <nil>
	// false
}
