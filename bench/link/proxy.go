package main

import (
	"net"
	"sync"
	"time"
)

// A link is a TCP proxy that delays what it carries by half a round trip in each
// direction, and the first bytes of a connection by the round trip that TCP takes to
// connect besides. It counts round trips by what each end has received before it sends:
// a packet has the number of the last packet that its sender has received, and one that
// goes back to the client has one more.
type link struct {
	listener  net.Listener
	to        string
	roundTrip time.Duration
	lost      func() bool // whether the connection of this flight of a client is lost

	mu    sync.Mutex
	count counters
}

type counters struct{ roundTrips, bytes int }

func newLink(to string, roundTrip time.Duration, lost func() bool) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, to: to, roundTrip: roundTrip, lost: lost}
	go l.accept()
	return l, nil
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.add(counters{roundTrips: 1})
		c := &connection{link: l, client: client, server: server, atClient: 1, connected: time.Now().Add(l.roundTrip)}
		go c.carry(client, server, c.up)
		go c.carry(server, client, c.down)
	}
}

func (l *link) add(n counters) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.roundTrips += n.roundTrips
	l.count.bytes += n.bytes
}

func (l *link) counts() counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// A connection is carried by a link from a client to the server.
type connection struct {
	link           *link
	client, server net.Conn
	connected      time.Time

	mu                 sync.Mutex
	atClient, atServer int // the number of the last packet that each has received
	flight             int // of the client, which has been counted
}

// A packet arrives at the other end at a time, when receive is called.
type packet struct {
	at      time.Time
	data    []byte
	receive func()
}

// carry carries everything from one end to the other.
func (c *connection) carry(from, to net.Conn, number func() (receive func(), lost bool)) {
	packets := make(chan packet, 10_000)
	defer close(packets)
	go func() {
		for p := range packets {
			time.Sleep(time.Until(p.at))
			p.receive()
			_, _ = to.Write(p.data)
		}
		_ = to.Close()
	}()
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		receive, lost := number()
		if lost {
			c.reset()
			return
		}
		c.link.add(counters{bytes: n})
		at := time.Now()
		if at.Before(c.connected) {
			at = c.connected
		}
		packets <- packet{at.Add(c.link.roundTrip / 2), data[:n], receive}
	}
}

// up numbers a packet of the client. The first of a flight may lose the connection.
func (c *connection) up() (receive func(), lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.atClient
	if number > c.flight {
		c.flight = number
		lost = c.link.lost()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.atServer = max(c.atServer, number)
	}, lost
}

func (c *connection) down() (receive func(), lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.atServer + 1
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if number > c.atClient {
			c.link.add(counters{roundTrips: number - c.atClient})
			c.atClient = number
		}
	}, false
}

// reset resets the connection at both ends, so that a client knows of the loss at once.
func (c *connection) reset() {
	for _, conn := range []net.Conn{c.client, c.server} {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}
