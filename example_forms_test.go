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
	"strings"
	"time"

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

// BitPay returns a record for each currency, all of one coin that it does not name.
func ExampleWithRatesDecoder_bitPay() {
	decode := func(result json.RawMessage) ([]gateway.Rate, error) {
		var prices []struct {
			Code string
			Rate decimal.NullDecimal
		}
		err := json.Unmarshal(result, &prices)
		in := map[string]decimal.NullDecimal{}
		for _, p := range prices {
			in[p.Code] = p.Rate
		}
		return []gateway.Rate{{CoinSymbol: "BTC", USD: in["USD"], EUR: in["EUR"]}}, err
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

// Plisio names its prices price_usd, and lists a coin again for each of its networks.
func ExampleWithRatesDecoder_plisio() {
	decode := func(result json.RawMessage) (rates []gateway.Rate, err error) {
		var coins []struct {
			CID, Currency string
			Price         decimal.NullDecimal `json:"price_usd"`
		}
		err = json.Unmarshal(result, &coins)
		for _, c := range coins {
			if c.CID == c.Currency { // the others are its networks
				rates = append(rates, gateway.Rate{CoinSymbol: c.Currency, USD: c.Price})
			}
		}
		return rates, err
	}
	server, client := answering(`[{"cid":"BTC","currency":"BTC","price_usd":"64123.55"},
		{"cid":"USDT_TRX","currency":"USDT","price_usd":"1.0001"},{"cid":"USDT","currency":"USDT","price_usd":"1.0001"}]`,
		gateway.WithRatesDecoder(decode))
	defer server.Close()

	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	usdt, _ := rates.Rate("USDT")
	fmt.Println(usdt.USD.Decimal, usdt.EUR.Valid)
	// Output: 1.0001 false
}

// OxaPay returns a number for each coin, in US dollars.
func ExampleWithRatesDecoder_oxaPay() {
	decode := func(result json.RawMessage) (rates []gateway.Rate, err error) {
		var prices map[string]decimal.NullDecimal
		err = json.Unmarshal(result, &prices)
		for symbol, price := range prices {
			rates = append(rates, gateway.Rate{CoinSymbol: symbol, USD: price})
		}
		return rates, err
	}
	server, client := answering(`{"BTC":64123.55,"USDT":1.0001}`, gateway.WithRatesDecoder(decode))
	defer server.Close()

	rates, err := client.ExchangeRates(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	btc, _ := rates.Rate("BTC")
	fmt.Println(btc.USD.Decimal)
	// Output: 64123.55
}

// NOWPayments names a coin and its network in one word. An amount that is missing is an error, and not zero.
func ExampleWithBalanceDecoder() {
	decode := func(result json.RawMessage) (amounts []gateway.BalanceAmount, err error) {
		var coins map[string]struct{ Amount decimal.NullDecimal }
		err = json.Unmarshal(result, &coins)
		for name, coin := range coins {
			if !coin.Amount.Valid {
				return nil, errors.New(name + " has no amount")
			}
			amounts = append(amounts, gateway.BalanceAmount{CoinSymbol: strings.ToUpper(name), Amount: coin.Amount.Decimal})
		}
		return amounts, err
	}
	server, client := answering(`{"usdttrc20":{"amount":250.5,"pendingAmount":1},"btc":{"amount":"0.25","pendingAmount":"0"}}`,
		gateway.WithBalanceDecoder(decode))
	defer server.Close()

	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{})
	if err != nil {
		log.Fatal(err)
	}
	total, err := balance.Total("USDTTRC20")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total)
	// Output: 250.5
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

	invoice, err := client.CreateInvoice(context.Background(), gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.NewFromInt(30), Amount: decimal.RequireFromString("12.5"), CoinSymbol: "XRP",
	})
	if err != nil {
		log.Fatal(err)
	}
	d := invoice.Details
	fmt.Println("pay", d.Amount, "to", d.Address, "with the tag", d.Tag, "until", d.ExpiresAt.Format(time.TimeOnly))
	// Output: pay 12.5 to rEb8 with the tag 4711 until 12:00:00
}
