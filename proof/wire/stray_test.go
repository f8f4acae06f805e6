package wire

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// invoices is how many invoices each kind of stray response is tried with.
const invoices = 40

// strayDelay is how long after a response a stray one follows: the client has read the
// first by then, and may be about to send again.
const strayDelay = 300 * time.Microsecond

// strays are what a server sends that nobody has asked for.
func strays() map[string]string {
	return map[string]string{
		"a refusal":                 faultserver.Response(400, `{"message":"no","result":[],"meta":{}}`),
		"a refusal of HTTP/2.0":     strings.Replace(faultserver.Response(400, `{"message":"no","result":[],"meta":{}}`), "HTTP/1.1", "HTTP/2.0", 1),
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
	name       string
	transport  func() http.RoundTripper // nil for the client's own
	middleware bool
}

func kinds() []kind {
	return []kind{
		{"the client's own transport", nil, false},
		{"a caller's transport", func() http.RoundTripper { return &http.Transport{} }, false},
		{"a middleware", nil, true},
		{"a middleware around a caller's transport", func() http.RoundTripper { return &http.Transport{} }, true},
	}
}

// A wrapper is a RoundTripper of a caller's around a transport: its connections are the caller's
// business.
type wrapper struct{ *http.Transport }

// wrap is a middleware that does nothing.
func wrap(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) }

// connect returns a client of this kind of the server at a URL.
func (k kind) connect(t *testing.T, url string, policy gateway.RetryPolicy, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	policy.BaseDelay, policy.MaxDelay = time.Millisecond, time.Millisecond
	opts = append(opts, gateway.WithRetry(policy))
	if k.transport != nil {
		opts = append(opts, gateway.WithHTTPClient(&http.Client{Transport: k.transport()}))
	}
	if k.middleware {
		opts = append(opts, gateway.WithMiddleware(wrap))
	}
	client, err := gateway.New(url+"/merchant", canary, opts...)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
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
					assert.GreaterOrEqual(t, conns, invoices, "each invoice has a connection of its own")
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
		all.Add(order, call.Create(t.Context(), client, order, l.of(order)))
	}
	server.Close()
	return server.Conns()
}

func orderNumber(n int) string { return fmt.Sprintf("A-%d", n) }

// TestStray_HTTP2 has a server respond on the stream of the next invoice before there is one: the
// invoice gets its own response.
func TestStray_HTTP2(t *testing.T) {
	for name, stray := range map[string]struct{ status, body string }{
		"a refusal":             {"400", `{"message":"no","result":[],"meta":{}}`},
		"a header of a refusal": {"400", ""},
		"an invoice of another": {"201", call.Enveloped(call.InvoiceResult("another"))},
		"an invoice of nobody":  {"201", call.Enveloped(`{"id":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, all, seen := &ledger{}, &call.Summary{}, make(chan bool)
			server := faultserver.NewHTTP2(listening(t, nil), certificate().Server("h2"), func(_ bool, body []byte) string { return l.create(body) })
			frames := 0
			server.Where, server.EachTime = faultserver.ResponseData, true
			server.Fault = func(c *faultserver.HTTP2Conn, stream uint32) bool {
				if frames++; frames%3 != 0 {
					return true // the response to the invoice has three frames
				}
				c.WriteStatus(stream+2, stray.status)
				if stray.body != "" {
					_ = c.WriteData(stream+2, true, []byte(stray.body))
				}
				open := isSeen(c)
				seen <- true
				return open
			}
			server.Start()
			client := kind{transport: func() http.RoundTripper { return http2Transport(server) }}.connect(t, "https://"+call.Host, gateway.RetryPolicy{InvoiceTimeout: patient})
			for n := range 20 {
				order := orderNumber(n)
				all.Add(order, call.Create(t.Context(), client, order, l.of(order)))
				<-seen
			}
			client.CloseIdleConnections()
			server.Close()
			all.Verify(t)
			assert.Equal(t, 20, all.Count(gateway.OutcomeSucceeded), "%v", all)
			assert.Equal(t, stray.body == "", server.Conns() == 1, "data without a request ends a connection, %d", server.Conns())
		})
	}
}

// isSeen waits until the client has read what was sent. It reports whether the connection is open.
func isSeen(c *faultserver.HTTP2Conn) bool {
	_ = c.WritePing(false, [8]byte{1})
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			return false
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
			return true
		}
	}
}

// TestStray_RoundTripper shows what [gateway.WithHTTPClient] warns of: a RoundTripper of the caller's
// that keeps connections open takes an unsolicited response for the response to an invoice, unless it
// names another order whose response may still come.
func TestStray_RoundTripper(t *testing.T) {
	for _, name := range []string{"a refusal", "an invoice of nobody", "an invoice of another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, all := &ledger{}, &call.Summary{}
			l.place(t, kind{transport: func() http.RoundTripper { return wrapper{&http.Transport{}} }}, l.strayBefore(strays()[name]), all)
			t.Logf("%v, %d of them misreported", all, len(all.Wrong()))
			assert.NotEmpty(t, all.Wrong())
		})
	}
}
