package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/h2server"
)

// invoices is how many invoices each kind of stray response is tried with.
const invoices = 300

// strayDelay is how long after a response a stray one follows: the client has read the
// first by then, and may be about to send again.
const strayDelay = 300 * time.Microsecond

// strays are what a server sends that nobody has asked for.
func strays() map[string]string {
	return map[string]string{
		"a refusal":                 faultserver.Response(400, `{"message":"no","result":[],"meta":{}}`),
		"an invoice of another":     faultserver.Response(200, call.Enveloped(call.InvoiceResult("another"))),
		"an invoice of nobody":      faultserver.Response(200, call.Enveloped(`{"id":1}`)),
		"an informational response": "HTTP/1.1 100 Continue\r\n\r\n",
		"half a refusal":            "HTTP/1.1 400 Bad Request\r\nContent-Length: 300\r\n\r\n{\"message\":\"",
		"half a header":             "HTTP/1.1 400 Bad Request\r\nX-Half: ",
	}
}

// A ledger is a server that creates every invoice that it gets, and has a record of
// each order.
type ledger struct {
	mu      sync.Mutex
	records map[string]*faultserver.Record
}

// of returns the record of an order.
func (l *ledger) of(order string) *faultserver.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records == nil {
		l.records = map[string]*faultserver.Record{}
	}
	if l.records[order] == nil {
		l.records[order] = &faultserver.Record{}
	}
	return l.records[order]
}

// respond carries out the next request of a connection, and sends the response to it.
func (l *ledger) respond(c *faultserver.Conn) bool {
	req, whole := c.ReadRequest()
	if !whole {
		return false
	}
	if req.Method != http.MethodPost {
		return c.Send(faultserver.Response(200, call.Enveloped(call.WithdrawalResult)))
	}
	return c.Send(faultserver.Response(201, l.create(req.Body)))
}

// create creates the invoice of a request's body, and returns the response's.
func (l *ledger) create(body []byte) string {
	order := call.OrderIn(body)
	l.of(order).Arrived(len(body), true)
	l.of(order).Committed()
	return call.Enveloped(call.InvoiceResult(order))
}

// strayAfter is a server that sends a stray response a little after each response, when
// the next request may be under way.
func (l *ledger) strayAfter(stray string) faultserver.Handler {
	return faultserver.UntilDone(func(c *faultserver.Conn) {
		for l.respond(c) {
			c.Pause(strayDelay)
			c.Send(stray)
		}
	})
}

// strayBefore is a server that sends a stray response as soon as it sees that another
// request follows.
func (l *ledger) strayBefore(stray string) faultserver.Handler {
	return faultserver.UntilDone(func(c *faultserver.Conn) {
		for l.respond(c) && c.AwaitRequest() {
			c.Send(stray)
		}
	})
}

// A kind is a kind of transport that keeps the promises for invoices.
type kind struct {
	name      string
	transport func() http.RoundTripper // nil for the client's own
	prepares  bool                     // an invoice, in connect
}

func kinds() []kind {
	return []kind{
		{"the client's own transport", nil, false},
		{"a caller's transport", func() http.RoundTripper { return &http.Transport{} }, false},
		{"a caller's transport with InvoiceTransport", func() http.RoundTripper { return gateway.InvoiceTransport(&http.Transport{}) }, false},
		{"InvoiceTransport without a transport", func() http.RoundTripper { return gateway.InvoiceTransport(nil) }, false},
		{"InvoiceTransport, prepared", func() http.RoundTripper { return gateway.InvoiceTransport(nil) }, true},
	}
}

// A wrapper is a RoundTripper of a caller's around a transport.
type wrapper struct{ *http.Transport }

func wrapped() kind {
	return kind{"a caller's RoundTripper", func() http.RoundTripper { return wrapper{&http.Transport{}} }, false}
}

