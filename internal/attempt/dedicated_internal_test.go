package attempt

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A connection is not used, and takes no room, when its time is over by the wall clock: its
// timer stands still while the machine is suspended.
func TestPosts_suspended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewDedicated(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, _ := net.Pipe()
			return client, nil
		}})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway.test", nil)
		require.NoError(t, err)
		for range maxPrepared {
			require.NoError(t, NewSender(p, time.Minute).Prepare(req))
		}
		for _, conn := range p.prepared {
			conn.opened = conn.opened.Add(1 - preparedLifetime)
		}
		first := p.acquire(req)
		require.NotNil(t, first, "it is still within its time")
		for _, conn := range p.prepared {
			conn.opened = conn.opened.Add(-1)
		}
		assert.Nil(t, p.acquire(req))
		require.NoError(t, NewSender(p, time.Minute).Prepare(req))
		assert.Len(t, p.prepared, 1)
		p.CloseIdleConnections()
		first.Release()
	})
}
