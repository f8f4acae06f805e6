package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// always is more often than any call is attempted.
const always = 1 << 20

// A fault before the whole request has left: an invoice is not sent, and what may succeed is attempted again.
func TestFaults_connecting(t *testing.T) {
	t.Parallel()
	const dial, inTLS = gateway.PhaseDial, gateway.PhaseTLS
	badTLS, badTLSUnsent := failed(inTLS, 1).over(1), unsent(inTLS, 1).over(1)
	busy := &net.DNSError{Err: "server misbehaving", Name: "localhost", IsTemporary: true}
	runFaults(t, inBubble, []faultCase{
		{"looking up the host fails once", failOnce(busy), done(1, 2), done(1, 2)},
		{"the server knows TLS 1.1 only", behindTLS(func(_ *harness, c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), badTLS, badTLSUnsent},
	})
	runFaults(t, onSockets, []faultCase{
		{"the certificate is of an unknown authority", behindTLS(func(h *harness, _ *tls.Config) {
			h.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		}), badTLS, badTLSUnsent},
		{"the connection is refused", func(h *harness) {
			h.server.OnDial = func(ctx context.Context, _ int) error {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:1") // nothing listens on tcpmux
				if err == nil {
					_ = conn.Close()
				}
				return err
			}
		}, failed(dial, 3, syscall.ECONNREFUSED).over(3), unsent(dial, 3, syscall.ECONNREFUSED).over(3)},
		{"every TLS handshake is reset", resetHandshakes(always), failed(inTLS, 3), unsent(inTLS, 3)},
		{"one TLS handshake is reset", resetHandshakes(1), done(1, 2), done(1, 2)},
		{"the idle connection was reset", resetIdle, done(1, 2), done(1, 2)},
	})
}

// A connection that was used, or that stops while the request is written.
func TestFaults_sending(t *testing.T) {
	t.Parallel()
	idempotencyKey := func(h *harness) {
		closeReused(h)
		h.tripper = tripper(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("Idempotency-Key", "of-the-transport") // net/http believes that it may replay such a request
			return h.transport.RoundTrip(req)
		})
		h.warm()
	}
	hold := func(c *faultserver.Conn) { c.Hold() }
	ended := context.DeadlineExceeded
	runFaults(t, inBubble, []faultCase{
		{"the server has closed the idle connection", func(h *harness) {
			h.server.Handler = faultserver.OneRequest(h.respondAfterWarming)
			h.warm()
			synctest.Wait() // until the client has seen the end of the connection
		}, done(1, 2), done(1, 2)},
		{"the header cannot be written to the idle connection", func(h *harness) {
			h.transport.WriteBufferSize = 16 // the header leaves before the body is read
			h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
				h.respondAfterWarming(c)
				c.Hold()
			})
			first := h.breaking()
			h.warm()
			first().Arm(faultserver.Break{Up: 0, Down: faultserver.Unlimited, Manner: faultserver.WriteError})
		}, done(1, 2), done(1, 2)},
		{"the reused connection is closed after the whole request, which net/http replays if it is a read", func(h *harness) {
			closeReused(h)
			h.warm()
		}, done(2, 2), done(1, 2)},
		{"the reused connection of a RoundTripper that adds Idempotency-Key is closed after the whole request", idempotencyKey, expectation{}, unsure("").committed().over(1)},
		{"every connection is cut within the header", func(h *harness) {
			h.server.Handler = (*faultserver.Conn).Hold
			h.server.WrapClient = func(conn net.Conn, _ int) net.Conn {
				breaking := faultserver.NewBreakingConn(conn, func() {})
				breaking.Arm(faultserver.Break{Up: 20, Down: faultserver.Unlimited, Manner: faultserver.WriteError})
				return breaking
			}
		}, failed("", 3).over(3), unsent(gateway.PhaseWrite, 3).over(3)},
		{"the server does not even read the header", func(h *harness) { h.server.Handler = (*faultserver.Conn).Stop }, failed("", 3, ended), unsent(gateway.PhaseWrite, 3, ended)},
		{"the server does not read the body", func(h *harness) {
			h.server.Handler = func(c *faultserver.Conn) {
				var header []byte
				for one := make([]byte, 1); !bytes.HasSuffix(header, []byte("\r\n\r\n")); header = append(header, one...) {
					if _, err := c.Read(one); err != nil {
						return
					}
				}
				c.Stop()
			}
		}, expectation{}, unsure("", ended).over(1).after(0)},
		{"the server never responds", oneRequest(func(*harness, *faultserver.Conn) {}, hold), failed(gateway.PhaseWait, 3, ended), unsure(gateway.PhaseWait, ended)},
		{"the caller cancels while waiting", oneRequest(func(h *harness, _ *faultserver.Conn) { h.cancel() }, hold), failed(gateway.PhaseWait, 1, context.Canceled), unsure(gateway.PhaseWait, ended)},
		{"the caller's deadline passes while waiting", func(h *harness) {
			h.ctx, h.cancel = context.WithTimeout(h.ctx, 5*time.Second)
			h.Cleanup(h.cancel)
			oneRequest(func(*harness, *faultserver.Conn) {}, hold)(h)
		}, failed(gateway.PhaseWait, 1, ended), unsure(gateway.PhaseWait, ended)},
	})
}

