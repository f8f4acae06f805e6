package main

import "context"

// within returns what read returns, or the error of a context that ends before: a file may be one
// that nobody writes, and opening or reading it has no end. Then read goes on, and its result is
// dropped; it must change nothing that others read.
func within[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, &partError{unchanged, ctx.Err()}
	}
}
