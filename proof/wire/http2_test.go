package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
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

// Faults that TestHTTP2_EveryBoundary does not cause: those of every attempt, and of connections that were used.
func TestFaults_HTTP2(t *testing.T) {
	eachTime := func(where faultserver.Boundary, fault faultserver.StreamFault) func(*harness) {
		return speakHTTP2(func(s *faultserver.HTTP2) { s.Where, s.Fault, s.EachTime = where, fault, true })
	}
	runFaults(t, onSockets, []faultCase{
		{"there is no fault", speakHTTP2(func(*faultserver.HTTP2) {}), done(1, 1), done(1, 1)},
		{"the stream is refused as soon as its header is there, and the body may not be sent yet", func(h *harness) {
			h.policy.AttemptTimeout = 4 * short // net/http repeats a read by itself, ever slower
			eachTime(faultserver.RequestHeader, faultserver.ResetStream(http2.ErrCodeRefusedStream))(h)
			h.http2.Window = 0
		}, failed("", 0).after(anyNumber), unsure("").after(anyNumber).over(1)}, // the body was read, though it may not have left
		{"the server commits and goes away with the stream", eachTime(faultserver.Committed, func(c *faultserver.HTTP2Conn, stream uint32) bool {
			_ = c.WriteGoAway(stream, http2.ErrCodeNo, nil)
			return false
		}), failed("", 3).after(3), unsure("").committed().over(1)},
		{"the stream ends in an internal error", eachTime(faultserver.RequestWhole, faultserver.ResetStream(http2.ErrCodeInternal)), failed("", 3).after(3), unsure("")},
		{"the stream is cancelled after the response's header", eachTime(faultserver.ResponseHeader, faultserver.ResetStream(http2.ErrCodeCancel)), failed(gateway.PhaseRead, 3).at(201), unsure(gateway.PhaseRead).at(201).committed()},
		{"the server went away before the request", func(h *harness) {
			// Within the response to the read, so that the client has seen it when the read is over.
			speakHTTP2(func(s *faultserver.HTTP2) {
				s.Where, s.Fault = faultserver.ResponseHeader, faultserver.GoAway(0, http2.ErrCodeNo)
			})(h)
			h.warm()
		}, done(1, 2), done(1, 2)},
		{"packets are dropped on a connection that was good", func(h *harness) {
			speakHTTP2(func(*faultserver.HTTP2) {})(h)
			first := h.breaking()
			h.warm()
			first().Arm(faultserver.Break{Up: 0, Down: faultserver.Unlimited, Manner: faultserver.Stall})
		}, done(1, 2), unsure("").after(0).over(1)},
	})
}

// speakHTTP2 makes the server of a harness speak HTTP/2.
func speakHTTP2(change func(s *faultserver.HTTP2)) func(*harness) {
	return func(h *harness) {
		h.trust()
		h.transport.ForceAttemptHTTP2 = true
		h.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 4 * short, PingTimeout: 4 * short}
		h.http2 = faultserver.NewHTTP2(h.server, certificate().Server("h2"), func(post bool, _ []byte) string {
			if post {
				h.commit()
			}
			return h.body()
		})
		change(h.http2)
		h.http2.Start()
	}
}

// newHTTP2Server returns a server that commits the invoice of call.Target.
func newHTTP2Server(t require.TestingT) *faultserver.HTTP2 {
	server := listening(t, nil)
	return faultserver.NewHTTP2(server, certificate().Server("h2"), func(post bool, body []byte) string {
		if !post {
			return call.Enveloped(call.WithdrawalResult)
		}
		order := call.OrderIn(body)
		if order == call.Target {
			server.Record.Committed()
		}
		return call.Enveloped(call.InvoiceResult(order))
	})
}

// http2Transport is a caller's own, that leads to server and nowhere else.
func http2Transport(server *faultserver.HTTP2) *http.Transport {
	return &http.Transport{
		TLSClientConfig: certificate().Client(), ForceAttemptHTTP2: true,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: 4 * short, PingTimeout: 4 * short},
		DialContext: server.DialContext,
	}
}

// An http2Call is one call over HTTP/2.
type http2Call struct {
	write  bool
	reused bool
	policy gateway.RetryPolicy
	set    func(s *faultserver.HTTP2)
}

