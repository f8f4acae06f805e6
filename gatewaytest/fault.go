package gatewaytest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Fault is a failure that a request meets. The functions of this package that
// return a Fault create it, and [Server.InjectFault] injects it. The comment of
// each function states whether the operation is carried out despite the fault:
// for an invoice, whether [Server.Invoices] lists it afterwards.
//
// The zero Fault is no failure: the request gets the usual response. It leaves a
// gap in a queue of faults, for example two successes before a failure.
type Fault struct {
	name       string
	carriesOut bool                      // the operation is carried out first
	respond    func(responder, response) // the response is empty unless carriesOut
	retryAfter string
}

// String returns the name of the fault, as the journal records it: "commit-then-drop",
// "refuse=503". It is empty for the zero Fault.
func (f Fault) String() string { return f.name }

// RetryAfter returns a copy of the fault whose response has a Retry-After header
// with the given value, which need not be valid. It has an effect on faults that
// send a response, and on the zero Fault.
func (f Fault) RetryAfter(value string) Fault {
	f.retryAfter = value
	return f
}

// FaultRefuse responds with the documented error envelope: the status, the message, an
// empty array and an empty object. The operation is not carried out. FaultRefuse
// panics unless the status is between 200 and 999.
func FaultRefuse(status int, message string) Fault {
	checkStatus("FaultRefuse", status, 200, 999)
	return fixed("refuse", status, jsonType, string(failure(status, message).body()))
}

// An ErrorForm is the body of an error in a form other than the documented one, such as the form of a web framework. It
// is JSON in which STATUS stands for the status, TEXT for its name as a string, and MESSAGE for the message as a string.
// The constants are common forms. Any other text is a form, too.
type ErrorForm string

// Common bodies of errors.
const (
	ErrorNest     ErrorForm = `{"statusCode":STATUS,"message":MESSAGE,"error":TEXT}`
	ErrorNestList ErrorForm = `{"statusCode":STATUS,"message":[MESSAGE,"amount must be positive"],"error":TEXT}`
	ErrorProblem  ErrorForm = `{"type":"about:blank","title":TEXT,"status":STATUS,"detail":MESSAGE}` // RFC 9457
	ErrorFastAPI  ErrorForm = `{"detail":[{"type":"value_error","loc":["body","coinSymbol"],"msg":MESSAGE}]}`
	ErrorRails    ErrorForm = `{"status":STATUS,"error":MESSAGE}`
	ErrorLaravel  ErrorForm = `{"message":MESSAGE,"errors":{"coinSymbol":[MESSAGE]}}`
	ErrorNoResult ErrorForm = `{"message":MESSAGE,"meta":{}}`
	ErrorNull     ErrorForm = `{"message":MESSAGE,"result":null,"meta":{}}`
)

// ErrorForms returns the common bodies of errors.
func ErrorForms() []ErrorForm {
	return []ErrorForm{ErrorNest, ErrorNestList, ErrorProblem, ErrorFastAPI, ErrorRails, ErrorLaravel, ErrorNoResult, ErrorNull}
}

// FaultRefuseAs responds with a status and an error in a form. The operation is not carried out. FaultRefuseAs panics
// unless the status is between 200 and 999.
func FaultRefuseAs(form ErrorForm, status int, message string) Fault {
	checkStatus("FaultRefuseAs", status, 200, 999)
	values := strings.NewReplacer("STATUS", fmt.Sprint(status), "TEXT", quote(http.StatusText(status)), "MESSAGE", quote(message))
	return fixed("refuse-as", status, jsonType, values.Replace(string(form)))
}

// FaultPage responds with an HTML page, like a CDN or a proxy between the client and the
// service: a challenge (403, or 200), maintenance (503), an origin that it does not reach
// (502, 525, 530). The operation is not carried out. FaultPage panics unless the status is
// between 200 and 999.
func FaultPage(status int) Fault {
	checkStatus("FaultPage", status, 200, 999)
	return fixed("page", status, "text/html; charset=utf-8", fmt.Sprintf("<html>\n<head><title>%d %[2]s</title></head>\n"+
		"<body><h1>%[1]d %[2]s</h1><p>Just a moment...</p></body>\n</html>\n", status, http.StatusText(status)))
}

// FaultEmpty responds with a status and no body. The operation is not carried out.
// FaultEmpty panics unless the status is between 200 and 999.
func FaultEmpty(status int) Fault {
	checkStatus("FaultEmpty", status, 200, 999)
	return fixed("empty", status, "text/plain; charset=utf-8", "")
}

// FaultTruncate sends the Content-Length of the whole response, the first n bytes of
// its body, and closes the connection. An n below 0 counts as 0; an n beyond the
// end sends the whole body. The operation is carried out.
func FaultTruncate(n int) Fault {
	return Fault{name: named("truncate", n), carriesOut: true, respond: func(x responder, resp response) {
		body := x.begin(resp)
		x.flush(body[:max(0, min(n, len(body)))])
		x.drop()
	}}
}

