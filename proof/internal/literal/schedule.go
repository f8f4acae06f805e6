package literal

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// A schedule is what happens to a merchant, drawn from a seed before it begins.
type schedule struct {
	Attempts int
	Timeout  time.Duration
	Plain    bool // a guard in memory is used as it is
	Repeated gatewaytest.RepeatedOrders
	Answers  map[string][]answer
	Routes   [][]route // of each process
	Events   []event
}

// An event is a click, unless it is the end of a process or of the leases of dead ones, or an
// operator who looks at the orders that are unknown.
type event struct {
	After time.Duration // the event before
	Kind  kind
	Click click
}

type kind int8

const (
	clicks kind = iota
	deploys
	kills
	expires
	resolves
)

// A click is a buyer who wants to pay an order.
type click struct {
	Order      int
	Request    int           // which of the requests for the order; almost always the same
	Cancel     time.Duration // when the buyer leaves; 0 for never
	Deadline   time.Duration // 0 for none
	BeginFails int           // how many questions to the guard fail
	KeyFails   bool          // the source of the key fails once, in this click or the next
	Suspended  time.Duration // the process sleeps when it has got the lease, the first time
}

// usual, other and invalid are the requests for an order.
const (
	usual = iota
	other
	invalid
)

// orderID names the orders of a schedule, none of which is that of another. Some have the form of a UUID.
func orderID(seed uint64, n int) string {
	if seed%4 == 3 {
		return fmt.Sprintf("%08x-0bcf-4bfa-9c0c-de1a8cc8fa%02x", seed, n)
	}
	return fmt.Sprintf("order-%d-%d", seed, n)
}

// merchant is whose an order is, of three on one client and one guard: 0 is the client's own.
func merchant(orderID string) int { return int(orderID[len(orderID)-1]) % 3 }

// merchantKey is the key of a merchant.
func merchantKey(n int) string {
	if n == 0 {
		return invariant.Key
	}
	return fmt.Sprint(invariant.Key, "-", n)
}

func draw(seed uint64, survives bool) schedule {
	r := rand.New(rand.NewPCG(seed, 17)) // #nosec G404 -- it must be the same again
	s := schedule{
		Attempts: 1 + r.IntN(3), Plain: r.IntN(2) == 0, Answers: map[string][]answer{},
		Timeout: oneOf(r, 50*time.Millisecond, time.Second, 20*time.Second, time.Minute),
	}
	kinds := gatewaytest.AllRepeatedOrders()
	s.Repeated = kinds[seed%uint64(len(kinds))]
	orders := 1 + r.IntN(3)
	for n := range orders {
		answers := make([]answer, r.IntN(5))
		for i := range answers {
			answers[i] = answer{oneOf(r, 0, 0, time.Millisecond, 30*time.Millisecond, 2*time.Second), drawFault(r)}
		}
		s.Answers[orderID(seed, n)] = answers
	}
	s.Routes = make([][]route, 1+r.IntN(3))
	for n := range s.Routes {
		s.Routes[n] = make([]route, r.IntN(5))
		for i := range s.Routes[n] {
			s.Routes[n][i] = drawRoute(r)
		}
	}
	for range 1 + r.IntN(8) {
		e := drawEvent(r, orders, survives)
		s.Events = append(s.Events, e)
		switch {
		case e.Kind == kills && r.IntN(2) == 0: // the buyer comes back after the lease
			s.Events = append(s.Events, event{After: time.Second, Kind: expires})
		case survives && e.Click.Suspended > lease: // he comes back while the process sleeps
			s.Events = append(s.Events, event{After: lease + certain, Kind: resolves}, event{After: 2 * certain, Kind: resolves},
				event{Click: click{Order: e.Click.Order}})
		}
	}
	return s
}

func drawEvent(r *rand.Rand, orders int, survives bool) event {
	e := event{After: oneOf(r, 0, 0, 0, time.Millisecond, 40*time.Millisecond, time.Second, 30*time.Second, 4*time.Minute)}
	switch n := r.IntN(20); {
	case n == 0:
		e.Kind = deploys
	case survives && n < 4:
		e.Kind = kills
	case survives && n == 4:
		e.Kind = expires
	case survives && n == 5:
		e.Kind = resolves
	}
	if e.Kind != clicks {
		return e
	}
	e.Click = click{Order: r.IntN(orders)}
	switch r.IntN(13) {
	case 0:
		e.Click.Request = other
	case 1:
		e.Click.Request = invalid
	case 2, 3:
		e.Click.Cancel = oneOf(r, time.Nanosecond, time.Millisecond, 30*time.Millisecond, time.Second, 10*time.Second)
	case 4, 5:
		e.Click.Deadline = oneOf(r, time.Nanosecond, time.Millisecond, 30*time.Millisecond, time.Second, 10*time.Second)
	case 6:
		e.Click.BeginFails = 1 + r.IntN(2*mostTries)
	case 7:
		e.Click.KeyFails = true
	case 8:
		e.Click.Suspended = oneOf(r, time.Second, lease, 30*time.Minute)
	}
	return e
}

// drawFault draws one of all the faults of the stand-in; about half of the requests have none.
func drawFault(r *rand.Rand) gatewaytest.Fault {
	switch r.IntN(27) {
	case 0, 1, 2:
		status := oneOf(r, 200, 201, 202, 400, 401, 402, 403, 404, 408, 409, 410, 413, 418, 422, 500, 501, 502, 504, 520, 999)
		return gatewaytest.FaultRefuse(status, "no")
	case 3:
		return gatewaytest.FaultRefuse(oneOf(r, 429, 503), "later").RetryAfter(oneOf(r, "0", "1", "3600", "soon"))
	case 4:
		return gatewaytest.FaultPage(oneOf(r, 200, 302, 400, 403, 404, 422, 502, 503, 525, 530))
	case 5:
		return gatewaytest.FaultPage(200)
	case 6:
		return gatewaytest.FaultTruncate(oneOf(r, 0, 1, 40, 200, 100_000))
	case 7:
		return gatewaytest.FaultStall()
	case 8:
		return gatewaytest.FaultReset()
	case 9:
		return gatewaytest.FaultRedirect(oneOf(r, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect), "http://localhost/elsewhere")
	case 10:
		return gatewaytest.FaultSlowBody(oneOf(r, time.Microsecond, time.Millisecond, time.Second))
	case 11:
		return gatewaytest.FaultHugeBody(oneOf[int64](r, 1, 50_000))
	case 12, 13:
		return gatewaytest.FaultCommitThenDrop()
	case 14, 15:
		return gatewaytest.FaultRefuseAs(oneOf(r, gatewaytest.ErrorForms()...), oneOf(r, 200, 400, 403, 409, 422, 500), oneOf(r, "no such coin", "the order already exists"))
	case 16:
		return gatewaytest.FaultEmpty(oneOf(r, 200, 204, 400, 502))
	default:
		return gatewaytest.Fault{}
	}
}

func drawRoute(r *rand.Rand) route {
	switch r.IntN(8) {
	case 0, 1:
		return route{Refused: oneOf(r, refusals()...), Delay: oneOf(r, 0, time.Millisecond, time.Hour)}
	case 2:
		return route{Breaks: 1 + r.IntN(700)}
	case 3:
		return route{Delay: oneOf(r, time.Millisecond, 100*time.Millisecond, 5*time.Second)}
	default:
		return route{}
	}
}

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }
