// Command checkout is the server side of a payment page: price, coin, limits, invoice,
// HTTP status. docs/checkout.md explains it.
//
//	GET /orders/{order}/coins
//	POST /orders/{order}/invoice?offer=ID
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("checkout", "error", err)
		os.Exit(1)
	}
}

// run serves buyers until ctx ends. It then waits for the invoices that are being sent.
func run(ctx context.Context) error {
	client, err := gateway.FromEnv()
	if err != nil {
		return err
	}
	shop, err := newCheckout(client, map[string]decimal.Decimal{"A-17": decimal.RequireFromString("10.50")})
	if err != nil {
		return err
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: shop, ReadTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		stopping, cancel := context.WithTimeout(context.Background(), 220*time.Second)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(stopping), client.Shutdown(stopping))
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// A checkout creates invoices for orders whose prices it knows.
type checkout struct {
	http.ServeMux
	client  *gateway.Client
	catalog *pricing.Cache[*pricing.Catalog]
	rates   *pricing.Cache[*gateway.ExchangeRates]
	prices  map[string]decimal.Decimal // in fiat, by order; never from the buyer's request
}

const fiat = "usd"

func newCheckout(client *gateway.Client, prices map[string]decimal.Decimal) (*checkout, error) {
	c := &checkout{client: client, prices: prices}
	var err1, err2 error
	c.catalog, err1 = pricing.NewCatalogCache(client, pricing.CacheOptions{TTL: 10 * time.Minute})
	c.rates, err2 = pricing.NewRatesCache(client, pricing.CacheOptions{TTL: time.Minute, MaxStale: 5 * time.Minute})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	c.HandleFunc("GET /orders/{order}/coins", c.listCoins)
	c.HandleFunc("POST /orders/{order}/invoice", c.createInvoice)
	return c, nil
}

// listCoins responds with the coins to choose from.
func (c *checkout) listCoins(w http.ResponseWriter, r *http.Request) {
	offers, found := c.offers(w, r)
	if !found {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(offers.Payable())
}

// offers returns what an order can be paid with. If it cannot say, it responds, and reports
// false.
func (c *checkout) offers(w http.ResponseWriter, r *http.Request) (offers *pricing.Offers, found bool) {
	price, known := c.prices[r.PathValue("order")]
	if !known {
		respond(w, http.StatusNotFound, "There is no such order.")
		return nil, false
	}
	catalog, err1 := c.catalog.Get(r.Context())
	rates, err2 := c.rates.Get(r.Context())
	err := errors.Join(err1, err2)
	if err == nil {
		offers, err = pricing.NewOffers(catalog, rates, price, fiat)
	}
	if err != nil {
		slog.Error("there are no offers", "error", err)
		respond(w, http.StatusServiceUnavailable, "Payments are not available at the moment. If you have an invoice, it stays valid.")
	}
	return offers, err == nil
}

func (c *checkout) createInvoice(w http.ResponseWriter, r *http.Request) {
	offers, found := c.offers(w, r)
	if !found {
		return
	}
	offer, listed := offers.FindID(r.FormValue("offer"))
	switch {
	case !listed:
		respond(w, http.StatusBadRequest, "This coin and network are not offered.")
		return
	case offer.Err != nil:
		respond(w, http.StatusUnprocessableEntity, "This order cannot be paid in this coin: "+offer.Err.Error())
		return
	}
	invoice := gateway.InvoiceRequest{
		OrderID: r.PathValue("order"), Price: c.prices[r.PathValue("order")], BaseCurrency: fiat, Amount: offer.Amount,
		CoinSymbol: offer.Pair.Coin.Symbol, NetworkName: offer.Pair.Network.Name,
	}
	created, err := c.client.CreateInvoice(r.Context(), invoice) // which a buyer who leaves does not cut off
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

// respondTo responds to a buyer who cannot be shown an invoice, and tells the merchant.
func respondTo(w http.ResponseWriter, order string, err error) {
	switch outcome := gateway.OutcomeOf(err); {
	case outcome == gateway.OutcomeNotSent:
		slog.Warn("no invoice was sent", "order", order, "error", err)
		respond(w, http.StatusServiceUnavailable, "Payments are not available at the moment. Please try again.")
	case gateway.SafeToRetry(err): // refused for now, still being created, or the guard cannot say
		slog.Warn("an order must wait", "order", order, "error", err)
		w.Header().Set("Retry-After", retryAfter(err))
		respond(w, http.StatusServiceUnavailable, "We are still working on your order. Please try again in a moment.")
	case outcome == gateway.OutcomeRejected:
		slog.Error("the gateway refused an invoice", "order", order, "error", err)
		respond(w, http.StatusBadGateway, "This order cannot be paid at the moment. We have been told.")
	default: // an invoice may exist, or exists and cannot be shown
		slog.Error("look this order up at the gateway", "order", order, "error", err)
		respond(w, http.StatusAccepted, "We are checking your payment. Do not order again: we will write to you.")
	}
}

// retryAfter is how many seconds a buyer waits: as long as the gateway asks for.
func retryAfter(err error) string {
	if busy, ok := errors.AsType[*gateway.APIError](err); ok && busy.RetryAfter > 0 {
		return strconv.Itoa(int((busy.RetryAfter + time.Second - 1) / time.Second))
	}
	return "5"
}

func respond(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }
