package contract

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cryptogw/gateway"
)

// The boundaries of an exchange.
const (
	handshake      = "the handshake"
	settings       = "the settings"
	requestHeader  = "the request's header"
	requestData    = "a frame of the request's body"
	requestWhole   = "the last frame of the request"
	committed      = "the commit"
	responseHeader = "the response's header"
	responseData   = "a frame of the response's body"
)

// A strike is what happens to an HTTP/2 connection once. It reports whether the
// connection goes on.
type strike func(p *h2Conn, stream uint32) bool

// An h2Gateway speaks HTTP/2 frame by frame, so that it can do what no decent
// server does. After each frame that it reads or writes there is a boundary, at
// one of which it strikes.
type h2Gateway struct {
	listener net.Listener
	saw      *sight
	window   uint32 // how much of a body may come before more is allowed
	streams  uint32 // how many may be open at once
	at       int    // the boundary of the strike, counted since start; below zero for none
	where    string // instead of at: the name of the boundary, of which the first counts
	strike   strike
	onAck    func(p *h2Conn) bool // called when the client has taken the settings; reports whether the connection goes on

	mu         sync.Mutex
	running    bool
	struck     bool
	boundaries []string // those that were passed since start
	conns      int
	gone       []net.Conn    // those that went away
	over       chan struct{} // closed when the call is over
	open       sync.WaitGroup
}

func newH2Gateway(t require.TestingT) *h2Gateway {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &h2Gateway{listener: listener, saw: &sight{}, window: 48, streams: 100, at: -1, over: make(chan struct{})}
	g.open.Go(func() {
		for {
			conn, err := g.listener.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(patient))
			g.open.Go(func() { g.serve(conn) })
		}
	})
	return g
}

// close waits until all connections are gone. One that went away is ended from
// here: net/http may not close it, once it gave up a request that waited for it.
func (g *h2Gateway) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	for _, conn := range g.gone {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	}
	g.mu.Unlock()
	g.open.Wait()
}

// transport is a caller's own, that leads here and nowhere else.
func (g *h2Gateway) transport() *http.Transport {
	return &http.Transport{
		TLSClientConfig: trusting(), ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 4 * short, PingTimeout: 4 * short},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != host {
				g.saw.remark("I8: another host was contacted: %s", addr)
			}
			return (&net.Dialer{}).DialContext(ctx, network, g.listener.Addr().String())
		},
	}
}

// start says that the call that the strike is for begins now.
func (g *h2Gateway) start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = true
}

// An h2Conn is the server's side of a connection.
type h2Conn struct {
	*http2.Framer
	gateway *h2Gateway
	number  int
	raw     net.Conn
	mute    bool // reads on, and says nothing
	bodies  map[uint32]*bytes.Buffer
	posts   map[uint32]bool
	dead    map[uint32]bool // streams that were reset
}

func (g *h2Gateway) serve(raw net.Conn) {
	defer func() { _ = raw.Close() }()
	conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	if conn.HandshakeContext(context.Background()) != nil {
		return
	}
	g.mu.Lock()
	g.conns++
	p := &h2Conn{
		Framer: http2.NewFramer(conn, conn), gateway: g, number: g.conns, raw: raw,
		bodies: map[uint32]*bytes.Buffer{}, posts: map[uint32]bool{}, dead: map[uint32]bool{},
	}
	g.mu.Unlock()
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	defer p.count()
	if !p.boundary(handshake, 0) {
		return
	}
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: g.window}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: g.streams})
	if !p.boundary(settings, 0) {
		return
	}
	for p.next() {
	}
}

// count enters in the ledger what arrived of bodies that did not end.
func (p *h2Conn) count() {
	for stream, body := range p.bodies {
		if p.posts[stream] {
			p.gateway.saw.arrive(body.Len())
		}
	}
}

// boundary strikes, if it is time. It reports whether the connection goes on.
func (p *h2Conn) boundary(name string, stream uint32) bool {
	g := p.gateway
	g.mu.Lock()
	strikes := g.running && !g.struck && (g.where == name || g.where == "" && len(g.boundaries) == g.at)
	if g.running && !g.struck {
		if strikes {
			g.struck = true
		} else {
			g.boundaries = append(g.boundaries, name)
		}
	}
	g.mu.Unlock()
	return !strikes || g.strike(p, stream)
}

