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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// A protocol is what the connection carries.
type protocol int

const (
	plain    protocol = iota // HTTP/1.1
	inPieces                 // HTTP/1.1, whose header leaves before the body is read
	inTLS                    // HTTP/1.1 in TLS
	inHTTP2                  // HTTP/2 without TLS
)

// A cut is one way in which the connection of a create-invoice call breaks: the first attempt's, or with
// always set every attempt's.
type cut struct {
	side    side
	proto   protocol
	always  bool
	at      int // bytes that pass
	how     faultserver.Manner
	ends    endedBy
	used    priorUse
	framing framing
}

func (c cut) String() string {
	return fmt.Sprintf("%s after %d bytes by %v, %s ends a stall, %s, %s, %s, always %v",
		[...]string{"no cut", "dialing cut", "reading the request cut", "carrying the request cut", "sending the response cut", "carrying the response cut"}[c.side],
		c.at, c.how,
		[...]string{"nobody", "the caller's cancel", "the caller's deadline", "the attempt's timeout", "the client's timeout"}[c.ends],
		[...]string{"fresh connection", "connection used by a read", "connection used by an order"}[c.used],
		[...]string{"Content-Length", "chunked", "closed at the end"}[c.framing],
		[...]string{"HTTP/1.1", "HTTP/1.1 in pieces", "TLS", "HTTP/2"}[c.proto], c.always)
}

// lengths are how many bytes a call without a cut carries, by protocol.
type lengths struct {
	header   int // of the request, over HTTP/1.1
	up, down map[protocol]int
}

// A family of cuts has one for each byte.
type family struct {
	name string
	cut
}

func families() []family {
	return []family{
		{"the server stops reading at every byte of the request", cut{side: requestRead}},
		{"the network stops carrying at every byte of the request", cut{side: requestSent}},
		{"the network stops carrying at every byte of the request, always", cut{side: requestSent, always: true}},
		{"the network stops carrying at every byte of a request whose header leaves first", cut{side: requestSent, proto: inPieces}},
		{"the server stops sending at every byte of the response", cut{side: responseSent}},
		{"the dial fails once, twice and thrice", cut{side: dialing}},
		{"the network stops carrying at every byte of TLS on the way up, once", cut{side: requestSent, proto: inTLS}},
		{"the network stops carrying at every byte of TLS on the way down, always", cut{side: responseRead, proto: inTLS, always: true}},
		{"the network stops carrying at every byte of HTTP/2 on the way up, once", cut{side: requestSent, proto: inHTTP2}},
		{"the network stops carrying at every byte of HTTP/2 on the way down, always", cut{side: responseRead, proto: inHTTP2, always: true}},
	}
}

// cuts are all cuts of c's family: in every manner, a stall ended by everybody. Costly cuts stall for one of them.
func (c cut) cuts(l lengths) (all []cut) {
	framings, uses, ends := []framing{byLength}, []priorUse{fresh}, []endedBy{callerCancels, callerDeadline, attemptTimeout, clientTimeout}
	if c.side == responseSent {
		framings = []framing{byLength, byChunks, byClosing}
	}
	if c.side != dialing && c.proto == plain && !c.always {
		uses = []priorUse{fresh, afterRead, afterOrder}
	}
	if c.proto != plain {
		ends = []endedBy{attemptTimeout}
	}
	for _, c.framing = range framings {
		last := l.up[c.proto]
		switch c.side {
		case dialing:
			last = 3
		case responseRead:
			last = l.down[c.proto]
		case responseSent:
			last = len(responseTo(sampleRequest(), c.framing))
		}
		for c.at = range last + 1 {
			for _, c.used = range uses {
				if c.used == afterOrder && c.at%2 == 1 || c.used == afterRead && c.at%2 == 0 {
					continue // the two kinds of used connection alternate
				}
				for _, c.how = range []faultserver.Manner{faultserver.FIN, faultserver.RST} {
					all = append(all, c)
				}
				stall := c
				stall.how = faultserver.Stall
				for _, stall.ends = range ends {
					all = append(all, stall)
				}
			}
		}
	}
	return all
}

