package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// What each status means is tested by TestClient_EveryStatus.
func TestFaults_StatusesInTurn(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{{
		name:  "503, 503, 200",
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
			name:  fmt.Sprintf("%d %s", status, name),
			setup: sendEach(faultserver.Response(status, "", headers...)),
			read: expectation{
				kind: transportFailure, status: status, attempts: 1, requests: 1, dials: 1, is: []error{gateway.ErrRedirect},
			},
			write: expectation{
				kind: unknown, status: status, attempts: 1, requests: 1, dials: 1, is: []error{gateway.ErrRedirect},
			},
		})
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		redirect("to another host", status, "Location: http://evil.test/steal")
	}
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308, 399} {
		redirect("without a Location", status)
	}
	for name, location := range map[string]string{
		"with a Location that is not a URL": "http://[::1", "with a Location of bad escapes": "%zz",
		"with a Location of another scheme": "file:///etc/passwd", "to a loop": "http://" + call.Host + "/",
	} {
		redirect(name, 307, "Location: "+location)
	}
	cases = append(cases, faultCase{
		name: "307 from https to http on the same host",
		setup: func(h *harness) {
			h.server.Handler = faultserver.Secure(h.trust(), faultserver.OneRequest(func(c *faultserver.Conn) {
				c.Send(faultserver.Response(307, "", "Location: http://127.0.0.1/"))
			}))
		},
		read:  expectation{kind: transportFailure, status: 307, requests: 1, dials: 1, is: []error{gateway.ErrRedirect}},
		write: expectation{kind: unknown, status: 307, requests: 1, dials: 1, is: []error{gateway.ErrRedirect}},
	})
	runFaults(t, inBubble, cases)
}

const earlyHints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"

func TestFaults_Informational(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{
		{
			name:  "101 to a request that asked for no upgrade",
			setup: sendEach("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"),
			read:  expectation{kind: transportFailure, status: 101, attempts: 1, requests: 1, dials: 1},
			write: expectation{kind: unknown, status: 101, attempts: 1, requests: 1, dials: 1},
		},
		{
			name: "103 before a success",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					c.Send(earlyHints)
					h.respond(c)
				})
			},
			read:  expectation{kind: success, requests: 1},
			write: expectation{kind: success, requests: 1, commits: 1},
		},
		{
			name:  "the response is not HTTP",
			setup: sendEach("SSH-2.0-OpenSSH_9.6\r\n\r\n"),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseWait, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseWait, requests: 1},
		},
	})
}

// invoiceBody is the body of the response to an invoice that succeeds.
var invoiceBody = call.Enveloped(call.InvoiceResult(call.Target))

const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestFaults_ResponseBody(t *testing.T) {
	t.Parallel()
	cut := expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3}
	lost := expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1}
	runFaults(t, inBubble, []faultCase{
		{
			name: "the body of unknown length is cut",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = io.WriteString(w, "HTTP/1.0 200 OK\r\n\r\n"+h.body()[:70])
			}),
			read:  expectation{kind: decodeFailure, requests: anyNumber},
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1},
		},
		{
			name: "the body is cut short of its length",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				response := faultserver.Response(200, h.body())
				_, _ = io.WriteString(w, response[:len(response)-1])
			}),
			read: expectation{
				kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3,
				is: []error{io.ErrUnexpectedEOF},
			},
			write: expectation{
				kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1,
				body: invoiceBody[:len(invoiceBody)-1],
			},
		},
		{
			name: "the body is cut within a chunk",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = fmt.Fprintf(w, "%s%x\r\n%s", chunkedHead, len(h.body()), h.body()[:50])
			}),
			read:  cut,
			write: lost,
		},
		{
			name: "the last chunk is missing",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = fmt.Fprintf(w, "%s%x\r\n%s\r\n", chunkedHead, len(h.body()), h.body())
			}),
			read:  cut,
			write: lost,
		},
		{
			name:  "the length of a chunk is no number",
			setup: commitAndWrite(func(_ *harness, w io.Writer) { _, _ = io.WriteString(w, chunkedHead+"xyz\r\n{") }),
			read:  cut,
			write: lost,
		},
		{
			name: "the body stops in the middle",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				response := faultserver.Response(200, h.body())
				_, _ = io.WriteString(w, response[:len(response)-20])
				<-h.server.Done()
			}),
			read: expectation{
				kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3,
				is: []error{context.DeadlineExceeded},
			},
			write: expectation{
				kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1,
				is: []error{context.DeadlineExceeded},
			},
		},
	})
}

