package sqlguard

import (
	"context"
	"io"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy is between guards and a server, as a name of the network is: new connections lead to the server that it has now.
type proxy struct {
	server   atomic.Pointer[string]
	distance time.Duration // holds what a client sends
	trips    atomic.Int64  // how often clients have sent something
	dialled  atomic.Int64  // how many connections there were
	dead     atomic.Int64  // so many of the first connections are dead
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// behindProxy puts a proxy in front of the server, until the test ends.
func (w *testDB) behindProxy(t testing.TB) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{}
	p.leadTo(w.dsn)
	w.dsn = address.ReplaceAllString(w.dsn, listener.Addr().String())
	var working sync.WaitGroup
	over, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		_ = listener.Close()
		working.Wait()
	})
	working.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			number := p.dialled.Add(1)
			context.AfterFunc(over, func() { _ = client.Close() })
			working.Go(func() { p.forward(client, number) })
		}
	})
	return p
}

// leadTo makes new connections lead to the server of a DSN.
func (p *proxy) leadTo(dsn string) { p.server.Store(new(address.FindString(dsn))) }

// kill lets all connections that there are swallow everything, as those do that a NAT has forgotten.
func (p *proxy) kill() { p.dead.Store(p.dialled.Load()) }

func (p *proxy) forward(client net.Conn, number int64) {
	defer client.Close()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", *p.server.Load())
	if err != nil {
		return
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(client, conn)
		_ = client.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if number <= p.dead.Load() {
			continue
		}
		p.trips.Add(1)
		time.Sleep(p.distance)
		if _, err := conn.Write(buf[:n]); err != nil {
			return
		}
	}
}
