package wire

import (
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

func TestFaults_HTTP2(t *testing.T) {
	refused := faultserver.ResetStream(http2.ErrCodeRefusedStream)
	runFaults(t, onSockets, []faultCase{
		{
			name:  "a success over HTTP/2, to compare with",
			setup: overHTTP2(func(*faultserver.HTTP2) {}),
			read:  expectation{kind: success, requests: 1},
			write: expectation{kind: success, requests: 1, commits: 1},
		},
		{
			name:  "the stream is refused once, after the whole request",
			setup: faultOnce(faultserver.RequestWhole, refused),
			read:  expectation{kind: success, requests: 2, dials: 1}, // net/http repeats a read by itself
			write: expectation{kind: unknown, attempts: 1, requests: 1},
		},
		{
			name: "the stream is refused as soon as its header is there",
			setup: func(h *harness) {
				h.policy.AttemptTimeout = 4 * short // net/http repeats a read by itself, ever slower
				faultEachTime(faultserver.RequestHeader, refused)(h)
				h.http2.Window = 0
			},
			read:  expectation{kind: transportFailure, requests: anyNumber},
			write: expectation{kind: unknown, attempts: 1, requests: anyNumber, dials: 1}, // the body was read, though it may not have left
		},
		{
			name:  "the server goes away without the stream, after the whole request",
			setup: faultOnce(faultserver.RequestWhole, faultserver.GoAway(-2, http2.ErrCodeNo)),
			read:  expectation{kind: success, requests: 2, dials: 2}, // net/http repeats a read by itself
			write: expectation{kind: unknown, attempts: 1, requests: 1, dials: 1},
		},
		{
			name: "the server commits and goes away with the stream",
			setup: faultEachTime(faultserver.Committed, func(c *faultserver.HTTP2Conn, stream uint32) bool {
				_ = c.WriteGoAway(stream, http2.ErrCodeNo, nil)
				return false
			}),
			read:  expectation{kind: transportFailure, attempts: 3, requests: 3},
			write: expectation{kind: unknown, attempts: 1, requests: 1, commits: 1, dials: 1},
		},
		{
			name: "the server went away before the request",
			setup: func(h *harness) {
				// Within the response to the read, so that the client has seen it when the read is over.
				faultOnce(faultserver.ResponseHeader, faultserver.GoAway(0, http2.ErrCodeNo))(h)
				h.warm()
			},
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: success, requests: 1, commits: 1, dials: 2},
		},
		{
			name:  "the stream ends in an internal error",
			setup: faultEachTime(faultserver.RequestWhole, faultserver.ResetStream(http2.ErrCodeInternal)),
			read:  expectation{kind: transportFailure, attempts: 3, requests: 3},
			write: expectation{kind: unknown, attempts: 1, requests: 1},
		},
		{
			name:  "the stream is cancelled",
			setup: faultEachTime(faultserver.RequestWhole, faultserver.ResetStream(http2.ErrCodeCancel)),
			read:  expectation{kind: transportFailure, attempts: 3, requests: 3},
			write: expectation{kind: unknown, attempts: 1, requests: 1},
		},
		{
			name:  "the stream is cancelled after the response's header",
			setup: faultEachTime(faultserver.ResponseHeader, faultserver.ResetStream(http2.ErrCodeCancel)),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 201, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseRead, status: 201, attempts: 1, requests: 1, commits: 1},
		},
		{
			name:  "packets are dropped on a connection that was good",
			setup: dropPackets,
			read:  expectation{kind: success, requests: 1, dials: 2},
			write: expectation{kind: unknown, attempts: 1, dials: 1},
		},
	})
}

