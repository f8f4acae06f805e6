//go:build unix

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Each benchmark stands beside its floor: what an engineer would have written
// by hand with net/http and encoding/json, without any of the checks.

// measureCalls measures a call, also by the processor time of the whole program, the
// collector's included, which other programs on the machine do not change much.
func measureCalls(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}

func BenchmarkWithdrawal(b *testing.B) {
	body := enveloped(withdrawalJSON)
	transport := memory{body}.client()
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		measureCalls(b, func() error {
			_, err := c.Withdrawal(b.Context(), requestID)
			return err
		})
	})
	b.Run("floor", func(b *testing.B) {
		measureCalls(b, func() error {
			var w handWithdrawal
			return byHand(b.Context(), transport, inMemoryURL, "/api/withdrawal/inquiry/"+requestID, &w)
		})
	})
}

func BenchmarkCreateInvoice(b *testing.B) {
	body := enveloped(invoiceJSON)
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		invoice, orders := order("A-17"), 0
		measureCalls(b, func() error {
			orders++ // of an equal call the guard has the invoice
			invoice.OrderID = strconv.Itoa(orders)
			_, err := c.CreateInvoice(b.Context(), invoice)
			return err
		})
	})
	b.Run("replay", func(b *testing.B) {
		c, invoice := inMemory(b, body), order("A-17")
		measureCalls(b, func() error {
			_, err := c.CreateInvoice(b.Context(), invoice)
			return err
		})
	})
	b.Run("lookup", func(b *testing.B) {
		guard, known := &gateway.MemoryGuard{}, gateway.Order{Request: order("A-17")}
		_, err := guard.Begin(b.Context(), known)
		require.NoError(b, err)
		_, err = guard.End(b.Context(), known, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: known.Request})
		require.NoError(b, err)
		measureCalls(b, func() error {
			_, err := guard.Begin(b.Context(), known)
			return err
		})
	})
	invoice := handInvoice{
		APIKey: canary, OrderID: "A-17",
		Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.4895"),
	}
	b.Run("floor", func(b *testing.B) {
		c := memory{body}.client()
		measureCalls(b, func() error {
			var created json.RawMessage
			return postByHand(b.Context(), c, inMemoryURL, "/api/invoice/create", invoice, &created)
		})
	})
}

func byHand(ctx context.Context, c *http.Client, base, path string, result any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("x-api-key", canary)
	return sendByHand(c, req, result)
}

func postByHand(ctx context.Context, c *http.Client, base, path string, payload, result any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return sendByHand(c, req, result)
}

func sendByHand(c *http.Client, req *http.Request, result any) error {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json") // docs/interface.md asks for it, but in a listing
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	envelope := struct {
		Message string          `json:"message"`
		Result  any             `json:"result"`
		Meta    json.RawMessage `json:"meta"`
	}{Result: result}
	return json.NewDecoder(resp.Body).Decode(&envelope)
}

type handWithdrawal struct {
	Status            string          `json:"status"`
	Destination       string          `json:"destination"`
	Amount            decimal.Decimal `json:"amount"`
	Fee               decimal.Decimal `json:"fee"`
	Coin              string          `json:"coin"`
	Network           string          `json:"network"`
	WithdrawRequestID string          `json:"withdrawRequestId"`
}

type handInvoice struct {
	APIKey       string          `json:"apiKey"`
	Price        decimal.Decimal `json:"price"`
	OrderID      string          `json:"orderId"`
	BaseCurrency string          `json:"baseCurrency,omitempty"`
	CoinSymbol   string          `json:"coinSymbol,omitempty"`
	NetworkName  string          `json:"networkName,omitempty"`
	Amount       decimal.Decimal `json:"amount"`
}

// A listing has a second floor: validating the same bytes, and no more.
func BenchmarkCoinNetworks(b *testing.B) {
	for _, n := range []int{1, 25, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) { benchmarkListing(b, enveloped(recordsJSON(n))) })
	}
}

func benchmarkListing(b *testing.B, body string) {
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		measureCalls(b, func() error {
			_, err := c.CoinNetworks(b.Context())
			return err
		})
	})
	b.Run("floor", func(b *testing.B) {
		c := memory{body}.client()
		measureCalls(b, func() error {
			var pairs []handPair
			return byHand(b.Context(), c, inMemoryURL, "/api/networks-coins", &pairs)
		})
	})
	b.Run("validated", func(b *testing.B) {
		measureCalls(b, func() error {
			_, err := jsontext.NewDecoder(strings.NewReader(body)).ReadValue()
			return err
		})
	})
}

type handPair struct {
	ID             string          `json:"id"`
	WithdrawalFee  decimal.Decimal `json:"withdrawalFee"`
	SwapFee        decimal.Decimal `json:"swapFee"`
	MinWithdraw    decimal.Decimal `json:"minWithdraw"`
	MaxWithdraw    decimal.Decimal `json:"maxWithdraw"`
	Depositable    bool            `json:"depositable"`
	Withdrawable   bool            `json:"withdrawable"`
	Confirmations  int             `json:"confirmation"`
	ArrivalTime    int             `json:"arrivalTime"`
	ExpirationTime int             `json:"expirationTime"`
	NetworkID      string          `json:"networkId"`
	CoinID         string          `json:"coinId"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Network        struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		IsActive  bool      `json:"isActive"`
		CreatedAt time.Time `json:"created_at"`
		UpdatedAt time.Time `json:"updated_at"`
	} `json:"network"`
	Coin struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Symbol    string          `json:"symbol"`
		Precision int             `json:"precision"`
		MinAmount decimal.Decimal `json:"minAmount"`
		IsActive  bool            `json:"isActive"`
		CreatedAt time.Time       `json:"created_at"`
		UpdatedAt time.Time       `json:"updated_at"`
	} `json:"coin"`
}

// processorTime is the processor time that the program has used, in nanoseconds.
func processorTime() int64 {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
