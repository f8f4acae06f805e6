package attempt_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// over HTTP/2 without TLS the reader of a connection writes, too, and nothing that a
// request waits for is held back by looking at the connection.
func TestDedicated_unencryptedHTTP2(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 2, r.ProtoMajor)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	posts := attempt.NewDedicated(&http.Transport{Protocols: server.Config.Protocols})
	t.Cleanup(posts.CloseIdleConnections)
	s := attempt.NewSender(posts, time.Minute)
	for range 50 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		require.NoError(t, err)
		resp, err := s.Send(req, http.Header{}, attempt.NewBody([]byte("body"), time.Time{}))
		require.NoError(t, err)
		assert.False(t, resp.CameEarly())
		var text string
		require.NoError(t, await(resp, func(resp *http.Response) { readAndClose(resp, &text) }))
		posts.CloseIdleConnections()
	}
}
