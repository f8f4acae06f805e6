package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

func TestFaults_ResponseBody(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	cut := verdict{kind: transport, phase: gateway.PhaseRead, status: 200, attempts: 3, sends: 3}
	lost := verdict{kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, sends: 1, commits: 1}
	play(t, []fault{
		{
			name: "row 51: the body is cut where nothing says how long it is",
			set: writes(func(s *stage, conn io.Writer) {
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n"+s.good()[:70])
			}),
			read:  verdict{kind: decode, sends: anyNumber},
			write: verdict{kind: unknown, status: 200, sends: 1, commits: 1},
		},
		{
			name: "row 52: the body is cut within a chunk",
			set: writes(func(s *stage, conn io.Writer) {
				_, _ = fmt.Fprintf(conn, "%s%x\r\n%s", chunked, len(s.good()), s.good()[:50])
			}),
			read:  cut,
			write: lost,
		},
		{
			name: "row 52: the last chunk is missing",
			set: writes(func(s *stage, conn io.Writer) {
				_, _ = fmt.Fprintf(conn, "%s%x\r\n%s\r\n", chunked, len(s.good()), s.good())
			}),
			read:  cut,
			write: lost,
		},
		{
			name:  "row 52: the length of a chunk is no number",
			set:   writes(func(_ *stage, conn io.Writer) { _, _ = io.WriteString(conn, chunked+"xyz\r\n{") }),
			read:  cut,
			write: lost,
		},
		{
			name: "row 53: the body stops in the middle",
			set: writes(func(s *stage, conn io.Writer) {
				answer := plainAnswer(200, s.good())
				_, _ = io.WriteString(conn, answer[:len(answer)-20])
				<-s.struck
			}),
			read: verdict{
				kind: transport, phase: gateway.PhaseRead, status: 200, attempts: 3, sends: 3,
				is: []error{gateway.ErrTimeout},
			},
			write: verdict{
				kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, sends: 1, commits: 1,
				is: []error{gateway.ErrTimeout},
			},
		},
		{
			name: "row 54: the body has no end",
			set: limited(func(conn io.Writer) {
				_, _ = io.WriteString(conn, chunked)
				endless(chunker{conn}, `{"message":"Operation was successful.","result":{"x":"`)
			}),
			read: verdict{
				kind: transport, phase: gateway.PhaseRead, status: 200, attempts: 1, sends: 1,
				is: []error{gateway.ErrResponseTooLarge},
			},
			write: verdict{
				kind: unknown, phase: gateway.PhaseRead, status: 200, sends: 1, commits: 1,
				is: []error{gateway.ErrResponseTooLarge},
			},
		},
		{
			name: "row 55: a small body unpacks to one without end",
			set: limited(func(conn io.Writer) {
				_, _ = io.WriteString(conn, strings.Replace(chunked, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1))
				endless(gzip.NewWriter(chunker{conn}), `{"message":"Operation was successful.","result":{"x":"`)
			}),
			read: verdict{
				kind: transport, phase: gateway.PhaseRead, status: 200, attempts: 1, sends: 1,
				is: []error{gateway.ErrResponseTooLarge},
			},
			write: verdict{
				kind: unknown, phase: gateway.PhaseRead, status: 200, sends: 1, commits: 1,
				is: []error{gateway.ErrResponseTooLarge},
			},
		},
		{
			name: "row 56: the body is labelled gzip and is not",
			set: writes(func(s *stage, conn io.Writer) {
				_, _ = io.WriteString(conn, plainAnswer(200, s.good(), "Content-Encoding: gzip"))
			}),
			read:  verdict{kind: decode, sends: 3},
			write: verdict{kind: unknown, status: 200, sends: 1, commits: 1, is: []error{gzip.ErrHeader}},
		},
		{
			name: "row 56: the packed body is damaged at its end",
			set: writes(func(s *stage, conn io.Writer) {
				packed := gzipped(s.good())
				packed[len(packed)-6] ^= 0xff // in the checksum
				_, _ = io.WriteString(conn, plainAnswer(200, string(packed), "Content-Encoding: gzip"))
			}),
			read:  verdict{kind: decode, sends: 3},
			write: verdict{kind: unknown, status: 200, sends: 1, commits: 1, is: []error{gzip.ErrChecksum}},
		},
		{
			name: "row 56: the packed body is damaged in the middle",
			set: writes(func(s *stage, conn io.Writer) {
				packed := gzipped(s.good())
				copy(packed[10:], bytes.Repeat([]byte{0xff}, 20))
				_, _ = io.WriteString(conn, plainAnswer(200, string(packed), "Content-Encoding: gzip"))
			}),
			read:  verdict{kind: decode, sends: 3},
			write: verdict{kind: unknown, status: 200, sends: 1, commits: 1},
		},
		{
			name: "row 56: the packed body is cut",
			set: writes(func(s *stage, conn io.Writer) {
				packed := string(gzipped(s.good()))
				_, _ = io.WriteString(conn, plainAnswer(200, packed[:len(packed)-12], "Content-Encoding: gzip"))
			}),
			read:  cut,
			write: lost,
		},
		{
			name: "row 57: the header has no end",
			set: func(s *stage) {
				s.transport.MaxResponseHeaderBytes = 64 << 10
				writes(func(_ *stage, conn io.Writer) { endless(conn, "HTTP/1.1 200 OK\r\nX-Long: ") })(s)
			},
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 1, sends: 1},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1, commits: 1},
		},
		{
			name: "row 58: the body of a 500 has no end",
			set: limited(func(conn io.Writer) {
				_, _ = io.WriteString(conn, strings.Replace(chunked, "200 OK", "500 Internal Server Error", 1))
				endless(chunker{conn}, "<html>")
			}),
			read:  verdict{kind: api, status: 500, attempts: 3, sends: 3},
			write: verdict{kind: unknown, status: 500, attempts: 1, sends: 1, commits: 1},
		},
		{
			name: "row 58: the body of a 404 has no end",
			set: limited(func(conn io.Writer) {
				_, _ = io.WriteString(conn, strings.Replace(chunked, "200 OK", "404 Not Found", 1))
				endless(chunker{conn}, `{"message":"gone","result":["`)
			}),
			read: verdict{kind: api, status: 404, attempts: 1, sends: 1, text: "gone"},
		},
		{
			name: "row 58: the body of a 404 stops in the middle",
			set: func(s *stage) {
				s.piped(s.each(func(_ int, conn net.Conn) {
					answer := plainAnswer(404, refused("gone"))
					_, _ = io.WriteString(conn, answer[:len(answer)-5])
					<-s.struck
				}))
			},
			read:  verdict{kind: api, status: 404, attempts: 1, sends: 1, text: "gone"},
			write: verdict{kind: rejected, status: 404, attempts: 1, sends: 1, text: "gone"},
		},
	})
}

