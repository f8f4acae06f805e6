package gateway_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
)

// What each status means is tested by TestClient_EveryStatus.
func TestFaults_StatusesInTurn(t *testing.T) {
	t.Parallel()
	runFaults(t, []faultCase{{
		name:  "row N38: 503, 503, 200",
		setup: sendInTurn(503, 503, 200),
		read:  expectation{kind: success, requests: 3},
		write: expectation{kind: unknown, status: 503, attempts: 1, requests: 1},
	}})
}

func TestFaults_Redirects(t *testing.T) {
	t.Parallel()
	var cases []faultCase
	redirect := func(name string, status int, headers ...string) {
		cases = append(cases, faultCase{
			name:  fmt.Sprintf("row N42: %d %s", status, name),
			setup: sendEach(faultserver.Response(status, "", headers...)),
			read: expectation{
				kind: transportError, status: status, attempts: 1, requests: 1, dials: 1, is: []error{gateway.ErrRedirect},
			},
			write: expectation{
				kind: unknown, status: status, attempts: 1, requests: 1, dials: 1, is: []error{gateway.ErrRedirect},
			},
		})
	}
	for _, status := range []int{301, 302, 303} {
		redirect("to another host", status, "Location: http://evil.test/steal")
	}
	for _, status := range []int{307, 308} {
		redirect("to another host", status, "Location: http://evil.test/steal")
	}
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308, 399} {
		redirect("without a Location", status)
	}
	for name, location := range map[string]string{
		"with a Location that is not a URL": "http://[::1", "with a Location of bad escapes": "%zz",
		"with a Location of another scheme": "file:///etc/passwd", "to a loop": "http://localhost/",
	} {
		redirect(name, 307, "Location: "+location)
	}
	cases = append(cases, faultCase{
		name: "row N42: 307 from https to http on the same host",
		setup: func(h *harness) {
			h.server.Handler = faultserver.Secure(h.trust(), faultserver.OneRequest(func(c *faultserver.Conn) {
				c.Send(faultserver.Response(307, "", "Location: http://gateway.test/"))
			}))
			h.Cleanup(func() { assert.Equal(h, []string{"gateway.test:443"}, h.server.Dialed()) })
		},
		read:  expectation{kind: transportError, status: 307, requests: 1, is: []error{gateway.ErrRedirect}},
		write: expectation{kind: unknown, status: 307, requests: 1, is: []error{gateway.ErrRedirect}},
	})
	runFaults(t, cases)
}

// No method follows a redirect, whichever transport it has.
// I-10
func TestClient_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(func() {
		evil.Close()
		assert.Zero(t, hits.Load(), "the other host was contacted")
	})
	following := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, s := range subjects() {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(s.name, "/", status), func(t *testing.T) {
				t.Parallel()
				for _, opts := range [][]gateway.Option{nil, {gateway.WithHTTPClient(following)}} {
					w := serve(t, func(w http.ResponseWriter, r *http.Request) {
						http.Redirect(w, r, evil.URL, status)
					})
					got, err := s.call(t.Context(), newClient(t, w.URL, opts...))
					assertInvariants(t, got, err)
					assert.Len(t, w.Requests(), 1)
					assert.Equal(t, !s.write, errors.Is(err, gateway.ErrRedirect))
					assert.Equal(t, s.write, errors.Is(err, gateway.ErrOutcomeUnknown))
				}
			})
		}
	}
}

func TestFaults_Informational(t *testing.T) {
	t.Parallel()
	const early = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
	runFaults(t, []faultCase{
		{
			name:  "row N43: 101 to a request that asked for no upgrade",
			setup: sendEach("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"),
			read:  expectation{kind: transportError, status: 101, attempts: 1, requests: 1, dials: 1},
			write: expectation{kind: unknown, status: 101, attempts: 1, requests: 1, dials: 1},
		},
		{
			name: "row N43: 103 before a success",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					c.Send(early)
					h.respond(c)
				})
			},
			read:  expectation{kind: success, requests: 1},
			write: expectation{kind: success, requests: 1, commits: 1},
		},
		{
			name:  "row N43: 103 without end",
			setup: commitAndWrite(func(_ *harness, w io.Writer) { faultserver.Flood(w, "", early) }),
			read:  expectation{kind: transportError, phase: gateway.PhaseWait, requests: anyNumber},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, commits: 1},
		},
		{
			name:  "row N43: the response is not HTTP",
			setup: sendEach("SSH-2.0-OpenSSH_9.6\r\n\r\n"),
			read:  expectation{kind: transportError, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1},
		},
	})
}

