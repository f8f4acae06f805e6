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

	"github.com/cryptogw/gateway/internal/testing/clocks"
)

// The time of a connection is over by the wall clock, too: its timer stands still while the
// machine is suspended.
func TestPreparedConn_hasExpired(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]bool{preparedLifetime: true, preparedLifetime / 2: false} {
		c := &preparedConn{opened: clocks.Later(t, time.Now(), 0, -lifetime)}
		assert.Equal(t, want, c.hasExpired())
	}
}

// A connection whose time is over is not used, and takes no room.
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
