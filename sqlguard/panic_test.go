package sqlguard

import (
	"database/sql/driver"
	"runtime"
	"sync"
	"testing"

	"github.com/cryptogw/gateway"
)

// A driver that panics or ends its goroutine, as a wrapper for tracing or a test's
// FailNow can, leaves no order in flight in the process.
func TestGuard_driver_panics(t *testing.T) {
	const begin, end = "begin", "end"
	for name, tt := range map[string]struct {
		in    string
		late  bool // after the statement was executed
		state State
	}{
		"in Begin, before the statement": {begin, false, StateFree},
		"in Begin, after the statement":  {begin, true, StateFree},
		"in End, before the statement":   {end, false, StateInFlight}, // and unknown after its lease
		"in End, after the statement":    {end, true, StateCreated},
	} {
		for how, escape := range map[string]func(){"panic": func() { panic("driver") }, "Goexit": runtime.Goexit} {
			t.Run(name+"/"+how, func(t *testing.T) {
				g, connector := lossyGuard(t)
				if tt.in == end {
					check(t, g.begins(t.Context(), order))
				}
				connector.before = escape
				if tt.late {
					connector.before, connector.after = nil, afterwards(escape)
				}
				call := func() { _ = g.begins(t.Context(), order) }
				if tt.in == end {
					call = func() { _ = g.ends(t.Context(), order, gateway.OutcomeSucceeded) }
				}
				returned, recovered := escaping(call)
				if returned || (how == "panic") != (recovered == "driver") {
					t.Errorf("returned: %v, recovered %v", returned, recovered)
				}
				if o, err := g.Order(t.Context(), "", order); err != nil || o.State != tt.state || len(g.tokens) > 0 {
					t.Errorf("%+v, %v, held: %v", o, err, g.tokens)
				}
			})
		}
	}
}

// If the driver panics when Begin withdraws too, the order is unknown after its lease.
func TestGuard_driver_panics_twice(t *testing.T) {
	g, connector := lossyGuard(t)
	connector.after = afterwards(func() {
		connector.before = func() { panic("again") }
		panic("driver")
	})
	if returned, recovered := escaping(func() { _ = g.begins(t.Context(), order) }); returned || recovered != "again" {
		t.Errorf("returned: %v, recovered %v", returned, recovered)
	}
	if err := g.endLeases(t.Context()); err != nil || len(g.tokens) > 0 {
		t.Error(err, g.tokens)
	}
	wantError(t, g.begins(t.Context(), order), errUnknown)
}

// afterwards ends the statement, and then calls escape.
func afterwards(escape func()) func(driver.Rows) {
	return func(rows driver.Rows) {
		_ = rows.Close()
		escape()
	}
}

// escaping runs f in a goroutine of its own, and returns how it ended.
func escaping(f func()) (returned bool, recovered any) {
	var all sync.WaitGroup
	all.Go(func() {
		defer func() { recovered = recover() }()
		f()
		returned = true
	})
	all.Wait()
	return returned, recovered
}
