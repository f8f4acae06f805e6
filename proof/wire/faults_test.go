package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/net/http2"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/measure"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// A fault is what a gateway does, and how a read and a create-invoice end that meet it. An end without a kind skips
// that call.
type fault struct {
	name          string
	cause         func(w *world)
	read, invoice end
}

// An end is how a call ends, and what the gateway has seen of it.
type end struct {
	kind     string // success, the outcome of an invoice, or the type of the error of a read
	is       error  // that the error matches, or the cause of an unknown outcome
	attempts int    // that a *TransportError reports; 0 is not checked
	status   int    // of the last response, by the error
	requests int    // that arrived as a whole
	conns    int    // that were dialed; 0 is not checked
	exists   bool   // an invoice that is not known to the client
	later    string // the kind of the same call later, if the caller has left at a deadline
}

const (
	success = "success"
	broken  = "*TransportError"
	garbled = "*DecodeError"
	notSent = "not sent"
	unknown = "unknown"
)

// done is a success after so many requests over so many connections.
func done(requests, conns int) end { return end{kind: success, requests: requests, conns: conns} }

// lost is a read without a whole response in so many attempts. Of each the whole request arrived.
func lost(attempts int, is error) end {
	return end{kind: broken, is: is, attempts: attempts, requests: attempts}
}

// unsure is an invoice that arrived and was created, whatever the client knows.
func unsure(is error) end {
	return end{kind: unknown, is: is, attempts: 1, requests: 1, conns: 1, exists: true}
}

// unsent is an invoice that was not sent in so many attempts.
func unsent(attempts int, is error) end {
	return end{kind: notSent, is: is, attempts: attempts, conns: attempts}
}

func (e end) at(status int) end  { e.status = status; return e }
func (e end) over(conns int) end { e.conns = conns; return e }
func (e end) arrived(n int) end  { e.requests = n; return e }

func (e end) thenLater(kind string) end { e.later = kind; return e }

const (
	ok200    = "HTTP/1.1 200 OK\r\n"
	chunked  = ok200 + "Transfer-Encoding: chunked\r\n\r\n"
	gzipped  = "Content-Encoding: gzip\r\n"
	password = "hunter2-and-more"
	earlier  = "earlier" // the order of an earlier call

	small, large = 16 << 20, 160 << 20 // bytes that a call may allocate
)

