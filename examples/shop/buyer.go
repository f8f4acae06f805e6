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

// openOrder is the button Buy, and those for another order. However often they
// are pressed, wherever, there is one order: that of the same buyer, product
// and number.
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
	o, err := s.orderOf(r.Context(), buyer, p, r.PostForm)
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
	return nil
}

// orderOf returns the order of a product that the buyer means: the one that is
// there, or the next one if they ask for it on the page of the last and that
// has come to its end. Where somebody else moves the last one on meanwhile, it
// is whatever came of that.
func (s *shop) orderOf(ctx context.Context, buyer string, p product, asked url.Values) (order, error) {
	next := order{ID: rand.Text(), Buyer: buyer, Product: p.ID, Number: 1, Price: p.Price, Currency: p.Currency}
	last, err := s.orders.latest(ctx, buyer, p.ID)
	switch {
	case errors.Is(err, errNoOrder):
		err = s.orders.open(ctx, next)
	case err != nil || asked.Get("after") != strconv.Itoa(last.Number):
		return last, err
	default:
		var over bool
		if over, err = s.isOver(ctx, last, asked.Get("made") == "yes"); err != nil || !over {
			return last, err
		}
		next.Number = last.Number + 1
		_, err = s.orders.follow(ctx, last, next)
	}
	if err != nil {
		return last, err
	}
	return s.orders.latest(ctx, buyer, p.ID)
}

// isOver reports whether an order may have a successor: when it has no invoice
// and none is on its way, or when the buyer has seen that it has one.
func (s *shop) isOver(ctx context.Context, o order, seenMade bool) (bool, error) {
	now, err := s.stateOf(ctx, o)
	return now == stateRefused || now == stateUnsent || now == stateCreated && seenMade, err
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
