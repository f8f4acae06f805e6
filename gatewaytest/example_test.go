package gatewaytest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

func ExampleNewServer() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	req, err := http.NewRequest("GET", gw.URL+"/api/balance/?coinSymbol=BTC", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("x-api-key", gw.APIKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(resp.StatusCode, string(body))

	recorded := gw.Requests()[0]
	fmt.Println(recorded.Operation, recorded.Target, "key in", recorded.KeyIn, recorded.Header["X-Api-Key"])
	// Output:
	// 200 {"message":"Operation was successful.","result":[{"coinSymbol":"BTC","networkName":"Bitcoin","balance":"0.48215003"}],"meta":{}}
	// balance /gateway/api/balance/?coinSymbol=BTC key in header [[REDACTED]]
}

func ExampleServer_InjectFault() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	// Two requests fail, the first of them after the invoice has been created.
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(429, "Too many requests").RetryAfter("1"))

	for range 3 {
		body := `{"apiKey":"` + gw.APIKey + `","price":"10.50","orderId":"order-17","amount":"10.50"}`
		resp, err := http.Post(gw.URL+"/api/invoice/create", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println("no response")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	fmt.Println(len(gw.InvoicesFor("order-17")), "invoices for one order")
	// Output:
	// no response
	// 429 Too Many Requests
	// 201 Created
	// 2 invoices for one order
}

func ExampleServer_Advance() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{Status: "PENDING"})
	if err := gw.SetStatusAfter(id, 7*24*time.Hour, "COMPLETED"); err != nil {
		panic(err)
	}

	for range 3 {
		withdrawals := gw.Withdrawals()
		fmt.Println(withdrawals[len(withdrawals)-1].Status)
		gw.Advance(4 * 24 * time.Hour)
	}
	// Output:
	// PENDING
	// PENDING
	// COMPLETED
}

// The stand-in answers as your own gateway does.
func ExampleServer_SetResult() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetResult(gatewaytest.OpExchangeRates, `{"currency":"BTC","rates":{"USD":"64123.55"}}`)

	resp, err := http.Get(gw.URL + "/api/exchange-rate")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output: {"message":"Operation was successful.","result":{"currency":"BTC","rates":{"USD":"64123.55"}},"meta":{}} <nil>
}

// The limit is two requests a minute, by the clock of the stand-in.
func ExampleServer_SetRateLimit() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetRateLimit(2, time.Minute)

	get := func() {
		resp, err := http.Get(gw.URL + "/api/exchange-rate")
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	for range 3 {
		get()
	}
	gw.Advance(time.Minute)
	get()
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// 200 OK
}
