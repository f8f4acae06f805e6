package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// Each benchmark stands beside its floor: what an engineer would have written
// by hand with net/http and encoding/json, without any of the checks.

// memory answers every request from memory, once it has read it.
type memory struct{ body string }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(m.body)), ContentLength: int64(len(m.body)), Request: req,
	}, nil
}

const inMemoryURL = "https://gateway.example"

func inMemory(b testing.TB, body string, opts ...gateway.Option) *gateway.Client {
	b.Helper()
	return newClient(b, inMemoryURL, append(opts, gateway.WithHTTPClient(&http.Client{Transport: memory{body}}))...)
}

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
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		measureCalls(b, func() error {
			_, err := c.Withdrawal(b.Context(), requestID)
			return err
		})
	})
	b.Run("floor", func(b *testing.B) {
		c := &http.Client{Transport: memory{body}}
		measureCalls(b, func() error {
			var w handWithdrawal
			return byHand(b.Context(), c, inMemoryURL, "/api/withdrawal/inquiry/"+requestID, &w)
		})
	})
}

func BenchmarkCreateInvoice(b *testing.B) {
	body := enveloped(invoiceJSON)
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		invoice := order("A-17")
		measureCalls(b, func() error {
			_, err := c.CreateInvoice(b.Context(), invoice)
			return err
		})
	})
	b.Run("floor", func(b *testing.B) {
		c := &http.Client{Transport: memory{body}}
		invoice := handInvoice{
			APIKey: canary, OrderID: "A-17",
			Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.4895"),
		}
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
	req.Header.Set("Content-Type", "application/json") // INTERFACE.md asks for it, but in a listing
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
