package contract

import (
	"context"
	"flag"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

var shareCalls = flag.Int("share.calls", 25, "how many invoices TestUnknownShare creates in each case")

// A design is how the connection of an invoice comes about.
type design struct {
	name     string
	protocol string
	prepares bool // PrepareInvoice, when the page is shown
	shares   bool // the connection of the reads
}

func designs() []design {
	return []design{
		{"HTTP/1.1, a new connection", "http/1.1", false, false},
		{"HTTP/1.1, prepared", "http/1.1", true, false},
		{"HTTP/2, of the invoices", "h2", false, false},
		{"HTTP/2, prepared", "h2", true, false},
		{"HTTP/2, shared with reads", "h2", false, true},
	}
}

const (
	shareDelay = 50 * time.Millisecond // of the link, in each direction
	shareLife  = 5 * time.Second       // of a connection, on average
)

// TestUnknownShare counts the unknown outcomes against a server whose connections end at
// random while no request is on them, over a link of 100 ms: they are closed, they go away,
// which is a GOAWAY over HTTP/2 and a Shutdown of net/http over HTTP/1.1, or they vanish
// without a packet. It prints the figures of docs/money.md:
//
//	go test -run TestUnknownShare -v . -share.calls 1000
func TestUnknownShare(t *testing.T) {
	certificates()
	unknown := map[string]int{}
	var mu sync.Mutex
	t.Run("each", func(t *testing.T) {
		for _, d := range designs() {
			for _, end := range []string{"closes", "goes away", "vanishes"} {
				t.Run(d.name+" "+end, func(t *testing.T) {
					t.Parallel()
					n := 0
					synctest.Test(t, func(t *testing.T) { n = d.count(t, end, *shareCalls) })
					t.Logf("%-28s %-10s %4.1f %% unknown", d.name, end, 100*float64(n)/float64(*shareCalls))
					mu.Lock()
					defer mu.Unlock()
					unknown[d.name+" "+end] = n
				})
			}
		}
	})
	for prepared, without := range map[string]string{
		"HTTP/1.1, prepared closes":  "HTTP/1.1, a new connection closes",
		"HTTP/2, prepared closes":    "HTTP/2, of the invoices closes",
		"HTTP/2, prepared goes away": "HTTP/2, of the invoices goes away",
	} {
		chance := 4 * math.Sqrt(float64(unknown[without])+1)
		assert.LessOrEqual(t, float64(unknown[prepared]), float64(unknown[without])+chance, prepared)
	}
}

// count shows a page, and creates an invoice up to 12 seconds later, so many times. It
// returns how many outcomes were unknown.
func (d design) count(t *testing.T, end string, calls int) (unknown int) {
	s := &mortalServer{end: end, protocol: d.protocol, random: rand.New(rand.NewPCG(1, 2))}
	transport := &http.Transport{
		DialContext: s.dial, TLSClientConfig: certificates().Client(), ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	caller := &http.Client{Transport: sharing(transport)}
	if !d.shares {
		invoices := transport.Clone()
		invoices.IdleConnTimeout = 2 * time.Second // as the client's own
		caller.Transport = gateway.InvoiceTransport(invoices)
	}
	client, err := gateway.New("https://"+host+"/merchant", canary, gateway.WithHTTPClient(caller), gateway.WithUnknownLimit(0))
	assert.NoError(t, err)
	for n := range calls {
		_, _ = client.Withdrawal(t.Context(), withdrawalID) // what the page needs; it keeps a connection warm
		if d.prepares {
			_ = client.PrepareInvoice(t.Context())
		}
		time.Sleep(time.Duration(s.draw(float64(12 * time.Second))))
		order := orderNumber(n)
		r := create(t.Context(), client, order, s.records.of(order))
		assert.Empty(t, r.violations())
		if r.outcome() == gateway.OutcomeUnknown {
			unknown++
		}
	}
	caller.CloseIdleConnections()
	transport.CloseIdleConnections()
	s.close()
	return unknown
}

// A mortalServer creates every invoice, over a slow link. Each of its connections ends at
// random, when no request is on it.
type mortalServer struct {
	end, protocol string
	records       ledger

	mu     sync.Mutex
	random *rand.Rand
	ends   []func()
	links  sync.WaitGroup
}

// draw draws a number below n.
func (s *mortalServer) draw(n float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64() * n
}

// dial connects after a round trip, which TCP takes.
func (s *mortalServer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := wait(ctx, 2*shareDelay); err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	far, server := net.Pipe()
	m := &mortal{server: s}
	s.relay(near, far, &m.lost)
	s.relay(far, near, &m.lost)
	m.serve(server)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, func() { _, _, _ = near.Close(), far.Close(), server.Close() })
	return client, nil
}

// relay carries what is written to one end of a link to the other, later, until it is lost.
func (s *mortalServer) relay(from, to net.Conn, lost *atomic.Bool) {
	type packet struct {
		at   time.Time
		data []byte // nil for the end
	}
	packets := make(chan packet, 1000)
	s.links.Go(func() {
		defer close(packets)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if packets <- (packet{time.Now().Add(shareDelay), data[:n]}); err != nil {
				return
			}
		}
	})
	s.links.Go(func() {
		for p := range packets {
			time.Sleep(time.Until(p.at))
			if !lost.Load() {
				_, _ = to.Write(p.data)
			}
		}
		if !lost.Load() {
			_ = to.Close()
		}
	})
}

func (s *mortalServer) close() {
	s.mu.Lock()
	ends := s.ends
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
	s.links.Wait()
}

// A mortal is a connection that ends at random.
type mortal struct {
	server   *mortalServer
	http     http.Server
	requests atomic.Int32 // on it
	lost     atomic.Bool
}

func (m *mortal) serve(conn net.Conn) {
	s := m.server
	config := certificates().Server(s.protocol)
	config.SessionTicketsDisabled = true // both ends of a net.Pipe would write at the same time
	m.http = http.Server{Handler: m, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	one := make(chan net.Conn, 1)
	one <- conn
	listener := &oneConn{conns: one, closed: make(chan struct{})}
	s.links.Go(func() { _ = m.http.ServeTLS(listener, "", "") })
	life := time.Duration(-math.Log(1-s.draw(1)) * float64(shareLife))
	s.links.Go(func() {
		for time.Sleep(life); m.requests.Load() > 0; {
			time.Sleep(time.Millisecond)
		}
		switch s.end {
		case "vanishes":
			m.lost.Store(true)
		case "goes away":
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = m.http.Shutdown(ctx)
		}
		if s.end != "vanishes" {
			_ = conn.Close()
		}
		_ = listener.Close()
	})
}

func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)
	defer m.requests.Add(-1)
	body, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost {
		_, _ = io.WriteString(w, enveloped(withdrawalResult))
		return
	}
	order := orderIn(body)
	m.server.records.of(order).Arrived(len(body), err == nil)
	if err == nil {
		m.server.records.of(order).Committed()
		_, _ = io.WriteString(w, enveloped(invoiceResult(order)))
	}
}

// A oneConn is a listener that accepts one connection.
type oneConn struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
