package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func ExampleFromEnv() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	_ = os.Setenv("GATEWAY_BASE_URL", gw.URL) // where the program is deployed
	_ = os.Setenv("GATEWAY_API_KEY", gw.APIKey)

	client, err := gateway.FromEnv(gateway.WithUserAgent("shop/1.0"))
	if err != nil {
		log.Fatal(err)
	}
	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{CoinSymbol: "BTC"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(balance.Total("BTC"))
	// Output: 0.48215003 <nil>
}

func ExampleClient_Check() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	fmt.Println(client.Check(context.Background()))

	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultRefuse(401, "the key was revoked"))
	err := client.Check(context.Background())
	fmt.Println("do not start:", errors.Is(err, gateway.ErrUnauthorized))
	// Output:
	// <nil>
	// do not start: true
}

func ExampleClient_CoinNetworkBySymbol() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, ctx := connect(gw), context.Background()

	pair, err := client.CoinNetworkBySymbol(ctx, "USDT", "Tron")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepts payments:", pair.AcceptsPayments(), "from", pair.Coin.MinAmount, pair.Coin.Symbol)
	_, err = client.CoinNetworkBySymbol(ctx, "USDT", "Bitcoin")
	fmt.Println("is not there:", errors.Is(err, gateway.ErrNotFound))
	// Output:
	// accepts payments: true from 1 USDT
	// is not there: true
}

func ExampleClient_Withdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	id := gw.Withdrawals()[0].WithdrawRequestID // of the request, which is made at the gateway

	w, err := client.Withdrawal(context.Background(), id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Status, w.Amount, w.Coin, "on", w.Network, "fee", w.Fee)
	// Output: PENDING 120.5 USDT on Tron fee 1
}

// A queue of jobs polls once in each run of a job.
func ExampleClient_PollWithdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	id := gw.Withdrawals()[0].WithdrawRequestID
	if err := gw.SetStatusAfterRequests(id, 1, "COMPLETED"); err != nil {
		log.Fatal(err)
	}

	for run := range 3 {
		w, over, err := client.PollWithdrawal(context.Background(), id, gateway.WaitOptions{})
		switch {
		case over && err == nil:
			fmt.Println(run, "book it:", w.Status)
			return
		case over:
			log.Fatal(err) // such as ErrWithdrawalFailed
		case err != nil:
			log.Print(err) // such as an outage: run the job again
		default:
			fmt.Println(run, "run the job again:", w.Status)
		}
	}
	// Output:
	// 0 run the job again: PENDING
	// 1 book it: COMPLETED
}

func ExampleWithRetry() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpExchangeRates, 4, gatewaytest.FaultPage(502))
	client := connect(gw, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 5, BaseDelay: time.Millisecond}))

	_, err := client.ExchangeRates(context.Background())
	fmt.Println(err, "after", len(gw.Requests()), "attempts")
	// Output: <nil> after 5 attempts
}

// One process serves many merchants. The key belongs to the merchant that the call names.
func ExampleWithAPIKeySource() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	keys := map[string]string{"bakery": gw.APIKey} // in a secret store
	source := func(ctx context.Context) (string, error) {
		call, _ := gateway.CallFromContext(ctx)
		return keys[call.Merchant], nil
	}
	client, err := gateway.New(gw.URL, "", gateway.WithAPIKeySource(source))
	if err != nil {
		log.Fatal(err)
	}

	for _, merchant := range []string{"bakery", "butcher"} {
		_, err := client.Balance(context.Background(), gateway.BalanceQuery{}, gateway.WithMerchant(merchant))
		fmt.Println(merchant, "has no key:", errors.Is(err, gateway.ErrMissingAPIKey))
	}
	// Output:
	// bakery has no key: false
	// butcher has no key: true
}

// A response has more than the typed result: here what was skipped, because it cannot be read.
func ExampleWithResponse() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpExchangeRates, `[{"symbol":"BTC","usd":"64250.18"},{"symbol":"ETH","usd":"3,127"}]`)
	client := connect(gw)

	var response gateway.Response
	rates, err := client.ExchangeRates(context.Background(), gateway.WithResponse(&response))
	if err != nil {
		log.Fatal(err)
	}
	eth, _ := rates.Rate("ETH")
	fmt.Println(response.StatusCode, response.Message, "ETH has a price in USD:", eth.USD.Valid)
	for _, s := range response.Skipped {
		fmt.Println(s.CoinSymbol, s.Pointer, s.Reason)
	}
	// Output:
	// 200 Operation was successful. ETH has a price in USD: false
	// ETH /result/1/usd "3,127" is not a decimal number
}

func ExampleWithLogger() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	short := func(_ []string, a slog.Attr) slog.Attr {
		if slices.Contains([]string{"level", "msg", "operation", "outcome"}, a.Key) {
			return a
		}
		return slog.Attr{}
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: short}))
	client := connect(gw, gateway.WithLogger(logger))

	_, err := client.CreateInvoice(context.Background(), order("A-17"))
	fmt.Println(gateway.OutcomeOf(err))
	// Output:
	// level=WARN msg="gateway: an invoice may exist: look the order up" operation=create_invoice outcome=unknown
	// unknown
}
