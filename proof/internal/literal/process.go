package literal

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// A process is one of the merchant's: a client, and a guard.
type process struct {
	client *gateway.Client
	ctx    context.Context
	cancel context.CancelFunc
	closes func() error // closes the guard

	mu     sync.Mutex
	dead   bool
	conns  []net.Conn
	routes []route
	sealed int             // how often the source of the key is still to fail
	held   map[string]bool // the orders that it has begun and not ended
}

// start starts a process, which serves the clicks from now on.
func (w *world) start() error {
	guard, closes, err := w.store.Guard()
	if err != nil {
		return err
	}
	p := &process{closes: closes, held: map[string]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if n := len(w.all); n < len(w.Routes) {
		p.routes = w.Routes[n]
	}
	w.all, w.process = append(w.all, p), p
	if _, inMemory := guard.(*gateway.MemoryGuard); !inMemory || !w.Plain {
		guard = &leash{guard, p}
	}
	transport := &http.Transport{
		Protocols:   protocols(!w.HTTP2, w.HTTP2),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, w.gateway) },
	}
	options := []gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithAPIKeySource(p.key), gateway.WithOrderGuard(guard),
		gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: w.Attempts, InvoiceTimeout: w.Timeout}),
		gateway.WithSuccessMessage("OK"),
	}
	if w.Idempotent {
		options = append(options, gateway.WithIdempotentOrders())
	}
	p.client, err = gateway.New("http://localhost/gateway", "", options...)
	return err
}

// dial returns the next connection to the gateway.
func (p *process) dial(ctx context.Context, to *service) (net.Conn, error) {
	p.mu.Lock()
	var next route
	if len(p.routes) > 0 {
		next, p.routes = p.routes[0], p.routes[1:]
	}
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)() // net/http goes on dialing when its request has ended
	timer := time.NewTimer(next.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if next.Refused != nil {
		return nil, next.Refused
	}
	conn, err := to.listener.dial()
	if err != nil {
		return nil, err
	}
	if next.Breaks > 0 {
		breaking := faultserver.NewBreakingConn(conn, nil)
		breaking.Arm(faultserver.Break{Up: next.Breaks, Down: faultserver.Unlimited, Manner: faultserver.FIN})
		conn = breaking
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conn)
	if p.dead {
		_ = conn.Close()
	}
	return conn, nil
}

// kill ends the process where it stands: nothing of it reaches anybody from now on.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.stop()
}

// stop ends what the process is doing.
func (p *process) stop() {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// leftBehind returns the orders that a process held when it died, once.
func (p *process) leftBehind() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		return nil
	}
	held := slices.Collect(maps.Keys(p.held))
	clear(p.held)
	return held
}

// A leash is the guard of a process, which ends with it.
type leash struct {
	gateway.OrderGuard
	process *process
}

// Begin implements [gateway.OrderGuard].
func (l *leash) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	click, _ := ctx.Value(clickKey{}).(*clicked)
	if click != nil && click.failsBegin() {
		return gateway.Lease{}, syscall.ECONNREFUSED
	}
	if l.process.isDead() {
		return gateway.Lease{}, errDied
	}
	answer, err := l.OrderGuard.Begin(ctx, o)
	switch {
	case err == nil && answer.State == gateway.OrderFree:
		l.process.mu.Lock()
		l.process.held[o.Request.OrderID] = true
		l.process.mu.Unlock()
		click.suspend()
	case err != nil && click != nil:
		click.fail() // a database on a busy machine
	}
	return answer, err
}

// End implements [gateway.OrderGuard].
func (l *leash) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	if l.process.isDead() {
		return gateway.OrderRecord{}, errDied
	}
	has, err := l.OrderGuard.End(ctx, o, r)
	l.process.mu.Lock()
	defer l.process.mu.Unlock()
	delete(l.process.held, o.Request.OrderID)
	return has, err
}

type clickKey struct{}

// A clicked is what the context of a click carries.
type clicked struct {
	mu     sync.Mutex
	begins int           // how many questions to the guard are still to fail
	sleeps time.Duration // how long the process is still to be suspended when it has a lease
	failed bool          // the guard could not say
}

func (c *clicked) failsBegin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begins == 0 {
		return false
	}
	c.begins--
	c.failed = true
	return true
}

// suspend suspends the process, once: time goes on, and it does nothing.
func (c *clicked) suspend() {
	if c == nil {
		return
	}
	c.mu.Lock()
	sleeps := c.sleeps
	c.sleeps = 0
	c.mu.Unlock()
	pause(sleeps)
}

func (c *clicked) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

func (c *clicked) hasFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// seal makes the source of the key fail once.
func (p *process) seal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sealed++
}

// key is the source of the key.
func (p *process) key(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sealed > 0 {
		p.sealed--
		return "", errors.New("the vault is sealed")
	}
	return invariant.Key, nil
}
