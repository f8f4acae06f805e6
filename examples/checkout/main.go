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
	"slices"
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
	client, err := gateway.FromEnv(gateway.WithInvoiceDecoder(readDetails))
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

// readDetails reads an invoice of your gateway. Its operator names the members.
func readDetails(result json.RawMessage) (gateway.InvoiceDetails, error) {
	var members struct {
		ID      string          `json:"id"`
		Address string          `json:"address"`
		Amount  decimal.Decimal `json:"amount"`
	}
	err := json.Unmarshal(result, &members)
	return gateway.InvoiceDetails{ID: members.ID, Address: members.Address, Amount: members.Amount}, err
}

// A checkout creates invoices for orders whose prices it knows.
type checkout struct {
	http.ServeMux
	client   *gateway.Client
	catalog  *pricing.Cache[*pricing.Catalog]
	rates    *pricing.Cache[*gateway.ExchangeRates]
	prices   map[string]decimal.Decimal // in fiat, by order; never from the buyer's request
	patience time.Duration              // how long a page waits for its invoice
}

const fiat = "usd"

func newCheckout(client *gateway.Client, prices map[string]decimal.Decimal) (*checkout, error) {
	c := &checkout{client: client, prices: prices, patience: 10 * time.Second}
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
		w.Header().Set("Retry-After", "5")
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
	ctx, cancel := context.WithTimeout(r.Context(), c.patience) // ends the wait, not the invoice
	defer cancel()
	created, err := c.client.CreateInvoice(ctx, invoice)
	if err != nil {
		slog.Warn("an invoice", "order", invoice.OrderID, "outcome", gateway.OutcomeOf(err), "error", err)
	}
	respondTo(w, created, err)
}

// A page says how to pay.
type page struct {
	CoinSymbol  string                  `json:"coinSymbol"`
	NetworkName string                  `json:"networkName"`
	Details     *gateway.InvoiceDetails `json:"details"`
}

// respondTo says the truth about an order: how to pay it, or what the buyer should do.
func respondTo(w http.ResponseWriter, invoice *gateway.Invoice, err error) {
	conflict, isConflict := errors.AsType[*gateway.OrderConflictError](err)
	if isConflict && !slices.Contains(conflict.Differs, "price") && !slices.Contains(conflict.Differs, "baseCurrency") {
		invoice, err = conflict.Invoice, nil // the order has this one, perhaps for another coin
	}
	switch outcome := gateway.OutcomeOf(err); {
	case err == nil && invoice != nil && invoice.Details != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page{invoice.Request.CoinSymbol, invoice.Request.NetworkName, invoice.Details})
	case err == nil:
		respond(w, http.StatusOK, "Your order is saved. We will write to you how to pay.")
	case outcome == gateway.OutcomeUnknown && gateway.SafeToRetry(err): // the page asks again
		respond(w, http.StatusAccepted, "We are preparing your payment.")
	case outcome == gateway.OutcomeUnknown:
		respond(w, http.StatusAccepted, "We are checking your payment. Do not order again: we will write to you.")
	case isConflict:
		respond(w, http.StatusConflict, "This order was placed at another price. Please start a new order.")
	case errors.Is(err, gateway.ErrInvalidArgument):
		respond(w, http.StatusInternalServerError, "Payments are not available.")
	case outcome == gateway.OutcomeNotSent, gateway.SafeToRetry(err), isOurs(err):
		w.Header().Set("Retry-After", retryAfter(err))
		respond(w, http.StatusServiceUnavailable, "Payments are not available now. Please try again later.")
	default:
		respond(w, http.StatusUnprocessableEntity, "This order cannot be paid in this coin.")
	}
}

// isOurs reports whether a refusal is about the shop's key or base URL, and not about the order.
func isOurs(err error) bool {
	refusal, ok := errors.AsType[*gateway.APIError](err)
	return errors.Is(err, gateway.ErrRedirect) ||
		ok && slices.Contains([]int{401, 402, 403, 404, 405, 407}, refusal.StatusCode)
}

// retryAfter is how many seconds a buyer waits: as long as the gateway asks for.
func retryAfter(err error) string {
	if busy, ok := errors.AsType[*gateway.APIError](err); ok && busy.RetryAfter > 0 {
		return strconv.Itoa(int((busy.RetryAfter + time.Second - 1) / time.Second))
	}
	return "5"
}

func respond(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }
