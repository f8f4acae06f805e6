package gatewaytest

import (
	"net/http"
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
