package wire

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

// lengths are those of a call without a cut.
type lengths struct{ header, request, up, down int }

// A family of cuts has one for each byte.
type family struct {
	name     string
	side     side
	bytes    func(l lengths, f framing) int // the last cut
	uses     []priorUse
	framings []framing
	secure   bool
	always   bool
}

var (
	everyUse   = []priorUse{fresh, afterRead, afterOrder}
	onlyLength = []framing{byLength}
)

func families() []family {
	request := func(l lengths, _ framing) int { return l.request }
	response := func(_ lengths, f framing) int { return len(responseTo(sampleRequest(), f)) }
	return []family{
		{"the server stops reading at every byte of the request", requestRead, request, everyUse, onlyLength, false, false},
		{"the network stops carrying at every byte of the request", requestSent, request, everyUse, onlyLength, false, false},
		{"the network stops carrying at every byte of the request, always", requestSent, request, []priorUse{fresh}, onlyLength, false, true},
		{"the server stops sending at every byte of the response", responseSent, response, everyUse, []framing{byLength, byChunks, byClosing}, false, false},
		{"the dial fails once, twice and thrice", dialing, func(lengths, framing) int { return 3 }, []priorUse{fresh}, onlyLength, false, false},
		{
			"the network stops carrying at every byte of TLS on the way up, once", requestSent,
			func(l lengths, _ framing) int { return l.up },
			[]priorUse{fresh},
			onlyLength, true, false,
		},
		{
			"the network stops carrying at every byte of TLS on the way down, always", responseRead,
			func(l lengths, _ framing) int { return l.down },
			[]priorUse{fresh},
			onlyLength, true, true,
		},
	}
}

// sampleRequest is as much of a request as its response depends on.
func sampleRequest() []byte {
	return []byte("POST / HTTP/1.1\r\n\r\n" + `{"apiKey":"` + canary + `","orderId":"` + call.Target + `"}`)
}

// cuts are all cuts of a family: in every manner, a stall ended by everybody.
// TLS, which is costly, stalls for one of them.
func (f family) cuts(l lengths) (all []cut) {
	ends := []endedBy{callerCancels, callerDeadline, attemptTimeout, clientTimeout}
	if f.secure {
		ends = []endedBy{attemptTimeout}
	}
	for _, framing := range f.framings {
		for at := range f.bytes(l, framing) + 1 {
			for _, used := range f.uses {
				if used == afterOrder && at%2 == 1 || used == afterRead && at%2 == 0 {
					continue // the two kinds of used connection alternate
				}
				one := cut{side: f.side, at: at, used: used, framing: framing, secure: f.secure, always: f.always}
				for _, one.how = range []faultserver.Manner{faultserver.FIN, faultserver.RST} {
					all = append(all, one)
				}
				one.how = faultserver.Stall
				for _, one.ends = range ends {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// TestCreateInvoice_CutAtEveryByte cuts the connection at every byte of a
// create-invoice, both ways, in every manner, and compares the outcome that the
// client reports with what the server saw.
// I-123
func TestCreateInvoice_CutAtEveryByte(t *testing.T) {
	certificates()
	check := call.Leftovers(t)
	all, measured := &call.Summary{}, uncut(t)
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			one, jobs := &call.Summary{}, []func(){}
			cuts := f.cuts(measured)
			for _, cut := range cuts {
				jobs = append(jobs, func() { cut.run(one, measured) })
			}
			inParallel(48, jobs)
			one.Verify(t)
			t.Logf("%v", one)
			assert.Len(t, cuts, one.Total())
			all.Join(one)
		})
	}
	t.Logf("all cuts: %v", all)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.Count(outcome), "no cut ended as %v", outcome)
	}
	assert.Zero(t, all.Count(gateway.OutcomeRejected), "a cut is no refusal")
	check()
}

