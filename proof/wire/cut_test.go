package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// What ends a call whose connection stalls.
const (
	callerCancels  = "the caller's cancel"
	callerDeadline = "the caller's deadline"
	attemptTimeout = "the attempt's timeout"
	clientTimeout  = "the client's timeout"
)

// What the connection carries.
const (
	plain    = "HTTP/1.1"
	inPieces = "HTTP/1.1, whose header leaves before the body is read"
	inTLS    = "HTTP/1.1 in TLS"
	inHTTP2  = "HTTP/2 without TLS"
)

// A cut is one way in which the connection of a create-invoice call breaks.
type cut struct {
	proto  string
	down   bool // the response is cut, else the request
	used   bool // the connection carried an order before
	always bool // every connection breaks, else the first one
	at     faultserver.Break
	ends   string // a stall
}

// lengths are how many bytes a call without a cut carries, by protocol.
type lengths struct {
	body     int // of the request
	up, down map[string]int
}

// cuts are all cuts of a family: at every byte, in every manner.
func (c cut) cuts(l lengths) (all []cut) {
	last := l.up[c.proto]
	if c.down {
		last = l.down[c.proto]
	}
	for at := range last + 1 {
		for _, how := range []faultserver.Manner{faultserver.FIN, faultserver.RST, faultserver.Stall} {
			c.at = faultserver.Break{Up: at, Down: faultserver.Unlimited, Manner: how}
			if c.down {
				c.at.Up, c.at.Down = c.at.Down, c.at.Up
			}
			if c.ends = ""; how == faultserver.Stall {
				c.ends = []string{callerCancels, callerDeadline, attemptTimeout, clientTimeout}[at%4]
			}
			all = append(all, c)
		}
	}
	return all
}

// TestCreateInvoice_CutAtEveryByte cuts the connection at every byte of a create-invoice, both ways, in every
// manner, and compares the outcome that the client reports with what the server saw.
// I-123
func TestCreateInvoice_CutAtEveryByte(t *testing.T) {
	certificate()
	check := call.Leftovers(t)
	all, measured, most := &call.Summary{}, uncut(t), 0
	for _, family := range []cut{
		{proto: plain},
		{proto: plain, used: true},
		{proto: plain, always: true},
		{proto: inPieces},
		{proto: inPieces, always: true},
		{proto: plain, down: true},
		{proto: plain, down: true, used: true},
		{proto: inTLS},
		{proto: inTLS, down: true},
		{proto: inHTTP2},
		{proto: inHTTP2, down: true, always: true},
	} {
		cuts := family.cuts(measured)
		most += len(cuts)
		t.Run(fmt.Sprintf("%s, down %v, used %v, always %v", family.proto, family.down, family.used, family.always), func(t *testing.T) {
			var jobs []func()
			for _, cut := range cuts {
				jobs = append(jobs, func() { cut.run(all, measured) })
			}
			inParallel(48, jobs)
		})
	}
	all.Verify(t)
	t.Logf("all cuts: %v", all)
	assert.Equal(t, most, all.Total())
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "no cut ended as %v", outcome)
	}
	assert.Zero(t, all.Count(gateway.OutcomeRejected), "a cut is no refusal")
	check()
}

// uncut takes the lengths of a call without a cut.
func uncut(t *testing.T) lengths {
	l := lengths{up: map[string]int{}, down: map[string]int{}}
	for _, proto := range []string{plain, inPieces, inTLS, inHTTP2} {
		c := cut{proto: proto, at: faultserver.Break{Up: faultserver.Unlimited, Down: faultserver.Unlimited}}
		first, r := c.call(func(format string, args ...any) { t.Errorf(format, args...) })
		require.Empty(t, r.Violations())
		require.NoError(t, r.Err)
		require.Equal(t, 1, r.Record.Seen().Bodies)
		l.up[proto], l.down[proto] = first.Carried()
		l.body = r.Record.Seen().BodyBytes
	}
	t.Logf("%d bytes of body; by protocol, bytes up %v and down %v", l.body, l.up, l.down)
	return l
}

// run makes the call that the cut is for, and counts how it ended.
func (c cut) run(s *call.Summary, l lengths) {
	var more []string
	_, r := c.call(func(format string, args ...any) { more = append(more, fmt.Sprintf(format, args...)) })
	if want, certain := c.certain(l); certain && r.Outcome() != want {
		more = append(more, "the outcome had to be "+want.String())
	}
	s.Add(fmt.Sprintf("%+v", c), r, more...)
}

