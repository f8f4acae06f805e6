package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
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
}

// openGateway uses the gateway configured in the environment. If none is configured, it
// starts a stand-in in this process.
func openGateway() (gatewaySource, error) {
	base, key := os.Getenv("GATEWAY_BASE_URL"), os.Getenv("GATEWAY_API_KEY")+os.Getenv("GATEWAY_API_KEY_FILE")
	switch {
	case base == "" && key != "":
		return gatewaySource{}, errors.New("GATEWAY_BASE_URL is not set, but a key is")
	case base != "" && key == "":
		return gatewaySource{}, errors.New("GATEWAY_BASE_URL is set, but GATEWAY_API_KEY is not: payments need it")
	case base == "":
		server := gatewaytest.NewServer()
		server.SetShape(gatewaytest.InvoicePayable)
		connect := func(opts ...gateway.Option) (*gateway.Client, error) {
			return gateway.New(server.URL, server.APIKey, opts...)
		}
		return gatewaySource{"the demo", connect, &standIn{server}}, nil
	}
	u, err := url.Parse(base)
	if err == nil {
		_, err = gateway.FromEnv() // reports a bad setting before anything else is opened
	}
	if err != nil {
		return gatewaySource{}, err
	}
	return gatewaySource{"the gateway at " + strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/"), gateway.FromEnv, nil}, nil
}

// demoFields are those of the stand-in's response.
func demoFields() paymentFields {
	return paymentFields{address: "/address", tag: "/tag", amount: "/amount", deadline: "/expiresAt"}
}

// A standIn is the demo's gateway. Its data is invented.
type standIn struct{ server *gatewaytest.Server }

// seedDemo follows the withdrawals of the stand-in, and lets one of them complete.
func (s *shop) seedDemo(ctx context.Context) error {
	if s.demo == nil {
		return nil
	}
	id := s.demo.server.AddWithdrawal(gatewaytest.Withdrawal{
		Destination: "a made-up address", Amount: "120", Fee: "1", Coin: "USDT", Network: "Tron",
	})
	if err := s.demo.server.SetStatusAfter(id, 2*time.Minute, "COMPLETED"); err != nil {
		return err
	}
	_, err := s.db.change(ctx, `DELETE FROM shop_withdrawals WHERE added_by = 'the demo'`) // those of an earlier stand-in
	for _, w := range s.demo.server.Withdrawals() {
		err = errors.Join(err, s.follow(ctx, w.WithdrawRequestID, "the demo"))
	}
	return err
}

// updateRates changes every rate of the stand-in by up to 0.2 % every two seconds, until
// ctx ends.
func (d *standIn) updateRates(ctx context.Context) {
	for {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return
		}
		for _, rate := range d.server.Rates() {
			factor := decimal.New(10_000+rand.Int64N(41)-20, -4) // #nosec G404 -- invented rates need no secrets
			move := func(price string) string { return decimal.RequireFromString(price).Mul(factor).Round(8).String() }
			d.server.SetRate(rate.Symbol, move(rate.USD), move(rate.EUR))
		}
	}
}

// loseNextResponse makes the stand-in create the next invoice, and lose the response: the
// case for which the shop and the client are made.
func (s *shop) loseNextResponse(w http.ResponseWriter, r *http.Request, o order) error {
	if s.demo == nil {
		return notFound()
	}
	s.demo.server.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.CommitThenDrop())
	return redirect(w, r, "/orders/"+o.ID+"?losing")
}
