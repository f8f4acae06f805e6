package contract

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A hostile is a server that reads every request properly, and answers as no
// decent one does.
type hostile struct {
	listener net.Listener
	mu       sync.Mutex
	conns    int
	requests int
	open     sync.WaitGroup
}

// newHostile starts a server that answers every request with play, which
// reports whether the connection goes on.
func newHostile(t *testing.T, play func(conn net.Conn) bool) *hostile {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &hostile{listener: listener}
	h.open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(patient))
			h.open.Go(func() { h.serve(conn, play) })
		}
	})
	return h
}

func (h *hostile) serve(conn net.Conn, play func(conn net.Conn) bool) {
	defer func() { _ = conn.Close() }()
	h.mu.Lock()
	h.conns++
	h.mu.Unlock()
	for {
		if _, whole := receive(conn, patientLimit); !whole {
			return
		}
		h.mu.Lock()
		h.requests++
		h.mu.Unlock()
		if !play(conn) {
			return
		}
	}
}

func (h *hostile) close() {
	_ = h.listener.Close()
	h.open.Wait()
}

// counts is how many connections and requests there were.
func (h *hostile) counts() (conns, requests int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns, h.requests
}

// client returns a client of h, and the end of its connections.
func (h *hostile) client(t *testing.T, timeout time.Duration) (*gateway.Client, func()) {
	transport := &http.Transport{MaxResponseHeaderBytes: 256 << 10}
	client, err := gateway.New("http://"+h.listener.Addr().String()+"/merchant", canary,
		gateway.WithHTTPClient(&http.Client{Transport: transport}),
		gateway.WithRetry(gateway.RetryPolicy{AttemptTimeout: timeout, InvoiceTimeout: timeout, BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}))
	require.NoError(t, err)
	return client, transport.CloseIdleConnections
}

// flood writes text until the other side has had enough.
func flood(conn net.Conn, text string) bool {
	w := bufio.NewWriterSize(conn, 64<<10)
	for {
		if _, err := w.WriteString(text); err != nil {
			return false
		}
	}
}

// says writes an answer and keeps the connection.
func says(answer string) func(net.Conn) bool {
	bytes := []byte(answer) // here, so that it is not counted as a cost of the call
	return func(conn net.Conn) bool {
		_, err := conn.Write(bytes)
		return err == nil
	}
}

// hangsUpAfter writes an answer and closes the connection.
func hangsUpAfter(answer string) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, answer)
		return false
	}
}

// floods writes a beginning, and then more of the same for ever.
func floods(head, more string) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, head)
		return flood(conn, more)
	}
}

// trickles writes a beginning, and then a byte every now and then for ever.
func trickles(head string) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, head)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := io.WriteString(conn, " "); err != nil {
				return false
			}
		}
		return false
	}
}