// TestFaults has a gateway cause each fault, under a client with a transport of the caller's and with a middleware around it.
func TestFaults(t *testing.T) {
	ended := context.DeadlineExceeded
	busy := &net.DNSError{Err: "server misbehaving", Name: "localhost", IsTemporary: true}
	nobody := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, f := range []fault{
		{"there is none", func(*world) {}, done(1, 1), done(1, 1)},
		{"looking up the host fails once", func(w *world) { w.failDials(1, busy) }, done(1, 2), done(1, 2)},
		{"every connection is refused", func(w *world) { w.failDials(9, nobody) }, lost(3, nobody).arrived(0), unsent(3, nobody)},
		{"the certificate is of an unknown authority", func(w *world) {
			w.secure()
			w.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		}, lost(1, nil).arrived(0).over(1), unsent(1, nil)},
		{"one TLS handshake is cut", func(w *world) {
			w.secure()
			w.first(func(p *peer) { _, _ = p.Read(make([]byte, 1)) })
		}, done(1, 2), done(1, 2)},

		{"an idle connection was closed", func(w *world) { w.used(func(*peer) {}) }, done(1, 2), done(1, 2)},
		{"a used connection is closed after the whole request", func(w *world) { w.used(func(p *peer) { p.request() }) }, done(2, 2), done(1, 2)},
		{"the used connection of a RoundTripper that adds Idempotency-Key is closed after the whole request", func(w *world) {
			w.used(func(p *peer) { p.request(); w.commit() })
			w.trip = tripper(func(req *http.Request) (*http.Response, error) {
				req = req.Clone(req.Context())
				req.Header.Set("Idempotency-Key", "of the RoundTripper") // net/http believes that it may replay such a request
				return w.transport.RoundTrip(req)
			})
		}, end{}, unsure(nil)},
		{"the response to another request comes first on a used connection", func(w *world) {
			other := ok(call.Enveloped(strings.ReplaceAll(call.WithdrawalResult, call.WithdrawalID, "another")))
			if w.isInvoice {
				other = strings.Replace(ok(refused("no")), "200 OK", "400 Bad Request", 1)
			}
			w.used(func(p *peer) {
				_, _ = p.reader.Peek(1)
				p.send(other)
				p.request()
			})
		}, end{kind: garbled, is: gateway.ErrResponseMismatch, requests: 1}.over(1), done(1, 2)},

		{"there is no response", func(w *world) { w.each(func(p *peer) { w.commit(); <-w.over }) }, lost(3, ended), unsure(ended)},
		{"the caller cancels while he waits", func(w *world) { w.each(func(p *peer) { w.commit(); w.cancel(); <-w.over }) }, lost(1, context.Canceled), unsure(ended)},
		{"the caller's deadline passes while he waits", func(w *world) {
			w.ctx, w.cancel = context.WithTimeout(w.ctx, short)
			w.each(func(p *peer) { w.commit(); <-w.over })
		}, lost(1, ended), unsure(ended).thenLater(unknown)},
		{"the response comes after the caller's deadline", func(w *world) {
			w.ctx, w.cancel = context.WithTimeout(w.ctx, short)
			w.each(func(p *peer) { w.commit(); time.Sleep(2 * short); p.send(ok(w.body())) })
		}, lost(1, ended), unsure(ended).thenLater(success)},

		{"101 to a request that asked for no upgrade", answers("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"), lost(1, nil).at(101), unsure(nil).at(101)},
		{"an informational response comes first", func(w *world) {
			w.each(func(p *peer) { w.commit(); p.send("HTTP/1.1 103 Early Hints\r\n\r\n" + ok(w.body())) })
		}, done(1, 1), done(1, 1)},
		{"the response is not HTTP", answers("SSH-2.0-OpenSSH_9.6\r\n\r\n"), lost(3, nil), unsure(nil)},
		{"a redirect to another host", answers("HTTP/1.1 307 Elsewhere\r\nLocation: http://evil.test/steal\r\nContent-Length: 0\r\n\r\n"), lost(1, gateway.ErrRedirect).at(307), unsure(gateway.ErrRedirect).at(307)},
		{"a redirect to a text that is no URL", answers("HTTP/1.1 302 Elsewhere\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n"), lost(1, gateway.ErrRedirect).at(302), unsure(gateway.ErrRedirect).at(302)},

		{"the length of a chunk is no number", answers(chunked + "xyz\r\n{"), lost(3, nil).at(200), unsure(nil).at(200)},
		{"a body of unknown length is cut", func(w *world) {
			w.each(func(p *peer) { w.commit(); p.send("HTTP/1.0 200 OK\r\n\r\n" + w.body()[:70]) })
		}, end{kind: garbled, requests: 1}, unsure(nil).at(200)},
		{"a body is cut once", func(w *world) {
			w.each(func(p *peer) {
				response := ok(w.body())
				if p.number == 1 {
					response = response[:len(response)-9]
				}
				w.commit()
				p.send(response)
			})
		}, done(2, 2), unsure(io.ErrUnexpectedEOF).at(200)},
		{"a compressed body is cut", answers(ok200 + gzipped + "\r\n" + packed("{", 1)[:500]), lost(3, io.ErrUnexpectedEOF).at(200), unsure(io.ErrUnexpectedEOF).at(200)},
		{"a body is labelled gzip and is not", answers(ok200 + gzipped + "Content-Length: 20\r\n\r\n" + strings.Repeat("{}", 10)), end{kind: garbled, is: gzip.ErrHeader, requests: 3}, unsure(gzip.ErrHeader).at(200)},
		{"a body has no end", floods(chunked, "1\r\n{\r\n"+strings.Repeat("1000\r\n"+strings.Repeat("a", 4096)+"\r\n", 16)), lost(1, gateway.ErrResponseTooLarge).at(200), unsure(gateway.ErrResponseTooLarge).at(200)},
		{"a body trickles", func(w *world) {
			w.each(func(p *peer) {
				w.commit()
				for p.send(ok200 + "\r\n{"); p.send(" "); time.Sleep(time.Second) {
				}
			})
		}, lost(3, ended).at(200), unsure(ended).at(200)},

		{"a gzip bomb in a field that is not read", costs(large, answers(ok200+gzipped+"\r\n"+packed(`{"x":`, 100))), lost(1, gateway.ErrResponseTooLarge).at(200), unsure(gateway.ErrResponseTooLarge).at(200)},
		{"a password and many URLs for a length", costs(small, answers(ok200+"Content-Length: http://user:"+password+"@host/ "+strings.Repeat("://", 80_000)+"\r\n\r\n")), lost(3, nil), unsure(nil)},

		{"HTTP/2: there is none", func(w *world) { w.speakHTTP2(func(*frames, stage, uint32) bool { return true }) }, done(1, 1), done(1, 1)},
		{"HTTP/2: each stream is refused, although the invoice was created", func(w *world) {
			w.speakHTTP2(func(c *frames, now stage, stream uint32) bool {
				return now != committed || c.WriteRSTStream(stream, http2.ErrCodeRefusedStream) != nil
			})
		}, lost(3, nil).arrived(9), unsure(nil)},
	} {
		t.Run(f.name, func(t *testing.T) {
			for name, want := range map[string]end{"read": f.read, "create-invoice": f.invoice} {
				for _, middleware := range []bool{false, true} {
					if want.kind != "" {
						t.Run(fmt.Sprintf("%s, middleware %v", name, middleware), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { f.meet(t, name != "read", middleware, want) })
						})
					}
				}
			}
		})
	}
}

