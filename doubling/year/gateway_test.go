package year

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/shopspring/decimal"
)

// A service is the gateway: what is true of every order. It is the transport of the clients too.
type service struct {
	world   *world
	repeats bool // whether a repeated order returns the existing invoice

	mu     sync.Mutex
	tried  map[string]int        // requests by order, whatever becomes of them
	orders map[string][]*invoice // by order
	log    map[string][]string   // the orders of the requests that arrived, by X-Request-Id
	lost   map[string]bool       // orders of which a request ended without its response
	all    []*invoice            // in their order
	seeded map[string]string     // what the gateway has done wrong, by order
}

type invoice struct {
	id            int
	order         string
	at            time.Time // by the gateway's clock
	asked         time.Time // by that of the bubble: when the request came
	price, amount decimal.Decimal
	deleted       bool
}

func newService(w *world, repeats bool) *service {
	return &service{world: w, repeats: repeats, tried: map[string]int{}, orders: map[string][]*invoice{}, log: map[string][]string{}, lost: map[string]bool{}, seeded: map[string]string{}}
}

// orderKey is the key of the order in the context of a call: what happens to a request does not depend on its body.
type orderKey struct{}

var errCut = errors.New("read: connection reset by peer")

// RoundTrip implements [http.RoundTripper].
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	o, begun := r.Context().Value(orderKey{}).(*order), time.Now()
	f := s.next(o, begun)
	if f.refused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var result string
	took := time.Duration(50+(o.n*7919)%750) * time.Millisecond
	err = pause(r.Context(), took/2)
	if !f.lost { // what is on its way arrives although the process has died
		result = s.receive(o, r.Header.Get("X-Request-Id"), body, f, begun)
	}
	if err == nil {
		err = pause(r.Context(), took/2)
	}
	var response *http.Response
	if err == nil {
		response, err = f.respond(r, result)
	}
	if err != nil || f.answer != "" {
		s.mu.Lock()
		s.lost[o.request.OrderID] = true
		s.mu.Unlock()
	}
	return response, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *service) next(o *order, at time.Time) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	tried := s.tried[o.request.OrderID]
	s.tried[o.request.OrderID]++
	return s.world.fate(o, tried, at)
}

// receive writes the request into the log and carries it out, now or later.
func (s *service) receive(o *order, requestID string, body []byte, f fate, asked time.Time) (result string) {
	var posted struct{ OrderID, Price, Amount string }
	if err := json.Unmarshal(body, &posted); err != nil || posted.OrderID != o.request.OrderID {
		panic(fmt.Sprintf("%s: %v", body, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log[requestID] = append(s.log[requestID], posted.OrderID)
	price, amount := decimal.RequireFromString(posted.Price), decimal.RequireFromString(posted.Amount)
	switch {
	case f.dropped:
		return ""
	case f.late > 0:
		time.AfterFunc(f.late, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.commit(o, price, amount, asked)
		})
		return ""
	case o.seeded == altered:
		amount = amount.Add(decimal.New(1, -2))
	case o.seeded == twice:
		s.commit(o, price, amount, asked)
	}
	created := s.commit(o, price, amount, asked)
	if o.seeded == deleted {
		time.AfterFunc(time.Duration(o.n%18+1)*time.Hour, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			created.deleted = true
		})
	}
	return created.json()
}

// commit creates an invoice. The lock is held.
func (s *service) commit(o *order, price, amount decimal.Decimal, asked time.Time) *invoice {
	id := o.request.OrderID
	if s.repeats && len(s.orders[id]) > 0 {
		return s.orders[id][0]
	}
	created := &invoice{id: len(s.all) + 1, order: id, at: gatewayClock(time.Now()), asked: asked, price: price, amount: amount}
	s.all = append(s.all, created)
	s.orders[id] = append(s.orders[id], created)
	if o.seeded != "" {
		s.seeded[id] = o.seeded
	}
	return created
}

func (i *invoice) json() string {
	return fmt.Sprintf(`{"id":"inv-%d","orderId":%q,"amount":"%s","createdAt":%q}`, i.id, i.order, i.amount.StringFixed(2), i.at.Format(time.RFC3339Nano))
}

// respond is what comes back instead of a response, or the response.
func (f fate) respond(r *http.Request, result string) (*http.Response, error) {
	response := func(status int, kind, body string) *http.Response {
		return &http.Response{
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
			Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)),
		}
	}
	body := `{"message":"Operation was successful.","result":` + result + `,"meta":{}}`
	switch f.answer {
	case "cut":
		return nil, errCut
	case "502":
		return response(http.StatusBadGateway, "text/html", "<html>502 Bad Gateway</html>"), nil
	case "stall":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "truncated":
		short := response(http.StatusCreated, "application/json", body[:len(body)/2])
		short.Body = io.NopCloser(io.MultiReader(short.Body, broken{}))
		return short, nil
	}
	return response(http.StatusCreated, "application/json", body), nil
}

// A broken body ends too early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// known are the invoices of an order that exist.
func (s *service) known(order string) (found []*invoice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.orders[order] {
		if !i.deleted {
			found = append(found, i)
		}
	}
	return found
}
