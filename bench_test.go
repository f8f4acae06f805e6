package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Each benchmark stands beside its floor: what an engineer would have written
// by hand with net/http and encoding/json, without any of the checks.

// memory answers every request from memory.
type memory struct{ body string }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(m.body)), ContentLength: int64(len(m.body)), Request: req,
	}, nil
}

func inMemory(b *testing.B, body string) *gateway.Client {
	b.Helper()
	c, err := gateway.New("https://gateway.example", canary, gateway.WithHTTPClient(&http.Client{Transport: memory{body}}))
	require.NoError(b, err)
	return c
}

func BenchmarkWithdrawal(b *testing.B) {
	body := enveloped(withdrawalJSON)
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Withdrawal(b.Context(), requestID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by hand", func(b *testing.B) {
		c := &http.Client{Transport: memory{body}}
		b.ReportAllocs()
		for b.Loop() {
			var w handWithdrawal
			if err := byHand(b.Context(), c, "/api/withdrawal/inquiry/"+requestID, &w); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCoinNetworks(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		body := enveloped(manyPairs(n))
		b.Run(fmt.Sprintf("pairs=%d/client", n), func(b *testing.B) {
			c := inMemory(b, body)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.CoinNetworks(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("pairs=%d/by hand", n), func(b *testing.B) {
			c := &http.Client{Transport: memory{body}}
			b.ReportAllocs()
			for b.Loop() {
				var pairs []handPair
				if err := byHand(b.Context(), c, "/api/networks-coins", &pairs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func byHand(ctx context.Context, c *http.Client, path string, result any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://gateway.example"+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("x-api-key", canary)
	req.Header.Set("Accept", "application/json")
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