// connect returns a client of this kind of the server at a URL.
func (k kind) connect(t *testing.T, url string, policy gateway.RetryPolicy, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	policy.BaseDelay, policy.MaxDelay = time.Millisecond, time.Millisecond
	opts = append(opts, gateway.WithRetry(policy))
	if k.transport != nil {
		client := &http.Client{Transport: k.transport()}
		t.Cleanup(client.CloseIdleConnections)
		opts = append(opts, gateway.WithHTTPClient(client))
	}
	client, err := gateway.New(url+"/merchant", canary, opts...)
	require.NoError(t, err)
	if k.prepares {
		_ = client.PrepareInvoice(t.Context()) // the policy may be too short for it
	}
	return client
}

// TestStray has a server send stray responses over HTTP/1.1. None is taken for that to
// an invoice, and no invoice is sent twice.
func TestStray(t *testing.T) {
	for _, k := range kinds() {
		for name, stray := range strays() {
			for when, serve := range map[string]func(l *ledger) faultserver.Handler{
				"a little later":        func(l *ledger) faultserver.Handler { return l.strayAfter(stray) },
				"with the next request": func(l *ledger) faultserver.Handler { return l.strayBefore(stray) },
			} {
				t.Run(k.name+": "+name+" "+when, func(t *testing.T) {
					t.Parallel()
					l, all := &ledger{}, &call.Summary{}
					conns := l.place(t, k, serve(l), all)
					all.Verify(t)
					assert.Equal(t, invoices, all.Count(gateway.OutcomeSucceeded), "%v", all)
					assert.Equal(t, invoices, conns, "each invoice has a connection of its own, which is what it costs")
				})
			}
		}
	}
}

// place creates the invoices, one after the other. It returns how many connections
// they took.
func (l *ledger) place(t *testing.T, k kind, serve faultserver.Handler, all *call.Summary) (conns int) {
	server := listening(t, serve)
	client := k.connect(t, "http://"+server.Addr(), gateway.RetryPolicy{InvoiceTimeout: patient})
	for n := range invoices {
		order := orderNumber(n)
		if k.prepares && n > 0 {
			require.NoError(t, client.PrepareInvoice(t.Context()))
		}
		all.Add(order, call.Create(t.Context(), client, order, l.of(order)))
	}
	server.Close()
	return server.Conns()
}

func orderNumber(n int) string { return fmt.Sprintf("A-%d", n) }

// TestStray_unread has a server send a response on a connection that was prepared, before the
// invoice is created, at once after that: net/http may not have read it when the invoice is due.
// It is never the response to the invoice, which goes on another connection. What is no response,
// as the tickets of TLS, costs no connection.
//
// on one processor net/http has read nothing by then, unless it is given time.
func TestStray_unread(t *testing.T) {
	for scheme, secure := range map[string]func(faultserver.Handler) faultserver.Handler{
		"http": func(h faultserver.Handler) faultserver.Handler { return h },
		"https": func(h faultserver.Handler) faultserver.Handler {
			return faultserver.Secure(certificates().Server("http/1.1"), h)
		},
	} {
		for name, stray := range strays() {
			t.Run(scheme+": "+name, func(t *testing.T) { placeAfterStray(t, scheme, secure, stray, 2*invoices) })
		}
		t.Run(scheme+": nothing", func(t *testing.T) { placeAfterStray(t, scheme, secure, "", invoices) })
	}
}

// placeAfterStray creates the invoices, each when a stray response has been written to the
// connection that was prepared for it. They take so many connections.
func placeAfterStray(t *testing.T, scheme string, secure func(faultserver.Handler) faultserver.Handler, stray string, conns int) {
	l, all, opened := &ledger{}, &call.Summary{}, make(chan *faultserver.Conn, 100)
	server := listening(t, faultserver.UntilDone(secure(func(c *faultserver.Conn) {
		if secured, ok := c.Conn.(*tls.Conn); ok && secured.Handshake() != nil {
			return
		}
		opened <- c
		l.respond(c)
	})))
	transport := gateway.InvoiceTransport(&http.Transport{DialContext: dialer(server.Addr()), TLSClientConfig: certificates().Client()})
	client := kind{transport: func() http.RoundTripper { return transport }}.connect(t, scheme+"://"+faultserver.Host, gateway.RetryPolicy{InvoiceTimeout: patient}, gateway.WithPlainHTTP())
	for n := range invoices {
		require.NoError(t, client.PrepareInvoice(t.Context()))
		(<-opened).Send(stray)
		order := orderNumber(n)
		all.Add(order, call.Create(t.Context(), client, order, l.of(order)))
		for len(opened) > 0 {
			<-opened
		}
	}
	server.Close()
	all.Verify(t)
	assert.Equal(t, invoices, all.Count(gateway.OutcomeSucceeded), "%v", all)
	assert.Equal(t, conns, server.Conns())
}

