package faultserver_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/proof/internal/faultserver"
)

func post(t *testing.T, server *faultserver.Server, scheme string, config *tls.Config) (string, error) {
	t.Helper()
	transport := &http.Transport{DialContext: server.DialContext, TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post(scheme+"://"+faultserver.Host+"/a", "text/plain", strings.NewReader("body"))
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return string(body), err
}

func TestServer_RespondsAndRecords(t *testing.T) {
	t.Parallel()
	certificates, err := faultserver.NewCertificates()
	require.NoError(t, err)
	for name, listen := range map[string]bool{"in memory": false, "on TCP": true} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" by "+scheme, func(t *testing.T) {
				t.Parallel()
				handler := faultserver.Respond(faultserver.Response(200, "hello"))
				if scheme == "https" {
					handler = faultserver.Secure(certificates.Server(), handler)
				}
				server := faultserver.New(handler)
				if listen {
					require.NoError(t, server.Listen(t.Context()))
				}
				got, err := post(t, server, scheme, certificates.Client())
				require.NoError(t, err)
				server.Close()
				assert.Equal(t, "hello", got)
				assert.Equal(t, faultserver.Seen{Requests: 1, Bodies: 1, BodyBytes: 4, Conns: 1, Violations: nil}, server.Record.Seen())
				assert.Equal(t, 1, server.Conns())
				assert.Len(t, server.Dialed(), 1)
			})
		}
	}
}

func TestServer_CloseWaitsForTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := faultserver.New((*faultserver.Conn).Stop)
		conn, err := server.DialContext(t.Context(), "tcp", "a:1")
		require.NoError(t, err)
		closed := false
		time.AfterFunc(time.Hour, func() { closed = true; _ = conn.Close() })
		server.Close()
		assert.True(t, closed)
	})
}

func TestConn_ReadBytesStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	const request = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
	for limit := range len(request) + 1 {
		var got []byte
		var whole bool
		server := faultserver.New(func(c *faultserver.Conn) { got, whole = c.ReadBytes(limit) })
		conn, err := server.DialContext(t.Context(), "tcp", "a:1")
		require.NoError(t, err)
		_, _ = io.WriteString(conn, request) // until the server closes the connection
		_ = conn.Close()
		server.Close()
		assert.Equal(t, request[:limit], string(got))
		assert.Equal(t, limit == len(request), whole)
	}
	assert.Equal(t, "body", string(faultserver.Body([]byte(request))))
}

func TestBreakingConn_CarriesAndBreaks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		manner      faultserver.Manner
		write, read error // of what comes after the break; nil for none
	}{
		{faultserver.FIN, syscall.EPIPE, io.EOF},
		{faultserver.RST, syscall.ECONNRESET, syscall.ECONNRESET},
		{faultserver.Stall, nil, net.ErrClosed},
		{faultserver.WriteError, syscall.ECONNRESET, nil},
	} {
		t.Run(tt.manner.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { assertBreak(t, tt.manner, tt.write, tt.read) })
		})
	}
}

// assertBreak breaks a connection after 3 bytes from the client.
func assertBreak(t *testing.T, manner faultserver.Manner, writeError, readError error) {
	client, server := net.Pipe()
	var arrived []byte
	go func() {
		buffer := make([]byte, 16)
		n, _ := server.Read(buffer)
		arrived = buffer[:n]
		_, _ = io.WriteString(server, "x")
	}()
	broke := 0
	conn := faultserver.NewBreakingConn(client, func() { broke++ })
	conn.Arm(faultserver.Break{Up: 3, Down: faultserver.Unlimited, Manner: manner})
	n, err := conn.Write([]byte("abcdef"))
	assert.ErrorIs(t, err, writeError)
	if writeError == nil {
		assert.Equal(t, 6, n, "no error in a stall")
	} else {
		assert.Equal(t, 3, n)
	}
	synctest.Wait()
	assert.Equal(t, "abc", string(arrived))
	assert.Equal(t, 1, broke)
	time.AfterFunc(time.Hour, func() { _ = conn.Close() })
	n, err = conn.Read(make([]byte, 16))
	assert.True(t, errors.Is(err, readError), "%v", err)
	assert.Equal(t, readError == nil, n == 1)
	up, _ := conn.Carried()
	assert.Equal(t, 3, up)
	_ = conn.Close()
	_ = server.Close()
}

func TestBreakingConn_BreaksAfterTheLastByteThatMayPass(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	broke := 0
	conn := faultserver.NewBreakingConn(client, func() { broke++ })
	conn.Arm(faultserver.Break{Up: 3, Down: faultserver.Unlimited, Manner: faultserver.FIN})
	go func() { _, _ = io.ReadAll(server) }()
	n, err := conn.Write([]byte("abc"))
	assert.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Equal(t, 1, broke)
	_, err = conn.Write([]byte("d"))
	assert.ErrorIs(t, err, syscall.EPIPE)
	_ = server.Close()
}

func TestBreakingConn_BreaksOnTheWayDown(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	conn := faultserver.NewBreakingConn(client, nil)
	conn.Arm(faultserver.Break{Up: faultserver.Unlimited, Down: 3, Manner: faultserver.FIN})
	go func() { _, _ = io.WriteString(server, "abcdef") }()
	got, err := io.ReadAll(conn)
	assert.NoError(t, err, "a FIN is the end of the stream")
	assert.Equal(t, "abc", string(got))
	_ = conn.Close()
	_ = server.Close()
}