// meet makes the call that the fault is for.
func (f fault) meet(t *testing.T, invoice, middleware bool, want end) {
	w := newWorld(t, invoice)
	f.cause(w)
	if middleware {
		w.options = append(w.options, gateway.WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return tripper(next.RoundTrip) }))
	}
	r := w.call()
	seen := w.Seen()
	if invoice {
		assert.Empty(t, r.Violations())
		assert.Equal(t, want.exists || want.kind == success, seen.Commits == 1)
	} else {
		assert.Empty(t, seen.Violations)
		assert.Empty(t, invariant.Broken(w.read, r.Err))
		assert.True(t, r.Err != nil || w.read.WithdrawRequestID == call.WithdrawalID)
	}
	assert.Equal(t, want.requests, seen.Requests, "requests that arrived as a whole")
	assert.True(t, want.conns == 0 || want.conns == len(w.dialed()), "%d connections", len(w.dialed()))
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", r.Err, r.Err, r.Err), password)
	assert.Less(t, len(fmt.Sprint(r.Err)), 16<<10)
	if w.memory > 0 {
		assert.Less(t, w.cost, w.memory, "bytes that the call has allocated")
	}
	assert.Equal(t, want.kind, kindOf(r.Err, invoice), "%v", r.Err)
	err := r.Err
	if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		assert.Equal(t, want.status, lost.StatusCode)
		assert.False(t, lost.SentAt.IsZero())
		assert.False(t, gateway.SafeToRetry(err))
		err = lost.Cause
	}
	assert.True(t, want.is == nil || errors.Is(err, want.is), "%v", err)
	if assert.Equal(t, want.later != "", errors.Is(err, gateway.ErrStillSending)); want.later != "" {
		again, err := w.client.CreateInvoice(t.Context(), call.Order(call.Target))
		assert.Equal(t, want.later, kindOf(err, true), "%v", err)
		assert.True(t, err != nil || again.Replayed)
	}
	if failure, ok := errors.AsType[*gateway.TransportError](err); ok {
		assert.Equal(t, want.status, failure.LastStatus)
		assert.True(t, want.attempts == 0 || want.attempts == failure.Attempts, "%d attempts: %v", failure.Attempts, failure)
	}
}

// kindOf names how a call ended.
func kindOf(err error, invoice bool) string {
	switch {
	case err == nil:
		return success
	case invoice:
		return gateway.OutcomeOf(err).String()
	default:
		return strings.Replace(fmt.Sprintf("%T", err), "gateway.", "", 1)
	}
}

// A world is a client, a gateway, and the network between them.
type world struct {
	network
	isInvoice bool
	transport *http.Transport
	trip      http.RoundTripper // instead of transport, if it is set
	base      string
	options   []gateway.Option
	ctx       context.Context
	cancel    context.CancelFunc
	warms     bool   // a read before the call leaves an idle connection
	memory    uint64 // bytes that the call may allocate; 0 is not checked

	client *gateway.Client
	read   *gateway.Withdrawal
	cost   uint64
}