const (
	earlyHints  = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
	okHead      = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	chunkedHead = okHead + "Transfer-Encoding: chunked\r\n\r\n"
)

// A response that is none, or is not the service's. The meaning of each status is tested by TestClient_EveryStatus.
func TestFaults_responding(t *testing.T) {
	t.Parallel()
	redirected := func(status int) (read, write expectation) {
		return failed("", 1, gateway.ErrRedirect).at(status).over(1).after(1), unsure("", gateway.ErrRedirect).at(status).over(1)
	}
	cases := []faultCase{
		{"101 to a request that asked for no upgrade", sendEach("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"), failed("", 1).at(101).after(1).over(1), unsure("").at(101).over(1)},
		{"103 before a success", oneRequest(func(h *harness, c *faultserver.Conn) {
			c.Send(earlyHints)
			h.respond(c)
		}), done(1, 0), done(1, 0)},
		{"the response is not HTTP", sendEach("SSH-2.0-OpenSSH_9.6\r\n\r\n"), failed(gateway.PhaseWait, 3), unsure(gateway.PhaseWait)},
	}
	for name, header := range map[string]string{
		"a redirect to another host": "Location: http://evil.test/steal", "a redirect to itself": "Location: http://" + call.Host + "/",
		"a redirect to a text that is no URL": "Location: http://[::1",
	} {
		for _, status := range []int{300, 303, 307} {
			read, write := redirected(status)
			cases = append(cases, faultCase{fmt.Sprintf("%s, %d", name, status), sendEach(faultserver.Response(status, "", header)), read, write})
		}
	}
	read, write := redirected(307)
	cases = append(cases, faultCase{"307 from https to http on the same host", func(h *harness) {
		h.server.Handler = faultserver.Secure(h.trust(), faultserver.OneRequest(func(c *faultserver.Conn) {
			c.Send(faultserver.Response(307, "", "Location: http://127.0.0.1/"))
		}))
	}, read, write})
	runFaults(t, inBubble, cases)
}

// A body that breaks, stops, does not end or is damaged. The invoice exists.
func TestFaults_body(t *testing.T) {
	t.Parallel()
	const begun = `{"message":"Operation was successful.","result":{"x":"`
	cut, lost := failed(gateway.PhaseRead, 3).at(200), unsure(gateway.PhaseRead).at(200).committed()
	tooLarge, lostToo := failed(gateway.PhaseRead, 1, gateway.ErrResponseTooLarge).at(200), unsure(gateway.PhaseRead, gateway.ErrResponseTooLarge).at(200).committed()
	unread, notUnderstood := undecoded(3), unsure("").at(200).committed()
	text := func(format func(h *harness) string) func(*harness) {
		return commitAndWrite(func(h *harness, w io.Writer) { _, _ = io.WriteString(w, format(h)) })
	}
	packed := func(damage func(packed []byte) []byte) func(*harness) {
		return text(func(h *harness) string {
			return faultserver.Response(200, string(damage([]byte(faultserver.Gzip(h.body(), 0)))), "Content-Encoding: gzip")
		})
	}
	runFaults(t, inBubble, []faultCase{
		{"the body of unknown length is cut", text(func(h *harness) string { return "HTTP/1.0 200 OK\r\n\r\n" + h.body()[:70] }), undecoded(anyNumber), notUnderstood},
		{"the length of a chunk is no number", text(func(*harness) string { return chunkedHead + "xyz\r\n{" }), cut, lost},
		{"the body is cut once, and then whole", oneRequest(func(h *harness, c *faultserver.Conn) {
			h.commit()
			response := faultserver.Response(200, h.body())
			if c.Number == 1 {
				response = response[:len(response)-1-rand.IntN(len(h.body()))]
			}
			c.Send(response)
		}), done(2, 0), lost},

		{"the body has no end", commitAndWrite(endless("200 OK", begun)), tooLarge, lostToo},
		{"a small body decompresses to one without end", commitAndWrite(func(h *harness, w io.Writer) {
			_, _ = io.WriteString(w, strings.Replace(chunkedHead, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1))
			fill(gzip.NewWriter(faultserver.ChunkWriter{Writer: w}), begun)
		}), tooLarge, lostToo},

		{"the body is labelled gzip and is not", text(func(h *harness) string { return faultserver.Response(200, h.body(), "Content-Encoding: gzip") }), unread, unsure("", gzip.ErrHeader).at(200).committed()},
		{"the compressed body is damaged at its end", packed(func(packed []byte) []byte {
			packed[len(packed)-6] ^= 0xff // in the checksum
			return packed
		}), unread, unsure("", gzip.ErrChecksum).at(200).committed()},
		{"the compressed body is damaged in the middle", packed(func(packed []byte) []byte {
			copy(packed[10:], bytes.Repeat([]byte{0xff}, 20))
			return packed
		}), unread, notUnderstood},
		{"the compressed body is cut", packed(func(packed []byte) []byte { return packed[:len(packed)-12] }), cut, lost},
	})
}

