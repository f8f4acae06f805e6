package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

const (
	invoiceBody    = `{"message":"Operation was successful.","result":{"id":"inv-1","status":"NEW"},"meta":{}}`
	withdrawalBody = `{"message":"Operation was successful.","result":{"status":"COMPLETED","destination":"TVx","amount":"12.5","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"w-1"},"meta":{}}`
)

// A server responds over TLS and counts handshakes.
type server struct {
	*httptest.Server
	full, resumed atomic.Int64
}

func newServer(http2 bool) *server {
	s := &server{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, invoiceBody)
			return
		}
		_, _ = io.WriteString(w, withdrawalBody)
	}))}
	s.EnableHTTP2, s.Config.ErrorLog = http2, log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, VerifyConnection: func(state tls.ConnectionState) error {
		if state.DidResume {
			s.resumed.Add(1)
		} else {
			s.full.Add(1)
		}
		return nil
	}}
	s.StartTLS()
	return s
}

func (s *server) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// A subject makes calls over a link. What ready does is not measured.
type subject struct {
	name  string
	waits bool // before each call over HTTP/2, until the connection of the last one is closed
	new   func(url string, roots *x509.CertPool) (ready, call func(n int) error)
}

func subjects() []subject {
	return []subject{
		{"net/http, a new connection", false, func(url string, roots *x509.CertPool) (ready, call func(int) error) {
			return nothing, func(int) error {
				t := byHand(roots)
				defer t.CloseIdleConnections()
				return post(t, url)
			}
		}},
		{"net/http, a shared connection", false, func(url string, roots *x509.CertPool) (ready, call func(int) error) {
			t := byHand(roots)
			return nothing, func(int) error { return post(t, url) }
		}},
		{"a read", false, func(url string, _ *x509.CertPool) (ready, call func(int) error) {
			c := newClient(url)
			return nothing, func(int) error {
				_, err := c.Withdrawal(context.Background(), "w-1")
				return err
			}
		}},
		{"an invoice", true, func(url string, _ *x509.CertPool) (ready, call func(int) error) {
			c := newClient(url)
			return nothing, func(n int) error { return create(c, n) }
		}},
		{"an invoice, prepared", false, func(url string, _ *x509.CertPool) (ready, call func(int) error) {
			c := newClient(url)
			return func(int) error { return c.PrepareInvoice(context.Background()) }, func(n int) error { return create(c, n) }
		}},
	}
}

// idle is longer than a connection of HTTP/2 is kept for invoices.
const idle = 2100 * time.Millisecond

func nothing(int) error { return nil }

func byHand(roots *x509.CertPool) *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
}

// post is an invoice as one writes it by hand.
func post(t *http.Transport, url string) error {
	body, err := json.Marshal(map[string]string{"apiKey": "key", "orderId": "A-17", "price": "10.50", "amount": "10.50"})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url+"/api/invoice/create", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return err
	}
	var created struct{ Result json.RawMessage }
	return errors.Join(json.NewDecoder(resp.Body).Decode(&created), resp.Body.Close())
}

func newClient(url string) *gateway.Client {
	c, err := gateway.New(url, "key-of-the-link")
	if err != nil {
		panic(err)
	}
	return c
}

func create(c *gateway.Client, n int) error {
	price := decimal.RequireFromString("10.50")
	_, err := c.CreateInvoice(context.Background(), gateway.InvoiceRequest{OrderID: fmt.Sprint("A-", n), Price: price, Amount: price})
	return err
}
