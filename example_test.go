package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// connect returns a client for a stand-in. A program for the real service calls
// New with its base URL and key.
func connect(gw *gatewaytest.Server, opts ...gateway.Option) *gateway.Client {
	client, err := gateway.New(gw.URL, gw.APIKey, opts...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func ExampleNew() {
	client, err := gateway.New("https://gateway.example/merchant", "the key of the merchant",
		gateway.WithUserAgent("shop/1.0"),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 5, AttemptTimeout: 5 * time.Second}),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", client) // share it: it is safe for concurrent use

	_, err = gateway.New("http://gateway.example", "the key of the merchant")
	fmt.Println(err)
	// Output:
	// *gateway.Client
	// gateway: new: baseURL: must begin with https://: plain http is for this machine only, or with WithPlainHTTP
}

func ExampleClient_CoinNetworks() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pairs, err := client.CoinNetworks(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pairs[:3] {
		fmt.Printf("%s on %s: withdraw %s to %s, fee %s\n",
			p.Coin.Symbol, p.Network.Name, p.MinWithdraw, p.MaxWithdraw, p.WithdrawalFee)
	}
	// Output:
	// BTC on Bitcoin: withdraw 0.001 to 5, fee 0.0002
	// BTC on BNB Smart Chain (BEP20): withdraw 0.0005 to 5, fee 0.00001
	// ETH on Ethereum: withdraw 0.01 to 100, fee 0.0016
}

func ExampleClient_CoinNetwork() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	id := gw.Catalog()[5].ID // from the listing
	pair, err := client.CoinNetwork(context.Background(), id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pair.Coin.Name, "on", pair.Network.Name, "has", pair.Coin.Precision, "decimal places")
	// Output: Tether on Tron has 6 decimal places
}

func ExampleClient_CoinNetworkBySymbol() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pair, err := client.CoinNetworkBySymbol(context.Background(), "USDT", "BNB Smart Chain (BEP20)")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pair.Coin.Symbol, pair.WithdrawalFee)
	// Output: USDT 0.29
}

func ExampleClient_CoinNetworksOf() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	pairs, err := client.CoinNetworksOf(context.Background(), "ETH")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pairs {
		fmt.Println(p.Network.Name)
	}
	// Output:
	// Ethereum
	// Arbitrum One
	// BNB Smart Chain (BEP20)
}

func ExampleClient_ExchangeRates() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	rate, ok := rates.Rate("BTC")
	usd, hasUSD := rate.In("usd")
	eur, hasEUR := rate.In("eur")
	fmt.Println(usd, "USD", eur, "EUR", ok && hasUSD && hasEUR)
	// Output: 64250.18 USD 59310.72 EUR true
}

func ExampleClient_Balance() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{CoinSymbol: "USDT"})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range balance.Amounts {
		fmt.Println(a.Amount, a.CoinSymbol, "on", a.NetworkName)
	}
	total, err := balance.Total("USDT")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total, "in all")
	// Output:
	// 1520.75 USDT on Tron
	// 310.5 USDT on Ethereum
	// 0 USDT on BNB Smart Chain (BEP20)
	// 1831.25 in all
}

func ExampleClient_CreateInvoice() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	invoice, err := client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
		OrderID:      "order-17",
		Price:        decimal.RequireFromString("10.50"),
		BaseCurrency: "usd",
		Amount:       decimal.RequireFromString("10.497901"),
		CoinSymbol:   "USDT",
		NetworkName:  "Tron",
	})
	fmt.Println(gateway.OutcomeOf(err), invoice.OrderID)
	fmt.Println(gw.Invoices()[0].Price) // what the stand-in was sent, digit for digit
	// Output:
	// succeeded order-17
	// 10.50
}

// The four outcomes of an invoice, each made to happen.
func ExampleClient_CreateInvoice_outcomes() {
	gw := gatewaytest.NewServer()
	client := connect(gw, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))

	create := func(orderID string) {
		_, err := client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
			OrderID: orderID, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
		})
		fmt.Printf("%s: %s, invoices: %d\n", orderID, gateway.OutcomeOf(err), len(gw.InvoicesFor(orderID)))
	}

	create("order-1")

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "amount is too small"))
	create("order-2")

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop()) // the response is lost
	create("order-3")

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultReset()) // the request is lost
	create("order-4")

	gw.Close() // connections are refused
	create("order-5")
	// Output:
	// order-1: succeeded, invoices: 1
	// order-2: rejected, invoices: 0
	// order-3: unknown, invoices: 1
	// order-4: unknown, invoices: 0
	// order-5: not sent, invoices: 0
}

