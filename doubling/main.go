// Command doubling prints how many invoices one order gets when the response to the
// first is lost: by client library, by the engine that sends it and by the fault. It
// fails when a control does not double.
//
//	go run .            print the tables
//	go run . -update    and write them into ../docs/doubling.md
//	go run . -check     and fail when they are not those of ../docs/doubling.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"
)

// A keyOfWhat is what a service can know a request by.
type keyOfWhat string

const (
	ofTheCall  keyOfWhat = "key of the call"  // which the library makes
	ofTheOrder keyOfWhat = "key of the order" // which the caller gives to the library
	asTheName  keyOfWhat = "order as the name"
)

// variant also names what the service does with keys.
func (k keyOfWhat) variant(honours bool) string {
	if honours {
		return string(k) + ", service honours it"
	}
	return string(k) + ", service ignores it"
}

// clients returns the rows of the table.
func clients() []client {
	return []client{
		netHTTP, retryable, restyRetries,
		stripeGo(ofTheCall, true), stripeGo(ofTheOrder, true), stripeGo(ofTheOrder, false),
		awsSDK(ofTheCall, true), awsSDK(ofTheOrder, true), awsSDK(ofTheOrder, false),
		binanceOrder(ofTheCall, true), binanceOrder(ofTheOrder, true), binanceOrder(ofTheOrder, false),
		hcloudServer(true), hcloudServer(false),
		tailscaleKey,
		gatewayUnguarded, gatewayInMemory, gatewaySQLGuard, gatewayRepeatable,
	}
}

// An engine decides how often a program calls the client for an order.
type engine struct {
	name string
	does string // what it does with an order
	run  func(context.Context, *database, []*cell) error
}

// riverStop lets the response come in a deploy.
const riverStop = "River, `Stop`"

func engines() []engine {
	return []engine{
		{"none", "one call; its error is not looked at, and a deploy forgets the order", each(none)},
		{"a loop", "up to three calls until there is no error; after a deploy the next process does the same", each(loop)},
		{"River, `MaxAttempts: 1`", "one job; a deploy is `StopAndCancel`, and a new process", inRiver(riverRun{queue: "once", maxAttempts: 1})},
		{"River", "the same with River's default of attempts, two of which are waited for, in one process", inRiver(riverRun{queue: "same"})},
		{riverStop, "the same, but a deploy is `Stop`, which waits for the response; `StopAndCancel` is for when it does not come", inRiver(riverRun{queue: "stop", graceful: true})},
		{"River, other processes", "as River, with each attempt in another process", inRiver(riverRun{queue: "others", others: true})},
		{"Temporal", "one activity in the environment of `testsuite`, `MaximumAttempts: 5`, in one worker process; a deploy ends the context of the first attempt, and the next is in another process", each(inTemporal(false))},
		{"Temporal, other processes", "the same, with each attempt in another process", each(inTemporal(true))},
	}
}

// each runs an engine for every cell, 20 at a time.
func each(run func(context.Context, *cell) error) func(context.Context, *database, []*cell) error {
	return func(ctx context.Context, _ *database, cells []*cell) error {
		slots, errs := make(chan struct{}, 20), make([]error, len(cells))
		var all sync.WaitGroup
		for i, c := range cells {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				errs[i] = run(ctx, c)
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
}

// measure returns the invoices of each engine, client and fault.
func measure(ctx context.Context, db *database, rows []client) (results, error) {
	found := results{}
	for _, e := range engines() {
		var cells []*cell
		for _, c := range rows {
			for _, f := range faults {
				order := position{e.name, c.String(), f}.order()
				cells = append(cells, &cell{client: c, fault: f, order: order, service: newService(f, c), guard: db.guard})
			}
		}
		err := e.run(ctx, db, cells)
		for _, c := range cells {
			found[position{e.name, c.client.String(), c.fault}] = c.service.count()
			c.service.CloseClientConnections()
			c.service.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return found, nil
}

func main() {
	update := flag.Bool("update", false, "write the tables into "+page)
	check := flag.Bool("check", false, "fail when the tables are not those of "+page)
	flag.Parse()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	err := run(ctx, *update, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "doubling:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, update, check bool) error {
	db, err := openDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.stop()
	found, err := measure(ctx, db, clients())
	if err != nil {
		return err
	}
	pending, err := db.pending(ctx)
	if err != nil {
		return err
	}
	text := found.markdown(clients(), engines(), pending)
	fmt.Print(text)
	if err := found.check(pending); err != nil {
		return err
	}
	return writePage(page, text, update, check)
}
