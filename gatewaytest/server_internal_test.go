package gatewaytest

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Close returns only after the last handler, also one that takes its time.
func TestServer_Close_waits(t *testing.T) {
	t.Parallel()
	s := NewServer()
	var begun, ended atomic.Bool
	s.InjectFault(AnyOperation, 1, Fault{name: "linger", play: func(x exchange, _ answer) {
		begun.Store(true)
		<-x.closing
		<-s.served
		for range 10_000 {
			runtime.Gosched()
		}
		ended.Store(true)
	}})
	go func() {
		resp, err := http.Get(s.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	for !begun.Load() {
		runtime.Gosched()
	}
	s.Close()
	assert.True(t, ended.Load())
}

// A client that has sent the beginning of another request can leave unnoticed;
// Close releases its handler all the same.
func TestStall_until_Close(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	close(closing)
	x := exchange{r: httptest.NewRequest("GET", "/", nil), closing: closing}
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { Stall().play(x, answer{}) })
}