func ExampleOutcomeOf() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	ctx := context.Background()
	request := gateway.InvoiceRequest{
		OrderID: "order-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	}

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultPage(502))

	invoice, err := client.CreateInvoice(ctx, request)
	if conflict, ok := errors.AsType[*gateway.OrderConflictError](err); ok {
		invoice = conflict.Invoice // the order has this one, for another request
	}
	switch outcome := gateway.OutcomeOf(err); {
	case invoice != nil && len(invoice.Raw) > 0:
		fmt.Printf("show the customer: %s\n", invoice.Raw)
	case outcome == gateway.OutcomeNotSent:
		fmt.Println("there is no invoice:", err)
	case outcome == gateway.OutcomeRejected:
		fmt.Println("the service refused it:", err)
	default: // an invoice may exist, or a person has found it and recorded nothing of it
		fmt.Println("look the order up before anything else")
	}
	// Output: look the order up before anything else
}

// After an unknown outcome the client does not send the order again until a person has found
// that the gateway has no invoice for it.
func ExampleMemoryGuard_Resolve() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	guard := &gateway.MemoryGuard{}
	client := connect(gw, gateway.WithOrderGuard(guard))
	ctx := context.Background()
	request := gateway.InvoiceRequest{
		OrderID: "order-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	}

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultReset())
	_, err := client.CreateInvoice(ctx, request)
	fmt.Println(gateway.OutcomeOf(err))

	pending, err := guard.Pending(ctx, gateway.PendingQuery{})
	if err != nil {
		log.Fatal(err)
	}
	order := pending[0]
	fmt.Println(order.OrderID, "is", order.State)

	// Now anna looks the order up at the gateway, which has no invoice for it. A request may still be
	// in transit, so the guard refuses the finding for 15 minutes.
	err = guard.Resolve(ctx, order, gateway.Finding{By: "anna"})
	fmt.Println(errors.Is(err, gateway.ErrTooEarly))

	time.Sleep(time.Millisecond)
	order, _ = guard.Order(ctx, "", "order-17") // read it again before the next lookup
	err = guard.Resolve(ctx, order, gateway.Finding{By: "anna", Margin: time.Microsecond})
	fmt.Println(err)
	_, err = client.CreateInvoice(ctx, request)
	fmt.Println(err)
	// Output:
	// unknown
	// order-17 is unknown
	// true
	// <nil>
	// <nil>
}

func ExampleInvoice_Text() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	invoice, err := client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
		OrderID: "order-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	if err != nil {
		log.Fatal(err)
	}
	price, ok := invoice.Text("invoicePrice", "price") // the service documents no name
	fmt.Println(price, ok)
	_, ok = invoice.Text("paymentURL")
	fmt.Println(ok)
	// Output:
	// 10.50 true
	// false
}

func ExampleInvoice_Decode() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	invoice, err := client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
		OrderID: "order-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	if err != nil {
		log.Fatal(err)
	}
	var result struct {
		Price decimal.Decimal `json:"price"`
	}
	err = invoice.Decode(&result)
	fmt.Println(result.Price.StringFixed(2), err)
	// Output: 10.50 <nil>
}

func ExampleClient_Withdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	id := gw.Withdrawals()[1].WithdrawRequestID
	w, err := client.Withdrawal(context.Background(), id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Status, w.Amount, w.Coin, "fee", w.Fee)
	fmt.Println(w.Status == gateway.WithdrawalCompleted)
	// Output:
	// COMPLETED 0.015 BTC fee 0.0002
	// true
}

