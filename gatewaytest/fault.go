package gatewaytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A Fault is something that goes wrong with a request. It is made by one of the
// functions of this package and handed to [Server.InjectFault]. Each of them says
// whether the operation is carried out all the same: for an invoice, whether
// it stands in [Server.Invoices] afterwards.
//
// The zero Fault is none: the request is answered as usual. It gives a queue
// its gaps, for example two good answers before a bad one.
type Fault struct {
	name       string
	acts       bool                   // the operation is carried out first
	play       func(exchange, answer) // the answer is empty unless acts
	retryAfter string
}

// String returns the name of the trouble, as the journal has it.
func (t Fault) String() string { return t.name }

// RetryAfter returns the trouble with a Retry-After header of that text, whether
// it makes sense or not. It shows in troubles that answer, and in the zero Fault.
func (t Fault) RetryAfter(value string) Fault {
	t.retryAfter = value
	return t
}

// Refuse answers with the documented error envelope: the status, the message, an
// empty array and an empty object. The operation is not carried out. Any status
// from 200 to 999 will do; Refuse panics on others.
func Refuse(status int, message string) Fault {
	mustBe("Refuse", status, 200, 999)
	return Fault{name: fmt.Sprintf("refuse(%d)", status), play: func(x exchange, _ answer) {
		x.send(failure(status, message))
	}}
}

// BadGateway answers 502 with a page of HTML, as a proxy in between does. The
// operation is not carried out.
func BadGateway() Fault {
	return Fault{name: "bad gateway", play: func(x exchange, _ answer) {
		x.head(http.StatusBadGateway, "text/html; charset=utf-8")
		_, _ = io.WriteString(x.w, "<html>\n<head><title>502 Bad Gateway</title></head>\n"+
			"<body><center><h1>502 Bad Gateway</h1></center></body>\n</html>\n")
	}}
}

// MalformedJSON answers 200 with a body that announces JSON and is none. The operation
// is carried out.
func MalformedJSON() Fault {
	return Fault{name: "garble", acts: true, play: func(x exchange, _ answer) {
		x.head(http.StatusOK, jsonType)
		_, _ = io.WriteString(x.w, `{"message":"`+successText+`","result":{"id":,}`)
	}}
}

// Truncate announces the whole answer by its Content-Length, sends n bytes of the
// body and closes the connection. The operation is carried out.
func Truncate(n int) Fault {
	return Fault{name: fmt.Sprintf("truncate(%d)", n), acts: true, play: func(x exchange, a answer) {
		body := a.body()
		x.w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		x.head(a.status, jsonType)
		x.push(body[:max(0, min(n, len(body)))])
		x.drop()
	}}
}

// Stall reads the request and never answers. It ends when the client leaves or
// the server is closed. The operation is not carried out.
func Stall() Fault {
	return Fault{name: "stall", play: func(x exchange, _ answer) {
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
func Reset() Fault {
	return Fault{name: "reset", play: func(x exchange, _ answer) {
		if conn, ok := x.r.Context().Value(connKey{}).(interface{ SetLinger(int) error }); ok {
			_ = conn.SetLinger(0) // closing discards and resets
		}
		x.drop()
	}}
}

// Redirect answers with a Location and no body. The operation is not carried out.
// The location is sent as given. Redirect panics when the status is not 3xx.
func Redirect(status int, location string) Fault {
	mustBe("Redirect", status, 300, 399)
	return Fault{name: fmt.Sprintf("redirect(%d)", status), play: func(x exchange, _ answer) {
		x.w.Header().Set("Location", location)
		x.head(status, "text/plain; charset=utf-8")
	}}
}

// SlowBody sends the answer one byte at a time and waits that long before each.
// It ends early when the client leaves or the server is closed. The operation
// is carried out.
func SlowBody(every time.Duration) Fault {
	return Fault{name: fmt.Sprintf("slow body(%v)", every), acts: true, play: func(x exchange, a answer) {
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
func HugeBody(size int64) Fault {
	return Fault{name: fmt.Sprintf("huge body(%d)", size), acts: true, play: func(x exchange, a answer) {
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
func CommitThenDrop() Fault {
	return Fault{name: "commit then drop", acts: true, play: func(x exchange, _ answer) { x.drop() }}
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
	trouble Fault
}

// InjectFault makes trouble for the next requests of an operation, as many as times
// says: none for 0, and all of them until [Server.ClearFaults] when times is negative.
// Every request meets the oldest trouble that is waiting for it, and only that
// one, so that several calls make a queue. A request counts for its operation
// even if it would have been refused.
func (s *Server) InjectFault(op Operation, times int, t Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, &injection{op: op, left: times, trouble: t})
}

// ClearFaults forgets all troubles. One that is already being played goes on, and so does
// the limit of [Server.SetRateLimit].
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = nil
}

// nextFault takes the trouble for a request from the queue, unless there are too
// many requests. The lock is held.
func (s *Server) nextFault(op Operation, now time.Time) Fault {
	if wait := s.limit.admit(now); wait > 0 {
		return overLimit(wait)
	}
	var next Fault
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