// next reads a frame. It reports whether the connection goes on.
func (p *h2Conn) next() bool {
	frame, err := p.ReadFrame()
	if err != nil {
		return false
	}
	stream := frame.Header().StreamID
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() && !p.mute {
			_ = p.WriteSettingsAck()
		}
		if f.IsAck() && p.gateway.onAck != nil {
			return p.gateway.onAck(p)
		}
	case *http2.PingFrame:
		if !f.IsAck() && !p.mute {
			_ = p.WritePing(true, f.Data)
		}
	case *http2.MetaHeadersFrame:
		p.posts[stream], p.bodies[stream] = f.PseudoValue("method") == "POST", &bytes.Buffer{}
		return p.proceed(requestHeader, stream, f.StreamEnded())
	case *http2.DataFrame:
		p.bodies[stream].Write(f.Data())
		if n := uint32(len(f.Data())); n > 0 && !p.mute && !f.StreamEnded() {
			_ = p.WriteWindowUpdate(stream, n)
		}
		return p.proceed(requestData, stream, f.StreamEnded())
	}
	return true
}

// proceed passes a boundary, and answers a request that is whole.
func (p *h2Conn) proceed(name string, stream uint32, ended bool) bool {
	if p.mute || p.dead[stream] {
		return true
	}
	if !p.boundary(name, stream) {
		return false
	}
	if !ended || p.mute || p.dead[stream] {
		return true
	}
	if !p.boundary(requestWhole, stream) {
		return false
	}
	if p.mute || p.dead[stream] {
		return true
	}
	result := p.commit(stream)
	if !p.boundary(committed, stream) {
		return false
	}
	return p.respond(stream, enveloped(result))
}

// commit carries out a request and returns its result.
func (p *h2Conn) commit(stream uint32) (result string) {
	if !p.posts[stream] {
		return withdrawalResult
	}
	order := orderIn(p.bodies[stream].Bytes())
	if order == target {
		p.gateway.saw.commit()
	}
	return invoiceResult(order)
}

// respond answers in a header and three frames of data.
func (p *h2Conn) respond(stream uint32, body string) bool {
	var block bytes.Buffer
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "201"})
	third := len(body) / 3
	parts := []string{"", body[:third], body[third : 2*third], body[2*third:]}
	for i, part := range parts {
		if p.mute || p.dead[stream] {
			return true
		}
		name := responseData
		if i == 0 {
			name = responseHeader
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
		} else {
			_ = p.WriteData(stream, i == len(parts)-1, []byte(part))
		}
		if !p.boundary(name, stream) {
			return false
		}
	}
	return true
}

// The strikes.

func resets(code http2.ErrCode) strike {
	return func(p *h2Conn, stream uint32) bool {
		p.dead[stream] = true
		return p.WriteRSTStream(max(stream, 1), code) == nil
	}
}

// goesAway says that no stream after the one offset from this was looked at,
// and listens on until the client has gone.
func goesAway(offset int, code http2.ErrCode) strike {
	return func(p *h2Conn, stream uint32) bool {
		p.gateway.mu.Lock()
		p.gateway.gone = append(p.gateway.gone, p.raw)
		p.gateway.mu.Unlock()
		last := uint32(max(int(stream)+offset, 0))
		_ = p.WriteGoAway(last, code, nil)
		p.mute = last < max(stream, 1)
		return true
	}
}

func dies(how manner) strike {
	return func(p *h2Conn, _ uint32) bool {
		switch how {
		case rst:
			reset(p.raw)
			return false
		case fin:
			if tcp, ok := p.raw.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		default:
			<-p.gateway.over
		}
		p.mute = true
		return true // to see what still comes
	}
}

// everyStrike is what can happen at a boundary, in words.
func everyStrike() map[string]strike {
	all := map[string]strike{
		"the connection is closed":                       dies(fin),
		"the connection is reset":                        dies(rst),
		"the server neither reads nor answers any more":  dies(stall),
		"the server goes away without the stream":        goesAway(-2, http2.ErrCodeNo),
		"the server goes away with the stream":           goesAway(0, http2.ErrCodeNo),
		"the server goes away in error":                  goesAway(-2, http2.ErrCodeEnhanceYourCalm),
		"the server goes away in error, with the stream": goesAway(0, http2.ErrCodeInternal),
	}
	for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
		all[fmt.Sprintf("the stream is reset with %v", code)] = resets(code)
	}
	return all
}

// An h2Run is one call over HTTP/2.
type h2Run struct {
	write  bool
	reused bool
	policy gateway.RetryPolicy
	set    func(g *h2Gateway)
}

