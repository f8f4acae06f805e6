package gatewaytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A Trouble is something that goes wrong with a request. It is made by one of the
// functions of this package and handed to [Server.Inject]. Each of them says
// whether the operation is carried out all the same: for an invoice, whether
// it stands in [Server.Invoices] afterwards.
//
// The zero Trouble is none: the request is answered as usual. It gives a queue
// its gaps, for example two good answers before a bad one.
type Trouble struct {
	name       string
	acts       bool                   // the operation is carried out first
	play       func(exchange, answer) // the answer is empty unless acts
	retryAfter string
}

// String returns the name of the trouble, as the journal has it.
func (t Trouble) String() string { return t.name }

// RetryAfter returns the trouble with a Retry-After header of that text, whether
// it makes sense or not. It shows in troubles that answer, and in the zero Trouble.
func (t Trouble) RetryAfter(value string) Trouble {
	t.retryAfter = value
	return t
}

// Refuse answers with the documented error envelope: the status, the message, an
// empty array and an empty object. The operation is not carried out. Any status
// from 200 to 999 will do; Refuse panics on others.
func Refuse(status int, message string) Trouble {
	mustBe("Refuse", status, 200, 999)
	return Trouble{name: fmt.Sprintf("refuse(%d)", status), play: func(x exchange, _ answer) {
		x.send(failure(status, message))
	}}
}

// BadGateway answers 502 with a page of HTML, as a proxy in between does. The
// operation is not carried out.
func BadGateway() Trouble {
	return Trouble{name: "bad gateway", play: func(x exchange, _ answer) {
		x.head(http.StatusBadGateway, "text/html; charset=utf-8")
		_, _ = io.WriteString(x.w, "<html>\n<head><title>502 Bad Gateway</title></head>\n"+
			"<body><center><h1>502 Bad Gateway</h1></center></body>\n</html>\n")
	}}
}

// Garble answers 200 with a body that announces JSON and is none. The operation
// is carried out.
func Garble() Trouble {
	return Trouble{name: "garble", acts: true, play: func(x exchange, _ answer) {
		x.head(http.StatusOK, jsonType)
		_, _ = io.WriteString(x.w, `{"message":"`+successText+`","result":{"id":,}`)
	}}
}

// Truncate announces the whole answer by its Content-Length, sends n bytes of the
// body and closes the connection. The operation is carried out.
func Truncate(n int) Trouble {
	return Trouble{name: fmt.Sprintf("truncate(%d)", n), acts: true, play: func(x exchange, a answer) {
		body := a.body()
		x.w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.head(a.status, jsonType)
		x.push(body[:max(0, min(n, len(body)))])
		x.drop()
	}}
}

// Stall reads the request and never answers. It ends when the client leaves or
// the server is closed. The operation is not carried out.
func Stall() Trouble {
	return Trouble{name: "stall", play: func(x exchange, _ answer) {
		// net/http notices that a client leaves only once its body has been read to
		// the end; a body that cannot be says the same.
		if _, err := io.Copy(io.Discard, x.r.Body); err != nil {
			x.drop()
		}
		select {
		case <-x.r.Context().Done():
		case <-x.closing:
		}
		x.drop()
	}}
}

// Reset reads the request and resets the connection (TCP RST) without an answer.
// The operation is not carried out.
func Reset() Trouble {
	return Trouble{name: "reset", play: func(x exchange, _ answer) {
		if conn, ok := x.r.Context().Value(connKey{}).(interface{ SetLinger(int) error }); ok {
			_ = conn.SetLinger(0) // closing discards and resets
		}
		x.drop()
	}}
}

// Redirect answers with a Location and no body. The operation is not carried out.
// The location is sent as given. Redirect panics when the status is not 3xx.
func Redirect(status int, location string) Trouble {
	mustBe("Redirect", status, 300, 399)
	return Trouble{name: fmt.Sprintf("redirect(%d)", status), play: func(x exchange, _ answer) {
		x.w.Header().Set("Location", location)
		x.head(status, "text/plain; charset=utf-8")
	}}
}

// SlowBody sends the answer one byte at a time and waits that long before each.
// It ends early when the client leaves or the server is closed. The operation
// is carried out.
func SlowBody(every time.Duration) Trouble {
	return Trouble{name: fmt.Sprintf("slow body(%v)", every), acts: true, play: func(x exchange, a answer) {
		body := a.body()
		x.w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.head(a.status, jsonType)
		x.push(nil) // the headers are not slow
		for i := range body {
			x.wait(every)
			x.push(body[i : i+1])
		}
	}}
}

// HugeBody sends the right answer in an envelope of about size bytes: its meta,
// which comes before the result, is filled with padding. The body is streamed
// without a Content-Length. The operation is carried out.
func HugeBody(size int64) Trouble {
	return Trouble{name: fmt.Sprintf("huge body(%d)", size), acts: true, play: func(x exchange, a answer) {
		head, tail := a.padded()
		padding := bytes.Repeat([]byte("x"), 32<<10)
		x.head(a.status, jsonType)
		x.push(head)
		for left := size - int64(len(head)+len(tail)); left > 0; left -= int64(len(padding)) {
			x.push(padding[:min(left, int64(len(padding)))])
		}
		x.push(tail)
	}}
}

// CommitThenDrop carries the operation out and closes the connection without an
// answer: the invoice exists, and whoever asked for it does not know.
func CommitThenDrop() Trouble {
	return Trouble{name: "commit then drop", acts: true, play: func(x exchange, _ answer) { x.drop() }}
}

// mustBe stops a test that asks for a status nobody could send, where it asks.
func mustBe(what string, status, low, high int) {
	if status < low || status > high {
		panic(fmt.Sprintf("gatewaytest: %s with status %d, want %d to %d", what, status, low, high))
	}
}

// An injection is a trouble in the queue.
type injection struct {
	op      Operation
	left    int // below zero for always
	trouble Trouble
}

// Inject makes trouble for the next requests of an operation, as many as times
// says: none for 0, and all of them until [Server.Calm] when times is negative.
// Every request meets the oldest trouble that is waiting for it, and only that
// one, so that several calls make a queue. A request counts for its operation
// even if it would have been refused.
func (s *Server) Inject(op Operation, times int, t Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, &injection{op: op, left: times, trouble: t})
}

// Calm forgets all troubles. One that is already being played goes on, and so does
// the limit of [Server.LimitRate].
func (s *Server) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = nil
}

// nextTrouble takes the trouble for a request from the queue, unless there are too
// many requests. The lock is held.
func (s *Server) nextTrouble(op Operation, now time.Time) Trouble {
	if wait := s.limit.admit(now); wait > 0 {
		return overLimit(wait)
	}
	var next Trouble
	for _, in := range s.troubles {
		if in.left == 0 || in.op != op && in.op != AnyOperation {
			continue
		}
		next = in.trouble
		if in.left > 0 {
			in.left--
		}
		break
	}
	if next.play == nil {
		next.acts, next.play = true, exchange.send
	}
	return next
}
