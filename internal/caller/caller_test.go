package caller_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/caller"
)

// dereferenceNothing is the function of a caller's that a stack must name.
func dereferenceNothing() { var p *int; *p = 1 }

// endOf runs a function in a goroutine of its own.
func endOf(run func()) (end caller.End) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { end.Catch(recover()) }()
		run()
		end.Returned = true
	}()
	<-done
	return end
}

// passed returns how Pass ends, in a goroutine of its own.
func passed(end caller.End) (returned bool, recovered any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recovered = recover() }()
		end.Pass()
		returned = true
	}()
	<-done
	return returned, recovered
}

func TestEnd_Pass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		run      func()
		returned bool
		value    any
	}{
		{"a return", func() {}, true, nil},
		{"the end of the goroutine", runtime.Goexit, false, nil},
		{"a panic", func() { panic("a text") }, false, "a text"},
		{"a panic with an error", func() { panic(io.EOF) }, false, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			returned, recovered := passed(endOf(tt.run))
			assert.Equal(t, tt.returned, returned)
			if tt.value == nil {
				assert.Nil(t, recovered)
				return
			}
			assert.Equal(t, tt.value, recovered.(*caller.Panic).Value)
			assert.Equal(t, tt.value == io.EOF, errors.Is(recovered.(error), io.EOF))
		})
	}
}

// What a program prints that does not recover names the function that panicked.
func TestPanic_Error(t *testing.T) {
	t.Parallel()
	_, recovered := passed(endOf(dereferenceNothing))
	var failure runtime.Error
	assert.ErrorAs(t, recovered.(error), &failure)
	assert.ErrorContains(t, recovered.(error), "nil pointer dereference")
	assert.ErrorContains(t, recovered.(error), "caller_test.dereferenceNothing")
}

// A server compares what a handler panics with, so that this value is passed on as it is.
func TestEnd_Pass_errAbortHandler(t *testing.T) {
	t.Parallel()
	_, recovered := passed(endOf(func() { panic(http.ErrAbortHandler) }))
	assert.Equal(t, http.ErrAbortHandler, recovered)
}
