package gatewaytest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// prefix is the path under which the service is mounted, so that a client that
// forgets the path of its base URL fails loudly.
const prefix = "gateway"

// A Server is a gateway that lives in memory. It is made by [NewServer], and then
// listens on a loopback port, or by [NewMemoryServer], and then needs no network.
// It is safe for concurrent use.
type Server struct {
	// URL is the base URL of the service, of the form http://127.0.0.1:port/gateway
	// with no trailing slash, or http://localhost/gateway without a network. It is
	// for reading: changing it changes nothing.
	URL string

	// APIKey is the one key that the server accepts. It is made anew for every
	// server, and is for reading: changing it changes nothing. The journal
	// and every printed form of the server hide it.
	APIKey string `json:"-"`

	*state
}

// The state of a server stands behind a pointer, so that a copy of a Server is
// the same server, and hides its key just as well.
type state struct {
	key     string // what APIKey was at the start
	redact  redactor
	http    *http.Server
	dial    func(context.Context) (net.Conn, error) // connects to this server
	closing chan struct{}                           // closed by Close: releases the handlers that wait
	once    sync.Once                               // closes once
	served  chan struct{}                           // closed when the accept loop has ended
	conns   sync.WaitGroup                          // open connections; added to by the accept loop only

	mu          sync.Mutex    // guards what follows; never held while the network is used
	ahead       time.Duration // of the clock, before time.Now
	limit       limit
	journal     []*Request
	troubles    []*injection
	shapes      map[string]Shape
	catalogue   []CoinNetwork
	rates       []Rate
	balances    []BalanceEntry
	withdrawals []*withdrawal
	invoices    []Invoice
}

// NewServer starts a server on a loopback port and returns it. The caller calls
// [Server.Close] when done. Like its namesake in net/http/httptest it panics
// when it cannot listen.
func NewServer() *Server {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("gatewaytest: cannot listen on a loopback port: %v", err))
	}
	return newServer("http://"+listener.Addr().String(), listener, func(ctx context.Context) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, listener.Addr().Network(), listener.Addr().String())
	})
}

// newServer starts a server on a listener that dial leads to.
func newServer(origin string, listener net.Listener, dial func(context.Context) (net.Conn, error)) *Server {
	key := newKey()
	s := &Server{URL: origin + "/" + prefix, APIKey: key}
	s.state = &state{
		key:         key,
		redact:      newRedactor(key),
		dial:        dial,
		closing:     make(chan struct{}),
		served:      make(chan struct{}),
		shapes:      map[string]Shape{},
		catalogue:   seedCatalogue(),
		rates:       seedRates(),
		balances:    seedBalances(),
		withdrawals: seedWithdrawals(),
	}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ConnState:         s.count,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ErrServerClosed, in the end
	}()
	return s
}

// Close releases stalled requests, closes every connection and waits until all
// of them have been given up. What the server recorded stays readable. Calling
// Close again is harmless.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		_ = s.http.Close()
		<-s.served
		_ = s.http.Close() // again, for a connection that was being accepted
		s.conns.Wait()
	})
}

// String names the server by its URL and leaves the key out. It has a value
// receiver, unlike the rest, for the sake of a copy that is printed.
func (s Server) String() string {
	return fmt.Sprintf("gatewaytest.Server{URL:%q, APIKey:%q}", s.URL, redacted)
}

// Format prints what [Server.String] returns, whatever the verb, so that a
// server printed by accident does not show its key.
func (s Server) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, s.String())
}

// count follows the connections, for Close to wait for.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.conns.Add(1)
	}
	if state == http.StateClosed { // nothing here hijacks, so every connection gets there
		s.conns.Done()
	}
}

// serve takes one request from its arrival to its answer, or to its trouble.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := s.route(r)
	entry, trouble := s.arrive(c)
	c.readBody()
	s.identify(c, entry)

	var a answer
	if trouble.acts {
		a = s.carryOut(c)
	}
	x := exchange{w: w, r: r, closing: s.closing, answered: func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		entry.Status = status
	}}
	w.Header().Set("Date", s.Now().UTC().Format(http.TimeFormat))
	if trouble.retryAfter != "" {
		w.Header().Set("Retry-After", trouble.retryAfter)
	}
	trouble.play(x, a)
}

// newKey makes a key that no one else has.
func newKey() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	return "test-key-" + hex.EncodeToString(random)
}

// newID makes an identifier in UUID format at random.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return formatID(b)
}

// formatID writes sixteen bytes as a version 4 UUID.
func formatID(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
