package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// What ends a call whose connection stalls.
const (
	callerCancels  = "the caller's cancel"
	callerDeadline = "the caller's deadline"
	invoiceTimeout = "the invoice's timeout"
	clientTimeout  = "the timeout of the http.Client"
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
	used   bool // the connection carried an order before: it is the business of a RoundTripper of the caller's
	always bool // every connection breaks, else the first one
	at     cutAt
	ends   string // a stall
}

// lengths are how many bytes a call without a cut carries, by protocol.
type lengths struct {
	body     int // of the request
	up, down map[string]int
}

// cuts are all cuts of a family: at every byte, in every manner. In TLS, where a call costs most, the manners take turns.
func (c cut) cuts(l lengths) (all []cut) {
	last := l.up[c.proto]
	if c.down {
		last = l.down[c.proto]
	}
	for at := range last + 1 {
		for i, how := range []manner{fin, rst, stall} {
			if c.proto == inTLS && at%3 != i {
				continue
			}
			c.at = cutAt{at, unlimited, how}
			if c.down {
				c.at = cutAt{unlimited, at, how}
			}
			if c.ends = ""; how == stall {
				c.ends = []string{callerCancels, callerDeadline, invoiceTimeout, clientTimeout}[at/3%4]
			}
			all = append(all, c)
		}
	}
	return all
}

// TestCreateInvoice_cutAtEveryByte cuts the connection at every byte of a create-invoice, both ways, in every manner, and
// compares the outcome that the client reports with what the gateway saw.
// I-123
func TestCreateInvoice_cutAtEveryByte(t *testing.T) {
	all, measured, most := &call.Summary{}, uncut(t), 0
	t.Run("all", func(t *testing.T) {
		for _, family := range []cut{
			{proto: plain},
			{proto: plain, used: true},
			{proto: plain, always: true},
			{proto: plain, down: true},
			{proto: plain, down: true, used: true},
			{proto: inPieces},
			{proto: inPieces, used: true},
			{proto: inPieces, always: true},
			{proto: inTLS},
			{proto: inTLS, down: true},
			{proto: inHTTP2},
			{proto: inHTTP2, down: true, always: true},
		} {
			t.Run(fmt.Sprintf("%s, down %v, used %v, always %v", family.proto, family.down, family.used, family.always), func(t *testing.T) {
				cuts := family.cuts(measured)
				most += len(cuts)
				t.Parallel()
				for _, c := range cuts {
					synctest.Test(t, func(*testing.T) { c.run(all, measured) })
				}
			})
		}
	})
	all.Verify(t)
	t.Logf("all cuts: %v", all)
	assert.Equal(t, most, all.Total())
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "no cut ended as %v", outcome)
	}
	assert.Zero(t, all.Count(gateway.OutcomeRejected), "a cut is no refusal")
}

// uncut takes the lengths of a call without a cut.
func uncut(t *testing.T) lengths {
	l := lengths{up: map[string]int{}, down: map[string]int{}}
	for _, proto := range []string{plain, inPieces, inTLS, inHTTP2} {
		synctest.Test(t, func(t *testing.T) {
			n, r := cut{proto: proto, at: cutAt{up: unlimited, down: unlimited}}.call()
			require.Empty(t, r.Violations())
			require.NoError(t, r.Err)
			require.Len(t, n.dialed(), 1)
			first := n.dialed()[0]
			first.change(func() { l.up[proto], l.down[proto] = unlimited-first.left.up, unlimited-first.left.down })
			l.body = r.Record.Seen().BodyBytes
		})
	}
	t.Logf("%d bytes of body; by protocol, bytes up %v and down %v", l.body, l.up, l.down)
	return l
}

// run makes the call that the cut is for, and counts how it ended.
func (c cut) run(all *call.Summary, l lengths) {
	_, r := c.call()
	var more []string
	if want, certain := c.certain(l); certain && r.Outcome() != want {
		more = append(more, "the outcome had to be "+want.String())
	}
	all.Add(fmt.Sprintf("%+v", c), r, more...)
}