const (
	small = 8 << 20   // bytes for a response that is refused at its beginning, in three attempts
	large = 160 << 20 // for a body that is read up to the limit of 8 MiB
)

// Responses that cost as much as they can: what a call allocates for them is bounded, and nothing is left behind.
func TestHostile(t *testing.T) {
	const gzipped, password = "Content-Encoding: gzip\r\n", "hunter2-and-more"
	body := call.Enveloped(call.WithdrawalResult)
	sized := func(body string) string { return faultserver.WithLength(okHead, body) }
	trickle := func(head string) faultserver.Handler {
		return faultserver.OneRequest(func(c *faultserver.Conn) { faultserver.Trickle(c, head, 5*time.Millisecond) })
	}
	closing := func(response string) faultserver.Handler {
		return faultserver.OneRequest(func(c *faultserver.Conn) { c.Send(response) })
	}
	notUnderstood, lost := unsure("").at(200), unsure(gateway.PhaseWait)
	noHeader, badHeader := failed(gateway.PhaseWait, 0).after(1), failed(gateway.PhaseWait, 3)
	refusal, refusedOrder := apiError(404, 1), unsure("").at(404) // its body is not known
	late := context.DeadlineExceeded
	many, account := strings.Repeat("://", 80_000), "http://user:"+password+"@host/ "
	quoted := func(response string) func(*harness) { // net/http quotes a response that is not HTTP as a whole
		return func(h *harness) {
			h.policy.MaxAttempts, h.secrets = 1, []string{password}
			sendEach(response)(h)
		}
	}
	check := call.Leftovers(t)
	for _, row := range []hostileCase{
		{"many URLs for a protocol", quoted(many + " 200 OK\r\n\r\n"), noHeader, lost, small},
		{"many passwords for a status", quoted("HTTP/1.1 " + strings.Repeat(account, 5000) + "\r\n\r\n"), noHeader, lost, small},
		{"a password and many URLs for a length", quoted(okHead + "Content-Length: " + account + many + "\r\n\r\n"), noHeader, lost, small},
		{"a gzip bomb in a field that is not read", sendEach(faultserver.WithLength(okHead+gzipped, faultserver.Gzip(`{"x":`, 100))), failed(gateway.PhaseRead, 1, gateway.ErrResponseTooLarge).at(200), unsure(gateway.PhaseRead, gateway.ErrResponseTooLarge).at(200), large},
		{"a gzip bomb under a status of a refusal", sendEach(faultserver.WithLength("HTTP/1.1 404 Not Found\r\n"+gzipped, faultserver.Gzip(`{"message":"`, 100))), refusal, refusedOrder, small},
		{"a million braces", sendEach(sized(strings.Repeat(`{"a":`, 1_000_000))), undecoded(1), notUnderstood, 2 * small},
		{"a million brackets within the result", sendEach(sized(`{"result":` + strings.Repeat(`[`, 1_000_000))), undecoded(1), notUnderstood, small},
		{"a list of a million where a record should be", sendEach(sized(`{"message":"Operation was successful.","result":[` + strings.Repeat("{},", 1_000_000) + `{}]}`)), undecoded(1), notUnderstood, large},
		{"a header that never ends", meets(flood("HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("h", 1000))), noHeader, lost, small},
		{"headers that never end", meets(flood("HTTP/1.1 200 OK\r\n", "X-One: more\r\n")), noHeader, lost, small},
		{"a status line that never ends", meets(flood("HTTP/1.1 200 ", "OK")), noHeader, lost, small},
		{"informational responses that never end", meets(flood("", earlyHints)), noHeader.after(anyNumber), lost, small},
		{"a body that trickles", slowly(trickle(okHead + "\r\n{")), failed(gateway.PhaseRead, 3, late).at(200), unsure(gateway.PhaseRead, late).at(200), small},
		{"two Content-Lengths", meets(closing(okHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body)), badHeader, lost, small},
		{"a chunk of a size beyond belief", meets(closing(chunkedHead + "ffffffffffffffff0\r\n" + body)), failed(gateway.PhaseRead, 3).at(200), unsure(gateway.PhaseRead).at(200), small},
	} {
		row.run(t, onSockets)
	}
	check()
}

// A hostileCase is a faultCase with a bound of the memory that the call may allocate.
type hostileCase struct {
	name        string
	setup       func(*harness)
	read, write expectation
	memory      uint64
}

func (c hostileCase) run(t *testing.T, at place) {
	faultCase{c.name, func(h *harness) {
		h.memory, h.transport.MaxResponseHeaderBytes = c.memory, 256<<10
		c.setup(h)
	}, c.read, c.write}.run(t, at, func(*testing.T) {}) // what runs beside it allocates, too
}

// flood sends a beginning, and then more of the same without end.
func flood(head, more string) faultserver.Handler {
	return faultserver.OneRequest(func(c *faultserver.Conn) { faultserver.Flood(c, head, more) })
}

// meets makes a server of a handler.
func meets(handler faultserver.Handler) func(*harness) {
	return func(h *harness) { h.server.Handler = handler }
}

// slowly is meets for responses that end with their attempts.
func slowly(handler faultserver.Handler) func(*harness) {
	return func(h *harness) {
		h.policy.AttemptTimeout, h.policy.InvoiceTimeout = 4*short, 4*short
		h.server.Handler = handler
	}
}

// oneRequest reads one request of each connection, does something and closes it.
func oneRequest(fault func(h *harness, c *faultserver.Conn), then ...func(*faultserver.Conn)) func(*harness) {
	return func(h *harness) {
		h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
			fault(h, c)
			for _, do := range then {
				do(c)
			}
		})
	}
}

// commitAndWrite reads each request, commits, writes a response and closes the connection.
func commitAndWrite(response func(h *harness, w io.Writer)) func(*harness) {
	return oneRequest(func(h *harness, c *faultserver.Conn) {
		h.commit()
		response(h, c)
	})
}

// endless writes a response with a body that begins so and has no end.
func endless(status, begun string) func(h *harness, w io.Writer) {
	return func(_ *harness, w io.Writer) {
		_, _ = io.WriteString(w, strings.Replace(chunkedHead, "200 OK", status, 1))
		fill(faultserver.ChunkWriter{Writer: w}, begun)
	}
}

// fill writes start, and then more until nobody reads any longer.
func fill(w io.Writer, start string) { faultserver.Flood(w, start, strings.Repeat("a", 4<<10)) }

// sendEach sends the same bytes in response to each request, and commits nothing.
func sendEach(response string) func(*harness) { return meets(faultserver.Respond(response)) }

// closeReused responds to the first request of the first connection, and commits the second without a response.
func closeReused(h *harness) {
	h.server.Handler = func(c *faultserver.Conn) {
		if _, whole := c.ReadRequest(); !whole {
			return
		}
		h.respondAfterWarming(c)
		if _, whole := c.ReadRequest(); whole && c.Number == 1 {
			h.commit()
		}
	}
}

// respondAfterWarming responds to the read of warm, which is the first request of the first connection, and then
// to the call.
func (h *harness) respondAfterWarming(c *faultserver.Conn) {
	if c.Number == 1 {
		c.Send(faultserver.Response(201, call.Enveloped(call.WithdrawalResult)))
		return
	}
	h.respond(c)
}

// failOnce fails the first dial.
func failOnce(err error) func(*harness) {
	return func(h *harness) {
		h.server.OnDial = func(_ context.Context, number int) error {
			if number > 1 {
				return nil
			}
			return err
		}
	}
}

// behindTLS is a server without a fault behind TLS, but for the change.
func behindTLS(change func(*harness, *tls.Config)) func(*harness) {
	return func(h *harness) {
		config := h.trust()
		change(h, config)
		h.server.Handler = faultserver.Secure(config, h.succeed)
	}
}

// resetHandshakes resets so many connections within the ClientHello.
func resetHandshakes(times int) func(*harness) {
	return func(h *harness) {
		config := h.trust()
		h.server.Handler = func(c *faultserver.Conn) {
			if c.Number > times {
				faultserver.Secure(config, h.succeed)(c)
				return
			}
			_, _ = c.Read(make([]byte, 1))
			c.Reset()
		}
	}
}

// resetIdle resets the first connection after its first response, and waits until the client has seen that.
func resetIdle(h *harness) {
	seen := make(chan struct{})
	h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
		h.respondAfterWarming(c)
		if c.Number == 1 {
			c.Reset()
		}
	})
	h.server.WrapClient = func(conn net.Conn, number int) net.Conn {
		if number > 1 {
			return conn
		}
		return &watchedConn{Conn: conn, closed: sync.OnceFunc(func() { close(seen) })}
	}
	h.warm()
	<-seen
}

// A watchedConn reports that the client has closed it.
type watchedConn struct {
	net.Conn
	closed func()
}

func (c *watchedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
