package gatewaytest

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Close returns only after the last handler, however long that takes.
func TestServer_Close_waits(t *testing.T) {
	t.Parallel()
	s := NewServer()
	var begun, ended atomic.Bool
	s.InjectFault(AnyOperation, 1, Fault{name: "linger", respond: func(x responder, _ response) {
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
	require.Eventually(t, begun.Load, 10*time.Second, time.Millisecond)
	s.Close()
	assert.True(t, ended.Load())
}

// The disconnect of a client that has sent the beginning of another request may
// go undetected; Close releases its handler nonetheless.
func TestStall_until_Close(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	close(closing)
	x := responder{r: httptest.NewRequest("GET", "/", nil), closing: closing}
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { FaultStall().respond(x, response{}) })
}
