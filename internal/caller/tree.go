package caller

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxErrors bounds the errors of a tree: one whose Unwrap returns itself has no end.
const maxErrors = 1000

// Leaves returns the errors of a tree that wrap nothing or at which the walk is to stop. The tree
// is not whole if it has too many errors, or if a method of one panics.
func Leaves(err error, stop func(error) bool) (leaves []error, whole bool) {
	defer func() {
		if recover() != nil {
			whole = false
		}
	}()
	rest := []error{err}
	for seen := 0; len(rest) > 0; seen++ {
		if seen == maxErrors {
			return leaves, false
		}
		next := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if next == nil {
			continue
		}
		var wrapped []error
		if !stop(next) {
			wrapped = unwrap(next)
		}
		if len(wrapped) == 0 {
			leaves = append(leaves, next)
		}
		rest = append(rest, wrapped...)
	}
	return leaves, true
}

// unwrap returns what an error wraps.
func unwrap(err error) []error {
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapping.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return wrapping.Unwrap()
	}
	return nil
}

// examination bounds how long the methods of an error may take together.
const examination = 250 * time.Millisecond

// Examined returns an error of a caller's whose methods return: err, or one in its place that
// names only its type.
func Examined(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), examination)
	defer cancel()
	examined := &function[bool]{run: func() bool { return returns(err) }}
	if ended := NewWorker().Await(ctx, 0, examined); ended != nil && ended.Returned && examined.result {
		return err
	}
	return fmt.Errorf("an error of type %T, which cannot be read: a method of it panics or does not return", err)
}

// returns calls the methods that whoever handles an error calls, and reports whether its tree
// has an end. It does not return, or panics, if one of them does.
func returns(err error) bool {
	if _, whole := Leaves(err, func(error) bool { return false }); !whole {
		return false
	}
	_ = err.Error()
	_ = errors.Is(err, context.Canceled)
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) {
		timeout.Timeout()
	}
	var temporary interface{ Temporary() bool }
	if errors.As(err, &temporary) {
		temporary.Temporary()
	}
	return true
}
