package year

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// A shop is a merchant: two processes, a database, and what ends its unknown orders.
type shop struct {
	t       *testing.T
	world   *world
	service *service
	db      *sql.DB
	guard   *sqlguard.Guard // of the jobs
	options []gateway.Option

	mu        sync.Mutex
	processes []*process // none while the shop is down
	tally
}

// open starts a shop. The options are those of its clients.
func open(t *testing.T, w *world, s *service, options ...gateway.Option) *shop {
	t.Helper()
	p := &shop{t: t, world: w, service: s, db: openDatabase(t), options: options, tally: newTally()}
	var err error
	p.guard, err = sqlguard.New(p.db)
	must(t, err)
	must(t, p.guard.Migrate(t.Context()))
	p.start()
	return p
}

// A process has a client and a guard of its own.
type process struct {
	shop   *shop
	client *gateway.Client
	ctx    context.Context
	kill   context.CancelFunc
}

func (p *shop) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 2 {
		guard, err := sqlguard.New(p.db)
		must(p.t, err)
		ctx, kill := context.WithCancel(context.Background())
		one := &process{shop: p, ctx: ctx, kill: kill}
		options := []gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: p.service}), gateway.WithOrderGuard(mortalGuard{guard, one})}
		one.client, err = gateway.New("https://gateway.test/merchant", "a-key-for-tests", append(options, p.options...)...)
		must(p.t, err)
		p.processes = append(p.processes, one)
	}
}

// stop kills the processes. What they are sending is never recorded.
func (p *shop) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.processes {
		one.kill()
	}
	p.processes = nil
}

// process is the one that serves an order, or nil.
func (p *shop) process(o *order) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.processes) == 0 {
		return nil
	}
	return p.processes[o.n%len(p.processes)]
}

// A mortalGuard records nothing once its process is dead. Its database takes a few milliseconds.
type mortalGuard struct {
	*sqlguard.Guard
	process *process
}

const databaseTook = 2 * time.Millisecond

var errKilled = errors.New("the process was killed")

func (g mortalGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Admission, error) {
	if g.pause() != nil {
		return gateway.Admission{}, errKilled
	}
	admission, err := g.Guard.Begin(ctx, o)
	if g.pause() != nil {
		if err == nil {
			g.process.shop.doubt(o.Request.OrderID)
		}
		return gateway.Admission{}, errKilled
	}
	return admission, err
}

func (g mortalGuard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) error {
	if g.pause() != nil {
		g.process.shop.doubt(o.Request.OrderID)
		return errKilled
	}
	if r.Outcome == gateway.OutcomeUnknown {
		g.process.shop.doubt(o.Request.OrderID)
	}
	return g.Guard.End(ctx, o, r)
}

func (g mortalGuard) pause() error { return pause(g.process.ctx, databaseTook) }

// create sends the invoice of an order; the error of a process that is dead is errKilled.
func (p *shop) create(o *order) error {
	one := p.process(o)
	if one == nil {
		return errKilled
	}
	_, err := one.client.CreateInvoice(context.WithValue(one.ctx, orderKey{}, o), o.request)
	if one.ctx.Err() != nil {
		return errKilled // there is nobody whom it could tell
	}
	if err == nil {
		p.ended(o.request.OrderID, true)
	}
	return err
}

// buy is a buyer, who comes back until there is an invoice.
func (p *shop) buy(o *order) {
	for _, later := range []time.Duration{0, time.Minute, 9 * time.Minute, 2 * time.Hour, 24 * time.Hour, 48 * time.Hour, 96 * time.Hour} {
		time.Sleep(later)
		if p.create(o) == nil {
			return
		}
	}
}

// live lets the year pass, and a week more in which nobody buys anything new. The job is run at each interval.
func (p *shop) live(every time.Duration, job func()) {
	var all sync.WaitGroup
	p.happen(&all)
	end := p.world.begin.AddDate(0, 0, p.world.days+8)
	all.Go(func() {
		for at := p.world.begin.Add(every); at.Before(end); at = at.Add(every) {
			time.Sleep(time.Until(at))
			job()
		}
	})
	for _, o := range p.world.orders {
		time.Sleep(time.Until(o.at))
		all.Go(func() { p.buy(o) })
	}
	all.Wait()
	time.Sleep(time.Until(end))
	p.stop()
}

// happen begins what befalls the shop, but for the faults of requests.
func (p *shop) happen(all *sync.WaitGroup) {
	for _, at := range p.world.restarts {
		all.Go(func() {
			time.Sleep(time.Until(at))
			if p.world.during(at, shopDown) == "" {
				p.stop()
				p.start()
			}
		})
	}
	for _, o := range p.world.outages {
		if o.kind == shopDown {
			all.Go(func() {
				time.Sleep(time.Until(o.from))
				p.stop()
				time.Sleep(time.Until(o.until))
				p.stop() // of an outage that overlaps
				p.start()
			})
		}
	}
	for _, o := range p.world.byHand {
		all.Go(func() {
			time.Sleep(time.Until(o.at))
			p.service.mu.Lock()
			defer p.service.mu.Unlock()
			p.service.commit(o, decimal.New(1, 0), decimal.New(1, 0), o.at)
		})
	}
}
