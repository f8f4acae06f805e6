package year

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
)

var (
	orders = flag.Int("orders", 2000, "of each merchant")
	days   = flag.Int("days", 30, "of the year")
	seed   = flag.Uint64("seed", 1, "of what happens")
	update = flag.Bool("update", false, "write the tables into "+page)
)

// A merchant is a row of the table.
type merchant struct {
	name    string
	repeats bool // the gateway returns the existing invoice of a repeated order
	options []gateway.Option
	every   time.Duration
	job     func(*shop) // nil for none
}

func merchants() []merchant {
	return []merchant{
		{"an export, applied each night", false, nil, 24 * time.Hour, (*shop).reconcile},
		{"a lookup, asked each hour", false, nil, time.Hour, (*shop).lookUp},
		{"a gateway that repeats orders, asked each hour", true, []gateway.Option{gateway.WithRepeatableOrders()}, time.Hour, (*shop).sendAgain},
		{"nothing", false, nil, time.Hour, nil},
	}
}

// TestYear lets a year pass at four merchants, and compares what they know of each order with what is true.
func TestYear(t *testing.T) {
	shops := make([]*shop, len(merchants()))
	t.Run("merchants", func(t *testing.T) {
		for i, m := range merchants() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { shops[i] = m.year(t) })
			})
		}
	})
	if t.Failed() || slices.Contains(shops, nil) { // one is nil when -run selects another
		return
	}
	tables := markdown(shops)
	t.Log("\n" + tables)
	if *update {
		publish(t, tables)
	}
}

// year is the year of a merchant.
func (m merchant) year(t *testing.T) *shop {
	w := newWorld(*seed, *orders, *days)
	p := open(t, w, newService(w, m.repeats), m.options...)
	defer func() { _ = p.db.Close() }()
	p.live(m.every, func() {
		if m.job != nil {
			m.job(p)
		}
	})
	p.audit()
	p.verify(m)
	return p
}

// verify fails the test if the year has shown what must not be.
func (p *shop) verify(m merchant) {
	if len(p.wrong) > 0 || p.doubled > 0 {
		p.t.Errorf("%d orders are doubled, and %d things are wrong: %.2000q", p.doubled, len(p.wrong), p.wrong)
	}
	if len(p.doubtful) < *orders/100 {
		p.t.Errorf("%d orders were unknown: the year has shown nothing", len(p.doubtful))
	}
	most := len(p.doubtful) / 100
	if *orders < 100_000 {
		most += few
	}
	switch {
	case m.job == nil && (len(p.pending) != len(p.doubtful) || p.found+p.never != len(p.pending)):
		p.t.Errorf("%d orders are pending of %d, and the log shows %d", len(p.pending), len(p.doubtful), p.found+p.never)
	case m.job != nil && len(p.pending) > most:
		p.t.Errorf("%d orders of %d are left for a person, want at most %d", len(p.pending), len(p.doubtful), most)
	}
	if len(p.files) > 0 && fmt.Sprint(p.listed) != fmt.Sprint(p.seededOrders()) {
		p.t.Errorf("listed are %v, want %v", p.listed, p.service.seeded)
	}
}

// few orders more than one in a hundred may be left for a person in a short year: those of one outage, when the files that
// could decide of them lack an order that the gateway has deleted.
const few = 10

// seededOrders are those with which something is wrong at the gateway.
func (p *shop) seededOrders() map[string]bool {
	seeded := map[string]bool{}
	for id := range p.service.seeded {
		seeded[id] = true
	}
	return seeded
}