func ExampleClient_WaitWithdrawal() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	id := gw.Withdrawals()[0].WithdrawRequestID
	if err := gw.SetStatusAfterRequests(id, 3, "COMPLETED"); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wait := gateway.WaitOptions{
		MinInterval: time.Millisecond, MaxInterval: time.Millisecond, // by default 2 s to 30 s
		Changed: func(w *gateway.Withdrawal) { fmt.Println("changed:", w.Status) },
	}
	w, err := client.WaitWithdrawal(ctx, id, wait)
	if err != nil {
		log.Fatal(err) // FAILED, refused or out of time
	}
	fmt.Println(w.Status)
	// Output:
	// changed: PENDING
	// changed: COMPLETED
	// COMPLETED
}

// A withdrawal that has failed is an error, of which the status can be read.
func ExampleWithdrawalStatusOf() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.Withdrawals()[0].WithdrawRequestID
	if err := gw.SetStatusAfterRequests(id, 1, "FAILED"); err != nil {
		log.Fatal(err)
	}

	_, err := connect(gw).WaitWithdrawal(context.Background(), id, gateway.WaitOptions{MinInterval: time.Millisecond})
	fmt.Println(errors.Is(err, gateway.ErrWithdrawalFailed))
	fmt.Println(gateway.WithdrawalStatusOf(err), gateway.WithdrawalStatusOf(err).Terminal())
	_, err = connect(gw).Withdrawal(context.Background(), "not known")
	fmt.Printf("%q\n", gateway.WithdrawalStatusOf(err))
	// Output:
	// true
	// FAILED true
	// ""
}

func ExampleWithResponse() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	var response gateway.Response
	id := gw.Withdrawals()[0].WithdrawRequestID
	if _, err := client.Withdrawal(context.Background(), id, gateway.WithResponse(&response)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StatusCode, response.Message, response.Attempts)
	// Output: 201 Operation was successful. 1
}

func ExampleWithAPIKey() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, "", gateway.WithoutAPIKey()) // one process, many merchants
	if err != nil {
		log.Fatal(err)
	}

	_, err = client.Balance(context.Background(), gateway.BalanceQuery{})
	fmt.Println(errors.Is(err, gateway.ErrMissingAPIKey))

	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{}, gateway.WithAPIKey(gw.APIKey))
	if err != nil {
		log.Fatal(err)
	}
	total, err := balance.Total("BTC")
	fmt.Println(total, err)
	// Output:
	// true
	// 0.48215003 <nil>
}

// The order A-17 of one merchant is not that of another, whatever their keys are.
func ExampleWithMerchant() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)

	for _, merchant := range []string{"north", "south", "north"} {
		invoice, err := client.CreateInvoice(context.Background(), order("A-17"), gateway.WithMerchant(merchant))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(merchant, invoice.Replayed)
	}
	// Output:
	// north false
	// south false
	// north true
}

func ExampleSafeToRetry() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
	ctx := context.Background()

	gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultPage(502))

	_, err := client.Balance(ctx, gateway.BalanceQuery{})
	fmt.Println("a balance after 502:", gateway.SafeToRetry(err))

	_, err = client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: "order-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	fmt.Println("an invoice after 502:", gateway.SafeToRetry(err))
	// Output:
	// a balance after 502: true
	// an invoice after 502: false
}

// How a program handles the error of any call.
func Example_errors() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	ctx := context.Background()

	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultRefuse(401, "the key has expired"))

	balance, err := client.Balance(ctx, gateway.BalanceQuery{CoinSymbol: "USDT"})
	switch {
	case err == nil:
		fmt.Println(balance.Total("USDT"))
	case errors.Is(err, gateway.ErrMissingAPIKey), errors.Is(err, gateway.ErrUnauthorized):
		fmt.Println("check the key:", err)
	case gateway.SafeToRetry(err):
		fmt.Println("try again later:", err)
	default:
		fmt.Println("report it:", err)
	}
	// Output: check the key: gateway: balance: 401: "the key has expired"
}

// A test of what a program does when the response to an invoice is lost.
func Example_testing() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	if err != nil {
		log.Fatal(err)
	}
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())

	_, err = client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
		OrderID: "order-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	fmt.Println(gateway.OutcomeOf(err), len(gw.InvoicesFor("order-17")), len(gw.Requests()))
	// Output: unknown 1 1
}
