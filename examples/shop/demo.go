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

// A gatewaySource provides the gateway that the shop uses.
type gatewaySource struct {
	name    string // identifies the gateway in the database
	connect connector
	demo    *standIn // nil for a real gateway
	close   func()
}

// openGateway uses the gateway configured in the environment. If none is
// configured, it starts a stand-in in this process.
func openGateway() (gatewaySource, error) {
	if base := os.Getenv("GATEWAY_BASE_URL"); base != "" {
		_, err := gateway.FromEnv() // reports a configuration error before anything else is opened
		if err == nil && keyVariable() == "" {
			err = errors.New("GATEWAY_BASE_URL is set, but GATEWAY_API_KEY is not: payments require it")
		}
		return gatewaySource{name: gatewayName(base), connect: gateway.FromEnv, close: func() {}}, err
	}
	if name := keyVariable(); name != "" {
		return gatewaySource{}, errors.New(name + " is set, but GATEWAY_BASE_URL is not")
	}
	server := gatewaytest.NewServer()
	connect := func(opts ...gateway.Option) (*gateway.Client, error) {
		return gateway.New(server.URL, server.APIKey, opts...)
	}
	return gatewaySource{"the demo", connect, &standIn{server}, server.Close}, nil
}

// keyVariable returns the name of the variable that holds the API key, "" if
// none is set.
func keyVariable() string {
	for _, name := range []string{"GATEWAY_API_KEY", "GATEWAY_API_KEY_FILE"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// gatewayName identifies a gateway by the host and path of its base URL.
func gatewayName(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "the gateway of an invalid address"
	}
	return "the gateway at " + strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/")
}

// A standIn is the demo's gateway. Its data is invented, and changes over
// time to make the demo's pages change.
type standIn struct{ server *gatewaytest.Server }

// seedDemo adds the withdrawals of the stand-in, if there is one, to the
// merchant's page, and lets one of them complete. One rates response has
// undocumented fields, so that the page shows drift.
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
		return err // remove those of an earlier stand-in
	}
	for _, w := range d.server.Withdrawals() {
		if err := s.watched.add(ctx, w.WithdrawRequestID, "the demo"); err != nil {
			return err
		}
	}
	return nil
}

// updateRates changes the rates of the stand-in every two seconds until ctx
// ends.
func (d *standIn) updateRates(ctx context.Context) {
	if d == nil {
		return
	}
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.randomizeRates()
		case <-ctx.Done():
			return
		}
	}
}

// randomizeRates changes every rate by up to 0.2 %.
func (d *standIn) randomizeRates() {
	for _, rate := range d.server.Rates() {
		factor := decimal.New(10_000+rand.Int64N(41)-20, -4) // #nosec G404 -- invented rates need no secrets
		move := func(price string) string {
			return decimal.RequireFromString(price).Mul(factor).Round(8).String()
		}
		d.server.SetRate(rate.Symbol, move(rate.USD), move(rate.EUR))
	}
}