// TestCreateInvoice_CutAtEveryByte cuts the connection at every byte of a create-invoice, both ways, in every
// manner, and compares the outcome that the client reports with what the server saw.
// I-123
func TestCreateInvoice_CutAtEveryByte(t *testing.T) {
	certificates()
	check := call.Leftovers(t)
	all, measured := &call.Summary{}, uncut(t)
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			one, jobs := &call.Summary{}, []func(){}
			cuts := f.cuts(measured)
			for _, cut := range cuts {
				jobs = append(jobs, func() { cut.run(one, measured) })
			}
			inParallel(48, jobs)
			one.Verify(t)
			t.Logf("%v", one)
			assert.Len(t, cuts, one.Total())
			all.Join(one)
		})
	}
	t.Logf("all cuts: %v", all)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "no cut ended as %v", outcome)
	}
	assert.Zero(t, all.Count(gateway.OutcomeRejected), "a cut is no refusal")
	check()
}

// uncut takes the lengths of a call without a cut.
func uncut(t *testing.T) lengths {
	l := lengths{up: map[protocol]int{}, down: map[protocol]int{}}
	for _, proto := range []protocol{plain, inPieces, inTLS, inHTTP2} {
		s, r := cut{proto: proto}.call(func(format string, args ...any) { t.Errorf(format, args...) })
		require.Empty(t, r.Violations())
		require.NoError(t, r.Err)
		require.Equal(t, 1, r.Record.Seen().Bodies)
		l.up[proto], l.down[proto] = s.conns[0].Carried()
		if proto == plain {
			l.header = len(s.request) - len(faultserver.Body(s.request))
			require.Len(t, s.request, l.up[plain])
			require.Len(t, responseTo(sampleRequest(), byLength), l.down[plain])
		}
	}
	t.Logf("%d bytes of header; by protocol, bytes up %v and down %v", l.header, l.up, l.down)
	return l
}

// run makes the call that the cut is for, and counts how it ended.
func (c cut) run(s *call.Summary, l lengths) {
	var more []string
	_, r := c.call(func(format string, _ ...any) { more = append(more, format) })
	if want, certain := c.certain(l); certain && r.Outcome() != want {
		more = append(more, "the outcome had to be "+want.String())
	}
	s.Add(c.String(), r, more...)
}

// certain is the outcome of a cut that leaves no doubt.
func (c cut) certain(l lengths) (want gateway.Outcome, certain bool) {
	whole := c.side == responseSent && c.at == len(responseTo(sampleRequest(), c.framing))
	stalls, isHTTP1 := c.how == faultserver.Stall, c.proto == plain || c.proto == inPieces
	switch {
	case whole && (c.how == faultserver.FIN || stalls && c.framing != byClosing && c.ends != callerDeadline):
		return gateway.OutcomeSucceeded, c.how == faultserver.FIN // a stall may be ended before the response was read
	case c.side == responseSent && !whole && !stalls:
		return gateway.OutcomeUnknown, true
	case c.side == requestSent && isHTTP1 && c.at > l.header && c.at < l.up[c.proto] && !stalls:
		return gateway.OutcomeUnknown, true // after the whole request its response may win the race
	case c.side == requestSent && c.proto == inPieces && c.at < l.header && !stalls:
		return gateway.OutcomeSucceeded, true // nothing of the body was read, and the next attempt is whole
	case c.side == requestRead && c.at == l.up[c.proto]:
		return gateway.OutcomeUnknown, !stalls
	case c.side == dialing && c.at >= 3 && !stalls:
		return gateway.OutcomeNotSent, true
	case c.side == dialing && !stalls:
		return gateway.OutcomeSucceeded, true
	default:
		return 0, false
	}
}