// writes commits every request, and then writes as answer says.
func writes(answer func(s *stage, conn io.Writer)) func(*stage) {
	return func(s *stage) {
		s.piped(s.each(func(_ int, conn net.Conn) {
			s.commit()
			answer(s, conn)
		}))
	}
}

// limited is writes, for answers of which the client must not take more than a
// little beyond its limit of 64 KiB; net/http may drain some more when a body
// is closed, from Go 1.27 on.
func limited(answer func(conn io.Writer)) func(*stage) {
	return func(s *stage) {
		s.options = append(s.options, gateway.WithMaxResponseBytes(64<<10))
		writes(func(s *stage, conn io.Writer) {
			taken := &measure{Writer: conn}
			answer(taken)
			assert.Less(s, taken.n, 1<<20, "bytes that the client took")
		})(s)
	}
}

// endless writes until nobody reads any more.
func endless(w io.Writer, start string) {
	_, err := io.WriteString(w, start)
	for line := strings.Repeat("a", 4<<10); err == nil; {
		_, err = io.WriteString(w, line)
	}
}

// A chunker writes each write as one chunk.
type chunker struct{ io.Writer }

func (c chunker) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(c.Writer, "%x\r\n%s\r\n", len(p), p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A measure counts what could be written.
type measure struct {
	io.Writer
	n int
}

func (m *measure) Write(p []byte) (int, error) {
	n, err := m.Writer.Write(p)
	m.n += n
	return n, err
}

// gzipped packs text that does not become so small that there is no middle.
func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// The body is cut after every number of bytes.
func TestFaults_BodyCut(t *testing.T) {
	t.Parallel()
	for _, write := range []bool{false, true} {
		t.Run(fmt.Sprintf("row 51: the body is cut short of its length/invoice %t", write), func(t *testing.T) {
			t.Parallel()
			for k := range len((&stage{write: write}).good()) {
				assertBodyCut(t, k, write)
			}
		})
	}
}

func assertBodyCut(t *testing.T, k int, write bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		s := newStage(t, time.Hour)
		s.write = write
		writes(func(s *stage, conn io.Writer) {
			answer := plainAnswer(201, s.good())
			_, _ = io.WriteString(conn, answer[:len(answer)-len(s.good())+k])
		})(s)
		v := verdict{kind: transport, phase: gateway.PhaseRead, status: 201, attempts: 3, sends: 3}
		if write {
			v = verdict{kind: unknown, phase: gateway.PhaseRead, status: 201, attempts: 1, sends: 1, commits: 1, body: s.good()[:k]}
		}
		s.assert(v)
	})
}

// A read whose answers are cut at places drawn at random gets through.
func TestFaults_BodyCutThenWhole(t *testing.T) {
	t.Parallel()
	play(t, []fault{{
		name: "row 51: the body is cut once, and then whole",
		set: func(s *stage) {
			s.piped(s.each(func(number int, conn net.Conn) {
				s.commit()
				answer := plainAnswer(200, s.good())
				if number == 1 {
					answer = answer[:len(answer)-1-rand.IntN(len(s.good()))]
				}
				_, _ = io.WriteString(conn, answer)
			}))
		},
		read:  verdict{kind: works, sends: 2},
		write: verdict{kind: unknown, status: 200, attempts: 1, sends: 1, commits: 1},
	}})
}
