package attempt

import (
	"context"
	"net/http"
	"time"
)

// NewBody returns a body that reads text and has not expired before a time; zero for never.
func NewBody(text []byte, expires time.Time) *Body {
	b := new(Body)
	b.load(&Template{Bytes: text, Expires: expires}, context.Background())
	return b
}

// BodyThatBegins returns a body that reads text once begin allows it.
func BodyThatBegins(text []byte, begin func() bool) *Body {
	b := new(Body)
	b.load(&Template{Bytes: text, Begin: begin}, context.Background())
	return b
}

// PoolsOf returns pools of one transport.
func PoolsOf(t *http.Transport) *Pools {
	p := new(Pools)
	p.invoices.current.Store(t)
	p.reads.current.Store(t)
	return p
}

// Reads and Invoices return the transports of later requests.
func (p *Pools) Reads() *http.Transport    { return p.reads.current.Load() }
func (p *Pools) Invoices() *http.Transport { return p.invoices.current.Load() }
