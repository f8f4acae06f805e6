package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A formShop is examples/shop, by its pages: a reply that shows an invoice has the address on the page
// as its body. It needs SHOP_INVOICE_ADDRESS=/address and SHOP_INVOICE_AMOUNT=/amount.
type formShop struct {
	site
	pair       string // of a coin and a network
	view, paid *regexp.Regexp
}

func newFormShop(addr string) shop {
	s := formShop{
		site: newSite(addr),
		view: regexp.MustCompile(`data-view="([a-z]+)"`),
		paid: regexp.MustCompile(`id="pay-address">([^<]+)<`),
	}
	s.cookie = "__Host-buyer=" + rand.Text()
	gw := gatewaytest.NewMemoryServer()
	defer gw.Close()
	for _, pair := range gw.Catalog() { // that of all stand-ins
		if pair.Coin.Symbol == "LTC" {
			s.pair = pair.ID
		}
	}
	return s
}

func (formShop) newOrder() string { return rand.Text() + "-mug" }

func (formShop) price() string { return "18.00" }

func (s formShop) pay(ctx context.Context, order, price string) reply {
	if r := s.post(ctx, "/orders", url.Values{"order": {order}}); r.status != http.StatusSeeOther {
		return r
	}
	r := s.post(ctx, "/orders/"+order+"/pay", url.Values{"pair": {s.pair}, "price": {"$" + price}})
	if r.status != http.StatusSeeOther {
		return s.read(r)
	}
	return s.show(ctx, order)
}

func (s formShop) show(ctx context.Context, order string) reply {
	return s.read(s.get(ctx, "/orders/"+order))
}

// read makes of a page what it tells the buyer.
func (s formShop) read(r reply) reply {
	view := s.view.FindSubmatch(r.body)
	if r.err != nil || r.status != http.StatusOK || view == nil {
		return r
	}
	switch string(view[1]) {
	case "pay":
		if address := s.paid.FindSubmatch(r.body); address != nil {
			r.body = address[1]
		}
	case "nodetails": // an invoice that nobody can see
	case "sending", "unknown":
		r.status = http.StatusAccepted
	default: // the buyer can choose a coin, or the order has ended
		r.status = http.StatusNotFound
	}
	return r
}

func (formShop) shows(r reply, result []byte) bool {
	var invoice struct {
		Address string `json:"address"`
	}
	return json.Unmarshal(result, &invoice) == nil && invoice.Address != "" && bytes.Equal(r.body, []byte(invoice.Address))
}
