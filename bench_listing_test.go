package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A listing has a second floor: validating the same bytes, and no more.
func BenchmarkCoinNetworks(b *testing.B) {
	for _, n := range []int{100, 1000, 5000, 50_000} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) { benchmarkListing(b, enveloped(manyPairs(n))) })
	}
}

func benchmarkListing(b *testing.B, body string) {
	b.Run("client", func(b *testing.B) {
		c := inMemory(b, body, gateway.WithMaxResponseBytes(1<<30))
		measureCalls(b, func() error {
			_, err := c.CoinNetworks(b.Context())
			return err
		})
	})
	b.Run("floor", func(b *testing.B) {
		c := &http.Client{Transport: memory{body}}
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
