package gatewaytest

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"
)

// prefix is the path under which the service is mounted, so that a client that
// drops the path of its base URL gets 404.
const prefix = "gateway"

// A Server is a stand-in for the gateway that keeps its state in memory.
// [NewServer] listens on a loopback port, [NewMemoryServer] uses no
// network. The zero Server is not usable. A Server is safe for
// concurrent use.
type Server struct {
	// URL is the base URL of the service, of the form http://127.0.0.1:port/gateway
	// with no trailing slash, or http://localhost/gateway without a network. The
	// server ignores changes to it.
	URL string

	// APIKey is the only key that the server accepts. Without [WithAPIKey] it is random
	// and differs from server to server. The server ignores changes to it. The journal and
	// the printed forms of the server redact it, with one exception: package fmt calls no
	// method of a value in an unexported field, so a struct that holds a copy of a Server
	// there prints the key. Hold the pointer that [NewServer] returns instead, and print the
	// struct with %v: %s and %q follow the pointer.
	APIKey string `json:"-"`

	*state
}

// The state of a server is behind a pointer, so that a copy of a Server is the
// same server and redacts its key as well.
type state struct {
	key       string         // the initial APIKey
	spellings *regexp.Regexp // of the key
	http      *http.Server
	dial      func(context.Context) (net.Conn, error) // connects to this server
	closing   chan struct{}                           // closed by Close, to release handlers that wait
	once      sync.Once                               // guards Close
	served    chan struct{}                           // closed when the accept loop has ended
	conns     sync.WaitGroup                          // open connections; added to by the accept loop only

	mu          sync.Mutex    // guards the fields below; never held during network I/O
	ahead       time.Duration // how far the clock is ahead of time.Now
	limit       limit
	journal     []*Request
	faults      []queuedFault
	results     map[Operation]string // see SetResult
	repeated    RepeatedOrders
	catalog     []CoinNetwork
	rates       []Rate
	balances    []BalanceEntry
	withdrawals []*withdrawal
	invoices    []Invoice
}

// NewServer starts a server on a loopback port and returns it. The caller must
// call [Server.Close] when done. Like its namesake in net/http/httptest,
// NewServer panics if it cannot listen.
func NewServer(opts ...Option) *Server {
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("gatewaytest: cannot listen: %v", err))
	}
	return newServer(opts, "http://"+listener.Addr().String(), listener, func(ctx context.Context) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, listener.Addr().Network(), listener.Addr().String())
	})
}

// newServer starts a server on a listener. dial connects to that listener.
func newServer(opts []Option, origin string, listener net.Listener, dial func(context.Context) (net.Conn, error)) *Server {
	c := config{key: "test-key-" + cryptorand.Text()}
	for _, opt := range opts {
		opt(&c)
	}
	s := &Server{URL: origin + "/" + prefix, APIKey: c.key}
	s.state = &state{
		key:       c.key,
		spellings: spellingsOf(c.key),
		dial:      dial,
		closing:   make(chan struct{}),
		served:    make(chan struct{}),
		results:   map[Operation]string{},
		repeated:  RepeatAgain,
	}
	s.sow(c.seed)
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
		_ = s.http.Serve(listener) // returns ErrServerClosed
	}()
	return s
}

// Close shuts the server down: it releases stalled requests, closes every
// connection and waits until all of them are closed. The journal and the state
// stay readable. Calls of Close after the first do nothing.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		_ = s.http.Close()
		<-s.served
		_ = s.http.Close() // again, for a connection that was being accepted
		s.conns.Wait()
	})
}

// Handler returns the server as an [http.Handler] for the path /gateway of another
// server. Both share one state. [Server.Close] ends requests that wait, but does not
// close the connections of the other server.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// String returns the URL of the server, with its key redacted. It has a value
// receiver, unlike the other methods, so that it applies to copies too.
func (s Server) String() string {
	return fmt.Sprintf("gatewaytest.Server{URL:%q, APIKey:%q}", s.URL, redacted)
}

// Format implements [fmt.Formatter]. It prints the text of [Server.String]
// whatever the verb, so that printing a server never reveals its key.
func (s Server) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, s.String())
}

// count counts the open connections, for Close to wait for.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.conns.Add(1)
	}
	if state == http.StateClosed { // no handler hijacks, so every connection reaches it
		s.conns.Done()
	}
}

// serve handles one request: it records it, carries the operation out unless the
// fault prevents that, and responds as the fault prescribes.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := s.match(r)
	entry, fault := s.record(c)
	c.readBody()
	s.identify(c, entry)
	if fault.respond == nil { // the zero Fault, perhaps with a Retry-After
		fault.carriesOut, fault.respond = true, responder.send
	}
	var resp response
	if fault.carriesOut {
		resp = s.carryOut(c)
	}
	x := responder{w: w, r: r, closing: s.closing, recordStatus: func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		entry.Status = status
	}}
	w.Header().Set("Date", s.Now().UTC().Format(http.TimeFormat))
	if fault.retryAfter != "" {
		w.Header().Set("Retry-After", fault.retryAfter)
	}
	fault.respond(x, resp)
}

// copyOf returns a copy of a list of the state.
func copyOf[T any](s *Server, list *[]T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*list)
}

// newID returns a random identifier in UUID format.
func newID() string {
	var b [16]byte
	_, _ = cryptorand.Read(b[:]) // cannot fail
	return formatID(b)
}

// formatID formats sixteen bytes as a version 4 UUID.
func formatID(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