// gzipped is so many megabytes of spaces after head.
func gzipped(head string, megabytes int) string {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, _ = io.WriteString(w, head)
	for range megabytes {
		_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	_ = w.Close()
	return packed.String()
}

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

func withLength(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// A temptation is a hostile answer and what both kinds of call make of it.
type temptation struct {
	name     string
	play     func(conn net.Conn) bool
	read     func(t assert.TestingT, err error) // nil for a read that works
	write    gateway.Outcome                    // of an answer to a create-invoice that is otherwise the same
	memory   uint64                             // what one call may allocate, in bytes
	requests int                                // of the read; 0 for any
}

func transportError(is ...error) func(t assert.TestingT, err error) {
	return func(t assert.TestingT, err error) {
		var failure *gateway.TransportError
		assert.ErrorAs(t, err, &failure)
		for _, target := range is {
			assert.ErrorIs(t, err, target)
		}
	}
}

func decodeError(t assert.TestingT, err error) {
	var failure *gateway.DecodeError
	assert.ErrorAs(t, err, &failure)
}

func apiError(status int) func(t assert.TestingT, err error) {
	return func(t assert.TestingT, err error) {
		var refusal *gateway.APIError
		if assert.ErrorAs(t, err, &refusal) {
			assert.Equal(t, status, refusal.StatusCode)
			assert.LessOrEqual(t, len(refusal.Body), 8<<10)
		}
	}
}

const (
	small = 8 << 20   // bytes for an answer that is refused at its beginning, tried thrice
	large = 160 << 20 // for one that is read up to the limit of 8 MiB
)

func temptations() []temptation {
	body := enveloped(withdrawalResult)
	list := `{"message":"Operation was successful.","result":[` + strings.Repeat("{},", 1_000_000) + `{}]}`
	return []temptation{
		{"a gzip bomb in a field that nobody reads", says(withLength(okHead+"Content-Encoding: gzip\r\n", gzipped(`{"x":`, 100))), transportError(gateway.ErrResponseTooLarge), gateway.OutcomeUnknown, large, 1},
		{"a gzip bomb under a status that says no", says(withLength("HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\n", gzipped(`{"message":"`, 100))), apiError(404), gateway.OutcomeRejected, small, 1},
		{"a million braces", says(withLength(okHead, strings.Repeat(`{"a":`, 1_000_000))), decodeError, gateway.OutcomeUnknown, small, 1},
		{"a million brackets within the result", says(withLength(okHead, `{"result":`+strings.Repeat(`[`, 1_000_000))), decodeError, gateway.OutcomeUnknown, small, 1},
		{"ten thousand levels of long names", says(withLength(okHead, strings.Repeat(`{"`+strings.Repeat("n", 90)+`":`, 10_100))), decodeError, gateway.OutcomeUnknown, large, 1},
		{"a list of a million where a record should be", says(withLength(okHead, list)), decodeError, gateway.OutcomeSucceeded, large, 1}, // what an invoice's answer looks like is not shown
		{"a header that never ends", floods("HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("h", 1000)), transportError(), gateway.OutcomeUnknown, small, 1},
		{"headers that never end", floods("HTTP/1.1 200 OK\r\n", "X-One: more\r\n"), transportError(), gateway.OutcomeUnknown, small, 1},
		{"a status line that never ends", floods("HTTP/1.1 200 ", "OK"), transportError(), gateway.OutcomeUnknown, small, 1},
		{"a body that never ends", floods(okHead+"\r\n"+`{"x":"`, strings.Repeat("x", 1000)), transportError(gateway.ErrResponseTooLarge), gateway.OutcomeUnknown, large, 1},
		{"a body that never ends, under a status that says no", floods("HTTP/1.1 404 Not Found\r\n\r\n", strings.Repeat("x", 1000)), apiError(404), gateway.OutcomeRejected, small, 1},
		{"a body that never ends, under a status of a server in trouble", floods("HTTP/1.1 500 Oh\r\n\r\n", strings.Repeat("x", 1000)), apiError(500), gateway.OutcomeUnknown, small, 3},
		{"a body that trickles", trickles(okHead + "\r\n{"), transportError(gateway.ErrTimeout), gateway.OutcomeUnknown, small, 3},
		{"a body that trickles, under a status that says no", trickles("HTTP/1.1 404 Not Found\r\n\r\n{"), apiError(404), gateway.OutcomeRejected, small, 1},
		{"a header that trickles", trickles("HTTP/1.1 200 OK\r\nX-Slow:"), transportError(gateway.ErrTimeout), gateway.OutcomeUnknown, small, 3},
		{"informational answers that never end", floods("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), transportError(), gateway.OutcomeUnknown, small, 0},
		{"a few informational answers first", says(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 5) + withLength(okHead, body)), nil, gateway.OutcomeSucceeded, small, 1},
		{"a Content-Length that is too large", hangsUpAfter(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", okHead, len(body)+1, body)), transportError(io.ErrUnexpectedEOF), gateway.OutcomeUnknown, small, 3},
		{"a Content-Length that is too small", says(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", okHead, len(body)-1, body)), decodeError, gateway.OutcomeUnknown, small, 0},
		{"a Content-Length that is negative", hangsUpAfter(okHead + "Content-Length: -1\r\n\r\n" + body), transportError(), gateway.OutcomeUnknown, small, 3},
		{"two Content-Lengths", hangsUpAfter(okHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body), transportError(), gateway.OutcomeUnknown, small, 3},
		{"a chunk of a size beyond belief", hangsUpAfter(okHead + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\n" + body), transportError(), gateway.OutcomeUnknown, small, 3},
		{"no HTTP at all", hangsUpAfter("SSH-2.0-OpenSSH_9.9\r\n"), transportError(), gateway.OutcomeUnknown, small, 3},
		{"two answers in one body", says(withLength(okHead, body+body)), decodeError, gateway.OutcomeUnknown, small, 1},
		{"a switch of protocols", hangsUpAfter("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), transportError(), gateway.OutcomeUnknown, small, 0},
	}
}

// TestHostile makes a read and a create-invoice meet every hostile answer, and
// looks at what they say, what they cost and what they leave behind.
func TestHostile(t *testing.T) {
	check := leftovers(t)
	for _, c := range temptations() {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t, c.play)
			timeout := patient
			if strings.Contains(c.name, "trickles") {
				timeout = 4 * short
			}
			client, done := h.client(t, timeout)
			defer h.close()
			defer done()
			ctx, cancel := context.WithTimeout(t.Context(), 4*patient)
			defer cancel()
			c.meetRead(t, ctx, h, client)
			c.meetOrder(t, ctx, h, client)
			assert.NoError(t, ctx.Err())
		})
	}
	check()
}

func (c temptation) meetRead(t *testing.T, ctx context.Context, h *hostile, client *gateway.Client) {
	var err error
	cost := allocated(func() { _, err = client.Withdrawal(ctx, withdrawalID) })
	if c.read == nil {
		assert.NoError(t, err)
	} else if assert.Error(t, err) {
		c.read(t, err)
	}
	if _, requests := h.counts(); c.requests > 0 {
		assert.Equal(t, c.requests, requests, "%v", err)
	}
	assert.Less(t, cost, c.memory, "a read")
	assert.Less(t, len(fmt.Sprint(err)), 16<<10, "the text of the error")
}

func (c temptation) meetOrder(t *testing.T, ctx context.Context, h *hostile, client *gateway.Client) {
	var e end
	_, before := h.counts()
	cost := allocated(func() { e = create(ctx, client, target, &sight{}) })
	_, after := h.counts()
	assert.Equal(t, 1, after-before, "an invoice is sent once")
	assert.Equal(t, c.write, e.outcome(), "%v", e.err)
	assert.NotContains(t, e.everyText(), canary)
	if c.write == gateway.OutcomeRejected {
		assert.Less(t, cost, c.memory, "a create-invoice that is rejected")
	} else {
		assert.Less(t, cost, uint64(large), "a create-invoice, of whose answer more is kept")
	}
}

// allocated is how much act allocates.
func allocated(act func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	act()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostile_Connections says whether a connection is used again after an
// answer.
func TestHostile_Connections(t *testing.T) {
	body := enveloped(withdrawalResult)
	for _, c := range []struct {
		name string
		play func(net.Conn) bool
		want int // connections after two calls
	}{
		{"after a good answer it is", says(withLength(okHead, body)), 1},
		{"after a refusal it is", says(withLength("HTTP/1.1 404 Not Found\r\n", `{"message":"no","result":[],"meta":{}}`)), 1},
		{"after an answer that is not understood, but was short, it is", says(withLength(okHead, `{"result":7}`)), 1},
		{"after an answer with a tail it is not", says(withLength(okHead, body) + "tail"), 2},
		{"after a refusal with a body that never ends it is not", floods("HTTP/1.1 404 Not Found\r\n\r\n", "xxxxxxxx"), 2},
		{"after a body that never ends it is not", floods(okHead+"\r\n"+`{"x":"`, strings.Repeat("x", 1000)), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t, c.play)
			client, done := h.client(t, patient)
			defer h.close()
			defer done()
			for range 2 {
				_, _ = client.Withdrawal(t.Context(), withdrawalID)
			}
			conns, requests := h.counts()
			assert.Equal(t, 2, requests)
			assert.Equal(t, c.want, conns)
		})
	}
}

// TestHostile_Unsolicited is about a server that answers twice: the second
// answer lies on the connection when the next request goes out.
func TestHostile_Unsolicited(t *testing.T) {
	check := leftovers(t)
	other := strings.ReplaceAll(withdrawalResult, withdrawalID, "another")
	for _, c := range []struct{ name, extra string }{
		{"an answer to an earlier read", withLength(okHead, enveloped(other))},
		{"an invoice of another order", withLength(okHead, enveloped(invoiceResult("another")))},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t, says(withLength(okHead, enveloped(withdrawalResult))+c.extra))
			client, done := h.client(t, patient)
			defer h.close()
			defer done()
			for range 20 {
				w, err := client.Withdrawal(t.Context(), withdrawalID)
				if err == nil {
					assert.Equal(t, withdrawalID, w.WithdrawRequestID)
					continue
				}
				var misunderstood *gateway.DecodeError // the answer that lay there was taken
				assert.ErrorAs(t, err, &misunderstood)
			}
			before, _ := h.counts()
			assert.GreaterOrEqual(t, before, 2, "a connection with an answer too many is given up")
		})
	}
	check()
}

// TestHostile_Remarks finds out what net/http says through the logger of the
// program, which the client can not turn off: that of a connection that was
// idle, and only where the server broke the protocol.
func TestHostile_Remarks(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer string
		want   string // "" for nothing
	}{
		{"a good answer", withLength(okHead, enveloped(withdrawalResult)), ""},
		{"an answer with a tail that comes later", withLength(okHead, enveloped(withdrawalResult)), "Unsolicited response received on idle HTTP channel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said safeBuffer
			log.SetOutput(&said)
			defer log.SetOutput(io.Discard)
			idle := make(chan struct{})
			h := newHostile(t, func(conn net.Conn) bool {
				_, _ = io.WriteString(conn, c.answer)
				<-idle
				if c.want != "" {
					_, _ = io.WriteString(conn, c.answer)
				}
				return true
			})
			client, done := h.client(t, patient)
			defer h.close()
			_, err := client.Withdrawal(t.Context(), withdrawalID)
			require.NoError(t, err)
			close(idle)
			if c.want != "" {
				until(t, "net/http remarks on it", func() bool { return strings.Contains(said.String(), c.want) })
				assert.NotContains(t, said.String(), canary)
			} else {
				assert.Empty(t, said.String())
			}
			done()
		})
	}
}

// A safeBuffer is a buffer for two goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
