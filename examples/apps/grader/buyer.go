package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A kind is what a buyer is told.
type kind string

const (
	shown    kind = "an invoice"    // 200, 201
	notYet   kind = "not known yet" // 202
	conflict kind = "another price" // 409
	again    kind = "try again"     // 503
	failed   kind = "no invoice"    // any other 4xx and 5xx
	noAnswer kind = "no answer"     // the shop is gone, or responds otherwise
)

// patience is how long a buyer waits for a response of the shop, and for an invoice that is
// being made.
const patience = 40 * time.Second

// A reply is what the shop has responded.
type reply struct {
	status int
	body   []byte
	err    error
}

func (r reply) kind() kind {
	switch {
	case r.err != nil:
		return noAnswer
	case r.status == http.StatusOK, r.status == http.StatusCreated:
		return shown
	case r.status == http.StatusAccepted:
		return notYet
	case r.status == http.StatusConflict:
		return conflict
	case r.status == http.StatusServiceUnavailable:
		return again
	case r.status >= 400:
		return failed
	default:
		return noAnswer
	}
}

func (r reply) String() string {
	if r.err != nil {
		return fmt.Sprintf("%s (%v)", r.kind(), r.err)
	}
	return fmt.Sprintf("%s (%d %.80q)", r.kind(), r.status, r.body)
}

// A shop is how buyers use the candidate.
type shop interface {
	newOrder() string // a name that no order has
	price() string    // of every order
	pay(ctx context.Context, order, price string) reply
	show(ctx context.Context, order string) reply
	shows(r reply, result []byte) bool // whether a reply shows this result of the gateway
	reconcile(ctx context.Context, file string) reply
}

// A plainShop has the two routes of the task.
type plainShop struct{ site }

func newPlainShop(addr string) shop { return plainShop{newSite(addr)} }

func (plainShop) newOrder() string { return rand.Text() }

func (plainShop) price() string { return "10.50" }

func (plainShop) shows(r reply, result []byte) bool {
	return bytes.Equal(bytes.TrimSpace(r.body), result)
}

func (s plainShop) pay(ctx context.Context, order, price string) reply {
	return s.post(ctx, "/orders/"+url.PathEscape(order)+"/pay", url.Values{"price": {price}})
}

func (s plainShop) show(ctx context.Context, order string) reply {
	return s.get(ctx, "/orders/"+url.PathEscape(order))
}

func (s plainShop) reconcile(ctx context.Context, file string) reply {
	return s.do(ctx, http.MethodPost, "/reconcile", "text/csv", strings.NewReader(file))
}

// A site is where a candidate listens.
type site struct {
	base   string
	cookie string // "" for none
	client *http.Client
}

func newSite(addr string) site {
	return site{base: "http://" + addr, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // so that nothing is sent twice
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}}
}

func (s site) get(ctx context.Context, path string) reply {
	return s.do(ctx, http.MethodGet, path, "", http.NoBody)
}

func (s site) post(ctx context.Context, path string, form url.Values) reply {
	return s.do(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (s site) do(ctx context.Context, method, path, kind string, body io.Reader) reply {
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return reply{err: err}
	}
	r.Header.Set("Content-Type", kind)
	if s.cookie != "" {
		r.Header.Set("Cookie", s.cookie)
	}
	response, err := s.client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, text, err}
}

// A world is a gateway, a candidate and its buyers.
type world struct {
	gateway *standIn
	program *process
	shop    shop
	file    string // of the gateway's operator, the last one that the candidate was given

	mu       sync.Mutex
	seen     bytes.Buffer // all responses of the shop
	verdicts map[string]verdict
}

// pay is a click of a buyer.
func (w *world) pay(order string) reply {
	return w.payWith(context.Background(), order, w.shop.price())
}

func (w *world) payWith(ctx context.Context, order, price string) reply {
	return w.judge(order, w.shop.pay(ctx, order, price))
}

func (w *world) show(order string) reply {
	return w.judge(order, w.shop.show(context.Background(), order))
}

// reconcile gives the shop a file of the gateway's operator.
func (w *world) reconcile(file string) reply {
	w.file = file
	return w.shop.reconcile(context.Background(), file)
}

// await is what the order shows in the end, after a reply that it is not known yet.
func (w *world) await(order string, r reply, end kind) reply {
	if r.kind() == notYet || r.kind() == again && end == shown {
		poll(patience/2, func() bool {
			r = w.show(order)
			return r.kind() == end
		})
	}
	return r
}

// buy is a click, and the invoice that it leads to.
func (w *world) buy(order string) reply { return w.await(order, w.pay(order), shown) }

// exists reports whether the gateway has an invoice of an order.
func (w *world) exists(order string) bool { return len(w.gateway.gw.InvoicesFor(order)) > 0 }

// A verdict is what is wrong with what buyers of an order were told.
type verdict struct {
	doubled string // the order has several invoices
	denied  string // an invoice exists, and a buyer was told that none does
	wrong   string // a buyer was shown other bytes than the gateway's, or nothing where an invoice was promised
}

// judge keeps a reply about an order, and what is wrong with it at this moment.
func (w *world) judge(order string, r reply) reply {
	var wrong, denied string
	switch kind := r.kind(); {
	case kind == failed && w.exists(order):
		denied = fmt.Sprintf("an invoice exists, and the buyer was told: %v", r)
	case kind == shown && !w.isTrue(order, r):
		wrong = fmt.Sprintf("these are not the gateway's bytes: %v", r)
	case kind == conflict && !w.isTrue(order, w.shop.show(context.Background(), order)):
		wrong = fmt.Sprintf("there is no invoice to see, and the buyer was told: %v", r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.seen.Write(r.body)
	v := w.verdicts[order]
	w.verdicts[order] = verdict{denied: first(v.denied, denied), wrong: first(v.wrong, wrong)}
	return r
}

// verdict is what is wrong with an order so far. The replies must have been replies.
func (w *world) verdict(order string, replies ...reply) verdict {
	w.mu.Lock()
	v := w.verdicts[order]
	w.mu.Unlock()
	if n := len(w.gateway.gw.InvoicesFor(order)); n > 1 {
		v.doubled = fmt.Sprintf("the order has %d invoices", n)
	}
	for _, r := range replies {
		if r.kind() == noAnswer {
			v.wrong = first(v.wrong, fmt.Sprintf("the shop does not respond: %v", r))
		}
	}
	return v
}

// and is the first of each that is wrong.
func (v verdict) and(other verdict) verdict {
	return verdict{first(v.doubled, other.doubled), first(v.denied, other.denied), first(v.wrong, other.wrong)}
}

func (v verdict) String() string { return first(v.doubled, v.denied, v.wrong) }

// isTrue reports whether a reply shows the result of the gateway or, of an order in the file of
// the gateway's operator, its address.
func (w *world) isTrue(order string, r reply) bool {
	result, known := w.gateway.result(order)
	if !known || r.kind() != shown {
		return false
	}
	return w.shop.shows(r, result) || strings.Contains(w.file, order) && bytes.Contains(r.body, addressOf(result))
}

// addressOf returns where a result of the gateway is paid.
func addressOf(result []byte) []byte {
	var invoice struct {
		Address string `json:"address"`
	}
	_ = json.Unmarshal(result, &invoice)
	return []byte(invoice.Address)
}
