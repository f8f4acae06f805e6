package gatewaytest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Close returns only after the last handler, however long that takes.
func TestServer_Close_waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewMemoryServer()
		ended := false
		s.InjectFault(AnyOperation, 1, Fault{respond: func(x responder, _ response) {
			<-x.closing
			<-time.After(time.Hour)
			ended = true
		}})
		go func() {
			_, err := (&http.Client{Transport: s.Transport()}).Get(s.URL)
			assert.Error(t, err)
		}()
		synctest.Wait()
		s.Close()
		assert.True(t, ended)
	})
}