func newWorld(t *testing.T, isInvoice bool) *world {
	w := &world{isInvoice: isInvoice, base: "http://" + call.Host, network: network{over: make(chan struct{})}}
	w.each(func(p *peer) { w.commit(); p.send(ok(w.body())) })
	w.transport = &http.Transport{DialContext: w.DialContext}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	return w
}

// call makes the call, and waits until nothing of it is left. Of a read, the result has the error only.
func (w *world) call() (r call.Result) {
	caller := &http.Client{Transport: w.transport}
	if w.trip != nil {
		caller.Transport = w.trip
	}
	var err error
	if w.client, err = gateway.New(w.base+"/merchant", canary, append(w.options, gateway.WithHTTPClient(caller))...); err != nil {
		w.Violation("%v", err)
	}
	if w.warms {
		if w.isInvoice {
			_, err = w.client.CreateInvoice(w.ctx, call.Order(earlier))
		} else {
			_, err = w.client.Withdrawal(w.ctx, call.WithdrawalID)
		}
		if err != nil {
			w.Violation("the earlier call: %v", err)
		}
		synctest.Wait()
		w.Reset()
	}
	began := time.Now()
	w.cost = measure.Allocated(func() {
		if w.isInvoice {
			r = call.Create(w.ctx, w.client, call.Target, &w.Record)
		} else {
			w.read, r.Err = w.client.Withdrawal(w.ctx, call.WithdrawalID)
		}
	})
	if took := time.Since(began); took > 3*time.Minute+5*time.Second {
		w.Violation("it took %v", took)
	}
	w.cancel()
	w.settle(w.client, w.transport)
	return r
}

// commit creates the invoice, if the call is for one.
func (w *world) commit() {
	if w.isInvoice {
		w.Committed()
	}
}

// body is the body of a success.
func (w *world) body() string {
	if w.isInvoice {
		return call.Enveloped(call.InvoiceResult(call.Target))
	}
	return call.Enveloped(call.WithdrawalResult)
}

// each has the gateway read a request of each connection, and close the connection when respond returns.
func (w *world) each(respond func(p *peer)) {
	w.serve = func(p *peer) {
		if p.request() {
			respond(p)
		}
	}
}

// first has the gateway do something else on the first connection.
func (w *world) first(do func(p *peer)) {
	others := w.serve
	w.serve = func(p *peer) {
		if p.number == 1 {
			do(p)
			return
		}
		others(p)
	}
}

// used has an earlier call of the same kind use the first connection. Then something else happens to it.
func (w *world) used(then func(p *peer)) {
	w.warms = true
	w.first(func(p *peer) {
		if p.request() && p.send(ok(strings.ReplaceAll(w.body(), call.Target, earlier))) {
			then(p)
		}
	})
}

// failDials fails so many dials.
func (w *world) failDials(n int, err error) {
	w.dials = func(number int) error {
		if number <= n {
			return err
		}
		return nil
	}
}

// secure puts the gateway behind TLS.
func (w *world) secure() {
	w.base = "https://" + call.Host
	w.transport.TLSClientConfig = clientTLS()
	plain := w.serve
	w.serve = func(p *peer) {
		plain(p.secure())
	}
}

// answers has the gateway create the invoice, send the same text in response to each request, and close the connection.
func answers(text string) func(*world) {
	return func(w *world) { w.each(func(p *peer) { w.commit(); p.send(text) }) }
}

// floods has the gateway begin a response, and send more of the same without end.
func floods(begin, more string) func(*world) {
	return func(w *world) {
		w.each(func(p *peer) {
			w.commit()
			for p.send(begin); p.send(more); {
			}
		})
	}
}

// costs bounds what a call may allocate.
func costs(memory uint64, cause func(*world)) func(*world) {
	return func(w *world) { w.memory = memory; cause(w) }
}

// ok is a response of 200 with a body.
func ok(body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", ok200, len(body), body)
}

// packed compresses a text and so many megabytes of spaces.
func packed(text string, megabytes int) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, text)
	for range megabytes {
		_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	_ = w.Close()
	return out.String()
}
