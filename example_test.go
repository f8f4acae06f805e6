package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
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
	_, err := gateway.New("http://gateway.example", "the key of the merchant",
		gateway.WithUserAgent("shop/1.0"),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 5, AttemptTimeout: 5 * time.Second}),
	)
	fmt.Println(err)
	// Output: gateway: new: baseURL: must begin with https://: plain http is for this machine only, or with WithPlainHTTP
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
	fmt.Println(balance.Total("USDT"))
	// Output:
	// 1520.75 USDT on Tron
	// 310.5 USDT on Ethereum
	// 0 USDT on BNB Smart Chain (BEP20)
	// 1831.25 <nil>
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
	if err != nil {
		log.Fatal(err) // an invoice may exist: see OutcomeOf
	}
	price, ok := invoice.Text("invoicePrice", "price") // the service documents no names
	fmt.Println(invoice.OrderID, price, ok)
	var result struct {
		Price decimal.Decimal `json:"price"`
	}
	err = invoice.Decode(&result)
	fmt.Println(result.Price.StringFixed(2), err)
	// Output:
	// order-17 10.50 true
	// 10.50 <nil>
}

// The four outcomes of an invoice, each made to happen.
func ExampleClient_CreateInvoice_outcomes() {
	gw := gatewaytest.NewServer()
	client := connect(gw, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))

	create := func(orderID string) {
		_, err := client.CreateInvoice(context.Background(), order(orderID))
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

func ExampleWithAPIKey() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, "", gateway.WithoutAPIKey()) // one process, many merchants
	if err != nil {
		log.Fatal(err)
	}

	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{}, gateway.WithAPIKey(gw.APIKey))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(balance.Total("BTC"))
	// Output: 0.48215003 <nil>
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

// Coinbase lists the rates of one coin, in many currencies.
func ExampleWithRatesDecoder() {
	decode := func(result json.RawMessage) ([]gateway.Rate, error) {
		var of struct {
			Currency string
			Rates    map[string]decimal.NullDecimal
		}
		err := json.Unmarshal(result, &of)
		return []gateway.Rate{{CoinSymbol: of.Currency, USD: of.Rates["USD"], EUR: of.Rates["EUR"]}}, err
	}
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpExchangeRates, `{"currency":"BTC","rates":{"EUR":"59000.01","JPY":"9701234.5","USD":"64123.55"}}`)
	client := connect(gw, gateway.WithRatesDecoder(decode))

	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	btc, _ := rates.Rate("BTC")
	fmt.Println(btc.USD.Decimal, btc.EUR.Decimal)
	// Output: 64123.55 59000.01
}

// A gateway answers a lookup with the coin and its networks. What it does not send is listed as missing.
func ExampleWithCoinNetworkDecoder() {
	decode := func(body json.RawMessage) ([]gateway.CoinNetwork, error) {
		var of struct {
			Coin     gateway.Coin
			Networks []gateway.Network
		}
		if err := json.Unmarshal(body, &of); err != nil {
			return nil, err
		}
		var pairs []gateway.CoinNetwork
		for _, network := range of.Networks {
			pairs = append(pairs, gateway.CoinNetwork{
				Coin: of.Coin, Network: network, Depositable: true, Missing: []string{"id", "withdrawalFee"},
			})
		}
		return pairs, nil
	}
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpCoinNetworksOf, `{"coin":{"symbol":"USDT","precision":6,"minAmount":"1","isActive":true},`+
		`"networks":[{"name":"Tron","isActive":true},{"name":"Ethereum","isActive":false}]}`)
	client := connect(gw, gateway.WithCoinNetworkDecoder(decode))

	pairs, err := client.CoinNetworksOf(context.Background(), "USDT")
	if err != nil {
		log.Fatal(err)
	}
	for _, pair := range pairs {
		fmt.Println(pair.Network.Name, pair.AcceptsPayments(), pair.Missing)
	}
	// Output:
	// Tron true [id withdrawalFee]
	// Ethereum false [id withdrawalFee]
}

// A stand-in answers with the results of your own gateway, so that a test shows whether your
// decoder reads them.
func ExampleWithBalanceDecoder() {
	decodeAccounts := func(result json.RawMessage) (amounts []gateway.BalanceAmount, err error) {
		var of struct {
			Accounts []struct {
				Code string
				Sum  decimal.NullDecimal
			}
		}
		if err := json.Unmarshal(result, &of); err != nil {
			return nil, err
		}
		for _, a := range of.Accounts {
			if !a.Sum.Valid {
				return nil, fmt.Errorf("the account of %q has no sum", a.Code)
			}
			amounts = append(amounts, gateway.BalanceAmount{CoinSymbol: a.Code, Amount: a.Sum.Decimal})
		}
		return amounts, nil
	}

	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpBalance, `{"accounts":[{"code":"USDT","sum":"250.5"},{"code":"BTC","sum":"0.25"}]}`)
	gw.SetResult(gatewaytest.OpCreateInvoice,
		`{"uuid":"u-1","order":"{{orderId}}","amount":"{{amount}}","address":"TXYZ"}`)
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithBalanceDecoder(decodeAccounts))
	if err != nil {
		log.Fatal(err)
	}

	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(balance.Total("USDT"))
	invoice, err := client.CreateInvoice(context.Background(), order("A-17"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(invoice.Raw))
	// Output:
	// 250.5 <nil>
	// {"uuid":"u-1","order":"A-17","amount":"10.4895","address":"TXYZ"}
}

