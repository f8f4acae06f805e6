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

// openGateway returns the gateway configured in the environment, with the name of it that
// the database has. If none is configured, it starts a stand-in in this process.
func openGateway() (name string, connect connector, demo *gatewaytest.Server, err error) {
	base, key := os.Getenv("GATEWAY_BASE_URL"), os.Getenv("GATEWAY_API_KEY")+os.Getenv("GATEWAY_API_KEY_FILE")
	switch {
	case base == "" && key+os.Getenv("GATEWAY_PROFILE") != "":
		return "", nil, nil, errors.New("GATEWAY_BASE_URL is not set, but a key or GATEWAY_PROFILE is")
	case base != "" && key == "":
		return "", nil, nil, errors.New("GATEWAY_BASE_URL is set, but GATEWAY_API_KEY is not: payments need it")
	case base == "":
		demo = gatewaytest.NewServer()
		demo.SetShape(gatewaytest.InvoicePayable)
		connect = func(opts ...gateway.Option) (*gateway.Client, error) {
			return gateway.New(demo.URL, demo.APIKey, opts...)
		}
		return "the demo", connect, demo, nil
	}
	if _, err = gateway.FromEnv(); err != nil { // before anything else is opened
		return "", nil, nil, err
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", nil, nil, err
	}
	return "the gateway at " + strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/"), gateway.FromEnv, nil, nil
}

// demoFields are those of the stand-in's response.
func demoFields() paymentFields {
	return paymentFields{address: "/address", tag: "/tag", amount: "/amount", deadline: "/expiresAt"}
}

// seedDemo follows the withdrawals of the stand-in, and lets one of them complete.
func (s *shop) seedDemo(ctx context.Context) error {
	if s.demo == nil {
		return nil
	}
	id := s.demo.AddWithdrawal(gatewaytest.Withdrawal{
		Destination: "a made-up address", Amount: "120", Fee: "1", Coin: "USDT", Network: "Tron",
	})
	if err := s.demo.SetStatusAfter(id, 2*time.Minute, "COMPLETED"); err != nil {
		return err
	}
	_, err := s.db.change(ctx, `DELETE FROM shop_withdrawals WHERE added_by = 'the demo'`) // those of an earlier stand-in
	for _, w := range s.demo.Withdrawals() {
		err = errors.Join(err, s.follow(ctx, w.WithdrawRequestID, "the demo"))
	}
	return err
}

// updateRates changes every rate of the stand-in by up to 0.2 %.
func updateRates(demo *gatewaytest.Server) {
	for _, rate := range demo.Rates() {
		factor := decimal.New(10_000+rand.Int64N(41)-20, -4) // #nosec G404 -- invented rates need no secrets
		move := func(price string) string { return decimal.RequireFromString(price).Mul(factor).Round(8).String() }
		demo.SetRate(rate.Symbol, move(rate.USD), move(rate.EUR))
	}
}

// losingOrder begins the orders whose first response the stand-in loses after it has created
// the invoice: the case for which the shop and the client are made.
const losingOrder = gatewaytest.OrderFaultPrefix + "commit-then-drop-"

// loseNextResponse goes on with another order for the same product, whose response is lost.
func (s *shop) loseNextResponse(w http.ResponseWriter, r *http.Request, o order) error {
	if s.demo == nil {
		return notFound()
	}
	if !strings.HasPrefix(o.ID, losingOrder) {
		o.ID = losingOrder + o.ID
		if err := s.db.insertOrder(r.Context(), order{ID: o.ID, Buyer: o.Buyer, Product: o.Product}); err != nil {
			return err
		}
	}
	return redirect(w, r, "/orders/"+o.ID+"?losing")
}
