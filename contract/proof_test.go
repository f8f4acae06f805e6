package contract

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// lengths are those of a healthy exchange, as it was recorded.
type lengths struct{ header, request, up, down int }

// A chapter is a family of cuts, one for each byte.
type chapter struct {
	name      string
	side      side
	bytes     func(l lengths, f framing) int // the last cut
	histories []history
	framings  []framing
	secure    bool
	always    bool
}

var (
	everyHistory = []history{fresh, afterRead, afterOrder}
	onlyLength   = []framing{byLength}
)

func chapters() []chapter {
	request := func(l lengths, _ framing) int { return l.request }
	response := func(_ lengths, f framing) int { return len(answerTo(sampleRequest(), f)) }
	return []chapter{
		{"the server stops reading at every byte of the request", requestRead, request, everyHistory, onlyLength, false, false},
		{"the network stops carrying at every byte of the request", requestSent, request, everyHistory, onlyLength, false, false},
		{"the network stops carrying at every byte of the request, always", requestSent, request, []history{fresh}, onlyLength, false, true},
		{"the server stops sending at every byte of the response", responseSent, response, everyHistory, []framing{byLength, byChunks, byClosing}, false, false},
		{"the dial fails once, twice and thrice", dialling, func(lengths, framing) int { return 3 }, []history{fresh}, onlyLength, false, false},
		{
			"the network stops carrying at every byte of TLS on the way up, once", requestSent,
			func(l lengths, _ framing) int { return l.up },
			[]history{fresh},
			onlyLength, true, false,
		},
		{
			"the network stops carrying at every byte of TLS on the way down, always", responseRead,
			func(l lengths, _ framing) int { return l.down },
			[]history{fresh},
			onlyLength, true, true,
		},
	}
}

// sampleRequest is as much of a request as its answer depends on.
func sampleRequest() []byte {
	return []byte("POST / HTTP/1.1\r\n\r\n" + `{"apiKey":"` + canary + `","orderId":"` + target + `"}`)
}

// target is the order that all cuts are about.
const target = "A-17"

