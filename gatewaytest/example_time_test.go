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