// dialer dials address, whatever is asked for, so that the client has a socket and no connection
// around one.
func dialer(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// TestStray_atAccept has a server send a stray response on each new connection, before the request
// is written: the invoice is not sent, or gets its own response. What crosses the request cannot be
// told apart.
func TestStray_atAccept(t *testing.T) {
	for kindName, wrap := range map[string]func(*http.Transport) http.RoundTripper{
		"a caller's transport": func(direct *http.Transport) http.RoundTripper { return direct },
		"InvoiceTransport":     gateway.InvoiceTransport,
	} {
		for name, stray := range strays() {
			t.Run(kindName+": "+name, func(t *testing.T) {
				t.Parallel()
				l, all, sent := &ledger{}, &call.Summary{}, make(chan bool, 1)
				direct := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, address)
					<-sent
					return conn, err
				}}
				l.place(t, kind{transport: func() http.RoundTripper { return wrap(direct) }}, faultserver.UntilDone(func(c *faultserver.Conn) {
					sent <- c.Send(stray)
					l.respond(c)
				}), all)
				all.Verify(t)
				assert.Equal(t, invoices, all.Count(gateway.OutcomeSucceeded)+all.Count(gateway.OutcomeNotSent), "%v", all)
			})
		}
	}
}

// TestStray_HTTP2 has a server respond on the first stream of a connection that was prepared,
// before there is a request: each invoice gets its own response.
func TestStray_HTTP2(t *testing.T) {
	for name, stray := range map[string][2]string{
		"a refusal":             {"400", `{"message":"no","result":[],"meta":{}}`},
		"an invoice of another": {"201", call.Enveloped(call.InvoiceResult("another"))},
		"an invoice of nobody":  {"201", call.Enveloped(`{"id":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, all, due, sent := &ledger{}, &call.Summary{}, make(chan bool, 1), make(chan error, 1)
			server := h2server.New(listening(t, nil), certificates().Server("h2"), func(_ bool, body []byte) string { return l.create(body) })
			t.Cleanup(server.Close)
			server.OnSettingsAck = func(c *h2server.Conn) bool {
				select {
				case <-due:
					c.WriteStatus(1, stray[0])
					sent <- c.WriteData(1, true, []byte(stray[1]))
				default: // a connection that was dialed for a request: what is sent now crosses it
				}
				return true
			}
			for n := range invoices {
				direct := http2Transport(server)
				direct.DialContext = dialer(server.Addr())
				transport := gateway.InvoiceTransport(direct)
				client := kind{transport: func() http.RoundTripper { return transport }}.connect(t, "https://"+call.Host, gateway.RetryPolicy{InvoiceTimeout: patient})
				due <- true
				require.NoError(t, client.PrepareInvoice(t.Context()))
				require.NoError(t, <-sent)
				order := orderNumber(n)
				all.Add(order, call.Create(t.Context(), client, order, l.of(order)))
			}
			all.Verify(t)
			assert.Equal(t, invoices, all.Count(gateway.OutcomeSucceeded), "%v", all)
		})
	}
}

// TestStray_WrappedTransport shows what a RoundTripper of a caller's must wrap
// [gateway.InvoiceTransport] for, which is documented at [gateway.WithHTTPClient]: over an
// http.Transport a stray response is taken for that to an invoice, unless it names another order.
func TestStray_WrappedTransport(t *testing.T) {
	for name, misreported := range map[string]bool{"a refusal": true, "an invoice of nobody": true, "an invoice of another": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, all := &ledger{}, &call.Summary{}
			l.place(t, wrapped(), l.strayBefore(strays()[name]), all)
			t.Logf("%v, %d of them misreported", all, len(all.Wrong()))
			assert.Equal(t, misreported, len(all.Wrong()) > 0)
		})
	}
}