// certain is the outcome of a cut that leaves no doubt.
func (c cut) certain(l lengths) (want gateway.Outcome, certain bool) {
	header := l.up[c.proto] - l.body
	switch {
	case c.ends != "" || c.proto == inTLS || c.proto == inHTTP2:
		return 0, false
	case c.down && c.at.Down == l.down[c.proto]:
		return gateway.OutcomeSucceeded, true
	case c.down && c.at.Down > 0, c.at.Up > header && c.at.Up < l.up[c.proto]: // after the whole request its response may win the race
		return gateway.OutcomeUnknown, true
	case c.proto == inPieces && c.at.Up < header && c.at.Manner == faultserver.RST: // nothing of the body was read
		if c.always {
			return gateway.OutcomeNotSent, true
		}
		return gateway.OutcomeSucceeded, true // by the next attempt, which is whole
	default:
		return 0, false
	}
}

// call runs the cut, from a new server until nothing is open. It returns the first connection.
func (c cut) call(wrong func(string, ...any)) (first *faultserver.BreakingConn, r call.Result) {
	s := faultserver.New(nil)
	if err := s.Listen(context.Background()); err != nil {
		wrong("no server: %v", err)
		return nil, call.Result{Record: &s.Record}
	}
	defer c.serve(s)()
	reached := make(chan struct{})
	reach := sync.OnceFunc(func() { close(reached) })
	var made atomic.Pointer[faultserver.BreakingConn]
	s.WrapClient = func(conn net.Conn, number int) net.Conn {
		breaking := faultserver.NewBreakingConn(conn, reach)
		if !c.used && (number == 1 || c.always) {
			breaking.Arm(c.at)
		}
		made.CompareAndSwap(nil, breaking)
		return breaking
	}
	url, transport := c.transport(s)
	defer (&http.Client{Transport: transport}).CloseIdleConnections() // of a wrapper
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	caller, policy := &http.Client{Transport: transport}, gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond, InvoiceTimeout: patient}
	switch c.ends {
	case callerDeadline:
		ctx, cancel = context.WithTimeout(ctx, short)
	case clientTimeout:
		caller.Timeout, policy.InvoiceTimeout = short, 0
	case attemptTimeout, callerCancels: // which ends no invoice that is being sent
		policy.InvoiceTimeout = short
	}
	defer cancel()
	client, err := gateway.New(url+call.Host+"/merchant", canary, gateway.WithHTTPClient(caller), gateway.WithRetry(policy))
	if err != nil {
		wrong("%v", err)
	}
	defer client.CloseIdleConnections()
	if c.used {
		earlier, err := gateway.New(url+call.Host+"/merchant", canary, gateway.WithHTTPClient(&http.Client{Transport: transport}))
		if err == nil {
			_, err = earlier.CreateInvoice(context.Background(), call.Order("earlier"))
		}
		if err != nil {
			wrong("the earlier order: %v", err)
		}
		s.Record.Reset()
		made.Load().Arm(c.at)
	}
	if c.ends == callerCancels {
		go func() {
			select {
			case <-reached:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	r = call.Create(ctx, client, call.Target, &s.Record)
	recordHosts(s)
	if c.ends == "" && ctx.Err() != nil {
		wrong("the call did not return in time")
	}
	return made.Load(), r
}

// serve makes a server create each invoice. It returns what closes it.
func (c cut) serve(s *faultserver.Server) (closes func()) {
	s.Timeout = patient
	create := func(body []byte) string {
		s.Record.Committed()
		return call.Enveloped(call.InvoiceResult(call.OrderIn(body)))
	}
	if c.proto == inHTTP2 {
		return faultserver.NewHTTP2(s, nil, func(_ bool, body []byte) string { return create(body) }).Close
	}
	s.Handler = func(conn *faultserver.Conn) {
		if c.proto == inTLS {
			conn.Conn = tls.Server(conn.Conn, certificate().Server())
		}
		for {
			req, whole := conn.ReadRequest()
			if !whole || !conn.Send(faultserver.Response(201, create(req.Body))) {
				return
			}
		}
	}
	return s.Close
}

// transport is a caller's own, with a single connection to the gateway, and the scheme of the URL.
func (c cut) transport(s *faultserver.Server) (scheme string, _ http.RoundTripper) {
	t := &http.Transport{DialContext: s.DialContext, MaxConnsPerHost: 1}
	scheme = "http://"
	switch c.proto {
	case inPieces:
		t.WriteBufferSize = 16
	case inTLS:
		scheme, t.TLSClientConfig = "https://", certificate().Client()
		t.TLSClientConfig.CurvePreferences = []tls.CurveID{tls.CurveP256} // a short handshake
	case inHTTP2:
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	if c.used {
		return scheme, wrapper{t} // over an http.Transport, an invoice has a connection of its own
	}
	return scheme, t
}
