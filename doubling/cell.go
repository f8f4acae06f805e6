package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cryptogw/gateway"
)

// A client is a row of the tables: a client library in its own idiom.
type client struct {
	name    string // of the library
	variant string // how it is used, and what its service does with keys
	module  string // of which the version is printed; empty for the standard library
	madeFor string // what the library is made for
	keys    bool   // whether its service commits nothing for a key that it knows
	success string // the body of a success of its service
	again   answer // to a key that it knows; the zero answer is the success
	open    func(e environment) (create, error)
}

func (c client) String() string {
	if c.variant == "" {
		return c.name
	}
	return c.name + ", " + c.variant
}

// version returns the module of the library and its version.
func (c client) version() string {
	if c.module == "" {
		return "net/http of the Go release that is used"
	}
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == c.module {
			if m.Replace != nil {
				return m.Path + ", this repository"
			}
			return m.Path + " " + m.Version
		}
	}
	return c.module + " of unknown version"
}

// An answer is a response of a service.
type answer struct {
	status int
	body   string
}

// An environment is what a process of the shop has.
type environment struct {
	url     string
	timeout time.Duration             // of one attempt
	guard   func() gateway.OrderGuard // for this process, over the database of all
}

// A create sends an invoice of an order through a client.
type create func(ctx context.Context, order string) error

// A cell is one figure: a client, an engine and a fault, with a service and an order
// of its own.
type cell struct {
	client  client
	fault   fault
	order   string
	service *service
	guard   func() gateway.OrderGuard

	processes int // of the shop so far
}

const (
	attemptTimeout = 3 * time.Second
	noTimeout      = 5 * time.Minute // a deploy ends the process before
)

// process starts a process of the shop: a new client, which has nothing of an earlier
// process but what is in the database. The context of the first process ends when a
// deploy is the fault and the invoice is committed.
func (c *cell) process(ctx context.Context) (context.Context, create, error) {
	e := environment{url: c.service.URL, timeout: attemptTimeout, guard: c.guard}
	if c.fault == deploy {
		e.timeout = noTimeout
	}
	send, err := c.client.open(e)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.client, err)
	}
	c.processes++
	if c.fault == deploy && c.processes == 1 {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		go func() {
			defer stop()
			select {
			case <-c.service.committed:
			case <-ctx.Done():
			}
		}()
	}
	return ctx, send, nil
}
