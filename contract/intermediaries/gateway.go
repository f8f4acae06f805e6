package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A fault is what the first response to an invoice becomes, which is committed before. Any later
// delivery is committed, too, unless the gateway limits the rate.
type fault struct {
	name    string
	limited bool // the second delivery gets 429
	respond func(http.ResponseWriter, *http.Request)
}

// silence is longer than a proxy waits, and shorter than the client does.
const (
	silence        = 3 * time.Second
	patienceProxy  = time.Second
	patienceClient = 5 * time.Second
)

var faults = []fault{
	{"a closed connection", false, hangUp("")},
	{"a body that is cut", false, hangUp("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")},
	{"500", false, refuse(500)},
	{"502", false, refuse(502)},
	{"503", false, refuse(503)},
	{"504", false, refuse(504)},
	{"silence", false, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(silence):
		case <-r.Context().Done():
		}
	}},
	{"a closed connection and then 429", true, hangUp("")},
	{"502 and then 429", true, refuse(502)},
}

// hangUp writes a text and closes the connection.
func hangUp(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

func refuse(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// A counter is a gateway that counts how often an invoice was delivered. The path names the fault.
type counter struct {
	mu         sync.Mutex
	deliveries map[string]int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.deliveries[r.URL.Path]++
	first := c.deliveries[r.URL.Path] == 1
	c.mu.Unlock()
	var i int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d/", &i); err != nil || i < 0 || i >= len(faults) {
		http.NotFound(w, r)
		return
	}
	switch {
	case first:
		faults[i].respond(w, r)
	case faults[i].limited:
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"message":"Operation was successful.","result":{"id":"2"},"meta":{}}`)
	}
}

// try sends an invoice through a proxy for each fault.
func (p proxy) try(ctx context.Context) (finding, error) {
	c := &counter{deliveries: map[string]int{}}
	one, two := httptest.NewServer(c), httptest.NewServer(c)
	defer one.Close()
	defer two.Close()
	stop, address, err := p.start(ctx, hostOf(one), hostOf(two))
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", p.name, err)
	}
	defer stop()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	base := "http://" + address
	if p.forward {
		transport.Proxy, base = http.ProxyURL(&url.URL{Scheme: "http", Host: address}), one.URL
	}
	f := finding{name: p.name}
	for i := range faults {
		at := fmt.Sprintf("/%d", i)
		outcome, err := send(ctx, base+at, transport)
		if err != nil {
			return f, fmt.Errorf("%s: %w", p.name, err)
		}
		c.mu.Lock()
		n := c.deliveries[at+"/api/invoice/create"]
		c.mu.Unlock()
		if n == 0 {
			return f, fmt.Errorf("%s delivers nothing: %v", p.name, outcome)
		}
		f.deliveries, f.outcomes = append(f.deliveries, n), append(f.outcomes, outcome.String())
		if n == 1 && outcome != gateway.OutcomeUnknown {
			return f, fmt.Errorf("%s, %s: one delivery, and the client reports %v", p.name, faults[i].name, outcome)
		}
	}
	return f, nil
}

func hostOf(s *httptest.Server) string { return s.Listener.Addr().String() }

// send makes one attempt to create an invoice, with a client that knows of no other.
func send(ctx context.Context, base string, transport *http.Transport) (gateway.Outcome, error) {
	client, err := gateway.New(base, "key", gateway.WithHTTPClient(&http.Client{Transport: transport}),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: patienceClient}))
	if err != nil {
		return 0, err
	}
	_, err = client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	return gateway.OutcomeOf(err), nil
}
