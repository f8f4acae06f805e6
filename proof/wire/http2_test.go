package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// newHTTP2Server returns one that commits the invoice of call.Target.
func newHTTP2Server(t require.TestingT) *faultserver.HTTP2 {
	server := listening(t, nil)
	return faultserver.NewHTTP2(server, certificates().Server("h2"), func(post bool, body []byte) string {
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
		TLSClientConfig: certificates().Client(), ForceAttemptHTTP2: true,
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
	certificates()
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
				jobs = append(jobs, func() { one.check(t, name, all) })
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

// check makes the call and checks how it ended.
func (c http2Call) check(t *testing.T, name string, all *call.Summary) {
	server, r, read := c.call(t)
	if c.write {
		all.Add(name, r)
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
	certificates()
	t.Run("a used connection takes no more streams, and another takes the order", func(t *testing.T) {
		t.Parallel()
		s, r := full(t, nil, false, patient)
		assert.Empty(t, r.Violations())
		assert.NoError(t, r.Err)
		assert.Equal(t, 2, s.Conns())
	})
	t.Run("a used connection takes no more streams, and there may be no other", func(t *testing.T) {
		t.Parallel()
		s, r := full(t, nil, true, 2*short)
		assert.Empty(t, r.Violations())
		require.Equal(t, gateway.OutcomeNotSent, r.Outcome(), "%v", r.Err)
		assert.ErrorIs(t, r.Err, context.DeadlineExceeded)
		assert.Equal(t, 1, s.Conns())
	})
	t.Run("a used connection takes no more streams, then goes away while the order waits for one", func(t *testing.T) {
		t.Parallel()
		// net/http leaves it waiting or fails it, by release; either way it was not sent, and is tried again.
		s, r := full(t, faultserver.GoAway(0, http2.ErrCodeNo), true, 2*short)
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

// TestHTTP2_BlackHole is about calls after one that was lost on a connection
// that stalls: the pings find it dead, and the next call gets another.
func TestHTTP2_BlackHole(t *testing.T) {
	certificates()
	s := newHTTP2Server(t)
	s.Where, s.Fault = faultserver.RequestHeader, faultserver.BreakOff(faultserver.Stall)
	client, err := gateway.New("https://"+call.Host+"/merchant", canary, gateway.WithHTTPClient(&http.Client{Transport: http2Transport(s)}))
	require.NoError(t, err)
	_, err = client.CreateInvoice(t.Context(), call.Order("earlier"))
	require.NoError(t, err)
	s.Start()
	lost := call.Create(t.Context(), client, "lost", &faultserver.Record{})
	assert.Equal(t, gateway.OutcomeUnknown, lost.Outcome(), "%v", lost.Err)
	own := &faultserver.Record{}
	own.Committed()
	r := call.Create(t.Context(), client, call.Target, own)
	s.Finish()
	client.CloseIdleConnections()
	s.Close()
	assert.Empty(t, r.Violations())
	assert.NoError(t, r.Err)
	assert.Equal(t, 1, s.Record.Seen().Commits)
	assert.Equal(t, 2, s.Conns())
}

// TestHTTP2_PlainClientDoubles shows what the client guards against: net/http
// repeats a POST by itself when it can get the body again, which [http.NewRequest]
// sees to, although the first one was carried out.
func TestHTTP2_PlainClientDoubles(t *testing.T) {
	certificates()
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
