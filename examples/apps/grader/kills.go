package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// A killing is a kill -9 of the candidate while an order was paid.
type killing struct {
	order string
	click reply // what the buyer was told before
}

// kills are kills before, at and after the response of the gateway: 24 of them. After each, the
// shop is started again, and the order is looked at. The second clicks follow at the end, all at
// once: a shop may wait for a call that is still at work, as far as it can know.
func kills(g *group) {
	took := g.measure()
	g.program.kill() // the first kill is to meet a new connection, too
	g.restart()
	var before, during, after []killing
	for range 3 {
		before = append(before, g.killAt(g.gateway.meetConnection), g.killAt(func(kill func()) { g.gateway.meet(fault{instead: kill}) }))
	}
	for i := range 8 {
		during = append(during, g.killAt(g.inResponse(i%2)))
	}
	for i := range 8 {
		after = append(after, g.killAt(g.afterResponse(took*time.Duration(i)/8)))
	}
	answered := []killing{g.killAt(nil), g.killAt(nil)}
	after = append(after, answered...)
	v := g.clickAgain(before)
	g.is("six kills before the gateway creates the invoice: no second one", v.doubled)
	g.is("six kills before the gateway creates the invoice: nothing is told that is not true", first(v.denied, v.wrong))
	v = g.clickAgain(during)
	g.is("eight kills before the response is complete: no second invoice", v.doubled)
	g.is("eight kills before the response is complete: nobody is told that there is none", first(v.denied, v.wrong))
	v = g.clickAgain(after)
	g.is("ten kills after the last byte of the response: no second invoice", v.doubled)
	g.is("ten kills after the last byte of the response: nobody is told that there is none", v.denied)
	g.is("ten kills after the last byte of the response: no invoice is lost, the order shows it or that it is not known", v.wrong)
	g.is("what a buyer was shown before a kill is shown after it", first(unless(answered[0].click.kind() == shown, answered[0].click), g.forgotten(after...)))
}

// measure returns how long the candidate takes from the last byte of the gateway's response to its
// own: the median of some. The kills after the response are within that time.
func (g *group) measure() time.Duration {
	var took []time.Duration
	for range 5 {
		sent := make(chan time.Time, 1)
		g.gateway.meet(fault{respond: func(w http.ResponseWriter, x *httptest.ResponseRecorder) {
			send(w, x)
			sent <- time.Now()
		}})
		g.buy(g.shop.newOrder())
		g.gateway.calm()
		select {
		case at := <-sent:
			took = append(took, time.Since(at))
		default: // the gateway was not asked: the checks will say so
			took = append(took, 0)
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// killAt pays an order, kills the candidate where the gateway calls kill, and starts it again. With
// nil it is killed when the buyer has the invoice.
func (g *group) killAt(arm func(kill func())) killing {
	id := g.shop.newOrder()
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() {
		g.program.kill()
		close(killed)
	})
	clicked := make(chan reply, 1)
	if arm == nil {
		clicked <- g.buy(id)
	} else {
		arm(kill)
		go func() { clicked <- g.pay(id) }()
		wait(killed)
	}
	kill()
	g.gateway.calm()
	g.restart()
	g.show(id)
	return killing{id, <-clicked}
}

// inResponse kills the candidate when part of the response is sent: none, or one half.
func (g *group) inResponse(halves int) func(kill func()) {
	return func(kill func()) {
		g.gateway.meet(fault{respond: func(w http.ResponseWriter, x *httptest.ResponseRecorder) {
			if halves > 0 {
				sendPart(w, x, x.Body.Len()*halves/2)
			}
			kill()
			panic(http.ErrAbortHandler)
		}})
	}
}

// afterResponse kills the candidate some time after the last byte of the response.
func (g *group) afterResponse(delay time.Duration) func(kill func()) {
	return func(kill func()) {
		g.gateway.meet(fault{respond: func(w http.ResponseWriter, x *httptest.ResponseRecorder) {
			send(w, x)
			<-time.After(delay)
			kill()
		}})
	}
}

// clickAgain pays the orders again, all at once, and returns what is wrong with them.
func (g *group) clickAgain(killings []killing) (v verdict) {
	var clicking sync.WaitGroup
	verdicts := make([]verdict, len(killings))
	for i, k := range killings {
		clicking.Go(func() { verdicts[i] = g.verdict(k.order, g.show(k.order), g.pay(k.order), g.show(k.order)) })
	}
	clicking.Wait()
	for _, one := range verdicts {
		v = v.and(one)
	}
	return v
}

// forgotten is what is wrong with the orders whose buyers had their invoice before the candidate ended.
func (g *group) forgotten(killings ...killing) string {
	for _, k := range killings {
		if k.click.kind() != shown {
			continue
		}
		if r := g.show(k.order); !g.isTrue(k.order, r) {
			return unless(false, k.click, "and later", r)
		}
	}
	return ""
}
