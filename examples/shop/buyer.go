package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
)

// buyerCookie holds a random number that only the buyer's browser knows. The
// database has its hash, with which nobody can be that buyer.
const buyerCookie = "__Host-buyer"

// secretLength is the length of [rand.Text], which orders and buyers are
// named by.
const secretLength = 26

func isSecret(text string) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(text) == secretLength
}

// buyerOf returns how the database names the buyer of a request.
func buyerOf(r *http.Request) (buyer string, ok bool) {
	cookie, err := r.Cookie(buyerCookie)
	if err != nil || !isSecret(cookie.Value) {
		return "", false
	}
	sum := sha256.Sum256([]byte(cookie.Value))
	return base64.RawURLEncoding.EncodeToString(sum[:]), true
}

// showProducts is the first page. It makes a stranger a buyer, so that two
// orders that come at once are of the same one.
func (s *shop) showProducts(w http.ResponseWriter, r *http.Request) error {
	if _, ok := buyerOf(r); !ok {
		http.SetCookie(w, &http.Cookie{
			Name: buyerCookie, Value: rand.Text(), Path: "/", MaxAge: 90 * 24 * 60 * 60,
			Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
	}
	return s.render(w, r, http.StatusOK, "products", "Harbour Goods", products())
}

// openOrder is the button Buy. However often it is pressed, wherever, there is
// one order: that of the same buyer, product and number.
func (s *shop) openOrder(w http.ResponseWriter, r *http.Request) error {
	buyer, ok := buyerOf(r)
	if !ok {
		return &problem{http.StatusBadRequest, "This needs a cookie", "The shop tells its buyers apart by one cookie. Please allow it and start on the first page."}
	}
	if err := r.ParseForm(); err != nil {
		return badForm(err)
	}
	p, ok := productByID(r.PostForm.Get("product"))
	if !ok {
		return badInput("The shop does not sell that.")
	}
	number, err := s.numberOf(r.Context(), buyer, p.ID, r.PostForm.Get("after"))
	if err != nil {
		return err
	}
	o, err := s.orders.open(r.Context(), order{
		ID: rand.Text(), Buyer: buyer, Product: p.ID, Number: number,
		Price: p.Price, Currency: p.Currency, State: stateOpen,
	})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
	return nil
}

// numberOf says which order of a product the buyer means: the one that is
// there, or the next one if they ask for it on the page of the last and that
// has come to its end.
func (s *shop) numberOf(ctx context.Context, buyer, product, after string) (int, error) {
	last, err := s.orders.latest(ctx, buyer, product)
	if errors.Is(err, errNoOrder) {
		return 1, nil
	}
	if err != nil || after != strconv.Itoa(last.Number) {
		return last.Number, err
	}
	switch now, err := s.stateOf(ctx, last); now {
	case stateCreated, stateRefused, stateUnsent:
		return last.Number + 1, err
	default:
		return last.Number, err
	}
}

// buyersOrder returns the order that the path names. One of somebody else is
// not there.
func (s *shop) buyersOrder(r *http.Request) (order, error) {
	buyer, known := buyerOf(r)
	id := r.PathValue("id")
	if !known || !isSecret(id) {
		return order{}, notFound()
	}
	o, err := s.orders.byID(r.Context(), id)
	if errors.Is(err, errNoOrder) || err == nil && o.Buyer != buyer {
		return order{}, notFound()
	}
	return o, err
}

// badForm is what is wrong with a body that is not a form.
func badForm(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	}
	return &problem{http.StatusBadRequest, "That is not a form", "What was sent can not be read."}
}