// uncut takes the lengths of a call without a cut, plain and in TLS.
func uncut(t *testing.T) lengths {
	var l lengths
	for _, secure := range []bool{false, true} {
		c := cut{secure: secure}
		s, r := c.call(func(string, ...any) {})
		require.Empty(t, r.Violations())
		require.NoError(t, r.Err)
		require.Equal(t, 1, r.Record.Seen().Bodies)
		if secure {
			l.up, l.down = s.conns[0].Carried()
			continue
		}
		l.request = len(s.request)
		l.header = l.request - len(faultserver.Body(s.request))
		up, down := s.conns[0].Carried()
		require.Equal(t, l.request, up)
		require.Equal(t, len(responseTo(sampleRequest(), byLength)), down)
	}
	t.Logf("a request of %d bytes, %d of them header, a response of %d; in TLS %d up and %d down",
		l.request, l.header, len(responseTo(sampleRequest(), byLength)), l.up, l.down)
	return l
}

// run makes the call that the cut is for, and counts how it ended.
func (c cut) run(s *call.Summary, l lengths) {
	var more []string
	_, r := c.call(func(format string, _ ...any) { more = append(more, format) })
	if want, certain := c.certain(l); certain && r.Outcome() != want {
		more = append(more, "the outcome had to be "+want.String())
	}
	s.Add(c.String(), r, more...)
}

// certain is the outcome of a cut that leaves no doubt.
func (c cut) certain(l lengths) (want gateway.Outcome, certain bool) {
	whole := c.side == responseSent && c.at == len(responseTo(sampleRequest(), c.framing))
	stalls := c.how == faultserver.Stall
	switch {
	case whole && (c.how == faultserver.FIN || stalls && c.framing != byClosing && c.ends != callerDeadline):
		return gateway.OutcomeSucceeded, c.how == faultserver.FIN // a stall may be ended before the response was read
	case c.side == responseSent && !whole && !stalls:
		return gateway.OutcomeUnknown, true
	case c.side == requestSent && !c.secure && c.at > l.header && c.at < l.request && !stalls:
		return gateway.OutcomeUnknown, true // after the whole request its response may win the race
	case c.side == requestRead && c.at == l.request:
		return gateway.OutcomeUnknown, !stalls
	case c.side == dialing && c.at >= 3 && !stalls:
		return gateway.OutcomeNotSent, true
	case c.side == dialing && !stalls:
		return gateway.OutcomeSucceeded, true
	default:
		return 0, false
	}
}

// call runs the cut, from a new server until nothing is open.
func (c cut) call(wrong func(string, ...any)) (*cutServer, call.Result) {
	s, err := newCutServer(c)
	if err != nil {
		wrong("no server: " + err.Error())
		return s, call.Result{Record: &s.Record}
	}
	transport := s.transport()
	defer s.Close()
	defer (&http.Client{Transport: transport}).CloseIdleConnections() // of a wrapper
	ctx, cancel := context.WithTimeout(context.Background(), c.deadline())
	defer cancel()
	if c.used != fresh {
		if err := s.warm(context.Background(), transport); err != nil {
			wrong("not warm: " + err.Error())
		}
	}
	client, err := gateway.New(s.url(), canary, c.options(transport)...)
	if err != nil {
		wrong(err.Error())
	}
	defer client.CloseIdleConnections()
	if c.ends == callerCancels {
		go func() {
			select {
			case <-s.reached:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	s.start()
	r := call.Create(ctx, client, call.Target, &s.Record)
	recordHosts(s.Server)
	if c.how != faultserver.Stall && ctx.Err() != nil {
		wrong("the call did not return in time")
	}
	return s, r
}

func (c cut) deadline() time.Duration {
	if c.ends == callerDeadline {
		return short
	}
	return patient
}

// options are those of a client whose call is cut.
func (c cut) options(transport http.RoundTripper) []gateway.Option {
	policy := gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}
	caller := &http.Client{Transport: transport}
	switch c.ends {
	case attemptTimeout, callerCancels: // which ends no invoice that is being sent
		policy.InvoiceTimeout = short
	case clientTimeout:
		caller.Timeout = short
	default:
		policy.InvoiceTimeout = patient
	}
	return []gateway.Option{gateway.WithHTTPClient(caller), gateway.WithRetry(policy)}
}
