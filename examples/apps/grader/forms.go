package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"

	"golang.org/x/crypto/bcrypt"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A formShop is examples/apps/shop, by its pages: a reply that shows an invoice has the address on the
// page as its body. It needs the settings of [formSettings].
type formShop struct {
	site
	pair       string // of a coin and a network
	view, paid *regexp.Regexp
}

// password is that of the merchant, who is of one run of the grader.
var password = rand.Text()

// formSettings name where the invoice of the stand-in has its address, and a merchant.
func formSettings() []string {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		panic(err) // the password is too long
	}
	return []string{"SHOP_INVOICE_ADDRESS=/address", "SHOP_INVOICE_AMOUNT=/amount", "SHOP_INVOICE_TIMEOUT=2s", "SHOP_MERCHANTS=grader:" + string(hash)}
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

// reconcile logs in as the merchant, and has the shop end the orders that the file has.
func (s formShop) reconcile(ctx context.Context, file string) reply {
	login, err := s.client.PostForm(s.base+"/admin/login", url.Values{"name": {"grader"}, "password": {password}})
	if err != nil {
		return reply{err: err}
	}
	_ = login.Body.Close()
	for _, cookie := range login.Cookies() { // a jar keeps back those that are for https
		s.cookie = cookie.Name + "=" + cookie.Value
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, value := range map[string]string{
		"order_id": "order_id", "invoice_id": "invoice_id", "created_at": "created", "price": "price", "amount": "amount", "export": file, "apply": "yes",
	} {
		_ = w.WriteField(name, value)
	}
	_ = w.Close()
	return s.do(ctx, http.MethodPost, "/admin/reconcile", w.FormDataContentType(), &form)
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
	address := addressOf(result)
	return len(address) > 0 && bytes.Equal(r.body, address)
}