// act makes the call, from an empty gateway to nothing left open. Of a read
// only err is of use in what it returns.
func (r h2Run) act(t require.TestingT) (*h2Gateway, end, *gateway.Withdrawal) {
	g := newH2Gateway(t)
	if r.set != nil {
		r.set(g)
	}
	transport := g.transport()
	defer g.close()
	defer transport.CloseIdleConnections()
	defer close(g.over)
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	r.policy.BaseDelay, r.policy.MaxDelay = time.Millisecond, time.Millisecond
	client, err := gateway.New("https://"+host+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithRetry(r.policy))
	require.NoError(t, err)
	if r.reused {
		_, err = client.Withdrawal(ctx, withdrawalID)
		require.NoError(t, err)
	}
	g.start()
	if r.write {
		return g, create(ctx, client, target, g.saw), nil
	}
	read, err := client.Withdrawal(ctx, withdrawalID)
	return g, end{err: err}, read
}

// TestHTTP2_EveryBoundary strikes at every boundary between two frames.
func TestHTTP2_EveryBoundary(t *testing.T) {
	certificate()
	check := leftovers(t)
	all, reads := &tally{}, 0
	for _, reused := range []bool{false, true} {
		for _, write := range []bool{false, true} {
			healthy, e, _ := h2Run{write: write, reused: reused}.act(t)
			require.NoError(t, e.err)
			t.Logf("write %v, reused %v: %d boundaries: %s", write, reused, len(healthy.boundaries), strings.Join(healthy.boundaries, ", "))
			var jobs []func()
			for at, where := range healthy.boundaries {
				for what, strike := range everyStrike() {
					name := fmt.Sprintf("reused %v, after %s (%d), %s", reused, where, at, what)
					run := h2Run{write: write, reused: reused, policy: gateway.RetryPolicy{AttemptTimeout: 40 * short, InvoiceTimeout: 40 * short}, set: func(g *h2Gateway) { g.at, g.strike = at, strike }}
					jobs = append(jobs, func() { run.check(t, name, all) })
				}
			}
			if !write {
				reads += len(jobs)
			}
			inParallel(16, jobs)
		}
	}
	all.verify(t)
	t.Logf("http2: %v; %d reads", all, reads)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.counts[outcome], "none ended as %v", outcome)
	}
	check()
}

// check runs r and looks at how it ended.
func (r h2Run) check(t *testing.T, name string, all *tally) {
	_, e, read := r.act(t)
	if r.write {
		all.add(name, e)
		return
	}
	// Each strike comes once, so that a read, which may be repeated, works.
	if assert.NoError(t, e.err, name) {
		assert.Equal(t, "TVx", read.Destination, name)
	}
}