const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestFaults_ResponseBody(t *testing.T) {
	t.Parallel()
	cut := expectation{kind: transportError, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3}
	lost := expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1}
	runFaults(t, []faultCase{
		{
			name: "row N44: the body of unknown length is cut",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = io.WriteString(w, "HTTP/1.0 200 OK\r\n\r\n"+h.body()[:70])
			}),
			read:  expectation{kind: decodeError, requests: anyNumber},
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1},
		},
		{
			name: "row N44: the body is cut short of its length",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				response := faultserver.Response(200, h.body())
				_, _ = io.WriteString(w, response[:len(response)-1])
			}),
			read: cut,
			write: expectation{
				kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1,
				body: enveloped(invoiceJSON)[:len(enveloped(invoiceJSON))-1],
			},
		},
		{
			name: "row N44: the body is cut within a chunk",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = fmt.Fprintf(w, "%s%x\r\n%s", chunkedHead, len(h.body()), h.body()[:50])
			}),
			read:  cut,
			write: lost,
		},
		{
			name: "row N44: the last chunk is missing",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = fmt.Fprintf(w, "%s%x\r\n%s\r\n", chunkedHead, len(h.body()), h.body())
			}),
			read:  cut,
			write: lost,
		},
		{
			name:  "row N44: the length of a chunk is no number",
			setup: commitAndWrite(func(_ *harness, w io.Writer) { _, _ = io.WriteString(w, chunkedHead+"xyz\r\n{") }),
			read:  cut,
			write: lost,
		},
		{
			name: "row N45: the body stops in the middle",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				response := faultserver.Response(200, h.body())
				_, _ = io.WriteString(w, response[:len(response)-20])
				<-h.server.Done()
			}),
			read: expectation{
				kind: transportError, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3,
				is: []error{gateway.ErrTimeout},
			},
			write: expectation{
				kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1,
				is: []error{gateway.ErrTimeout},
			},
		},
	})
}

// A body or a header that does not end, or stops.
func TestFaults_EndlessBody(t *testing.T) {
	t.Parallel()
	const begun = `{"message":"Operation was successful.","result":{"x":"`
	tooLarge := expectation{
		kind: transportError, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1,
		is: []error{gateway.ErrResponseTooLarge},
	}
	lost := expectation{
		kind: unknown, phase: gateway.PhaseRead, status: 200, requests: 1, commits: 1,
		is: []error{gateway.ErrResponseTooLarge},
	}
	runFaults(t, []faultCase{
		{
			name: "row N46: the body has no end",
			setup: limitBody(func(w io.Writer) {
				_, _ = io.WriteString(w, chunkedHead)
				flood(faultserver.ChunkWriter{Writer: w}, begun)
			}),
			read:  tooLarge,
			write: lost,
		},
		{
			name: "row N46: a small body decompresses to one without end",
			setup: limitBody(func(w io.Writer) {
				_, _ = io.WriteString(w, strings.Replace(chunkedHead, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1))
				flood(gzip.NewWriter(faultserver.ChunkWriter{Writer: w}), begun)
			}),
			read:  tooLarge,
			write: lost,
		},
		{
			name: "row N48: the header has no end",
			setup: func(h *harness) {
				h.transport.MaxResponseHeaderBytes = 64 << 10
				commitAndWrite(func(_ *harness, w io.Writer) { flood(w, "HTTP/1.1 200 OK\r\nX-Long: ") })(h)
			},
			read:  expectation{kind: transportError, phase: gateway.PhaseWait, attempts: 1, requests: 1},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1, commits: 1},
		},
		{
			name: "row N49: the body of a 500 has no end",
			setup: limitBody(func(w io.Writer) {
				_, _ = io.WriteString(w, strings.Replace(chunkedHead, "200 OK", "500 Internal Server Error", 1))
				flood(faultserver.ChunkWriter{Writer: w}, "<html>")
			}),
			read:  expectation{kind: apiError, status: 500, attempts: 3, requests: 3},
			write: expectation{kind: unknown, status: 500, attempts: 1, requests: 1, commits: 1},
		},
		{
			name: "row N49: the body of a 404 has no end",
			setup: limitBody(func(w io.Writer) {
				_, _ = io.WriteString(w, strings.Replace(chunkedHead, "200 OK", "404 Not Found", 1))
				flood(faultserver.ChunkWriter{Writer: w}, `{"message":"gone","result":["`)
			}),
			read: expectation{kind: apiError, status: 404, attempts: 1, requests: 1, text: "gone"},
		},
		{
			name: "row N49: the body of a 404 stops in the middle",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					response := faultserver.Response(404, refused("gone"))
					c.Send(response[:len(response)-5])
					c.Stop()
				})
			},
			read:  expectation{kind: apiError, status: 404, attempts: 1, requests: 1, text: "gone"},
			write: expectation{kind: rejected, status: 404, attempts: 1, requests: 1, text: "gone"},
		},
	})
}