// TestFaults_HTTP2_order is about faults of a stream or a connection that has an order, whether
// the server has created its invoice or not: its outcome is unknown, and it is sent once.
func TestFaults_HTTP2_order(t *testing.T) {
	var cases []faultCase
	for name, one := range map[string]struct {
		where   faultserver.Boundary
		fault   faultserver.StreamFault
		commits int
	}{
		"the stream is refused at its header":                       {faultserver.RequestHeader, faultserver.ResetStream(http2.ErrCodeRefusedStream), 0},
		"the stream is refused within its body":                     {faultserver.RequestData, faultserver.ResetStream(http2.ErrCodeRefusedStream), 0},
		"the stream is refused after the commit, which is false":    {faultserver.Committed, faultserver.ResetStream(http2.ErrCodeRefusedStream), 1},
		"the server goes away without the stream, after the commit": {faultserver.Committed, faultserver.GoAway(-2, http2.ErrCodeNo), 1},
		"the stream ends in a protocol error before the commit":     {faultserver.RequestData, faultserver.ResetStream(http2.ErrCodeProtocol), 0},
		"the stream ends in an internal error before the commit":    {faultserver.RequestData, faultserver.ResetStream(http2.ErrCodeInternal), 0},
		"the stream is cancelled before the commit":                 {faultserver.RequestData, faultserver.ResetStream(http2.ErrCodeCancel), 0},
		"the stream asks for calm before the commit":                {faultserver.RequestData, faultserver.ResetStream(http2.ErrCodeEnhanceYourCalm), 0},
		"the stream ends in a protocol error after the commit":      {faultserver.Committed, faultserver.ResetStream(http2.ErrCodeProtocol), 1},
		"the stream ends in an internal error after the commit":     {faultserver.Committed, faultserver.ResetStream(http2.ErrCodeInternal), 1},
		"the stream is cancelled after the commit":                  {faultserver.Committed, faultserver.ResetStream(http2.ErrCodeCancel), 1},
		"the stream asks for calm after the commit":                 {faultserver.Committed, faultserver.ResetStream(http2.ErrCodeEnhanceYourCalm), 1},
		"the connection becomes a black hole at the header":         {faultserver.RequestHeader, faultserver.BreakOff(faultserver.Stall), 0},
		"the connection becomes a black hole after the commit":      {faultserver.Committed, faultserver.BreakOff(faultserver.Stall), 1},
	} {
		cases = append(cases, faultCase{
			name: name, setup: faultOnce(one.where, one.fault),
			write: expectation{kind: unknown, attempts: 1, requests: anyNumber, commits: one.commits, dials: 1},
		})
	}
	runFaults(t, onSockets, append(cases,
		faultCase{
			name: "the body may not be sent yet, and the stream is refused",
			setup: func(h *harness) {
				faultOnce(faultserver.RequestHeader, faultserver.ResetStream(http2.ErrCodeRefusedStream))(h)
				h.http2.Window = 0
			},
			write: expectation{kind: unknown, attempts: 1, requests: anyNumber, dials: 1},
		},
		faultCase{
			name:  "the server goes away with the stream and responds to it",
			setup: faultOnce(faultserver.Committed, faultserver.GoAway(0, http2.ErrCodeNo)),
			write: expectation{kind: success, requests: 1, commits: 1, dials: 1},
		},
	))
}

// overHTTP2 makes the server speak HTTP/2.
func overHTTP2(change func(s *faultserver.HTTP2)) func(*harness) {
	return func(h *harness) {
		h.trust()
		h.transport.ForceAttemptHTTP2 = true
		h.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 4 * short, PingTimeout: 4 * short}
		h.http2 = faultserver.NewHTTP2(h.server, certificates().Server("h2"), func(post bool, _ []byte) string {
			if !post {
				return call.Enveloped(call.WithdrawalResult)
			}
			h.commit()
			return call.Enveloped(call.InvoiceResult(call.Target))
		})
		change(h.http2)
		h.http2.Start()
	}
}

// faultOnce is one fault at the first boundary of a name.
func faultOnce(where faultserver.Boundary, fault faultserver.StreamFault) func(*harness) {
	return overHTTP2(func(s *faultserver.HTTP2) { s.Where, s.Fault = where, fault })
}

// faultEachTime is a fault at every boundary of a name.
func faultEachTime(where faultserver.Boundary, fault faultserver.StreamFault) func(*harness) {
	return overHTTP2(func(s *faultserver.HTTP2) { s.Where, s.Fault, s.EachTime = where, fault, true })
}

// dropPackets loses everything on the first connection once it has been used,
// without an error at either end.
func dropPackets(h *harness) {
	overHTTP2(func(*faultserver.HTTP2) {})(h)
	var first *faultserver.BreakingConn
	h.server.WrapClient = func(conn net.Conn, number int) net.Conn {
		if number > 1 {
			return conn
		}
		first = faultserver.NewBreakingConn(conn, nil)
		return first
	}
	h.warm()
	first.Arm(faultserver.Break{Up: 0, Down: faultserver.Unlimited, Manner: faultserver.Stall})
}
