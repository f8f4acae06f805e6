package year

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// A world is what happens to one merchant. It is drawn from a seed before it begins.
type world struct {
	seed     uint64
	begin    time.Time
	days     int
	orders   []*order
	byHand   []*order
	outages  []outage
	restarts []time.Time // of every process at once: a deploy kills what is being sent
}

// An order is what a buyer wants. With a seeded one something is wrong at the gateway.
type order struct {
	n       int
	at      time.Time
	request gateway.InvoiceRequest
	seeded  string
}

// What the gateway does with a seeded order, whose responses all arrive.
const (
	twice   = "twice"   // an intermediary delivers it two times
	deleted = "deleted" // the invoice disappears within a day
	altered = "altered" // it is for another amount
	byHand  = "by hand" // somebody has made it, and no buyer
)

// An outage is a time in which all is lost or refused.
type outage struct {
	from, until time.Time
	kind        string
}

const (
	refuses     = "refuses connections"  // the gateway, or the network
	unavailable = "502"                  // of a proxy; nothing is committed
	forgets     = "loses responses"      // and commits everything
	stalls      = "stalls"               // and commits nothing
	packetLoss  = "loses every second"   // request or response
	shopDown    = "the shop is down"     // no process of the merchant runs
	inShort     = time.Minute * 2        // the shortest outage
	inLong      = time.Minute * 90       // the longest
	outagesDay  = 0.3                    // on average
	deploysDay  = 0.8                    // those that come while an invoice is being sent
	lostReply   = 0.010                  // of all requests
	lostRequest = 0.003                  // likewise
	mostLate    = 5 * time.Minute        // after which the gateway commits what it has accepted
	invoiceTook = 800 * time.Millisecond // at most, when all is well
)

func newWorld(seed uint64, orders, days int) *world {
	w := &world{seed: seed, begin: time.Now().Truncate(24 * time.Hour), days: days}
	random := rand.New(rand.NewPCG(seed, 0))
	instant := func() time.Time { return w.begin.Add(time.Duration(random.Int64N(int64(days) * int64(24*time.Hour)))) }
	for range orders {
		w.orders = append(w.orders, &order{at: instant()})
	}
	slices.SortFunc(w.orders, func(a, b *order) int { return a.at.Compare(b.at) })
	for n, o := range w.orders {
		price := decimal.New(100+random.Int64N(100_000), -2)
		o.n, o.request = n, gateway.InvoiceRequest{OrderID: fmt.Sprintf("order-%06d", n), Price: price, Amount: price, BaseCurrency: "usd"}
	}
	for n := range max(1, orders/20_000) {
		for _, kind := range []string{twice, deleted, altered} {
			w.orders[random.IntN(orders)].seeded = kind
		}
		w.byHand = append(w.byHand, &order{at: instant(), seeded: byHand, request: gateway.InvoiceRequest{OrderID: fmt.Sprintf("by-hand-%d", n)}})
	}
	kinds := []string{refuses, unavailable, forgets, stalls, packetLoss, shopDown}
	for i := range int(float64(days) * outagesDay) {
		from := instant()
		w.outages = append(w.outages, outage{from, from.Add(inShort + time.Duration(random.Int64N(int64(inLong-inShort)))), kinds[i%len(kinds)]})
	}
	for range int(float64(days) * deploysDay) {
		w.restarts = append(w.restarts, w.orders[random.IntN(orders)].at.Add(time.Duration(random.Int64N(int64(invoiceTook)))))
	}
	slices.SortFunc(w.restarts, time.Time.Compare)
	return w
}

// during is the kind of an outage at a time, or "".
func (w *world) during(at time.Time, kinds ...string) string {
	for _, o := range w.outages {
		if !at.Before(o.from) && at.Before(o.until) && (len(kinds) == 0 || slices.Contains(kinds, o.kind)) {
			return o.kind
		}
	}
	return ""
}

// A fate is what happens to one request.
type fate struct {
	refused bool          // no connection comes about
	lost    bool          // it does not reach the gateway
	dropped bool          // it does, and is not carried out
	late    time.Duration // it is carried out so long after it has arrived
	answer  string        // what comes instead of the response
}

// answers are what may come instead of a response.
var answers = []string{"cut", "502", "stall", "truncated"}

// fate is that of an order's request; tried counts them from 0.
func (w *world) fate(o *order, tried int, at time.Time) (f fate) {
	random := rand.New(rand.NewPCG(w.seed<<32|uint64(o.n), uint64(tried)+1))
	answer, chance, half := answers[random.IntN(len(answers))], random.Float64(), random.IntN(2) == 0
	late := time.Duration(random.Int64N(int64(mostLate)))
	kind := w.during(at, refuses, unavailable, forgets, stalls, packetLoss)
	if kind == refuses {
		return fate{refused: true}
	}
	if o.seeded != "" {
		return fate{}
	}
	switch {
	case kind == unavailable:
		return fate{dropped: true, answer: "502"}
	case kind == forgets:
		return fate{answer: answer}
	case kind == stalls:
		return fate{dropped: true, answer: "stall"}
	case kind == packetLoss && chance < 0.5, chance < lostRequest:
		return fate{lost: half, dropped: true, answer: "cut"}
	case kind == packetLoss:
		return fate{answer: "cut"}
	case chance < lostRequest+lostReply && half && answer != "truncated":
		return fate{answer: answer, late: late}
	case chance < lostRequest+lostReply:
		return fate{answer: answer}
	}
	return fate{}
}
