package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A front is the gateway of one task: the stand-in, with faults for the requests of single orders.
type front struct {
	gw        *gatewaytest.Server
	server    *httptest.Server
	elsewhere *httptest.Server // where redirects lead

	mu       sync.Mutex
	faults   map[string][]http.HandlerFunc // of the next requests of an order
	requests map[string]chan struct{}      // one value for each request of an order
	strays   int                           // requests that came elsewhere
}

func newFront() *front {
	f := &front{
		gw: gatewaytest.NewMemoryServer(), faults: map[string][]http.HandlerFunc{}, requests: map[string]chan struct{}{},
	}
	f.server = httptest.NewServer(f)
	f.elsewhere = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.strays++
		w.WriteHeader(http.StatusNotFound)
	}))
	return f
}

func (f *front) close() {
	f.server.CloseClientConnections()
	f.server.Close()
	f.elsewhere.Close()
	f.gw.Close()
}

// url is the base URL of the gateway.
func (f *front) url() string { return f.server.URL + "/gateway" }

// meet lets the next request of an order meet a fault.
func (f *front) meet(order string, fault http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[order] = append(f.faults[order], fault)
}

// asked returns a channel that gets a value when a request of the order comes.
func (f *front) asked(order string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests[order] == nil {
		f.requests[order] = make(chan struct{}, 100)
	}
	return f.requests[order]
}

// count returns how many requests have come in all.
func (f *front) count() int { return len(f.gw.Requests()) }

func (f *front) astray() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.strays
}

// ServeHTTP implements [http.Handler].
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var request struct {
		OrderID string `json:"orderId"`
	}
	if json.Unmarshal(body, &request) != nil || request.OrderID == "" {
		f.gw.Handler().ServeHTTP(w, r)
		return
	}
	fault := f.gw.Handler().ServeHTTP
	f.mu.Lock()
	if faults := f.faults[request.OrderID]; len(faults) > 0 {
		fault, f.faults[request.OrderID] = faults[0], faults[1:]
	}
	f.mu.Unlock()
	select {
	case f.asked(request.OrderID) <- struct{}{}:
	default: // nobody counts to 100
	}
	fault(w, r)
}

// inject is a fault of the stand-in's own. No other request may be on its way.
func (f *front) inject(fault gatewaytest.Fault) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, fault)
		f.gw.Handler().ServeHTTP(w, r)
	}
}

// badGatewayAfter creates the invoice, and responds as [gatewaytest.FaultBadGateway] does.
func (f *front) badGatewayAfter(w http.ResponseWriter, r *http.Request) {
	f.gw.Handler().ServeHTTP(httptest.NewRecorder(), r)
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, "<html><title>502 Bad Gateway</title></html>")
}

// A hold creates the invoice, and keeps the response back until it is released or the client has gone.
type hold struct {
	created  chan struct{} // closed when the invoice exists
	left     chan struct{} // closed when the client has gone
	released context.Context
	release  func()
}

func (f *front) hold(order string) *hold {
	h := &hold{created: make(chan struct{}), left: make(chan struct{})}
	h.released, h.release = context.WithCancel(context.Background())
	f.meet(order, func(w http.ResponseWriter, r *http.Request) {
		x := httptest.NewRecorder()
		f.gw.Handler().ServeHTTP(x, r)
		close(h.created)
		select {
		case <-h.released.Done():
		case <-r.Context().Done():
			close(h.left)
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", x.Header().Get("Content-Type"))
		w.WriteHeader(x.Code)
		_, _ = w.Write(x.Body.Bytes())
	})
	return h
}