// TestHTTP2 looks at single cases, of which the outcome is known.
func TestHTTP2(t *testing.T) {
	strikes := func(where string, s strike) func(g *h2Gateway) {
		return func(g *h2Gateway) { g.where, g.strike = where, s }
	}
	certificate()
	for _, c := range []struct {
		name    string
		reused  bool
		set     func(g *h2Gateway)
		outcome gateway.Outcome
		commits int
		conns   int
	}{
		{"nothing happens", false, nil, gateway.OutcomeSucceeded, 1, 1},
		{"the stream is refused at its header", false, strikes(requestHeader, resets(http2.ErrCodeRefusedStream)), gateway.OutcomeUnknown, 0, 1},
		{"the stream is refused within its body", false, strikes(requestData, resets(http2.ErrCodeRefusedStream)), gateway.OutcomeUnknown, 0, 1},
		{"the stream is refused after all of it", false, strikes(requestWhole, resets(http2.ErrCodeRefusedStream)), gateway.OutcomeUnknown, 0, 1},
		{"the stream is refused after the commit, which is a lie", false, strikes(committed, resets(http2.ErrCodeRefusedStream)), gateway.OutcomeUnknown, 1, 1},
		{"the server goes away without the stream, after all of it", false, strikes(requestWhole, goesAway(-2, http2.ErrCodeNo)), gateway.OutcomeUnknown, 0, 1},
		{"the server goes away without the stream, after the commit", false, strikes(committed, goesAway(-2, http2.ErrCodeNo)), gateway.OutcomeUnknown, 1, 1},
		{"the server goes away with the stream and answers it", false, strikes(committed, goesAway(0, http2.ErrCodeNo)), gateway.OutcomeSucceeded, 1, 1},
		{"the stream ends in a protocol error before the commit", false, strikes(requestData, resets(http2.ErrCodeProtocol)), gateway.OutcomeUnknown, 0, 1},
		{"the stream ends in an internal error before the commit", false, strikes(requestData, resets(http2.ErrCodeInternal)), gateway.OutcomeUnknown, 0, 1},
		{"the stream is cancelled before the commit", false, strikes(requestData, resets(http2.ErrCodeCancel)), gateway.OutcomeUnknown, 0, 1},
		{"the stream asks for calm before the commit", false, strikes(requestData, resets(http2.ErrCodeEnhanceYourCalm)), gateway.OutcomeUnknown, 0, 1},
		{"the stream ends in a protocol error after the commit", false, strikes(committed, resets(http2.ErrCodeProtocol)), gateway.OutcomeUnknown, 1, 1},
		{"the stream ends in an internal error after the commit", false, strikes(committed, resets(http2.ErrCodeInternal)), gateway.OutcomeUnknown, 1, 1},
		{"the stream is cancelled after the commit", false, strikes(committed, resets(http2.ErrCodeCancel)), gateway.OutcomeUnknown, 1, 1},
		{"the stream asks for calm after the commit", false, strikes(committed, resets(http2.ErrCodeEnhanceYourCalm)), gateway.OutcomeUnknown, 1, 1},
		{"a used connection becomes a black hole at the header", true, strikes(requestHeader, dies(stall)), gateway.OutcomeUnknown, 0, 1},
		{"a used connection becomes a black hole after the commit", true, strikes(committed, dies(stall)), gateway.OutcomeUnknown, 1, 1},
		{"the body may not be sent yet, and the stream is refused", false, func(g *h2Gateway) {
			g.window, g.where, g.strike = 0, requestHeader, resets(http2.ErrCodeRefusedStream)
		}, gateway.OutcomeUnknown, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, e, _ := h2Run{write: true, reused: c.reused, policy: gateway.RetryPolicy{InvoiceTimeout: patient}, set: c.set}.act(t)
			assert.Empty(t, e.broken())
			assert.Equal(t, c.outcome, e.outcome(), "%v", e.err)
			assert.Equal(t, c.commits, g.saw.commits)
			assert.Equal(t, c.conns, g.conns)
		})
	}
}

// TestHTTP2_NotSent is about an order that never found a stream: the server
// goes away, or takes none, before its body is looked at.
func TestHTTP2_NotSent(t *testing.T) {
	certificate()
	t.Run("a used connection takes no more streams, and another takes the order", func(t *testing.T) {
		t.Parallel()
		g, e := full(t, nil, false, patient)
		assert.Empty(t, e.broken())
		assert.NoError(t, e.err)
		assert.Equal(t, 2, g.conns)
	})
	t.Run("a used connection takes no more streams, and there may be no other", func(t *testing.T) {
		t.Parallel()
		g, e := full(t, nil, true, 2*short)
		assert.Empty(t, e.broken())
		require.ErrorIs(t, e.err, gateway.ErrNotSent)
		assert.ErrorIs(t, e.err, gateway.ErrTimeout)
		assert.Equal(t, 1, g.conns)
	})
	t.Run("a used connection takes no more streams, then goes away while the order waits for one", func(t *testing.T) {
		t.Parallel()
		// net/http leaves it waiting or fails it, by release; either way it was not sent, and is tried again.
		g, e := full(t, goesAway(0, http2.ErrCodeNo), true, 2*short)
		assert.Empty(t, e.broken())
		assert.NoError(t, e.err)
		assert.Equal(t, 2, g.conns)
	})
	t.Run("a used connection went away in peace, and another takes the order", func(t *testing.T) {
		t.Parallel()
		g, e, _ := h2Run{write: true, reused: true, set: func(g *h2Gateway) {
			g.where, g.strike = responseHeader, goesAway(0, http2.ErrCodeNo)
			g.start()
		}}.act(t)
		assert.Empty(t, e.broken())
		assert.NoError(t, e.err)
		assert.Equal(t, 2, g.conns)
	})
}

