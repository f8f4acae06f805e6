package gatewaytest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// fetch prints the status of a response and the first bytes of its result.
func fetch(client *http.Client, gw *gatewaytest.Server, path string, show int) {
	req, err := http.NewRequest("GET", gw.URL+path, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("x-api-key", gw.APIKey)
	resp, err := client.Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	_, result, _ := strings.Cut(string(body), `"result":`)
	fmt.Println(resp.StatusCode, result[:show])
}

// In a bubble of testing/synctest a server needs pipes instead of sockets. It
// also works outside of a bubble, as here.
func ExampleNewMemoryServer() {
	gw := gatewaytest.NewMemoryServer()
	defer gw.Close()
	client := &http.Client{Transport: gw.Transport()}

	fmt.Println(gw.URL)
	fetch(client, gw, "/api/exchange-rate", 50)
	// Output:
	// http://localhost/gateway
	// 200 [{"symbol":"BTC","usd":"64250.18","eur":"59310.72"
}

func ExampleServer_Transport() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := &http.Client{Transport: gw.Transport()}

	// Every connection leads to the server, including one for another host.
	resp, err := client.Get("http://pay.example/gateway/api/exchange-rate")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, gw.Requests()[0].Operation)
	// Output: 200 OK exchange_rates
}

func ExampleServer_Now() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	gw.Advance(30 * 24 * time.Hour)
	fmt.Println(time.Until(gw.Now()).Round(time.Hour))
	// Output: 720h0m0s
}

func ExampleServer_Advance() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{})
	if err := gw.SetStatusAfter(id, 7*24*time.Hour, "COMPLETED"); err != nil {
		panic(err)
	}

	for range 3 {
		fetch(http.DefaultClient, gw, "/api/withdrawal/inquiry/"+id, 20)
		gw.Advance(4 * 24 * time.Hour)
	}
	// Output:
	// 201 {"status":"PENDING",
	// 201 {"status":"PENDING",
	// 201 {"status":"COMPLETED
}

func ExampleServer_SetStatusAfter() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	id := gw.AddWithdrawal(gatewaytest.Withdrawal{})
	for after, status := range map[time.Duration]string{time.Hour: "PROCESSING", 2 * time.Hour: "FAILED"} {
		if err := gw.SetStatusAfter(id, after, status); err != nil {
			panic(err)
		}
	}
	for range 3 {
		all := gw.Withdrawals()
		fmt.Println(all[len(all)-1].Status)
		gw.Advance(time.Hour)
	}
	// Output:
	// PENDING
	// PROCESSING
	// FAILED
}

func ExampleServer_SetRateLimit() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	gw.SetRateLimit(2, time.Minute)
	for range 4 {
		resp, err := http.Get(gw.URL + "/api/exchange-rate")
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
		if resp.Header.Get("Retry-After") != "" {
			gw.Advance(time.Minute)
		}
	}
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// 200 OK
}

func ExampleFaultDrift() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	gw.InjectFault(gatewaytest.OpBalance, 1, gatewaytest.FaultDrift())
	fetch(http.DefaultClient, gw, "/api/balance/?coinSymbol=BTC", 56)
	// Output: 200 [{"undocumented":{"by":"gatewaytest"},"coinSymbol":"BTC"
}

func ExampleFaultEdit() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.Withdrawals()[0].WithdrawRequestID

	gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultEdit("/result/status", `"ON_HOLD"`))
	fetch(http.DefaultClient, gw, "/api/withdrawal/inquiry/"+id, 19)
	fmt.Println(gw.Withdrawals()[0].Status)
	// Output:
	// 201 {"status":"ON_HOLD"
	// PENDING
}
