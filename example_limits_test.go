package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func ExampleCoinNetwork_CheckWithdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pair, err := client.CoinNetworkBySymbol(context.Background(), "USDT", "Tron")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pair.CheckWithdrawal(decimal.RequireFromString("25.50")))

	err = pair.CheckWithdrawal(decimal.RequireFromString("0.5"))
	fmt.Println(err)
	var limit *gateway.LimitError
	if errors.As(err, &limit) && limit.Nearest.Valid {
		fmt.Println("offer the customer", limit.Nearest.Decimal)
	}
	// Output:
	// <nil>
	// gateway: minWithdraw: 0.5 is below 10; the nearest amount that passes is 10
	// offer the customer 10
}

func ExampleCoinNetwork_CheckPayment() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pair, err := client.CoinNetworkBySymbol(context.Background(), "USDT", "Tron")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pair.CheckPayment(decimal.RequireFromString("1")))
	fmt.Println(pair.CheckPayment(decimal.RequireFromString("1.2345678")))

	pair.Depositable = false // as the service says of pairs that take no payment
	fmt.Println(pair.CheckPayment(decimal.RequireFromString("1")))
	// Output:
	// <nil>
	// gateway: coin.precision: 1.2345678 has more than 6 decimal places; the nearest amount that passes is 1.234568
	// gateway: depositable: is false; no amount passes
}

func ExampleCoinNetwork_NetWithdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pair, err := client.CoinNetworkBySymbol(context.Background(), "USDT", "Tron")
	if err != nil {
		log.Fatal(err)
	}
	net, err := pair.NetWithdrawal(decimal.RequireFromString("25.50"))
	fmt.Println(net, err)

	pair.WithdrawalFee = decimal.RequireFromString("30") // as on a busy day
	net, err = pair.NetWithdrawal(decimal.RequireFromString("25.50"))
	fmt.Println(net, err)
	// Output:
	// 24.5 <nil>
	// 0 gateway: withdrawalFee: 25.5 is not above 30; the nearest amount that passes is 30.000001
}