// full places an order while a used connection is full. Once the order waits,
// then happens to that connection; strict allows no other beside it.
func full(t *testing.T, then strike, strict bool, timeout time.Duration) (*h2Gateway, end) {
	g := newH2Gateway(t)
	waits, isFull := make(chan struct{}), make(chan struct{})
	acks := 0
	g.where, g.strike = committed, func(p *h2Conn, _ uint32) bool {
		return p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) == nil
	}
	g.onAck = func(p *h2Conn) bool {
		if acks++; acks != 2 || p.number != 1 {
			return true
		}
		close(isFull)
		if then == nil {
			return true
		}
		<-waits
		then(p, 1)
		<-g.over // net/http of Go 1.26 never closes a connection that goes away while a request waits for it
		return false
	}
	g.start()
	transport := g.transport()
	transport.HTTP2 = &http.HTTP2Config{StrictMaxConcurrentRequests: strict}
	client, err := gateway.New("https://"+host+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: timeout, BaseDelay: time.Millisecond}))
	require.NoError(t, err)
	_, err = client.Withdrawal(t.Context(), withdrawalID)
	require.NoError(t, err)
	<-isFull
	asked := sync.OnceFunc(func() { close(waits) })
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { asked() }})
	e := create(ctx, client, target, g.saw)
	transport.CloseIdleConnections()
	close(g.over)
	g.close()
	return g, e
}

// TestHTTP2_BlackHole is about calls after one that was lost in a black hole:
// the pings find the connection dead, and the next call gets another.
func TestHTTP2_BlackHole(t *testing.T) {
	certificate()
	g := newH2Gateway(t)
	g.where, g.strike = requestHeader, dies(stall)
	transport := g.transport()
	client, err := gateway.New("https://"+host+"/merchant", canary, gateway.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	_, err = client.Withdrawal(t.Context(), withdrawalID)
	require.NoError(t, err)
	g.start()
	lost := create(t.Context(), client, "lost", &sight{})
	assert.Equal(t, gateway.OutcomeUnknown, lost.outcome(), "%v", lost.err)
	read, err := client.Withdrawal(t.Context(), withdrawalID)
	require.NoError(t, err)
	assert.Equal(t, withdrawalID, read.WithdrawRequestID)
	e := create(t.Context(), client, target, &sight{commits: 1})
	close(g.over)
	transport.CloseIdleConnections()
	g.close()
	assert.Empty(t, e.broken())
	assert.NoError(t, e.err)
	assert.Equal(t, 1, g.saw.commits)
	assert.Equal(t, 2, g.conns)
}

// TestHTTP2_PlainClientDoubles shows what the client guards against: net/http
// repeats a POST by itself when it can get the body again, which [http.NewRequest]
// sees to, although the first one was carried out.
func TestHTTP2_PlainClientDoubles(t *testing.T) {
	certificate()
	for _, c := range []struct {
		name  string
		code  http2.ErrCode
		plain map[string]int // commits by release of Go; "" for all others
	}{
		{"a stream that ended in a protocol error after the commit", http2.ErrCodeProtocol, map[string]int{"go1.26": 2, "": 1}},
		{"a stream that was refused after the commit", http2.ErrCodeRefusedStream, map[string]int{"": 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := c.plain[""]
			for release, n := range c.plain {
				if release != "" && strings.HasPrefix(runtime.Version(), release) {
					want = n
				}
			}
			assert.Equal(t, want, plainCommits(t, resets(c.code)), "a plain client, with %s", runtime.Version())

			g, e, _ := h2Run{write: true, set: func(g *h2Gateway) { g.where, g.strike = committed, resets(c.code) }}.act(t)
			assert.Empty(t, e.broken())
			assert.Equal(t, 1, g.saw.commits, "this client")
			assert.Equal(t, gateway.OutcomeUnknown, e.outcome())
		})
	}
}

// plainCommits posts an invoice as anybody would, and returns how many there
// are then.
func plainCommits(t *testing.T, s strike) int {
	g := newH2Gateway(t)
	g.where, g.strike = committed, s
	g.start()
	transport := g.transport()
	body := fmt.Sprintf(`{"apiKey":%q,"orderId":%q,"price":"10.50","amount":"10.50","baseCurrency":"usd","coinSymbol":"USDT","networkName":"T"}`, canary, target)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host+"/merchant/api/invoice/create", strings.NewReader(body))
	require.NoError(t, err)
	require.NotNil(t, req.GetBody)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		err = errors.Join(err, resp.Body.Close())
	}
	t.Logf("the plain client got %v", err)
	transport.CloseIdleConnections()
	close(g.over)
	g.close()
	return g.saw.commits
}
