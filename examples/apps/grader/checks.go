package main

import (
	"context"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// plain are the checks without any fault.
func plain(g *group) {
	id := g.shop.newOrder()
	r := g.buy(id)
	g.is("a click gets an invoice", unless(r.kind() == shown, r))
	g.is("the buyer is shown the result of the gateway, byte for byte", unless(g.isTrue(id, r), r))
	r = g.show(id)
	g.is("the order shows the same bytes", unless(g.isTrue(id, r), r))
	invoices := g.gateway.gw.InvoicesFor(id)
	g.is("the gateway was asked once, for this order and this price",
		unless(g.gateway.requests() == 1 && len(invoices) == 1 && equal(invoices[0].Price, g.shop.price()), invoices))
	r = g.show(g.shop.newOrder())
	g.is("an order that nobody has paid has no invoice", unless(r.kind() == failed, r))
	var told []reply
	refused := true
	for _, text := range []string{"", "abc", "-1", "0", "10,50"} {
		r := g.payWith(context.Background(), g.shop.newOrder(), text)
		refused = refused && r.kind() == failed && r.status < 500
		told = append(told, r)
	}
	g.is("a price that is none is refused, and the gateway is not asked", unless(refused && g.gateway.requests() == 1, told))
}

func equal(a, b string) bool {
	x, isNumber := new(big.Rat).SetString(a)
	y, _ := new(big.Rat).SetString(b)
	return isNumber && x.Cmp(y) == 0
}

// later are second clicks after a success.
func later(g *group) {
	id := g.shop.newOrder()
	g.buy(id)
	r := g.pay(id)
	g.is("a second click gets the same bytes", unless(g.isTrue(id, r), r))
	g.is("a second click asks the gateway for nothing", unless(g.gateway.requests() == 1, r))
	r = g.payWith(context.Background(), id, "11.00")
	g.is("a second click with another price creates no second invoice", unless(g.gateway.requests() == 1, r))
	g.is("it gets the first invoice, or is told of another price", first(unless(r.kind() == shown || r.kind() == conflict, r), g.verdict(id).wrong))
	r = g.show(id)
	g.is("the order still shows the first invoice", unless(g.isTrue(id, r), r))
	g.program.stop()
	g.restart()
	r = g.show(id)
	g.is("after a restart the order shows the same bytes", unless(g.isTrue(id, r), r))
	r = g.pay(id)
	g.is("after a restart a click gets the same bytes, and asks the gateway for nothing", unless(g.isTrue(id, r) && g.gateway.requests() == 1, r))
}

// refusals are faults after which it is certain that no invoice exists.
func refusals(g *group) {
	for _, test := range []struct {
		name  string
		fault gatewaytest.Fault
	}{
		{"refuses the order (422)", gatewaytest.FaultRefuse(http.StatusUnprocessableEntity, "Invalid amount")},
		{"refuses the key (401)", gatewaytest.FaultRefuse(http.StatusUnauthorized, "apiKey is not valid")},
		{"has no time (429)", gatewaytest.FaultRefuse(http.StatusTooManyRequests, "Too many requests").RetryAfter("1")},
	} {
		id := g.shop.newOrder()
		g.gateway.meet(fault{inject: test.fault})
		told := g.await(id, g.pay(id), failed)
		g.gateway.calm()
		g.is("a gateway that "+test.name+": the buyer learns of it, and a later click gets an invoice", g.afterRefusal(id, told))
	}
	id := g.shop.newOrder()
	g.gateway.close()
	told := g.await(id, g.pay(id), failed)
	if err := g.gateway.open(); err != nil {
		told.err = err
	}
	g.is("a gateway that cannot be reached: the buyer learns of it, and a later click gets an invoice", g.afterRefusal(id, told))
}

// afterRefusal is what is wrong with an order that was refused, when it is paid again.
func (g *group) afterRefusal(id string, told reply) string {
	r := g.buy(id)
	return first(unless(told.kind() == failed || told.kind() == again, told), unless(g.isTrue(id, r), r), g.verdict(id).doubled)
}

// losses are faults after which the shop cannot know that an invoice exists.
func losses(g *group) {
	const page = "text/html"
	for _, test := range []struct {
		name string
		fault
	}{
		{"closes the connection", fault{respond: drop}},
		{"responds 500", fault{respond: status(500, "application/json", `{"message":"Internal server error","result":[],"meta":{}}`)}},
		{"responds 502 with a page", fault{respond: status(502, page, "<html><title>502 Bad Gateway</title></html>")}},
		{"responds 504 with a page", fault{respond: status(504, page, "<html><title>504 Gateway Timeout</title></html>")}},
		{"responds with text that is not JSON", fault{inject: gatewaytest.FaultEdit("/result", "{")}},
		{"responds with half of the invoice", fault{respond: func(w http.ResponseWriter, x *httptest.ResponseRecorder) {
			sendPart(w, x, x.Body.Len()/2)
			panic(http.ErrAbortHandler)
		}}},
	} {
		id := g.shop.newOrder()
		g.buy(g.shop.newOrder()) // a shop may send nothing after several losses in a row
		g.gateway.meet(test.fault)
		r := g.pay(id)
		sent := poll(patience, func() bool { return g.exists(id) })
		told := []reply{r, g.show(id), g.pay(id), g.show(id)}
		g.is("a gateway that creates the invoice and "+test.name+": no second one, and nobody is told that there is none",
			first(unless(sent, told), g.verdict(id, told...).String()))
	}
	id := g.shop.newOrder()
	g.gateway.meet(fault{respond: drop})
	g.pay(id)
	g.program.stop()
	g.restart()
	g.is("it is so after a restart, too", g.verdict(id, g.show(id), g.pay(id), g.show(id)).String())
}

// oddities are other responses of the gateway.
func oddities(g *group) {
	id := g.shop.newOrder()
	g.gateway.meet(fault{instead: func() {}})
	told := []reply{g.pay(id), g.show(id), g.pay(id), g.show(id)}
	g.is("a gateway that closes the connection and creates nothing: at most one invoice in the end, and none is made up", g.verdict(id, told...).String())

	id = g.shop.newOrder()
	g.gateway.meet(fault{respond: func(w http.ResponseWriter, x *httptest.ResponseRecorder) {
		n := x.Body.Len()
		sendPart(w, x, 0)
		for part := range 20 { // about half a second
			<-time.After(25 * time.Millisecond)
			_, _ = w.Write(x.Body.Bytes()[n*part/20 : n*(part+1)/20])
			_ = http.NewResponseController(w).Flush()
		}
	}})
	r := g.buy(id)
	g.is("a gateway that is slow: the buyer gets the invoice", first(unless(g.isTrue(id, r), r), g.verdict(id).doubled))
	g.redirects()

	slow, id := g.shop.newOrder(), g.shop.newOrder()
	created, goOn := g.holdResponse()
	var waiting sync.WaitGroup
	waiting.Go(func() { g.pay(slow) })
	wait(created)
	r = g.buy(id)
	close(goOn)
	waiting.Wait()
	g.is("while one order waits for the gateway, another one gets its invoice", unless(g.isTrue(id, r), r))
}

// redirects is a gateway that names another address for an invoice.
func (g *group) redirects() {
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	g.gateway.meet(fault{inject: gatewaytest.FaultRedirect(http.StatusTemporaryRedirect, elsewhere.URL)})
	r := g.pay(g.shop.newOrder())
	g.is("a gateway that redirects: the key goes nowhere else, and no invoice is made up", unless(asked.Load() == 0 && r.kind() != shown, r))
}

// clicks are clicks at once.
func clicks(g *group) {
	var v verdict
	var lost string
	for range 10 {
		for _, n := range []int{2, 10} {
			now, ended := g.clicksAtOnce(g.shop.newOrder(), n)
			v, lost = v.and(now), first(lost, ended)
		}
	}
	const orders = "ten double and ten tenfold clicks: "
	g.is(orders+"one invoice each", v.doubled)
	g.is(orders+"nobody is told that there is none, neither by a click nor by the order", v.denied)
	g.is(orders+"every buyer gets the same invoice, or is told \"not yet\" and then gets it", first(v.wrong, lost))
}

// clicksAtOnce clicks n times while the gateway is at work, and returns what was wrong, and who
// has not got the invoice in the end.
func (g *group) clicksAtOnce(id string, n int) (v verdict, lost string) {
	created, goOn := g.holdResponse()
	replies := make([]reply, n)
	var clicking sync.WaitGroup
	var ended atomic.Int64
	for i := range replies {
		clicking.Go(func() {
			replies[i] = g.pay(id)
			ended.Add(1)
		})
	}
	wait(created)
	during := g.show(id)
	poll(atOnce, func() bool { return ended.Load() == int64(n-1) }) // others have come, or wait in the shop
	close(goOn)
	clicking.Wait()
	for _, r := range replies {
		if told := g.await(id, r, shown); !g.isTrue(id, told) {
			lost = unless(false, r, "and then", told)
		}
	}
	return g.verdict(id, during), lost
}

// atOnce is how long the gateway takes where buyers click at once.
const atOnce = 100 * time.Millisecond

// holdResponse has the gateway create the next invoice, and respond when goOn is closed.
func (g *group) holdResponse() (created, goOn chan struct{}) {
	created, goOn = make(chan struct{}), make(chan struct{})
	g.gateway.meet(fault{respond: func(w http.ResponseWriter, x *httptest.ResponseRecorder) {
		close(created)
		<-goOn
		send(w, x)
	}})
	return created, goOn
}

// wait waits for something for as long as a buyer would.
func wait(done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// departures are buyers who close the page while the gateway is at work.
func departures(g *group) {
	var v verdict
	var lost string
	const buyers = 3
	for range buyers {
		id := g.shop.newOrder()
		ctx, leave := context.WithCancel(context.Background())
		created, goOn := g.holdResponse()
		go func() {
			wait(created)
			leave()
		}()
		g.payWith(ctx, id, g.shop.price())
		during := g.show(id)
		close(goOn)
		after := g.await(id, g.show(id), shown)
		click := g.pay(id)
		v = v.and(g.verdict(id, during, after, click))
		lost = first(lost, unless(g.isTrue(id, after) && g.isTrue(id, click), after, click))
	}
	g.is("a buyer who closes the page early: one invoice, also after another click", first(v.doubled, unless(g.gateway.requests() == buyers)))
	g.is("a buyer who closes the page early and comes back is not told that there is none", first(v.denied, v.wrong))
	g.is("a buyer who closes the page early and comes back gets the invoice", lost)
}

// deploy is a candidate that is asked to end (SIGTERM) while it waits for the gateway. The new
// process gets that order, one that has its invoice, and one that nobody has paid.
func deploy(g *group) {
	before, id, next := g.shop.newOrder(), g.shop.newOrder(), g.shop.newOrder()
	g.buy(before)
	created, goOn := g.holdResponse()
	clicked := make(chan reply, 1)
	go func() { clicked <- g.pay(id) }()
	wait(created)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		g.program.stop()
	}()
	poll(atOnce, func() bool { return hasEnded(stopped) }) // it leaves, or it waits
	close(goOn)
	<-stopped
	told := <-clicked
	g.restart()
	v := g.verdict(id, g.show(id), g.pay(id), g.show(id))
	g.is("a shop that is stopped (SIGTERM) while the gateway is at work: one invoice, and it is shown or not known", first(v.String(), g.forgotten(killing{id, told})))
	r, bought := g.show(before), g.buy(next)
	g.is("the new process shows an earlier invoice, and gets that of the next order",
		first(unless(g.isTrue(before, r), r), unless(g.isTrue(next, bought), bought), g.verdict(next).doubled))
}

// reconciliation gives the candidate two files of the gateway's operator, with all invoices that
// there are when they are made: of before an order was sent, and of after it.
func reconciliation(g *group) {
	id := g.shop.newOrder()
	g.buy(g.shop.newOrder())
	earlier := g.gateway.export()
	g.gateway.meet(fault{respond: drop})
	g.pay(id)
	poll(patience, func() bool { return g.exists(id) })
	taken := g.reconcile(earlier)
	v := g.verdict(id, taken, g.show(id), g.pay(id), g.show(id))
	g.is("a file that was made before a lost response: no second invoice, and nobody is told that there is none", v.String())
	taken = g.reconcile(g.gateway.export())
	r := g.show(id)
	g.is("a file that has the invoice of a lost response: the order shows it", first(unless(taken.kind() == shown, taken), unless(g.isTrue(id, r), r), g.verdict(id).doubled))
}
