package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// A side is where a connection is cut.
type side int

const (
	nowhere      side = iota
	dialing           // before there is a connection; at is how many attempts it hits, below zero for all
	requestRead       // the server stops reading the request
	requestSent       // the network stops carrying the request, or the bytes of TLS before it
	responseSent      // the server stops sending the response
	responseRead      // the network stops carrying the response, or the bytes of TLS before it
)

// An endedBy is what ends a call whose connection stalls.
type endedBy int

const (
	nobody endedBy = iota
	callerCancels
	callerDeadline
	attemptTimeout
	clientTimeout
)

// A priorUse is what the connection was used for before.
type priorUse int

const (
	fresh priorUse = iota
	afterRead
	afterOrder
)

// A framing is how the server marks the end of its response.
type framing int

const (
	byLength framing = iota
	byChunks
	byClosing
)

// A cut is one way in which the connection of a create-invoice call breaks: the
// first attempt's, or with always set every attempt's.
type cut struct {
	side    side
	at      int // bytes that pass
	how     faultserver.Manner
	ends    endedBy
	used    priorUse
	framing framing
	secure  bool
	always  bool
}

func (c cut) String() string {
	return fmt.Sprintf("%s after %d bytes by %v, %s ends a stall, %s, %s, TLS %v, always %v",
		[...]string{"no cut", "dialing cut", "reading the request cut", "carrying the request cut", "sending the response cut", "carrying the response cut"}[c.side],
		c.at, c.how,
		[...]string{"nobody", "the caller's cancel", "the caller's deadline", "the attempt's timeout", "the client's timeout"}[c.ends],
		[...]string{"fresh connection", "connection used by a read", "connection used by an order"}[c.used],
		[...]string{"Content-Length", "chunked", "closed at the end"}[c.framing], c.secure, c.always)
}

// A cutServer speaks HTTP/1.1 byte by byte, records what it committed, and cuts
// one call.
type cutServer struct {
	*faultserver.Server
	cut cut

	mu      sync.Mutex
	started bool // the call that is cut is under way
	cuts    int
	conns   []*faultserver.BreakingConn
	request []byte // the last whole request of the call.Target
	begin   chan struct{}
	reached chan struct{} // closed when the cut has happened
	reach   func()
}

func newCutServer(c cut) (*cutServer, error) {
	s := &cutServer{Server: faultserver.New(nil), cut: c, begin: make(chan struct{}), reached: make(chan struct{})}
	s.reach = sync.OnceFunc(func() { close(s.reached) })
	s.Handler, s.OnDial, s.WrapClient, s.Timeout = s.serve, s.dial, s.wrap, patient
	return s, s.Listen(context.Background())
}

// dial fails the dial, if that is the cut.
func (s *cutServer) dial(ctx context.Context, _ int) error {
	if s.cut.side != dialing || !s.isStarted() || !s.takeCut(s.cut.at) {
		return nil
	}
	s.reach()
	if s.cut.how == faultserver.Stall {
		<-ctx.Done()
		return &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func (s *cutServer) wrap(conn net.Conn, _ int) net.Conn {
	c := faultserver.NewBreakingConn(conn, s.reach)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	if s.started {
		s.arm(c)
	}
	return c
}

// start begins the call that is cut.
func (s *cutServer) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	for _, c := range s.conns {
		s.arm(c)
	}
	close(s.begin)
}

func (s *cutServer) isStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// arm prepares the client's end for the cut. The lock is held.
func (s *cutServer) arm(c *faultserver.BreakingConn) {
	at := faultserver.Break{Up: faultserver.Unlimited, Down: faultserver.Unlimited, Manner: s.cut.how}
	if due := s.cuts == 0 || s.cut.always; due && s.cut.side == requestSent {
		at.Up = s.cut.at
		s.cuts++
	} else if due && s.cut.side == responseRead {
		at.Down = s.cut.at
		s.cuts++
	}
	c.Arm(at)
}

// takeCut reports whether an attempt is to be cut, out of so many.
func (s *cutServer) takeCut(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cuts >= most && most >= 0 && !s.cut.always {
		return false
	}
	s.cuts++
	return true
}

// serve responds to the requests of one connection, or cuts it.
func (s *cutServer) serve(c *faultserver.Conn) {
	if s.cut.secure {
		c.Conn = tls.Server(c.Conn, certificates().Server())
	}
	if !s.isStarted() {
		req, whole := c.ReadBytes(maxRequest)
		if !whole {
			return
		}
		_, _ = c.Write(responseTo(req, byLength))
	}
	<-s.begin
	for s.exchange(c) {
	}
}

// maxRequest is more than any request has.
const maxRequest = 1 << 20

// exchange reads a request and responds to it, as far as the cut allows. It
// reports whether the connection goes on.
func (s *cutServer) exchange(c *faultserver.Conn) bool {
	limit, cut := maxRequest, false
	if s.cut.side == requestRead && s.takeCut(1) {
		limit, cut = s.cut.at, true
	}
	req, whole := c.ReadBytes(limit)
	if whole {
		s.commit(req)
	}
	if cut {
		req = append(req, s.breakOff(c)...)
	}
	s.Record.Arrived(len(faultserver.Body(req)), whole)
	if cut || !whole {
		return false
	}
	response := responseTo(req, s.cut.framing)
	if s.cut.side == responseSent && s.takeCut(1) {
		_, _ = c.Write(response[:s.cut.at])
		s.breakOff(c)
		return false
	}
	_, _ = c.Write(response)
	return s.cut.framing != byClosing
}

func (s *cutServer) commit(req []byte) {
	if order := call.OrderIn(faultserver.Body(req)); order != call.Target {
		s.Record.Violation("a request for the order %q: %q", order, req)
		return
	}
	s.Record.Committed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request = req
}

// breakOff ends a connection in the manner of the cut. It returns what the
// client still sent.
func (s *cutServer) breakOff(c *faultserver.Conn) (late []byte) {
	s.reach()
	if s.cut.how != faultserver.Stall && !c.BreakOff(s.cut.how) { // a server that stalls reads on
		return nil
	}
	late, err := io.ReadAll(c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		s.Record.Violation("the client never closed a connection that had broken")
	}
	return late
}

// responseTo is the whole response to a request, as it stands on the wire.
func responseTo(req []byte, how framing) []byte {
	body := call.Enveloped(call.WithdrawalResult)
	if bytes.HasPrefix(req, []byte("POST ")) {
		body = call.Enveloped(call.InvoiceResult(call.OrderIn(faultserver.Body(req))))
	}
	head := faultserver.Head(201, "Content-Type: application/json")
	switch how {
	case byChunks:
		half := len(body) / 2
		return fmt.Appendf(nil, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
			head, half, body[:half], len(body)-half, body[half:])
	case byClosing:
		return fmt.Appendf(nil, "%sConnection: close\r\n\r\n%s", head, body)
	default:
		return []byte(faultserver.WithLength(head, body))
	}
}

// transport is a caller's own, with a single connection to the gateway.
func (s *cutServer) transport() http.RoundTripper {
	t := &http.Transport{DialContext: s.DialContext, MaxConnsPerHost: 1}
	if s.cut.secure {
		t.TLSClientConfig = certificates().Client()
		t.TLSClientConfig.CurvePreferences = []tls.CurveID{tls.CurveP256} // a short handshake
	}
	if s.cut.used == afterRead || s.cut.used == afterOrder {
		return wrapper{t} // over an http.Transport, an invoice has a connection of its own
	}
	return t
}

func (s *cutServer) url() string {
	if s.cut.secure {
		return "https://" + call.Host + "/merchant"
	}
	return "http://" + call.Host + "/merchant"
}

// warm uses the connection before the call that is cut.
func (s *cutServer) warm(ctx context.Context, transport http.RoundTripper) error {
	client, err := gateway.New(s.url(), canary, gateway.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return err
	}
	switch s.cut.used {
	case afterRead:
		_, err = client.Withdrawal(ctx, call.WithdrawalID)
	case afterOrder:
		_, err = client.CreateInvoice(ctx, call.Order("earlier"))
	}
	return err
}