// certain is the outcome of a cut that leaves no doubt.
func (c cut) certain(l lengths) (want gateway.Outcome, certain bool) {
	header := l.up[c.proto] - l.body
	switch {
	case c.ends != "" || c.proto == inTLS || c.proto == inHTTP2:
		return 0, false
	case c.down && c.at.down == l.down[c.proto]:
		return gateway.OutcomeSucceeded, true
	case c.down && c.at.down > 0, c.at.up > header && c.at.up < l.up[c.proto]: // after the whole request its response may win the race
		return gateway.OutcomeUnknown, true
	case c.proto == inPieces && c.at.up < header && c.at.manner == rst: // nothing of the body was read
		if c.always {
			return gateway.OutcomeNotSent, true
		}
		return gateway.OutcomeSucceeded, true // by the next attempt, which is whole
	default:
		return 0, false
	}
}

// What ends a stall, and what must not.
const (
	short   = 3 * time.Second
	patient = 50 * time.Second
)

// call runs the cut, from a new gateway until nothing is open.
func (c cut) call() (*network, call.Result) {
	n, reached := &network{over: make(chan struct{})}, make(chan struct{})
	reach := sync.OnceFunc(func() { close(reached) })
	n.cuts = func(number int, conn *connection) {
		if !c.used && (number == 1 || c.always) {
			conn.arm(c.at, reach)
		}
	}
	base, transport := c.connect(n)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var guard gateway.MemoryGuard
	caller, policy, most := &http.Client{Transport: transport}, gateway.RetryPolicy{InvoiceTimeout: patient}, 3*patient+time.Second
	switch c.ends {
	case callerDeadline:
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, short)
		defer stop()
		most = short
	case clientTimeout:
		caller.Timeout, policy.InvoiceTimeout = short, 0
	}
	client, err := gateway.New(base+"/merchant", canary, gateway.WithHTTPClient(caller), gateway.WithRetry(policy), gateway.WithOrderGuard(&guard))
	if err != nil {
		n.Violation("%v", err)
	}
	if c.used {
		if _, err := client.CreateInvoice(ctx, call.Order(earlier)); err != nil {
			n.Violation("the earlier order: %v", err)
		}
		n.Reset()
		n.dialed()[0].arm(c.at, reach)
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
	begun := time.Now()
	r := call.Create(ctx, client, call.Target, &n.Record)
	if took := time.Since(begun); took > most {
		n.Violation("the call took %v", took)
	}
	cancel()
	n.settle(client, transport)
	if has, _ := guard.Order(context.Background(), "", call.Target); !agree(has.State, r) {
		n.Violation("the guard has an order that is %v", has.State)
	}
	return n, r
}

// agree reports whether a guard agrees with how a call ended. An invoice that is still being sent has an end by now.
func agree(state gateway.OrderState, r call.Result) bool {
	switch r.Outcome() {
	case gateway.OutcomeSucceeded:
		return state == gateway.OrderCreated
	case gateway.OutcomeNotSent:
		return state == gateway.OrderFree
	default:
		return state == gateway.OrderUnknown || state == gateway.OrderCreated && errors.Is(r.Err, gateway.ErrStillSending) && r.Record.Seen().Commits == 1
	}
}

// connect makes every invoice be created, and returns the base of its URL and a caller's transport that leads there.
func (c cut) connect(n *network) (base string, _ http.RoundTripper) {
	t := &http.Transport{DialContext: n.DialContext, MaxConnsPerHost: 1, Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(c.proto != inHTTP2)
	t.Protocols.SetUnencryptedHTTP2(c.proto == inHTTP2)
	server := newServer(n, t.Protocols)
	base = "http://" + call.Host
	switch c.proto {
	case inPieces:
		t.WriteBufferSize = 16
	case inTLS:
		base, t.TLSClientConfig = "https://"+call.Host, clientTLS()
	}
	n.serve = func(p *peer) {
		if c.proto == inTLS {
			p = p.secure()
		}
		_ = server.Serve(&single{Conn: p})
	}
	if c.used {
		return base, struct{ *http.Transport }{t} // over an http.Transport, an invoice has a connection of its own
	}
	return base, t
}