// call makes the call, from a new server until nothing is open. Of a read only
// err is of use in the result.
func (c http2Call) call(t require.TestingT) (*faultserver.HTTP2, call.Result, *gateway.Withdrawal) {
	server := newHTTP2Server(t)
	if c.set != nil {
		c.set(server)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	c.policy.BaseDelay, c.policy.MaxDelay = time.Millisecond, time.Millisecond
	client, err := gateway.New("https://"+call.Host+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: http2Transport(server)}), gateway.WithRetry(c.policy))
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	defer server.Finish()
	if c.reused {
		if c.write {
			_, err = client.CreateInvoice(ctx, call.Order("earlier"))
		} else {
			_, err = client.Withdrawal(ctx, call.WithdrawalID)
		}
		require.NoError(t, err)
		server.Record.Reset()
	}
	server.Start()
	defer recordHosts(server.Server)
	if c.write {
		return server, call.Create(ctx, client, call.Target, &server.Record), nil
	}
	read, err := client.Withdrawal(ctx, call.WithdrawalID)
	return server, call.Result{Err: err}, read
}

// TestHTTP2_EveryBoundary causes every fault at every boundary between two
// frames.
func TestHTTP2_EveryBoundary(t *testing.T) {
	certificate()
	check := call.Leftovers(t)
	all, reads := &call.Summary{}, 0
	for _, c := range []http2Call{{}, {reused: true}, {write: true}, {write: true, reused: true}} {
		healthy, r, _ := c.call(t)
		require.NoError(t, r.Err)
		of := fmt.Sprintf("write %v, reused %v", c.write, c.reused)
		t.Logf("%s: %d boundaries: %v", of, len(healthy.Passed()), healthy.Passed())
		c.policy = gateway.RetryPolicy{AttemptTimeout: 40 * short, InvoiceTimeout: 40 * short}
		var jobs []func()
		for at, where := range healthy.Passed() {
			for what, fault := range faultserver.StreamFaults() {
				name := fmt.Sprintf("%s, after %s (%d), %s", of, where, at, what)
				one := c
				one.set = func(s *faultserver.HTTP2) { s.At, s.Fault = at, fault }
				sent := where != faultserver.Handshake && where != faultserver.Settings && where != faultserver.RequestHeader
				frames := 0 // of the response's body that must arrive
				if sent && !strings.Contains(what, "with the stream") {
					frames = bodyFrames(healthy)
				}
				jobs = append(jobs, func() { one.check(t, name, frames, all) })
			}
		}
		if !c.write {
			reads += len(jobs)
		}
		inParallel(16, jobs)
	}
	all.Verify(t)
	t.Logf("http2: %v; %d reads", all, reads)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "none ended as %v", outcome)
	}
	check()
}

// bodyFrames counts the frames of a response's body, except the frame that a fault followed. A frame before the header
// of the request is the last one of an earlier response.
func bodyFrames(server *faultserver.HTTP2) (count int) {
	for _, where := range server.Passed() {
		switch where {
		case faultserver.RequestHeader:
			count = 0
		case faultserver.ResponseData:
			count++
		}
	}
	return count
}

// check makes the call and checks how it ended. The outcome of an invoice that was sent is unknown if fewer frames of
// its response arrived than it has; the number of frames of a request varies.
func (c http2Call) check(t *testing.T, name string, frames int, all *call.Summary) {
	server, r, read := c.call(t)
	if c.write {
		var more []string
		if bodyFrames(server)+1 < frames && r.Outcome() != gateway.OutcomeUnknown {
			more = append(more, "the invoice was sent, and its response lost")
		}
		all.Add(name, r, more...)
		return
	}
	assert.Empty(t, server.Record.Seen().Violations, name)
	// Each fault happens once, so that a read, which may be repeated, succeeds.
	if assert.NoError(t, r.Err, name) {
		assert.Equal(t, "TVx", read.Destination, name)
	}
}

// TestHTTP2_NotSent is about an order that never found a stream: the server
// goes away, or takes none, before its body is read.
func TestHTTP2_NotSent(t *testing.T) {
	certificate()
	t.Run("a used connection takes no more streams, and another takes the order", func(t *testing.T) {
		t.Parallel()
		s, r := full(t, nil, false, patient)
		assert.Empty(t, r.Violations())
		assert.NoError(t, r.Err)
		assert.Equal(t, 2, s.Conns())
	})
	t.Run("a used connection takes no more streams, and there may be no other", func(t *testing.T) {
		t.Parallel()
		s, r := full(t, nil, true, 8*short)
		assert.Empty(t, r.Violations())
		assert.NoError(t, r.Err, "the second attempt leaves it")
		assert.Equal(t, 2, s.Conns())
	})
	t.Run("a used connection takes no more streams, then goes away while the order waits for one", func(t *testing.T) {
		t.Parallel()
		// net/http leaves it waiting or fails it, by release; either way it was not sent, and is tried again.
		s, r := full(t, faultserver.GoAway(0, http2.ErrCodeNo), true, 8*short)
		assert.Empty(t, r.Violations())
		assert.NoError(t, r.Err)
		assert.Equal(t, 2, s.Conns())
	})
	t.Run("a used connection went away without an error, and another takes the order", func(t *testing.T) {
		t.Parallel()
		s, r, _ := http2Call{write: true, reused: true, set: func(s *faultserver.HTTP2) {
			s.Where, s.Fault = faultserver.ResponseHeader, faultserver.GoAway(0, http2.ErrCodeNo)
			s.Start()
		}}.call(t)
		assert.Empty(t, r.Violations())
		assert.NoError(t, r.Err)
		assert.Equal(t, 2, s.Conns())
	})
}

