package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// secureKinds are all kinds of transport, with the certificates of the tests where the
// caller sets them.
func secureKinds(protocols *http.Protocols) []kind {
	transport := func() *http.Transport {
		return &http.Transport{TLSClientConfig: certificates().Client(), ForceAttemptHTTP2: true, Protocols: protocols, DialContext: dialNarrow}
	}
	return []kind{
		{"the client's own transport", nil, false},
		{"a caller's transport", func() http.RoundTripper { return transport() }, false},
		{"a middleware around a caller's transport", func() http.RoundTripper { return transport() }, true},
		{"a caller's transport that x/net has prepared", func() http.RoundTripper {
			prepared := transport()
			if err := http2.ConfigureTransport(prepared); err != nil { //nolint:staticcheck // programs still do
				panic(err)
			}
			return prepared
		}, false},
	}
}

// narrow is a buffer of a connection that is soon full.
const narrow = 4 << 10

// dialNarrow dials a connection to which little can be written before the peer reads.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(narrow)
	}
	return conn, err
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
	for _, k := range secureKinds(nil) {
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
	for _, k := range kinds() {
		t.Run("HTTP/1.1, "+k.name, func(t *testing.T) {
			t.Parallel()
			server := listening(t, func(*faultserver.Conn) {})
			client := k.connect(t, "http://"+server.Addr(), gateway.RetryPolicy{})
			_, err := client.Withdrawal(t.Context(), call.WithdrawalID)
			var failure *gateway.TransportError
			require.ErrorAs(t, err, &failure)
			assert.LessOrEqual(t, server.Conns(), call.MaxConns*failure.Attempts)
			server.Record.Reset()
			r := call.Create(t.Context(), client, call.Target, &server.Record)
			assert.Error(t, r.Err)
			server.Close()
			assert.Empty(t, r.Violations())
		})
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
	for _, k := range secureKinds(nil) {
		for name, lasts := range map[string]struct{ attempt, call time.Duration }{
			"the attempt ends":          {16 * short, patient},
			"the caller's context ends": {patient, 16 * short},
		} {
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
}

// TestLogOfHTTP2 records that net/http logs every HTTP/2 frame of an unknown type, which
// the client cannot turn off, and that a transport without HTTP/2 does not offer it, as
// SECURITY.md states.
func TestLogOfHTTP2(t *testing.T) {
	const frames = 100
	unknownFrames := func(c *faultserver.HTTP2Conn, stream uint32) bool {
		for range frames {
			if c.WriteRawFrame(0xfa, 0, stream, []byte("unknown")) != nil {
				return false
			}
		}
		return true
	}
	both, onlyHTTP1 := &http.Protocols{}, &http.Protocols{}
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	onlyHTTP1.SetHTTP1(true)
	for _, tt := range []struct {
		name      string
		protocols *http.Protocols
		lines     int
	}{
		{"with HTTP/2", both, frames},
		{"with HTTP/1 only", onlyHTTP1, 0},
	} {
		for _, k := range secureKinds(tt.protocols)[1:3] {
			t.Run(k.name+" "+tt.name, func(t *testing.T) {
				var logged safeBuffer
				log.SetOutput(&logged)
				defer log.SetOutput(io.Discard)
				s := endlessHTTP2(t, faultserver.RequestHeader, unknownFrames)
				if tt.protocols == onlyHTTP1 {
					s.Handler = faultserver.UntilDone(faultserver.Secure(certificates().Server("h2", "http/1.1"), func(c *faultserver.Conn) {
						faultserver.Respond(faultserver.Response(200, call.Enveloped(call.WithdrawalResult)))(c)
						assert.NotEqual(t, "h2", c.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol)
					}))
				}
				client := k.connect(t, "https://"+s.Addr(), gateway.RetryPolicy{MaxAttempts: 1})
				_, err := client.Withdrawal(t.Context(), call.WithdrawalID)
				require.NoError(t, err)
				s.Close()
				assert.Equal(t, tt.lines, strings.Count(logged.String(), "\n"), "lines in the log of the program")
			})
		}
	}
}
