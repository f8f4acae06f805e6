package attempt

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// maxConnections is how many new connections an exchange may use. net/http moves a request to another one as often
// as the peer asks for it.
const maxConnections = 3

// An exchange is a request that an attempt sends to the gateway through [Pools]. A middleware may make
// an attempt of several.
type exchange struct {
	attempt   *attempt
	isInvoice bool
	pool      *pool
	transport *http.Transport // of the pool
	late      *time.Timer     // leaves the connection of an invoice that takes long; nil for a read

	connections atomic.Int32 // new ones that were used
	connected   atomic.Bool
	http2       atomic.Bool  // the connection has streams, which tell whose response it is
	wrote       atomic.Bool  // the header was written
	early       atomic.Bool  // the response began before that
	isSick      atomic.Bool  // its status says that the host does not work
	headers     atomic.Int32 // to the gateway that the RoundTripper of a caller has begun to write

	hooks httptrace.ClientTrace
}

// phases returns hooks that note how far the attempt comes.
func (e *exchange) phases() *httptrace.ClientTrace {
	a := e.attempt
	e.hooks = httptrace.ClientTrace{
		GetConn:           func(string) { a.reach(Dial) },
		TLSHandshakeStart: func() { a.reach(TLS) },
		GotConn:           func(httptrace.GotConnInfo) { a.reach(Write) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				a.reach(Wait)
			}
		},
	}
	return &e.hooks
}

// watched returns a context with hooks for a RoundTripper that decides about connections itself. They see a write
// that it sends twice: it writes a header to the gateway again, and the body was read.
func (e *exchange) watched(ctx context.Context) context.Context {
	a, hooks := e.attempt, e.phases()
	if !a.isWrite {
		return httptrace.WithClientTrace(ctx, hooks)
	}
	hooks.WroteHeaderField = func(name string, values []string) {
		isToGateway := (name == "Host" || name == ":authority") && len(values) == 1 && strings.EqualFold(values[0], a.host)
		if isToGateway && e.headers.Add(1) > 1 && a.body.isRead() {
			a.twice.Store(true)
		}
	}
	return httptrace.WithClientTrace(ctx, hooks)
}

// traced returns a context with the hooks of the exchange.
func (e *exchange) traced(ctx context.Context) context.Context {
	a, hooks := e.attempt, e.phases()
	hooks.GetConn = func(string) {
		a.reach(Dial)
		if e.connections.Load() >= maxConnections {
			a.moved.Store(true)
			a.cancel()
		}
	}
	hooks.GotConn = func(info httptrace.GotConnInfo) {
		a.reach(Write)
		if !info.Reused {
			e.connections.Add(1)
		}
		e.connected.Store(true)
		e.http2.Store(isHTTP2(e.transport, info.Conn))
	}
	if a.isWrite {
		hooks.WroteHeaders = func() { e.wrote.Store(true) }
		hooks.GotFirstResponseByte = func() {
			if !e.wrote.Load() {
				e.early.Store(true)
			}
		}
	}
	return httptrace.WithClientTrace(ctx, hooks)
}

// isHTTP2 reports whether a connection of t speaks HTTP/2. The version that a response names itself proves
// nothing: a peer of HTTP/1 can write another one.
func isHTTP2(t *http.Transport, conn net.Conn) bool {
	if secure, ok := conn.(interface{ ConnectionState() tls.ConnectionState }); ok {
		return secure.ConnectionState().NegotiatedProtocol == "h2"
	}
	return t.Protocols != nil && t.Protocols.UnencryptedHTTP2() && !t.Protocols.HTTP1()
}

// send sends the request of the exchange.
func (e *exchange) send(p *Pools, req *http.Request) (*http.Response, error) {
	e.pool = p.of(req)
	e.transport = e.pool.current.Load()
	e.attempt.last.Store(e)
	if e.isInvoice {
		e.late = time.AfterFunc(patience, e.leaveStreams)
	}
	resp, err := e.transport.RoundTrip(req)
	switch {
	case err != nil:
		e.failed(req.Context())
	case isHostFailure(resp.StatusCode):
		e.isSick.Store(true)
		e.leaveStreams()
	}
	if err == nil && e.early.Load() && !e.http2.Load() {
		e.attempt.early.Store(true)
	}
	return resp, err
}

// leaveStreams makes later requests use another connection, if this one has streams.
func (e *exchange) leaveStreams() {
	if e.http2.Load() {
		e.pool.leave(e.transport, true)
	}
}

// answered makes later requests use other connections if the response came from a sick host, whose connection is idle
// by now over HTTP/1.1, or was not whole.
func (e *exchange) answered(ctx context.Context, lost error) {
	switch {
	case e.isSick.Load():
		e.pool.leave(e.transport, e.http2.Load())
	case lost != nil && !errors.Is(lost, ErrTooLarge):
		e.failed(ctx)
	}
}

// failed makes later requests use other connections, unless the exchange was cancelled.
func (e *exchange) failed(ctx context.Context) {
	if !e.attempt.isCancelled(ctx) {
		e.pool.leave(e.transport, e.http2.Load())
	}
}

// end closes the connection of the exchange if it was left, and carries no other request.
func (e *exchange) end() {
	if e.late != nil {
		e.late.Stop()
	}
	if e.pool.current.Load() != e.transport {
		drain(e.transport)
	}
}
