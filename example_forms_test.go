package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// answering is a gateway with one answer, and a client of it.
func answering(result string, opts ...gateway.Option) (*httptest.Server, *gateway.Client) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"message":"Operation was successful.","meta":{},"result":`+result+`}`)
	}))
	client, err := gateway.New(server.URL, "the key of the merchant", opts...)
	if err != nil {
		log.Fatal(err)
	}
	return server, client
}

// Coinbase has the rates of one coin, in many currencies.
func ExampleWithRatesDecoder() {
	decode := func(result json.RawMessage) ([]gateway.Rate, error) {
		var of struct {
			Coin  string                         `json:"currency"`
			Rates map[string]decimal.NullDecimal `json:"rates"`
		}
		if err := json.Unmarshal(result, &of); err != nil {
			return nil, err
		}
		return []gateway.Rate{{CoinSymbol: of.Coin, USD: of.Rates["USD"], EUR: of.Rates["EUR"]}}, nil
	}
	server, client := answering(`{"currency":"BTC","rates":{"EUR":"59000.01","JPY":"9701234.5","USD":"64123.55"}}`,
		gateway.WithRatesDecoder(decode))
	defer server.Close()

	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	btc, _ := rates.Rate("BTC")
	fmt.Println(btc.USD.Decimal, btc.EUR.Decimal)
	// Output: 64123.55 59000.01
}

// BitPay has a record for each currency, of one coin that it does not name.
func ExampleWithRatesDecoder_bitPay() {
	decode := func(result json.RawMessage) ([]gateway.Rate, error) {
		var prices []struct {
			Currency string              `json:"code"`
			Price    decimal.NullDecimal `json:"rate"`
		}
		if err := json.Unmarshal(result, &prices); err != nil {
			return nil, err
		}
		btc := gateway.Rate{CoinSymbol: "BTC"}
		for _, p := range prices {
			switch p.Currency {
			case "USD":
				btc.USD = p.Price
			case "EUR":
				btc.EUR = p.Price
			}
		}
		return []gateway.Rate{btc}, nil
	}
	server, client := answering(`[{"code":"USD","name":"US Dollar","rate":64123.55},{"code":"EUR","name":"Eurozone Euro","rate":59000.01}]`,
		gateway.WithRatesDecoder(decode))
	defer server.Close()

	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	btc, _ := rates.Rate("BTC")
	fmt.Println(btc.USD.Decimal, btc.EUR.Decimal)
	// Output: 64123.55 59000.01
}

// Cryptomus has two lists of accounts, which belong together. An amount that is missing is an error, and
// not zero.
func ExampleWithBalanceDecoder() {
	type account struct {
		Coin   string              `json:"currency_code"`
		Amount decimal.NullDecimal `json:"balance"`
	}
	decode := func(result json.RawMessage) ([]gateway.BalanceAmount, error) {
		var wallets []struct {
			Balance struct {
				Merchant []account `json:"merchant"`
				User     []account `json:"user"`
			} `json:"balance"`
		}
		if err := json.Unmarshal(result, &wallets); err != nil {
			return nil, err
		}
		if len(wallets) != 1 {
			return nil, errors.New("there is more than one wallet")
		}
		var amounts []gateway.BalanceAmount
		for _, a := range append(wallets[0].Balance.Merchant, wallets[0].Balance.User...) {
			if !a.Amount.Valid {
				return nil, fmt.Errorf("an account of %q has no balance", a.Coin)
			}
			amounts = append(amounts, gateway.BalanceAmount{CoinSymbol: a.Coin, Amount: a.Amount.Decimal})
		}
		return amounts, nil
	}
	server, client := answering(`[{"balance":{
		"merchant":[{"uuid":"m-1","balance":"250.50","currency_code":"USDT"},{"uuid":"m-2","balance":"0.25","currency_code":"BTC"}],
		"user":[{"uuid":"u-1","balance":"4.50","currency_code":"USDT"}]}}]`,
		gateway.WithBalanceDecoder(decode))
	defer server.Close()

	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{})
	if err != nil {
		log.Fatal(err)
	}
	total, err := balance.Total("USDT")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total.StringFixed(2))
	// Output: 255.00
}

// A stand-in answers with the results of your own gateway, so that a test shows whether your
// decoder reads them.
func ExampleWithBalanceDecoder_tested() {
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
	total, err := balance.Total("USDT")
	if err != nil {
		log.Fatal(err)
	}
	invoice, err := client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	if err != nil {
		log.Fatal(err)
	}
	address, _ := invoice.Text("address")
	fmt.Println(total, address)
	fmt.Println(string(invoice.Raw))
	// Output:
	// 250.5 TXYZ
	// {"uuid":"u-1","order":"A-17","amount":"10.50","address":"TXYZ"}
}