// call runs the cut, from a new server until nothing is open.
func (c cut) call(wrong func(string, ...any)) (*cutServer, call.Result) {
	s, err := newCutServer(c)
	if err != nil {
		wrong("no server: " + err.Error())
		return s, call.Result{Record: &s.Record}
	}
	transport := s.transport()
	defer s.close()
	defer (&http.Client{Transport: transport}).CloseIdleConnections() // of a wrapper
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	if c.ends == callerDeadline {
		ctx, cancel = context.WithTimeout(context.Background(), short)
	}
	defer cancel()
	if err := s.warm(context.Background(), transport); err != nil {
		wrong("not warm: " + err.Error())
	}
	client, err := gateway.New(s.url(), canary, c.options(transport)...)
	if err != nil {
		wrong(err.Error())
	}
	defer client.CloseIdleConnections()
	if c.ends == callerCancels {
		go func() {
			select {
			case <-s.reached:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	s.start()
	r := call.Create(ctx, client, call.Target, &s.Record)
	recordHosts(s.Server)
	if c.how != faultserver.Stall && ctx.Err() != nil {
		wrong("the call did not return in time")
	}
	return s, r
}

// options are those of a client whose call is cut.
func (c cut) options(transport http.RoundTripper) []gateway.Option {
	policy := gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond, InvoiceTimeout: patient}
	caller := &http.Client{Transport: transport}
	switch c.ends {
	case attemptTimeout, callerCancels: // which ends no invoice that is being sent
		policy.InvoiceTimeout = short
	case clientTimeout:
		caller.Timeout, policy.InvoiceTimeout = short, 0
	}
	return []gateway.Option{gateway.WithHTTPClient(caller), gateway.WithRetry(policy)}
}

// A cutServer records what it committed, and cuts one call: over HTTP/1.1 it speaks byte by byte.
type cutServer struct {
	*faultserver.Server
	cut   cut
	close func()

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
	s.Handler, s.OnDial, s.WrapClient, s.Timeout, s.close = s.serve, s.dial, s.wrap, patient, s.Server.Close
	if c.proto == inHTTP2 {
		s.close = faultserver.NewHTTP2(s.Server, nil, func(_ bool, body []byte) string {
			s.commit(body)
			return call.Enveloped(call.InvoiceResult(call.OrderIn(body)))
		}).Close
	}
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
	if s.cut.proto == inTLS {
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

// exchange reads a request and responds to it, as far as the cut allows. It reports whether the connection
// goes on.
func (s *cutServer) exchange(c *faultserver.Conn) bool {
	limit, cut := maxRequest, false
	if s.cut.side == requestRead && s.takeCut(1) {
		limit, cut = s.cut.at, true
	}
	req, whole := c.ReadBytes(limit)
	if whole {
		s.keep(req)
		s.commit(faultserver.Body(req))
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

func (s *cutServer) keep(req []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request = req
}

func (s *cutServer) commit(body []byte) {
	if order := call.OrderIn(body); order != call.Target {
		s.Record.Violation("a request for the order %q: %q", order, body)
		return
	}
	s.Record.Committed()
}

// breakOff ends a connection in the manner of the cut. It returns what the client still sent.
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

// sampleRequest is as much of a request as its response depends on.
func sampleRequest() []byte {
	return []byte("POST / HTTP/1.1\r\n\r\n" + `{"apiKey":"` + canary + `","orderId":"` + call.Target + `"}`)
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
	switch s.cut.proto {
	case inPieces:
		t.WriteBufferSize = 16
	case inTLS:
		t.TLSClientConfig = certificates().Client()
		t.TLSClientConfig.CurvePreferences = []tls.CurveID{tls.CurveP256} // a short handshake
	case inHTTP2:
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	if s.cut.used != fresh {
		return wrapper{t} // over an http.Transport, an invoice has a connection of its own
	}
	return t
}

func (s *cutServer) url() string {
	if s.cut.proto == inTLS {
		return "https://" + call.Host + "/merchant"
	}
	return "http://" + call.Host + "/merchant"
}

// warm uses the connection before the call that is cut.
func (s *cutServer) warm(ctx context.Context, transport http.RoundTripper) error {
	if s.cut.used == fresh {
		return nil
	}
	client, err := gateway.New(s.url(), canary, gateway.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return err
	}
	if s.cut.used == afterRead {
		_, err = client.Withdrawal(ctx, call.WithdrawalID)
	} else {
		_, err = client.CreateInvoice(ctx, call.Order("earlier"))
	}
	return err
}