// full places an order while a used connection is full. Once the order waits,
// then happens to that connection; strict allows no other beside it.
func full(t *testing.T, then faultserver.StreamFault, strict bool, timeout time.Duration) (*faultserver.HTTP2, call.Result) {
	s := newHTTP2Server(t)
	waits, isFull := make(chan struct{}), make(chan struct{})
	acks := 0
	s.Where, s.Fault = faultserver.Committed, func(c *faultserver.HTTP2Conn, _ uint32) bool {
		return c.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) == nil
	}
	s.OnSettingsAck = func(c *faultserver.HTTP2Conn) bool {
		if acks++; acks != 2 || c.Net.Number != 1 {
			return true
		}
		close(isFull)
		if then == nil {
			return true
		}
		<-waits
		then(c, 1)
		c.Net.Stop() // net/http of Go 1.26 never closes a connection that goes away while a request waits for it
		return false
	}
	s.Start()
	transport := http2Transport(s)
	transport.HTTP2 = &http.HTTP2Config{StrictMaxConcurrentRequests: strict}
	client, err := gateway.New("https://"+call.Host+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: timeout, BaseDelay: time.Millisecond}))
	require.NoError(t, err)
	_, err = client.CreateInvoice(t.Context(), call.Order("earlier"))
	require.NoError(t, err)
	s.Record.Reset()
	<-isFull
	asked := sync.OnceFunc(func() { close(waits) })
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { asked() }})
	r := call.Create(ctx, client, call.Target, &s.Record)
	client.CloseIdleConnections()
	s.Close()
	recordHosts(s.Server)
	return s, r
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
			assert.Equal(t, want, plainCommits(t, faultserver.ResetStream(c.code)), "a plain client, with %s", runtime.Version())

			s, r, _ := http2Call{write: true, set: func(s *faultserver.HTTP2) { s.Where, s.Fault = faultserver.Committed, faultserver.ResetStream(c.code) }}.call(t)
			assert.Empty(t, r.Violations())
			assert.Equal(t, 1, s.Record.Seen().Commits, "this client")
			assert.Equal(t, gateway.OutcomeUnknown, r.Outcome())
		})
	}
}

// plainCommits posts an invoice as anybody would, and returns how many there
// are then.
func plainCommits(t *testing.T, fault faultserver.StreamFault) int {
	s := newHTTP2Server(t)
	s.Where, s.Fault = faultserver.Committed, fault
	s.Start()
	transport := http2Transport(s)
	body := fmt.Sprintf(`{"apiKey":%q,"orderId":%q,"price":"10.50","amount":"10.50","baseCurrency":"usd","coinSymbol":"USDT","networkName":"T"}`, canary, call.Target)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+call.Host+"/merchant/api/invoice/create", strings.NewReader(body))
	require.NoError(t, err)
	require.NotNil(t, req.GetBody)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		err = errors.Join(err, resp.Body.Close())
	}
	t.Logf("the plain client got %v", err)
	transport.CloseIdleConnections()
	s.Finish()
	s.Close()
	return s.Record.Seen().Commits
}

// endlessHTTP2 returns a server with one fault at every boundary of a name, whose
// connections end with the test.
func endlessHTTP2(t *testing.T, where faultserver.Boundary, fault faultserver.StreamFault) *faultserver.HTTP2 {
	s := newHTTP2Server(t)
	s.Server.Handler = faultserver.UntilDone(s.Server.Handler)
	s.Where, s.Fault, s.EachTime = where, fault, true
	s.Start()
	return s
}

