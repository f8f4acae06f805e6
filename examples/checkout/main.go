// Command checkout is the server side of a payment page: price, coin, limits, invoice,
// HTTP status. docs/checkout.md explains it.
//
//	GET /coins
//	POST /orders/{order}/invoice?coin=USDT&network=Tron
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

func main() {
	client, err := gateway.FromEnv()
	if err != nil {
		slog.Error("checkout", "error", err)
		os.Exit(1)
	}
	shop, err := newCheckout(client, map[string]decimal.Decimal{"A-17": decimal.RequireFromString("10.50")})
	if err != nil {
		slog.Error("checkout", "error", err)
		os.Exit(1)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: shop, ReadTimeout: 10 * time.Second}
	slog.Error("checkout", "error", server.ListenAndServe())
	os.Exit(1)
}

// A checkout creates invoices for orders whose prices it knows.
type checkout struct {
	http.ServeMux
	client  *gateway.Client
	catalog *gateway.Cache[*gateway.Catalog]
	rates   *gateway.Cache[*gateway.ExchangeRates]
	prices  map[string]decimal.Decimal // in US dollars, by order; never from the buyer's request
}

func newCheckout(client *gateway.Client, prices map[string]decimal.Decimal) (*checkout, error) {
	c := &checkout{client: client, prices: prices}
	var err1, err2 error
	c.catalog, err1 = gateway.NewCatalog(client, gateway.CacheOptions{TTL: 10 * time.Minute})
	c.rates, err2 = gateway.NewRatesCache(client, gateway.CacheOptions{TTL: time.Minute, MaxStale: 5 * time.Minute})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	c.HandleFunc("GET /coins", c.listCoins)
	c.HandleFunc("POST /orders/{order}/invoice", c.createInvoice)
	return c, nil
}

// listCoins responds with the coins to choose from. Meanwhile it opens the connection of
// the invoice, so that the buyer does not wait for that.
func (c *checkout) listCoins(w http.ResponseWriter, r *http.Request) {
	ctx := context.WithoutCancel(r.Context())
	go func() { _ = c.client.PrepareInvoice(ctx) }() // an invoice needs no preparation
	catalog, found := c.listing(w, r)
	if !found {
		return
	}
	choices := []map[string]string{}
	for pair := range catalog.All() {
		if pair.Coin.IsActive && pair.Network.IsActive && pair.Depositable {
			choices = append(choices, map[string]string{"coin": pair.Coin.Symbol, "network": pair.Network.Name})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(choices)
}

// listing returns the catalog. If there is none, it responds, and reports false.
func (c *checkout) listing(w http.ResponseWriter, r *http.Request) (catalog *gateway.Catalog, found bool) {
	catalog, err := c.catalog.Get(r.Context())
	if err != nil {
		respond(w, http.StatusServiceUnavailable, "Payments are not available at the moment. Nothing was ordered from the gateway.")
	}
	return catalog, err == nil
}

func (c *checkout) createInvoice(w http.ResponseWriter, r *http.Request) {
	price, known := c.prices[r.PathValue("order")]
	if !known {
		respond(w, http.StatusNotFound, "There is no such order.")
		return
	}
	invoice := gateway.InvoiceRequest{
		OrderID: r.PathValue("order"), Price: price, BaseCurrency: "usd",
		CoinSymbol: r.FormValue("coin"), NetworkName: r.FormValue("network"),
	}
	if !c.setAmount(w, r, &invoice) {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // a buyer who leaves must not cut off an invoice
	created, err := c.client.CreateInvoice(ctx, invoice)
	var conflict *gateway.OrderConflictError
	if errors.As(err, &conflict) {
		created = conflict.Invoice // the order has this one, for another coin or at an earlier rate
	}
	if created == nil || len(created.Raw) == 0 {
		respondTo(w, invoice.OrderID, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(created.Raw) // of your gateway, show only the members that its operator has named
}

// setAmount converts the price to the coin. If it cannot, it responds, and reports false.
func (c *checkout) setAmount(w http.ResponseWriter, r *http.Request, invoice *gateway.InvoiceRequest) bool {
	catalog, found := c.listing(w, r)
	if !found {
		return false
	}
	pair, listed := catalog.Find(invoice.CoinSymbol, invoice.NetworkName)
	if !listed {
		respond(w, http.StatusBadRequest, "This coin and network are not offered.")
		return false
	}
	rates, err := c.rates.Get(r.Context())
	if err == nil {
		invoice.Amount, err = rates.ToCoin(invoice.Price, invoice.BaseCurrency, pair.Coin.Symbol, pair.Coin.Precision)
	}
	if err != nil {
		respond(w, http.StatusServiceUnavailable, "There is no rate for this coin at the moment. Choose another one.")
		return false
	}
	if err := pair.CheckPayment(invoice.Amount); err != nil {
		respond(w, http.StatusUnprocessableEntity, "This order cannot be paid in this coin: "+err.Error())
		return false
	}
	return true
}

// respondTo responds to a buyer who cannot be shown an invoice, and tells the merchant.
func respondTo(w http.ResponseWriter, order string, err error) {
	switch outcome := gateway.OutcomeOf(err); {
	case outcome == gateway.OutcomeNotSent:
		slog.Warn("no invoice was sent", "order", order, "error", err)
		respond(w, http.StatusServiceUnavailable, "Payments are not available at the moment. Please try again.")
	case outcome == gateway.OutcomeRejected:
		slog.Error("the gateway refused an invoice", "order", order, "error", err)
		respond(w, http.StatusBadGateway, "This order cannot be paid at the moment. We have been told.")
	case gateway.SafeToRetry(err): // it is still being created, or the guard cannot say
		slog.Warn("nothing is known of an order", "order", order, "error", err)
		w.Header().Set("Retry-After", "5")
		respond(w, http.StatusServiceUnavailable, "We are still working on your order. Please try again in a moment.")
	default: // the invoice may exist, or exists and cannot be shown
		slog.Error("look this order up at the gateway", "order", order, "error", err)
		respond(w, http.StatusAccepted, "We are checking your payment. Do not order again: we will write to you.")
	}
}

func respond(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }
