package contract

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cryptogw/gateway"
)

// host is the one that the clients here are told of; the transport leads to
// where a gateway really listens. Its length is the same in every run.
const host = "127.0.0.1:8470"

// A side is where a connection is cut.
type side int

const (
	nowhere      side = iota
	dialling          // before there is a connection; at is how many attempts it hits, below zero for all
	requestRead       // the server stops reading the request
	requestSent       // the network stops carrying the request, or the bytes of TLS before it
	responseSent      // the server stops sending the response
	responseRead      // the network stops carrying the response, or the bytes of TLS before it
)

// A stopper is what ends a call whose connection stalls.
type stopper int

const (
	nobody stopper = iota
	callerCancels
	callerDeadline
	attemptTimeout
	clientTimeout
)

// A history is what the connection was used for before.
type history int

const (
	fresh history = iota
	afterRead
	afterOrder
)

// A framing is how the server says where its answer ends.
type framing int

const (
	byLength framing = iota
	byChunks
	byClosing
)

// A cut is one way in which the connection of a create-invoice call dies: the
// first attempt's, or with always set every attempt's.
type cut struct {
	side    side
	at      int // bytes that pass
	how     manner
	stops   stopper
	history history
	framing framing
	secure  bool
	always  bool
}

func (c cut) String() string {
	return fmt.Sprintf("%s after %d bytes by %v, %s ends a stall, %s, %s, TLS %v, always %v",
		[...]string{"no cut", "dialling cut", "reading the request cut", "carrying the request cut", "sending the response cut", "carrying the response cut"}[c.side],
		c.at, c.how,
		[...]string{"nobody", "the caller's cancel", "the caller's deadline", "the attempt's timeout", "the client's timeout"}[c.stops],
		[...]string{"fresh connection", "connection used by a read", "connection used by an order"}[c.history],
		[...]string{"Content-Length", "chunked", "closed at the end"}[c.framing], c.secure, c.always)
}

const (
	short   = 60 * time.Millisecond // the timeouts that end stalls
	patient = 30 * time.Second      // those that must not be reached
)

// A rawGateway speaks HTTP/1.1 by hand on TCP, remembers what it committed, and
// cuts one call.
type rawGateway struct {
	cut      cut
	listener net.Listener
	saw      *sight
	target   string // the order of the call that is cut

	mu      sync.Mutex
	running bool // the call that is cut is under way
	cuts    int
	lines   []*line
	request []byte // the last whole request of the target
	begin   chan struct{}
	reached chan struct{} // closed when the cut has happened
	struck  func()
	open    sync.WaitGroup // both ends of all connections
}

func newRawGateway(c cut, target string) (*rawGateway, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &rawGateway{cut: c, listener: listener, saw: &sight{}, target: target, begin: make(chan struct{}), reached: make(chan struct{})}
	g.struck = sync.OnceFunc(func() { close(g.reached) })
	g.open.Go(g.accept)
	return g, nil
}

func (g *rawGateway) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(patient)) // a client that never closes is found by it
		g.open.Go(func() { g.serve(conn) })
	}
}

// dial is the way to the gateway, and to no other host.
func (g *rawGateway) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr != host {
		g.saw.remark("I8: another host was contacted: %s", addr)
	}
	if c := g.cut; c.side == dialling && g.started() && g.takeCut(c.at) {
		g.struck()
		if c.how == stall {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, g.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	g.open.Add(1)
	l := newLine(conn, g.struck, g.open.Done)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, l)
	if g.running {
		g.arm(l)
	}
	return l, nil
}

// start says that the call that is cut begins now.
func (g *rawGateway) start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = true
	for _, l := range g.lines {
		g.arm(l)
	}
	close(g.begin)
}

func (g *rawGateway) started() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// arm prepares the client's end for the cut. The lock is held.
func (g *rawGateway) arm(l *line) {
	up, down := -1, -1
	if strikes := g.cuts == 0 || g.cut.always; strikes && g.cut.side == requestSent {
		up = g.cut.at
		g.cuts++
	} else if strikes && g.cut.side == responseRead {
		down = g.cut.at
		g.cuts++
	}
	l.arm(up, down, g.cut.how)
}

// takeCut reports whether an attempt is to be cut, out of so many.
func (g *rawGateway) takeCut(most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cuts >= most && most >= 0 && !g.cut.always {
		return false
	}
	g.cuts++
	return true
}

// serve answers the requests of one connection, or cuts it.
func (g *rawGateway) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	stream := conn
	if g.cut.secure {
		stream = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate()}, MinVersion: tls.VersionTLS12})
	}
	if !g.started() {
		req, whole := receive(stream, patientLimit)
		if !whole {
			return
		}
		_, _ = stream.Write(answerTo(req, byLength))
	}
	<-g.begin
	for g.exchange(stream) {
	}
}

// patientLimit is more than any request has.
const patientLimit = 1 << 20

// exchange reads a request and answers it, as far as the cut lets it. It
// reports whether the connection goes on.
func (g *rawGateway) exchange(conn net.Conn) bool {
	limit, cut := patientLimit, false
	if g.cut.side == requestRead && g.takeCut(1) {
		limit, cut = g.cut.at, true
	}
	req, whole := receive(conn, limit)
	if whole {
		g.commit(req)
	}
	if cut {
		req = append(req, g.die(conn)...)
	}
	g.saw.arrive(len(bodyOf(req)))
	if cut || !whole {
		return false
	}
	answer := answerTo(req, g.cut.framing)
	if g.cut.side == responseSent && g.takeCut(1) {
		_, _ = conn.Write(answer[:g.cut.at])
		g.die(conn)
		return false
	}
	_, _ = conn.Write(answer)
	return g.cut.framing != byClosing
}

func (g *rawGateway) commit(req []byte) {
	if order := orderIn(bodyOf(req)); order != g.target {
		g.saw.remark("a request for the order %q: %q", order, req)
		return
	}
	g.saw.commit()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.request = req
}

// die ends a connection in the manner of the cut. It returns what the client
// still sent.
func (g *rawGateway) die(conn net.Conn) (late []byte) {
	g.struck()
	switch g.cut.how {
	case rst:
		reset(conn)
		return nil
	case fin:
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	late, err := io.ReadAll(conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		g.saw.remark("I7: the client never closed a connection that had died")
	}
	return late
}

// close waits until all connections are gone. It must come after the client's
// idle ones have been closed.
func (g *rawGateway) close() {
	_ = g.listener.Close()
	g.open.Wait()
}

// receive reads a request, or so many bytes of it.
func receive(conn io.Reader, limit int) (req []byte, whole bool) {
	for !complete(req) {
		buffer := make([]byte, min(limit-len(req), 4096))
		if len(buffer) == 0 {
			return req, false
		}
		n, err := conn.Read(buffer)
		req = append(req, buffer[:n]...)
		if err != nil {
			return req, complete(req)
		}
	}
	return req, true
}

// complete reports whether a request is whole.
func complete(req []byte) bool {
	head, body, found := bytes.Cut(req, []byte("\r\n\r\n"))
	if !found {
		return false
	}
	_, after, _ := strings.Cut(string(head), "\r\nContent-Length: ")
	length, _, _ := strings.Cut(after, "\r\n")
	n, _ := strconv.Atoi(length)
	return len(body) >= n
}

func bodyOf(req []byte) []byte {
	_, body, _ := bytes.Cut(req, []byte("\r\n\r\n"))
	return body
}

// answerTo is the whole answer to a request, as it stands on the wire.
func answerTo(req []byte, how framing) []byte {
	body := enveloped(withdrawalResult)
	if bytes.HasPrefix(req, []byte("POST ")) {
		body = enveloped(invoiceResult(orderIn(bodyOf(req))))
	}
	const head = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
	switch how {
	case byChunks:
		half := len(body) / 2
		return fmt.Appendf(nil, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
			head, half, body[:half], len(body)-half, body[half:])
	case byClosing:
		return fmt.Appendf(nil, "%sConnection: close\r\n\r\n%s", head, body)
	default:
		return fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
	}
}

// transport is a caller's own, with a single connection to the gateway.
func (g *rawGateway) transport() *http.Transport {
	t := &http.Transport{DialContext: g.dial, MaxConnsPerHost: 1}
	if g.cut.secure {
		t.TLSClientConfig = trusting()
		t.TLSClientConfig.CurvePreferences = []tls.CurveID{tls.CurveP256} // a short handshake
	}
	return t
}

func (g *rawGateway) url() string {
	if g.cut.secure {
		return "https://" + host + "/merchant"
	}
	return "http://" + host + "/merchant"
}

// warm uses the connection once before the call that is cut.
func (g *rawGateway) warm(ctx context.Context, transport *http.Transport) error {
	client, err := gateway.New(g.url(), canary, gateway.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return err
	}
	switch g.cut.history {
	case afterRead:
		_, err = client.Withdrawal(ctx, withdrawalID)
	case afterOrder:
		_, err = client.CreateInvoice(ctx, order("earlier"))
	}
	return err
}