// cuts are all cuts of a chapter: in every manner, a stall ended by everybody.
// TLS, which is dear, stalls for one of them.
func (c chapter) cuts(l lengths) (all []cut) {
	stoppers := []stopper{callerCancels, callerDeadline, attemptTimeout, clientTimeout}
	if c.secure {
		stoppers = []stopper{attemptTimeout}
	}
	for _, f := range c.framings {
		for at := range c.bytes(l, f) + 1 {
			for _, h := range c.histories {
				if h == afterOrder && at%2 == 1 || h == afterRead && at%2 == 0 {
					continue // the two kinds of used connection take turns
				}
				one := cut{side: c.side, at: at, history: h, framing: f, secure: c.secure, always: c.always}
				for _, one.how = range []manner{fin, rst} {
					all = append(all, one)
				}
				one.how = stall
				for _, one.stops = range stoppers {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// TestProof cuts the connection at every byte of a create-invoice, both ways,
// in every manner, and looks at what the client says against what the server
// saw.
func TestProof(t *testing.T) {
	certificate()
	check := leftovers(t)
	all, recorded := &tally{}, record(t)
	for _, c := range chapters() {
		t.Run(c.name, func(t *testing.T) {
			one, jobs := &tally{}, []func(){}
			cuts := c.cuts(recorded)
			for _, cut := range cuts {
				jobs = append(jobs, func() { cut.play(one, recorded) })
			}
			inParallel(48, jobs)
			one.verify(t)
			t.Logf("%v", one)
			assert.Len(t, cuts, one.total())
			all.join(one)
		})
	}
	t.Logf("proof: %v", all)
	for _, outcome := range []gateway.Outcome{gateway.OutcomeSucceeded, gateway.OutcomeNotSent, gateway.OutcomeUnknown} {
		assert.NotZero(t, all.counts[outcome], "no cut ended as %v", outcome)
	}
	assert.Zero(t, all.counts[gateway.OutcomeRejected], "a cut is no refusal")
	check()
}

// record takes the lengths of a healthy exchange, plain and in TLS.
func record(t *testing.T) lengths {
	var l lengths
	for _, secure := range []bool{false, true} {
		c := cut{secure: secure}
		g, e := c.act(func(string, ...any) {})
		require.Empty(t, e.broken())
		require.NoError(t, e.err)
		require.Equal(t, 1, e.saw.sends)
		if secure {
			l.up, l.down = g.lines[0].passed()
			continue
		}
		l.request = len(g.request)
		l.header = l.request - len(bodyOf(g.request))
		up, down := g.lines[0].passed()
		require.Equal(t, l.request, up)
		require.Equal(t, len(answerTo(sampleRequest(), byLength)), down)
	}
	t.Logf("a request of %d bytes, %d of them header, an answer of %d; in TLS %d up and %d down",
		l.request, l.header, len(answerTo(sampleRequest(), byLength)), l.up, l.down)
	return l
}

// play makes the call that the cut is for, and counts how it ended.
func (c cut) play(t *tally, l lengths) {
	var more []string
	_, e := c.act(func(format string, _ ...any) { more = append(more, format) })
	if want, certain := c.certain(l); certain && e.outcome() != want {
		more = append(more, "the outcome had to be "+want.String())
	}
	t.add(c.String(), e, more...)
}

// certain is the outcome of a cut that leaves no doubt.
func (c cut) certain(l lengths) (want gateway.Outcome, certain bool) {
	whole := c.side == responseSent && c.at == len(answerTo(sampleRequest(), c.framing))
	switch {
	case whole && (c.how == fin || c.how == stall && c.framing != byClosing && c.stops != callerCancels && c.stops != callerDeadline):
		return gateway.OutcomeSucceeded, c.how == fin // a stall may be ended before the answer was read
	case c.side == responseSent && !whole && c.how != stall:
		return gateway.OutcomeUnknown, true
	case c.side == requestSent && !c.secure && c.at > l.header && c.at < l.request && c.how != stall:
		return gateway.OutcomeUnknown, true // after the whole request its answer may win the race
	case c.side == requestRead && c.at == l.request:
		return gateway.OutcomeUnknown, c.how != stall
	case c.side == dialling && c.at >= 3 && c.how != stall:
		return gateway.OutcomeNotSent, true
	case c.side == dialling && c.how != stall:
		return gateway.OutcomeSucceeded, true
	default:
		return 0, false
	}
}

// act runs the cut, from an empty gateway to nothing left open.
func (c cut) act(wrong func(string, ...any)) (*rawGateway, end) {
	g, err := newRawGateway(c, target)
	if err != nil {
		wrong("no gateway: " + err.Error())
		return g, end{}
	}
	transport := g.transport()
	defer g.close()
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), c.deadline())
	defer cancel()
	if c.history != fresh {
		if err := g.warm(context.Background(), transport); err != nil {
			wrong("not warm: " + err.Error())
		}
	}
	client, err := gateway.New(g.url(), canary, c.options(transport)...)
	if err != nil {
		wrong(err.Error())
	}
	if c.stops == callerCancels {
		go func() {
			select {
			case <-g.reached:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	g.start()
	e := create(ctx, client, target, g.saw)
	if c.how != stall && ctx.Err() != nil {
		wrong("the call did not return in time")
	}
	return g, e
}

func (c cut) deadline() time.Duration {
	if c.stops == callerDeadline {
		return short
	}
	return patient
}

// options are those of a client whose call is cut.
func (c cut) options(transport http.RoundTripper) []gateway.Option {
	policy := gateway.RetryPolicy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}
	caller := &http.Client{Transport: transport}
	switch c.stops {
	case attemptTimeout:
		policy.InvoiceTimeout = short
	case clientTimeout:
		caller.Timeout = short
	default:
		policy.InvoiceTimeout = patient
	}
	return []gateway.Option{gateway.WithHTTPClient(caller), gateway.WithRetry(policy)}
}
