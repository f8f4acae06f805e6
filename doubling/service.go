package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
)

// A fault is what happens to the response to the first POST. The invoice is committed
// before it.
type fault string

// The zero fault is none.
const (
	cut        fault = "cut"
	badGateway fault = "502"
	timeout    fault = "timeout"
	redirect   fault = "307"
	deploy     fault = "deploy"
)

// faults are what the cells of the table name.
var faults = []fault{cut, badGateway, timeout, redirect, deploy}

// A service commits an invoice for every POST that it receives and then applies a
// fault to the first of them. The response to each further POST arrives. All POSTs to
// one service are for one order.
type service struct {
	*httptest.Server
	fault     fault
	client    client
	committed chan struct{} // closed after the first commit
	release   chan struct{} // closed when a deploy lets the first response come

	mu       sync.Mutex
	invoices int
	known    map[string]bool // keys
}

func newService(f fault, c client) *service {
	s := &service{fault: f, client: c, committed: make(chan struct{}), release: make(chan struct{}), known: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	return s
}

// count returns how many invoices were committed.
func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invoices
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, "the service expects a whole POST", http.StatusBadRequest)
		return
	}
	count := s.commit(keyOf(r, body))
	if count == 1 && s.loses(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if again := s.client.again; count == 0 && again.status != 0 {
		w.WriteHeader(again.status)
		_, _ = io.WriteString(w, again.body)
		return
	}
	_, _ = io.WriteString(w, s.client.success)
}

// commit records an invoice and returns how many there are now, or 0 when it honours
// the key of an earlier one.
func (s *service) commit(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client.keys && s.known[key] {
		return 0
	}
	s.known[key] = key != ""
	if s.invoices++; s.invoices == 1 {
		close(s.committed)
	}
	return s.invoices
}

// loses reports whether the fault has lost the response.
func (s *service) loses(w http.ResponseWriter, r *http.Request) bool {
	switch s.fault {
	case "":
		return false
	case cut:
		panic(http.ErrAbortHandler) // net/http closes the connection
	case badGateway:
		http.Error(w, "<html>502 Bad Gateway</html>", http.StatusBadGateway)
	case redirect:
		http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusTemporaryRedirect)
	case timeout:
		<-r.Context().Done() // until the client leaves
	case deploy:
		select {
		case <-r.Context().Done():
		case <-s.release:
			return false
		}
	}
	return true
}

var keyInBody = regexp.MustCompile(`"(?:clientToken|name|orderId)":"([^"]+)"|newClientOrderId=([^&]+)`)

// keyOf returns what a service can know a request by, or "": the header of stripe-go, the client token of
// the AWS SDK, the name of a server, the client's id of an order, or the order of an invoice.
func keyOf(r *http.Request, body []byte) string {
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		return key
	}
	if found := keyInBody.FindSubmatch(body); found != nil {
		return string(found[1]) + string(found[2])
	}
	return ""
}