// FaultStall reads the request and never responds. It ends when the client disconnects
// or the server is closed. The operation is not carried out.
func FaultStall() Fault {
	return Fault{name: "stall", respond: func(x responder, _ response) {
		_, _ = io.Copy(io.Discard, x.r.Body) // before the end of the body, net/http detects no disconnect
		select {
		case <-x.r.Context().Done():
		case <-x.closing:
		}
		x.drop()
	}}
}

// FaultReset reads the request and resets the connection (TCP RST) without a response.
// The operation is not carried out.
func FaultReset() Fault {
	return Fault{name: "reset", respond: func(x responder, _ response) {
		conn, own := x.r.Context().Value(connKey{}).(net.Conn)
		if !own { // the server is a Handler in another
			if taken, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
				conn = taken
				defer func() { _ = taken.Close() }()
			}
		}
		if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
			_ = tcp.SetLinger(0) // makes the close a reset
		}
		x.drop()
	}}
}

// FaultRedirect responds with a Location header and no body. The location is sent as
// given. The operation is not carried out. FaultRedirect panics unless the status is
// between 300 and 399.
func FaultRedirect(status int, location string) Fault {
	checkStatus("FaultRedirect", status, 300, 399)
	return Fault{name: named("redirect", status), respond: func(x responder, _ response) {
		x.w.Header().Set("Location", location)
		x.writeHeader(status, "text/plain; charset=utf-8")
	}}
}

// FaultSlowBody sends the headers of the response at once and then its body one byte
// at a time, waiting for interval before each. It ends early when the client
// disconnects or the server is closed. The operation is carried out.
func FaultSlowBody(interval time.Duration) Fault {
	return Fault{name: named("slow-body", interval), carriesOut: true, respond: func(x responder, resp response) {
		body := x.begin(resp)
		x.flush(nil)
		for i := range body {
			x.wait(interval)
			x.flush(body[i : i+1])
		}
	}}
}

// FaultHugeBody sends the usual response in an envelope of about size bytes: its meta,
// which precedes the result, is filled with padding. The body is streamed
// without a Content-Length. The operation is carried out.
func FaultHugeBody(size int64) Fault {
	return Fault{name: named("huge-body", size), carriesOut: true, respond: func(x responder, resp response) {
		head, tail := resp.padded()
		padding := bytes.Repeat([]byte("x"), 32<<10)
		x.writeHeader(resp.status, jsonType)
		x.flush(head)
		for left := size - int64(len(head)+len(tail)); left > 0; left -= int64(len(padding)) {
			x.flush(padding[:min(left, int64(len(padding)))])
		}
		x.flush(tail)
	}}
}

// FaultCommitThenDrop carries the operation out and closes the connection without a
// response: the invoice exists, and the client does not know.
func FaultCommitThenDrop() Fault {
	return Fault{name: "commit-then-drop", carriesOut: true, respond: func(x responder, _ response) { x.drop() }}
}

// fixed is a fault that responds with a text, and carries nothing out.
func fixed(name string, status int, mediaType, text string) Fault {
	return Fault{name: named(name, status), respond: func(x responder, _ response) {
		x.writeHeader(status, mediaType)
		_, _ = io.WriteString(x.w, text)
	}}
}

// checkStatus panics when the status is out of range, so that a test fails at the
// line with the mistake.
func checkStatus(what string, status, low, high int) {
	if status < low || status > high {
		panic(fmt.Sprintf("gatewaytest: %s with status %d, want %d to %d", what, status, low, high))
	}
}

func named(name string, argument any) string { return fmt.Sprintf("%s=%v", name, argument) }

// A queuedFault is a fault for the next requests of an operation.
type queuedFault struct {
	op    Operation
	times int // how many requests still meet it; negative for all
	fault Fault
}

// InjectFault injects a fault into the next requests of an operation. Times is
// the number of requests; 0 is none, and a negative number is all of them until
// [Server.ClearFaults]. Each request meets only the oldest fault that is queued
// for it, so that several calls form a queue. A request that the server would refuse
// anyway uses up a fault, too. InjectFault panics if the operation is none of this
// package's constants.
func (s *Server) InjectFault(op Operation, times int, f Fault) {
	if _, ok := op.route(); !ok && op != AnyOperation {
		panic(fmt.Sprintf("gatewaytest: InjectFault for operation %q, want one of its constants", string(op)))
	}
	if times == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, queuedFault{op, times, f})
}

// ClearFaults removes all faults from the queue. Requests that already met one
// are not affected, nor is the limit of [Server.SetRateLimit].
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// nextFault takes the fault for a request from the queue, unless the request exceeds the
// rate limit. The lock is held.
func (s *Server) nextFault(op Operation, now time.Time) Fault {
	if refusal, over := s.limit.refuses(now); over {
		return refusal
	}
	i := slices.IndexFunc(s.faults, func(q queuedFault) bool { return q.op == op || q.op == AnyOperation })
	if i < 0 {
		return Fault{}
	}
	q := &s.faults[i]
	fault := q.fault
	if q.times--; q.times == 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return fault
}