// TestConnections has a server close every connection, over HTTP/2 with GOAWAY(0), which
// net/http follows without a limit of its own. The error names the cause.
func TestConnections(t *testing.T) {
	goAway := faultserver.GoAway(-1<<20, http2.ErrCodeNo)
	for _, k := range secureKinds() {
		for _, attempts := range []int{1, 3} {
			t.Run(fmt.Sprintf("HTTP/2, %s, %d attempts", k.name, attempts), func(t *testing.T) {
				t.Parallel()
				s := endlessHTTP2(t, faultserver.RequestHeader, goAway)
				client := k.connect(t, "https://"+s.Addr(), gateway.RetryPolicy{MaxAttempts: attempts, AttemptTimeout: patient, InvoiceTimeout: patient})
				_, err := client.Withdrawal(t.Context(), call.WithdrawalID)
				var failure *gateway.TransportError
				require.ErrorAs(t, err, &failure)
				assert.LessOrEqual(t, failure.Attempts, attempts)
				assert.ErrorContains(t, err, "the peer closed 3 connections in a row without a response")
				assert.LessOrEqual(t, s.Conns(), call.MaxConns*failure.Attempts)
				s.Record.Reset()
				r := call.Create(t.Context(), client, call.Target, &s.Record)
				assert.Error(t, r.Err)
				s.Close()
				assert.Empty(t, r.Violations())
			})
		}
	}
}

// deaf sends the header of a response, and then pings and data without end, and reads
// nothing: a client that responds to the pings waits until it can write. It is a violation
// if the client does not close the connection.
func deaf(c *faultserver.HTTP2Conn, stream uint32) bool {
	_ = c.Net.Raw.(*net.TCPConn).SetReadBuffer(narrow)
	c.WriteStatus(stream, "200")
	var err error
	for n := 0; err == nil; n++ {
		err = c.WritePing(false, [8]byte{byte(n)})
		if n%64 == 0 && err == nil {
			err = c.WriteData(stream, false, []byte(" "))
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Server.Record.Violation("the client never closed a connection that had broken")
	}
	return false
}

// TestDeafPeer has a server that sends and does not read, until the client cannot write
// any more. Every call ends with its attempt and with its context, and an invoice is
// never misreported.
func TestDeafPeer(t *testing.T) {
	for name, lasts := range map[string]struct {
		kind          int
		attempt, call time.Duration
	}{
		"the attempt ends":          {0, 16 * short, patient},
		"the caller's context ends": {2, patient, 16 * short},
	} {
		k := secureKinds()[lasts.kind]
		t.Run(k.name+": "+name, func(t *testing.T) {
			t.Parallel()
			s := endlessHTTP2(t, faultserver.RequestWhole, deaf)
			client := k.connect(t, "https://"+s.Addr(), gateway.RetryPolicy{MaxAttempts: 1, AttemptTimeout: lasts.attempt, InvoiceTimeout: lasts.attempt})
			bounded := func() context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), lasts.call)
				t.Cleanup(cancel)
				return ctx
			}
			var err error
			assert.True(t, call.Returns(func() { _, err = client.Withdrawal(bounded(), call.WithdrawalID) }), "a read returns")
			assert.Error(t, err)
			r := call.Create(bounded(), client, call.Target, &s.Record)
			assert.Equal(t, gateway.OutcomeUnknown, r.Outcome(), "%v", r.Err)
			s.Close()
			assert.Empty(t, r.Violations())
		})
	}
}

// TestSilence has a proxy fall silent under invoices over HTTP/2, as after a failover without a reset. The
// invoices that it carries are unknown, and later ones have another connection.
func TestSilence(t *testing.T) {
	for _, k := range secureKinds()[1:] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s, l, all := newHTTP2Server(t), &ledger{}, &call.Summary{}
			s.Server.Handler = faultserver.UntilDone(s.Server.Handler)
			s.Respond = func(_ bool, body []byte) string { return l.create(body) }
			s.Where, s.Fault = faultserver.Committed, faultserver.BreakOff(faultserver.Stall)
			client := k.connect(t, "https://"+s.Addr(), gateway.RetryPolicy{InvoiceTimeout: 4 * time.Second})
			create := func(order string) call.Result {
				r := call.Create(t.Context(), client, order, l.of(order))
				all.Add(order, r)
				return r
			}
			require.NoError(t, create("earlier").Err)
			s.Start()
			var lost sync.WaitGroup
			for n := range 3 {
				lost.Go(func() { assert.Equal(t, gateway.OutcomeUnknown, create(orderNumber(n)).Outcome()) })
			}
			lost.Wait()
			for n := range 3 {
				assert.NoError(t, create(orderNumber(n+3)).Err)
			}
			s.Close()
			all.Verify(t)
			assert.Equal(t, 2, s.Conns())
		})
	}
}