func TestFaults_DamagedCompression(t *testing.T) {
	t.Parallel()
	read := expectation{kind: decodeError, requests: 3}
	send := func(damage func(packed []byte) []byte) func(*harness) {
		return commitAndWrite(func(h *harness, w io.Writer) {
			packed := damage([]byte(faultserver.Gzip(h.body(), 0)))
			_, _ = io.WriteString(w, faultserver.Response(200, string(packed), "Content-Encoding: gzip"))
		})
	}
	runFaults(t, []faultCase{
		{
			name: "row N47: the body is labelled gzip and is not",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = io.WriteString(w, faultserver.Response(200, h.body(), "Content-Encoding: gzip"))
			}),
			read:  read,
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1, is: []error{gzip.ErrHeader}},
		},
		{
			name: "row N47: the compressed body is damaged at its end",
			setup: send(func(packed []byte) []byte {
				packed[len(packed)-6] ^= 0xff // in the checksum
				return packed
			}),
			read:  read,
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1, is: []error{gzip.ErrChecksum}},
		},
		{
			name: "row N47: the compressed body is damaged in the middle",
			setup: send(func(packed []byte) []byte {
				copy(packed[10:], bytes.Repeat([]byte{0xff}, 20))
				return packed
			}),
			read:  read,
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1},
		},
		{
			name:  "row N47: the compressed body is cut",
			setup: send(func(packed []byte) []byte { return packed[:len(packed)-12] }),
			read:  expectation{kind: transportError, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1},
		},
	})
}

// commitAndWrite commits each request, and then writes a response and closes
// the connection.
func commitAndWrite(response func(h *harness, w io.Writer)) func(*harness) {
	return func(h *harness) {
		h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
			h.commit()
			response(h, c)
		})
	}
}

// limitBody is commitAndWrite for responses of which the client must not take
// more than a little beyond its limit of 64 KiB; net/http may drain some more
// when a body is closed, from Go 1.27 on.
func limitBody(response func(w io.Writer)) func(*harness) {
	return func(h *harness) {
		h.options = append(h.options, gateway.WithMaxResponseBytes(64<<10))
		commitAndWrite(func(h *harness, w io.Writer) {
			taken := &faultserver.CountingWriter{Writer: w}
			response(taken)
			assert.Less(h, taken.N, 1<<20, "bytes that the client took")
		})(h)
	}
}

// flood writes start, and then more until nobody reads any longer.
func flood(w io.Writer, start string) { faultserver.Flood(w, start, strings.Repeat("a", 4<<10)) }

// A read of which a response is cut at a random place succeeds.
func TestFaults_BodyCutThenWhole(t *testing.T) {
	t.Parallel()
	runFaults(t, []faultCase{{
		name: "row N44: the body is cut once, and then whole",
		setup: func(h *harness) {
			h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
				h.commit()
				response := faultserver.Response(200, h.body())
				if c.Number == 1 {
					response = response[:len(response)-1-rand.IntN(len(h.body()))]
				}
				c.Send(response)
			})
		},
		read:  expectation{kind: success, requests: 2},
		write: expectation{kind: unknown, status: 200, attempts: 1, requests: 1, commits: 1},
	}})
}
