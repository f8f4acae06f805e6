// Package bench reads one small record through this client and through other
// client libraries, each in its own idiom and from a response of its own format.
package bench

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/url"
	"time"

	"github.com/adshao/go-binance/v2"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/cryptogw/gateway"
	"github.com/digitalocean/godo"
	"github.com/go-resty/resty/v2"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/shopspring/decimal"
	"github.com/stripe/stripe-go/v85"
	"tailscale.com/client/tailscale/v2"
)

const (
	key       = "key-of-a-merchant-17"
	requestID = "c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"

	withdrawal = `{"message":"Operation was successful.","result":{"status":"PENDING","destination":"TXYZ",` +
		`"amount":"25.000001","fee":"1.5","coin":"USDT","network":"Tron (TRC20)","withdrawRequestId":"` + requestID + `"},"meta":{}}`
)

// A Read makes one call and returns a text from the response.
type Read func(ctx context.Context) (string, error)

// A Peer is a client library.
type Peer struct {
	Name     string // of its module, without the owner
	Response string // the body that its service sends
	Want     string // the text that a Read returns of it

	// New makes a client whose calls end after a time in the idiom of the library, or never if
	// it is zero.
	New func(base string, via *http.Client, deadline time.Duration) Read
}

// within bounds each call by its context, as the libraries do whose methods take one and whose
// documentation names no other way.
func within(deadline time.Duration, read Read) Read {
	if deadline == 0 {
		return read
	}
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		return read(ctx)
	}
}

// timed returns a client with a Timeout, which other libraries are documented with.
func timed(via *http.Client, deadline time.Duration) *http.Client {
	return &http.Client{Transport: via.Transport, Timeout: deadline}
}

// Peers returns all client libraries, this one first.
func Peers() []Peer {
	return []Peer{
		{"gateway", withdrawal, "25.000001", newGateway},
		{"stripe-go", `{"object":"balance","available":[{"amount":250075,"currency":"usd","source_types":{"card":250075}}],` +
			`"livemode":false,"pending":[{"amount":1017,"currency":"usd","source_types":{"card":1017}}]}`, "usd", newStripe},
		{"hcloud-go", `{"location":{"id":17,"name":"fsn1","description":"Falkenstein DC Park 1","country":"DE","city":"Falkenstein",` +
			`"latitude":50.47612,"longitude":12.370071,"network_zone":"eu-central"}}`, "Falkenstein", newHcloud},
		{"godo", `{"month_to_date_balance":"23.44","account_balance":"12.23","month_to_date_usage":"11.21",` +
			`"generated_at":"2026-07-09T15:01:12Z"}`, "12.23", newGodo},
		{"anthropic-sdk-go", `{"type":"model","id":"model-17","display_name":"Model 17","created_at":"2026-02-19T00:00:00Z"}`, "Model 17", newAnthropic},
		{"tailscale-client-go-v2", `{"account":{"email":"a@shop.example","needsVerification":false},` +
			`"support":{"email":"b@shop.example","needsVerification":false},"security":{"email":"c@shop.example","needsVerification":true}}`, "b@shop.example", newTailscale},
		{
			"go-binance", `{"symbol":"BTCUSDT","bidPrice":"64123.55000000","bidQty":"4.31000000","askPrice":"64123.56000000","askQty":"9.02000000"}`,
			"64123.55000000", newBinance,
		},
		{"resty", withdrawal, "25.000001", newResty},
	}
}

func newGateway(base string, via *http.Client, deadline time.Duration) Read {
	c, err := gateway.New(base, key, gateway.WithHTTPClient(via))
	return within(deadline, func(ctx context.Context) (string, error) {
		if err != nil {
			return "", err
		}
		w, err := c.Withdrawal(ctx, requestID)
		if err != nil {
			return "", err
		}
		return w.Amount.String(), nil
	})
}

func newStripe(base string, via *http.Client, deadline time.Duration) Read {
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{URL: &base, HTTPClient: timed(via, deadline)})
	c := stripe.NewClient(key, stripe.WithBackends(backends))
	return func(ctx context.Context) (string, error) {
		b, err := c.V1Balance.Retrieve(ctx, nil)
		if err != nil {
			return "", err
		}
		return string(b.Available[0].Currency), nil
	}
}

func newHcloud(base string, via *http.Client, deadline time.Duration) Read {
	c := hcloud.NewClient(hcloud.WithEndpoint(base), hcloud.WithToken(key), hcloud.WithHTTPClient(via))
	return within(deadline, func(ctx context.Context) (string, error) {
		l, _, err := c.Location.GetByID(ctx, 17)
		if err != nil {
			return "", err
		}
		return l.City, nil
	})
}

func newGodo(base string, via *http.Client, deadline time.Duration) Read {
	c, err := godo.New(via, godo.SetBaseURL(base), godo.SetRequestHeaders(map[string]string{"Authorization": "Bearer " + key}))
	return within(deadline, func(ctx context.Context) (string, error) {
		if err != nil {
			return "", err
		}
		b, _, err := c.Balance.Get(ctx)
		if err != nil {
			return "", err
		}
		return b.AccountBalance, nil
	})
}

func newAnthropic(base string, via *http.Client, deadline time.Duration) Read {
	options := []option.RequestOption{option.WithBaseURL(base), option.WithAPIKey(key), option.WithHTTPClient(via)}
	if deadline > 0 {
		options = append(options, option.WithRequestTimeout(deadline))
	}
	c := anthropic.NewClient(options...)
	return func(ctx context.Context) (string, error) {
		m, err := c.Models.Get(ctx, "model-17", anthropic.ModelGetParams{})
		if err != nil {
			return "", err
		}
		return m.DisplayName, nil
	}
}

func newTailscale(base string, via *http.Client, deadline time.Duration) Read {
	at, err := url.Parse(base)
	c := &tailscale.Client{BaseURL: at, APIKey: key, HTTP: timed(via, deadline)}
	return func(ctx context.Context) (string, error) {
		if err != nil {
			return "", err
		}
		contacts, err := c.Contacts().Get(ctx)
		if err != nil {
			return "", err
		}
		return contacts.Support.Email, nil
	}
}

func newBinance(base string, via *http.Client, deadline time.Duration) Read {
	c := binance.NewClient(key, "")
	c.BaseURL, c.HTTPClient, c.Logger = base, via, log.New(io.Discard, "", 0)
	return within(deadline, func(ctx context.Context) (string, error) {
		tickers, err := c.NewListBookTickersService().Symbol("BTCUSDT").Do(ctx)
		if err != nil {
			return "", err
		}
		return tickers[0].BidPrice, nil
	})
}

// newResty returns the same read as newGateway, written by hand with resty.
func newResty(base string, via *http.Client, deadline time.Duration) Read {
	c := resty.NewWithClient(timed(via, deadline)).SetBaseURL(base).SetHeader("x-api-key", key)
	return func(ctx context.Context) (string, error) {
		var envelope struct {
			Message string `json:"message"`
			Result  struct {
				Status            string          `json:"status"`
				Destination       string          `json:"destination"`
				Amount            decimal.Decimal `json:"amount"`
				Fee               decimal.Decimal `json:"fee"`
				Coin              string          `json:"coin"`
				Network           string          `json:"network"`
				WithdrawRequestID string          `json:"withdrawRequestId"`
			} `json:"result"`
		}
		_, err := c.R().SetContext(ctx).SetHeader("Content-Type", "application/json").SetPathParam("id", requestID).
			SetResult(&envelope).Get("/api/withdrawal/inquiry/{id}")
		if err != nil {
			return "", err
		}
		return envelope.Result.Amount.String(), nil
	}
}
