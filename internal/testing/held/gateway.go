package held

import (
	"cmp"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

var answer = everycall.Enveloped(everycall.InvoiceJSON)

// A held is a gateway, its guard and the way to it. They hold up the first invoice in one stage.
type held struct {
	proto  string
	at     stage
	holds  time.Duration
	onHold func() // runs when the invoice is held up

	guard   gateway.OrderGuard
	server  *http.Server
	dials   pipes
	hasHeld atomic.Bool
	whole   atomic.Int32 // invoices that the gateway has received whole
	ends    atomic.Int32 // calls whose end the observers have seen
}

func (h *held) hold(ctx context.Context, now stage) error {
	if now != h.at || h.hasHeld.Swap(true) {
		return nil
	}
	h.onHold()
	return Sleep(ctx, h.holds)
}

// Sleep waits, or returns the error of a context that has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holding is a reader that is empty, and holds up whoever reads it.
func (h *held) holding(ctx context.Context, now stage) pause {
	return func() error { return h.hold(ctx, now) }
}

// A pause is a reader that ends when its function returns.
type pause func() error

func (p pause) Read([]byte) (int, error) { return 0, cmp.Or(p(), io.EOF) }

func (h *held) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	if err := h.hold(ctx, inBegin); err != nil {
		return gateway.Lease{}, err
	}
	return h.guard.Begin(ctx, o)
}

func (h *held) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	_ = h.hold(ctx, inEnd)
	return h.guard.End(ctx, o, r)
}

// ServeHTTP creates an invoice.
func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasSuffix(string(text), "}") {
		return
	}
	h.whole.Add(1)
	if h.hold(r.Context(), allSent) != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for _, part := range []struct {
		after stage
		text  string
	}{{headReceived, answer[:20]}, {halfReceived, answer[20:]}} {
		_ = http.NewResponseController(w).Flush()
		if h.hold(r.Context(), part.after) != nil {
			return
		}
		_, _ = io.WriteString(w, part.text)
	}
}

// RoundTrip is the gateway in memory.
func (h *held) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if _, err := io.Copy(io.Discard, io.MultiReader(h.holding(ctx, inDial), req.Body)); err != nil {
		return nil, err
	}
	h.whole.Add(1)
	response := &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(io.MultiReader(h.holding(ctx, headReceived), strings.NewReader(answer[:20]),
			h.holding(ctx, halfReceived), strings.NewReader(answer[20:]))), ContentLength: -1,
	}
	return response, h.hold(ctx, allSent)
}

// transport returns the way to the gateway.
func (h *held) transport() http.RoundTripper {
	if h.proto == InMemory {
		return h
	}
	h.dials = pipes{make(chan net.Conn), make(chan struct{})}
	h.server = &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols)}
	h.server.Protocols.SetHTTP1(true)
	h.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = h.server.Serve(h.dials) }()
	own := &http.Transport{
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if err := h.hold(ctx, inDial); err != nil {
				return nil, err
			}
			return h.dials.dial()
		},
	}
	own.Protocols.SetHTTP1(h.proto == HTTP1)
	own.Protocols.SetUnencryptedHTTP2(h.proto == HTTP2)
	return own
}

// options are the options of a client that is held up.
func (h *held) options() []gateway.Option {
	opts := []gateway.Option{
		gateway.WithOrderGuard(h),
		gateway.WithObserver(gateway.Observer{
			Start: func(ctx context.Context, _ gateway.Call) context.Context { _ = h.hold(ctx, beforeBegin); return nil },
			End:   func(context.Context, gateway.Call) { h.ends.Add(1) },
		}),
	}
	if h.at == wroteHeader || h.at == halfSent { // with a middleware, a connection is not what it was
		opts = append(opts, gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
			return heldBody{h, next}
		}))
	}
	return opts
}

// A heldBody is a middleware that holds up the body of a request.
type heldBody struct {
	*held
	next http.RoundTripper
}

func (h heldBody) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, body := req.Context(), req.Body
	req.Body = io.NopCloser(io.MultiReader(h.holding(ctx, wroteHeader), io.LimitReader(body, 10),
		h.holding(ctx, halfSent), body))
	return h.next.RoundTrip(req)
}

// close ends what was held.
func (h *held) close(c *gateway.Client) {
	c.CloseIdleConnections()
	if h.server != nil {
		_ = h.server.Close()
	}
	time.Sleep(2 * time.Hour)
}

// A pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }
func (p pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed: // of a dial that outlasts its request
		return nil, net.ErrClosed
	}
}