// A gateway returns the invoice without an envelope: the decoder reads it, and thereby proves that it was created.
func ExampleWithInvoiceDecoder() {
	decode := func(body json.RawMessage) (gateway.InvoiceDetails, error) {
		var invoice struct {
			ID      string          `json:"id"`
			PayTo   string          `json:"payTo"`
			Memo    string          `json:"memo"`
			Total   decimal.Decimal `json:"total"`
			Expires time.Time       `json:"expires"`
		}
		err := json.Unmarshal(body, &invoice) // of the body of an error: no ID and no Address, which is no invoice
		return gateway.InvoiceDetails{
			ID: invoice.ID, Address: invoice.PayTo, Tag: invoice.Memo, Amount: invoice.Total, ExpiresAt: invoice.Expires,
		}, err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"7","payTo":"rEb8","memo":"4711","total":"12.5","expires":"2026-11-25T12:00:00Z"}`)
	}))
	defer server.Close()
	client, err := gateway.New(server.URL, "the key of the merchant", gateway.WithInvoiceDecoder(decode))
	if err != nil {
		log.Fatal(err)
	}

	invoice, err := client.CreateInvoice(context.Background(), order("A-17"))
	if err != nil {
		log.Fatal(err)
	}
	d := invoice.Details
	fmt.Println("pay", d.Amount, "to", d.Address, "with the tag", d.Tag, "until", d.ExpiresAt.Format(time.TimeOnly))
	// Output: pay 12.5 to rEb8 with the tag 4711 until 12:00:00
}

// Metrics are an observer. Published with expvar.Publish, the counts are served at /debug/vars.
func ExampleWithObserver() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{Status: "ON_HOLD", Destination: "T1", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultPage(502))

	counts := new(expvar.Map)
	client := connect(gw, gateway.WithObserver(gateway.Observer{
		Attempt: func(_ context.Context, a gateway.Attempt) {
			counts.Add(a.Operation, 1)
			if a.Err != nil {
				counts.Add(a.Operation+"_failed", 1)
			}
			if a.Wait > 0 {
				counts.Add(a.Operation+"_retried", 1)
			}
		},
		Drift: func(context.Context, gateway.Drift) { counts.Add("drift", 1) },
	}))
	if _, err := client.Withdrawal(context.Background(), id); err != nil {
		log.Fatal(err)
	}
	fmt.Println(counts)
	// Output: {"drift": 1, "withdrawal": 2, "withdrawal_failed": 1, "withdrawal_retried": 1}
}

// A rate limit is a RoundTripper. It applies to retries too, and a request that it
// holds until the context ends was not sent.
func ExampleWithMiddleware() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	limit := func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			select {
			case <-every.C:
				return next.RoundTrip(req)
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		})
	}
	client := connect(gw, gateway.WithMiddleware(limit))
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() { _, _ = client.ExchangeRates(context.Background()) })
	}
	callers.Wait()
	fmt.Println(len(gw.Requests()), "requests, one after the other")
	// Output: 10 requests, one after the other
}

// run runs the server of a shop until ctx ends, such as the context of signal.NotifyContext for SIGTERM.
func run(ctx context.Context, client *gateway.Client, server *http.Server, listener net.Listener) error {
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := client.Check(starting); err != nil {
		return err // such as a key that is refused, or a guard without its table
	}
	failed, stopped := make(chan error, 1), make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.Background(), 220*time.Second)
	defer cancel()
	go func() { stopped <- server.Shutdown(stopping) }()     // no new requests
	return errors.Join(client.Shutdown(stopping), <-stopped) // no new invoices, also of goroutines and workers
}

// A server starts if its gateway and its guard work, and ends when nothing is being sent.
func ExampleClient_Shutdown() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	ctx, stop := context.WithCancel(context.Background())
	client := connect(gw, gateway.WithObserver(gateway.Observer{Attempt: func(_ context.Context, a gateway.Attempt) {
		if a.Operation == gateway.OpCreateInvoice {
			stop() // before the call returns
		}
	}}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		invoice, err := client.CreateInvoice(r.Context(), order("A-17"))
		fmt.Println("invoice:", invoice != nil, err)
	})}
	go func() {
		if resp, err := http.Post("http://"+listener.Addr().String(), "", nil); err == nil {
			_ = resp.Body.Close()
		}
	}()
	fmt.Println("the end:", run(ctx, client, server, listener))

	_, err = client.CreateInvoice(context.Background(), order("A-18"))
	fmt.Println(gateway.OutcomeOf(err), errors.Is(err, gateway.ErrShutdown))
	// Output:
	// invoice: true <nil>
	// the end: <nil>
	// not sent true
}