// A body or a header that does not end, or stops.
func TestFaults_EndlessBody(t *testing.T) {
	t.Parallel()
	const begun = `{"message":"Operation was successful.","result":{"x":"`
	tooLarge := expectation{
		kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1,
		is: []error{gateway.ErrResponseTooLarge},
	}
	lost := expectation{
		kind: unknown, phase: gateway.PhaseRead, status: 200, requests: 1, commits: 1,
		is: []error{gateway.ErrResponseTooLarge},
	}
	runFaults(t, inBubble, []faultCase{
		{
			name:  "the body has no end",
			setup: limited(endless("200 OK", begun)),
			read:  tooLarge,
			write: lost,
		},
		{
			name: "a small body decompresses to one without end",
			setup: limited(func(w io.Writer) {
				_, _ = io.WriteString(w, strings.Replace(chunkedHead, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1))
				fill(gzip.NewWriter(faultserver.ChunkWriter{Writer: w}), begun)
			}),
			read:  tooLarge,
			write: lost,
		},
		{
			name: "the body of a 500 has no end",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				takesLittle(h, w, endless("500 Internal Server Error", "<html>"))
			}),
			read:  expectation{kind: apiFailure, status: 500, attempts: 3, requests: 3},
			write: expectation{kind: unknown, status: 500, attempts: 1, requests: 1, commits: 1},
		},
		{
			name: "the body of a 404 has no end",
			setup: write(func(h *harness, w io.Writer) {
				takesLittle(h, w, endless("404 Not Found", `{"message":"gone","result":["`))
			}),
			read:  expectation{kind: apiFailure, status: 404, attempts: 1, requests: 1, text: "gone"},
			write: expectation{kind: unknown, status: 404, attempts: 1, requests: 1, text: "gone"},
		},
		{
			name: "the body of a 404 stops in the middle",
			setup: func(h *harness) {
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					response := faultserver.Response(404, refused("gone"))
					c.Send(response[:len(response)-5])
					c.Stop()
				})
			},
			read:  expectation{kind: apiFailure, status: 404, attempts: 1, requests: 1, text: "gone"},
			write: expectation{kind: unknown, status: 404, attempts: 1, requests: 1, text: "gone"},
		},
	})
}

func TestFaults_DamagedCompression(t *testing.T) {
	t.Parallel()
	read := expectation{kind: decodeFailure, requests: 3}
	send := func(damage func(packed []byte) []byte) func(*harness) {
		return commitAndWrite(func(h *harness, w io.Writer) {
			packed := damage([]byte(faultserver.Gzip(h.body(), 0)))
			_, _ = io.WriteString(w, faultserver.Response(200, string(packed), "Content-Encoding: gzip"))
		})
	}
	runFaults(t, inBubble, []faultCase{
		{
			name: "the body is labelled gzip and is not",
			setup: commitAndWrite(func(h *harness, w io.Writer) {
				_, _ = io.WriteString(w, faultserver.Response(200, h.body(), "Content-Encoding: gzip"))
			}),
			read:  read,
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1, is: []error{gzip.ErrHeader}},
		},
		{
			name: "the compressed body is damaged at its end",
			setup: send(func(packed []byte) []byte {
				packed[len(packed)-6] ^= 0xff // in the checksum
				return packed
			}),
			read:  read,
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1, is: []error{gzip.ErrChecksum}},
		},
		{
			name: "the compressed body is damaged in the middle",
			setup: send(func(packed []byte) []byte {
				copy(packed[10:], bytes.Repeat([]byte{0xff}, 20))
				return packed
			}),
			read:  read,
			write: expectation{kind: unknown, status: 200, requests: 1, commits: 1},
		},
		{
			name:  "the compressed body is cut",
			setup: send(func(packed []byte) []byte { return packed[:len(packed)-12] }),
			read:  expectation{kind: transportFailure, phase: gateway.PhaseRead, status: 200, attempts: 3, requests: 3},
			write: expectation{kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, requests: 1, commits: 1},
		},
	})
}

