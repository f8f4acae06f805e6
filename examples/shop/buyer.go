package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
)

// buyerCookie holds a random ID known only to the buyer's browser. The
// database stores its hash, which cannot be used to impersonate the buyer.
const buyerCookie = "__Host-buyer"

// randomTextLength is the length of [rand.Text], which makes the IDs of
// orders and buyers.
const randomTextLength = 26

func isRandomText(text string) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(text) == randomTextLength
}

// buyerOf returns the buyer ID that the database uses for a request.
func buyerOf(r *http.Request) (buyer string, ok bool) {
	cookie, err := r.Cookie(buyerCookie)
	if err != nil || !isRandomText(cookie.Value) {
		return "", false
	}
	sum := sha256.Sum256([]byte(cookie.Value))
	return base64.RawURLEncoding.EncodeToString(sum[:]), true
}

// showProducts shows the first page. It sets the buyer cookie, so that two
// concurrent orders belong to the same buyer.
func (s *shop) showProducts(w http.ResponseWriter, r *http.Request) error {
	if _, ok := buyerOf(r); !ok {
		http.SetCookie(w, &http.Cookie{
			Name: buyerCookie, Value: rand.Text(), Path: "/", MaxAge: 90 * 24 * 60 * 60,
			Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
	}
	return s.render(w, r, http.StatusOK, "products", "Harbour Goods", products())
}

// openOrder handles the buttons Buy, Choose again and Order again.
// Repeated and concurrent requests lead to one order per buyer, product and
// number.
func (s *shop) openOrder(w http.ResponseWriter, r *http.Request) error {
	buyer, ok := buyerOf(r)
	if !ok {
		return &problem{http.StatusBadRequest, "A cookie is required", "The shop identifies its buyers by one cookie. Please allow it and start again on the first page."}
	}
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	p, ok := productByID(r.PostForm.Get("product"))
	if !ok {
		return badInput("The shop does not sell this product.")
	}
	o, err := s.findOrOpenOrder(r.Context(), buyer, p, r.PostForm)
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
	return nil
}

// findOrOpenOrder returns the buyer's latest order of a product. It opens
// the next one if the form asks for it on the page of the latest order and
// that order allows it. If a concurrent request changes the latest order
// first, the result of that request is returned.
func (s *shop) findOrOpenOrder(ctx context.Context, buyer string, p product, form url.Values) (order, error) {
	next := order{ID: rand.Text(), Buyer: buyer, Product: p.ID, Number: 1, Price: p.Price, Currency: p.Currency}
	last, err := s.orders.latest(ctx, buyer, p.ID)
	switch {
	case errors.Is(err, errNoOrder):
		err = s.orders.open(ctx, next)
	case err != nil || form.Get("after") != strconv.Itoa(last.Number):
		return last, err
	default:
		var allowed bool
		if allowed, err = s.allowsNextOrder(ctx, last, form.Get("made") == "yes"); err != nil || !allowed {
			return last, err
		}
		next.Number = last.Number + 1
		_, err = s.orders.openNext(ctx, last, next)
	}
	if err != nil {
		return last, err
	}
	return s.orders.latest(ctx, buyer, p.ID)
}

// allowsNextOrder reports whether a next order may be opened: when the order
// has no invoice and none is being sent, or when the buyer has seen its
// invoice.
func (s *shop) allowsNextOrder(ctx context.Context, o order, invoiceSeen bool) (bool, error) {
	now, err := s.stateOf(ctx, o)
	return now == stateRefused || now == stateUnsent || now == stateCreated && invoiceSeen, err
}

// buyerOrder returns the order named by the path. An order of another buyer
// is reported as not found.
func (s *shop) buyerOrder(r *http.Request) (order, error) {
	buyer, ok := buyerOf(r)
	id := r.PathValue("id")
	if !ok || !isRandomText(id) {
		return order{}, notFound()
	}
	o, err := s.orders.byID(r.Context(), id)
	if errors.Is(err, errNoOrder) || err == nil && o.Buyer != buyer {
		return order{}, notFound()
	}
	return o, err
}

// badForm returns the error for a body that is not a valid form.
func badForm(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	}
	return &problem{http.StatusBadRequest, "Invalid form", "The form cannot be read."}
}
