package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A standIn is the gateway of a group: a server of gatewaytest behind faults of the grader's
// own, on an address that can be closed and opened again.
type standIn struct {
	gw   *gatewaytest.Server
	addr string

	carrying sync.Mutex // one invoice is carried out at a time

	mu       sync.Mutex
	server   *http.Server
	faults   []fault
	atAccept func()              // meets the next connection, which is closed after it
	results  map[string][][]byte // of the responses of invoices, by order
	asked    int                 // requests for an invoice
}

// A fault is what the next request for an invoice meets. The zero fault is none.
type fault struct {
	inject  gatewaytest.Fault                                         // of the stand-in's own
	instead func()                                                    // is called instead of the invoice; no response follows
	respond func(w http.ResponseWriter, x *httptest.ResponseRecorder) // sends the response; nil sends it as it is
}

func newStandIn(key string) (*standIn, error) {
	s := &standIn{gw: gatewaytest.NewMemoryServer(gatewaytest.WithAPIKey(key)), results: map[string][][]byte{}}
	s.gw.SetShape(gatewaytest.InvoicePayable)
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	s.addr = listener.Addr().String()
	s.serve(listener)
	return s, nil
}

func (s *standIn) url() string { return "http://" + s.addr + "/gateway" }

// open listens again, after close.
func (s *standIn) open() error {
	listener, err := net.Listen("tcp", s.addr)
	if err == nil {
		s.serve(listener)
	}
	return err
}

func (s *standIn) serve(listener net.Listener) {
	server := &http.Server{Handler: s} // #nosec G112 -- of a test, on a loopback port
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	go func() { _ = server.Serve(watched{listener, s}) }()
}

// close ends all connections; the next ones are refused.
func (s *standIn) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.server.Close()
}

// A watched listener shows its connections to the stand-in first.
type watched struct {
	net.Listener
	gateway *standIn
}

func (l watched) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.gateway.mu.Lock()
		meet := l.gateway.atAccept
		l.gateway.atAccept = nil
		l.gateway.mu.Unlock()
		if meet == nil {
			return conn, nil
		}
		meet()
		_ = conn.Close()
	}
}

// meet lets the next requests for an invoice meet faults, one each.
func (s *standIn) meet(faults ...fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// meetConnection lets the next connection meet a function, before anything is read.
func (s *standIn) meetConnection(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atAccept = f
}

// calm removes what is left of the faults.
func (s *standIn) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.atAccept = nil, nil
}

func (s *standIn) take() (f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	return f
}

// requests returns how many requests for an invoice have come.
func (s *standIn) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// result returns the result of the only invoice of an order, as it was in the response.
func (s *standIn) result(order string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if results := s.results[order]; len(results) == 1 {
		return results[0], true
	}
	return nil, false
}

// export is a file of the gateway's operator: all invoices that there are.
func (s *standIn) export() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"order_id", "invoice_id", "created", "price", "amount", "address"})
	for _, i := range s.gw.Invoices() {
		result, _ := s.result(i.OrderID)
		_ = w.Write([]string{i.OrderID, i.ID, i.CreatedAt.UTC().Format(time.RFC3339Nano), i.Price, i.Amount, string(addressOf(result))})
	}
	w.Flush()
	return b.String()
}

// ServeHTTP implements [http.Handler].
func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/gateway/api/invoice/create" {
		s.gw.Handler().ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f := s.take()
	if f.instead != nil {
		f.instead()
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	x := s.carryOut(f.inject, r, body)
	if f.respond == nil {
		f.respond = send
	}
	f.respond(w, x)
}

// carryOut has the stand-in respond into a recorder.
func (s *standIn) carryOut(inject gatewaytest.Fault, r *http.Request, body []byte) *httptest.ResponseRecorder {
	s.carrying.Lock()
	defer s.carrying.Unlock()
	if inject.String() != "" {
		s.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, inject)
	}
	x := httptest.NewRecorder()
	s.gw.Handler().ServeHTTP(x, r)
	var request struct {
		OrderID string `json:"orderId"`
	}
	var response struct {
		Result json.RawMessage `json:"result"`
	}
	if errors.Join(json.Unmarshal(body, &request), json.Unmarshal(x.Body.Bytes(), &response)) == nil && x.Code == http.StatusCreated {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.results[request.OrderID] = append(s.results[request.OrderID], response.Result)
	}
	return x
}

// send sends the whole response, before it returns.
func send(w http.ResponseWriter, x *httptest.ResponseRecorder) { sendPart(w, x, x.Body.Len()) }

// sendPart sends the beginning of a response.
func sendPart(w http.ResponseWriter, x *httptest.ResponseRecorder, n int) {
	for name, values := range x.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(x.Body.Len()))
	w.WriteHeader(x.Code)
	_, _ = w.Write(x.Body.Bytes()[:n])
	_ = http.NewResponseController(w).Flush()
}

// drop closes the connection instead of a response.
func drop(http.ResponseWriter, *httptest.ResponseRecorder) { panic(http.ErrAbortHandler) }

// status responds with another status and body than the stand-in's.
func status(code int, kind, body string) func(http.ResponseWriter, *httptest.ResponseRecorder) {
	return func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}
