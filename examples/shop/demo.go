package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
)

// A gatewaySource is where the shop's gateway comes from.
type gatewaySource struct {
	name    string // whose orders a database has
	connect connector
	demo    *standIn // nil for a real gateway
	close   func()
}

// openGateway takes the gateway of the environment or, where that names none,
// starts a stand-in in this process.
func openGateway() (gatewaySource, error) {
	if base := os.Getenv("GATEWAY_BASE_URL"); base != "" {
		_, err := gateway.FromEnv() // says what is wrong before anything else is opened
		if err == nil && keyName() == "" {
			err = errors.New("GATEWAY_BASE_URL is set, but GATEWAY_API_KEY is not: nobody could pay without it")
		}
		return gatewaySource{name: gatewayName(base), connect: gateway.FromEnv, close: func() {}}, err
	}
	if name := keyName(); name != "" {
		return gatewaySource{}, errors.New(name + " is set, but GATEWAY_BASE_URL is not")
	}
	server := gatewaytest.NewServer()
	connect := func(opts ...gateway.Option) (*gateway.Client, error) {
		return gateway.New(server.URL, server.APIKey, opts...)
	}
	return gatewaySource{"the demo", connect, &standIn{server}, server.Close}, nil
}

// keyName is the variable that the key of the gateway comes from, "" for none.
func keyName() string {
	for _, name := range []string{"GATEWAY_API_KEY", "GATEWAY_API_KEY_FILE"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// gatewayName tells gateways apart by where they are.
func gatewayName(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "the gateway of an address that can not be read"
	}
	return "the gateway at " + strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/")
}

// A standIn is a gateway that makes everything up, and lets some time pass in
// it, so that there is something to see.
type standIn struct{ server *gatewaytest.Server }

// seedDemo follows the withdrawals of the stand-in, if there is one, and gives
// them an end. One answer differs from the interface, so that drift is seen.
func (s *shop) seedDemo(ctx context.Context, d *standIn) error {
	if d == nil {
		return nil
	}
	d.server.InjectFault(gatewaytest.OpExchangeRates, 1, gatewaytest.DriftFields())
	id := d.server.AddWithdrawal(gatewaytest.Withdrawal{
		Destination: "a made-up address", Amount: "120", Fee: "1", Coin: "USDT", Network: "Tron",
	})
	if err := d.server.SetStatusAfter(id, 2*time.Minute, "COMPLETED"); err != nil {
		return err
	}
	if _, err := s.db.change(ctx, `DELETE FROM shop_withdrawals WHERE added_by = 'the demo'`); err != nil {
		return err // those of an earlier stand-in
	}
	for _, w := range d.server.Withdrawals() {
		if err := s.watched.add(ctx, w.WithdrawRequestID, "the demo"); err != nil {
			return err
		}
	}
	return nil
}

// play moves the rates of the stand-in a little, until ctx ends.
func (d *standIn) play(ctx context.Context) {
	if d == nil {
		return
	}
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.moveRates()
		case <-ctx.Done():
			return
		}
	}
}

// moveRates changes every rate by up to 0.2 %.
func (d *standIn) moveRates() {
	for _, rate := range d.server.Rates() {
		factor := decimal.New(10_000+rand.Int64N(41)-20, -4) // #nosec G404 -- invented rates need no secrets
		move := func(price string) string {
			return decimal.RequireFromString(price).Mul(factor).Round(8).String()
		}
		d.server.SetRate(rate.Symbol, move(rate.USD), move(rate.EUR))
	}
}
