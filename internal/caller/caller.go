// Package caller passes on how code of a caller's has ended, from the goroutine that ran it
// to the one that waits for it.
package caller

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
)

// An End is how a function has ended: it has returned, panicked, or ended its goroutine.
// The zero End is the last of these. Whoever runs the function does
//
//	defer func() { end.Catch(recover()) }()
//	run()
//	end.Returned = true
type End struct {
	Returned bool
	panicked any
}

// Catch keeps what recover has returned, with the stack of the panic.
func (e *End) Catch(value any) {
	_, passed := value.(*Panic)
	if value == nil || passed || value == http.ErrAbortHandler { // which a server compares
		e.panicked = value
		return
	}
	e.panicked = &Panic{Value: value, Stack: string(debug.Stack())}
}

// Pass ends the goroutine that calls it as the function has ended its own: it returns,
// panics with a [*Panic], or does not return.
func (e *End) Pass() {
	switch {
	case e.Returned:
	case e.panicked != nil:
		panic(e.panicked)
	default:
		runtime.Goexit()
	}
}

// A Panic is the value of a panic that is passed on to another goroutine.
type Panic struct {
	Value any    // of the panic
	Stack string // of the goroutine that panicked
}

// Error returns the value and the stack: without a recover it is what the program prints.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value, if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
