package literal

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// orderHeader tells the gateway of the tests which order a request is about, before its body.
const orderHeader = "X-Order"

// An answer is what the gateway does with one request.
type answer struct {
	Latency time.Duration // before anything
	Fault   gatewaytest.Fault
}

// A service is a gateway with a stand-in for each order, so that the faults of an order do
// not depend on the other orders. It keeps what it has sent.
type service struct {
	*http.Server
	listener *pipes
	serving  sync.WaitGroup
	orders   map[string]*servedOrder
}

type servedOrder struct {
	*gatewaytest.Server
	mu      sync.Mutex
	answers []answer // to the next requests; then there is no fault
	sent    []*recorder
	repeats int // requests that arrived when there was an invoice
}

func newService(orders map[string][]answer, repeated gatewaytest.RepeatedOrders) *service {
	s := &service{listener: newPipes(), orders: map[string]*servedOrder{}}
	for id, answers := range orders {
		s.orders[id] = &servedOrder{Server: gatewaytest.NewMemoryServer(gatewaytest.WithAPIKey(merchantKey(merchant(id)))), answers: answers}
		s.orders[id].SetRepeatedOrders(repeated)
	}
	s.Server = &http.Server{Handler: s, Protocols: protocols(true, true), ReadHeaderTimeout: time.Hour}
	s.serving.Go(func() { _ = s.Serve(s.listener) }) // returns ErrServerClosed
	return s
}

// protocols are those of HTTP without TLS.
func protocols(http1, http2 bool) *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// Close ends what the gateway is doing.
func (s *service) Close() {
	for _, o := range s.orders {
		o.Close()
	}
	_ = s.Server.Close()
	s.serving.Wait()
}

// ServeHTTP has the stand-in of the order respond.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := s.orders[r.Header.Get(orderHeader)]
	if o == nil {
		panic(http.ErrAbortHandler) // HTTP/2 that broke within its preface looks like HTTP/1
	}
	next := o.next()
	pause(next.Latency)
	o.arrives()
	o.InjectFault(gatewaytest.OpCreateInvoice, 1, next.Fault)
	o.Handler().ServeHTTP(o.record(w), r)
}

// arrives counts a request that is not needed any more. The gateway creates no second invoice
// of it if it returns the first one, or refuses.
func (o *servedOrder) arrives() {
	if len(o.Invoices()) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.repeats++
}

func (o *servedOrder) next() (next answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.answers) > 0 {
		next, o.answers = o.answers[0], o.answers[1:]
	}
	return next
}

// heal ends the faults.
func (o *servedOrder) heal() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers = nil
}

// hasSent reports whether these bytes were the result of a response.
func (o *servedOrder) hasSent(result []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.sent, func(r *recorder) bool {
		var envelope struct{ Result json.RawMessage }
		return json.Unmarshal(r.body, &envelope) == nil && bytes.Equal(envelope.Result, result)
	})
}

// A recorder keeps the body of a response, before anybody has it.
type recorder struct {
	http.ResponseWriter
	order *servedOrder
	body  []byte
}

func (o *servedOrder) record(w http.ResponseWriter) *recorder {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &recorder{w, o, nil}
	o.sent = append(o.sent, r)
	return r
}

func (r *recorder) Write(p []byte) (int, error) {
	r.order.mu.Lock()
	r.body = append(r.body, p...)
	r.order.mu.Unlock()
	return r.ResponseWriter.Write(p)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// pipes are connections in memory.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() (net.Conn, error) {
	theirs, ours := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accept:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A route is what happens to one connection of a process.
type route struct {
	Refused error         // instead of a connection
	Delay   time.Duration // before it is there
	Breaks  int           // after so many bytes to the gateway; 0 for never
}

func refusals() []error {
	return []error{
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		&net.DNSError{Err: "no such host", IsNotFound: true},
		&net.DNSError{Err: "try again", IsTemporary: true},
		errors.New("this network has no way out"),
	}
}

// pause waits. In a bubble it takes no time.
func pause(d time.Duration) {
	if d > 0 {
		<-time.NewTimer(d).C
	}
}