// write reads each request, and then writes a response and closes the connection.
func write(response func(h *harness, w io.Writer)) func(*harness) {
	return func(h *harness) {
		h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) { response(h, c) })
	}
}

// commitAndWrite is write after a commit.
func commitAndWrite(response func(h *harness, w io.Writer)) func(*harness) {
	return write(func(h *harness, w io.Writer) {
		h.commit()
		response(h, w)
	})
}

// limited is commitAndWrite for a response over the limit of 8 MiB.
func limited(response func(w io.Writer)) func(*harness) {
	return func(h *harness) {
		commitAndWrite(func(h *harness, w io.Writer) { takesLittle(h, w, response) })(h)
	}
}

// takesLittle asserts that the client takes the beginning of a response only; net/http may
// drain some more when a body is closed, from Go 1.27 on.
func takesLittle(h *harness, w io.Writer, response func(w io.Writer)) {
	taken := &faultserver.CountingWriter{Writer: w}
	response(taken)
	assert.Less(h, taken.N, 9<<20, "bytes that the client took")
}

// endless writes a response with a body that begins so and has no end.
func endless(status, begun string) func(w io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, strings.Replace(chunkedHead, "200 OK", status, 1))
		fill(faultserver.ChunkWriter{Writer: w}, begun)
	}
}

// fill writes start, and then more until nobody reads any longer.
func fill(w io.Writer, start string) { faultserver.Flood(w, start, strings.Repeat("a", 4<<10)) }

// A read of which a response is cut at a random place succeeds.
func TestFaults_BodyCutThenWhole(t *testing.T) {
	t.Parallel()
	runFaults(t, inBubble, []faultCase{{
		name: "the body is cut once, and then whole",
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

// sendEach sends the same bytes in response to each request, and commits
// nothing.
func sendEach(response string) func(*harness) {
	return func(h *harness) { h.server.Handler = faultserver.Respond(response) }
}

// sendInTurn sends one status after the other; 200 is a success.
func sendInTurn(statuses ...int) func(*harness) {
	return func(h *harness) {
		next := 0
		h.server.Handler = faultserver.EachRequest(func(c *faultserver.Conn) bool {
			status := statuses[next]
			next++
			if status == 200 {
				return h.respond(c)
			}
			return c.Send(faultserver.Response(status, refused("Not now.")))
		})
	}
}

// A status that is retried decides alone: of a body that stalls behind it no attempt waits
// for longer than a second. What a status does not decide is waited for.
func TestFaults_StalledBody(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]time.Duration{
		500: 3 * time.Second, 429: 3 * time.Second, 404: time.Minute, 200: 3 * time.Minute,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			inBubble.test(t, func(t *testing.T) {
				h := newHarness(t, inBubble, false)
				h.policy.AttemptTimeout = time.Minute
				h.server.Handler = faultserver.OneRequest(func(c *faultserver.Conn) {
					c.Send(fmt.Sprintf("HTTP/1.1 %d Stalled\r\nContent-Length: 100\r\n\r\n{\"message\":", status))
					c.Hold()
				})
				begun := time.Now()
				_, err := h.client().Withdrawal(h.ctx, call.WithdrawalID)
				took := time.Since(begun)
				h.finish()
				assert.Equal(t, want, took.Truncate(time.Second))
				_, refused := errors.AsType[*gateway.APIError](err)
				assert.Equal(t, status >= 400, refused, "%v", err)
			})
		})
	}
}
