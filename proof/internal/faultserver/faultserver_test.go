package faultserver_test

import (
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

func TestServer_records(t *testing.T) {
	t.Parallel()
	certificate, err := faultserver.NewCertificate()
	require.NoError(t, err)
	for _, scheme := range []string{"http", "https"} {
		handler := faultserver.Respond(faultserver.Response(200, "hello"))
		if scheme == "https" {
			handler = faultserver.Secure(certificate.Server(), handler)
		}
		server := faultserver.New(handler)
		transport := &http.Transport{DialContext: server.DialContext, TLSClientConfig: certificate.Client()}
		resp, err := (&http.Client{Transport: transport}).Post(scheme+"://127.0.0.1/a", "text/plain", strings.NewReader("body"))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		_ = resp.Body.Close()
		transport.CloseIdleConnections()
		server.Close()
		assert.Equal(t, "hello", string(body))
		assert.Equal(t, faultserver.Seen{Requests: 1, Bodies: 1, BodyBytes: 4, Conns: 1}, server.Record.Seen())
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

// A connection that breaks after 3 bytes carries these, and what comes then depends on the manner.
func TestBreakingConn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		manner      faultserver.Manner
		arrived     string
		write, read error // nil for none
	}{
		{faultserver.FIN, "abcdef", nil, io.EOF},
		{faultserver.RST, "abc", syscall.ECONNRESET, syscall.ECONNRESET},
		{faultserver.Stall, "abc", nil, syscall.ECONNRESET}, // when it is closed
		{faultserver.WriteError, "abc", syscall.ECONNRESET, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			arrived, broke := "", 0
			go func() {
				for buffer := make([]byte, 16); ; {
					n, err := server.Read(buffer)
					if arrived += string(buffer[:n]); err != nil {
						return
					}
				}
			}()
			go func() { _, _ = io.WriteString(server, "x") }()
			conn := faultserver.NewBreakingConn(client, func() { broke++ })
			conn.Arm(faultserver.Break{Up: 3, Down: faultserver.Unlimited, Manner: tt.manner})
			n, err := conn.Write([]byte("abcdef"))
			assert.ErrorIs(t, err, tt.write, tt.manner)
			assert.Equal(t, tt.write == nil, n == 6, tt.manner)
			synctest.Wait()
			assert.Equal(t, tt.arrived, arrived, tt.manner)
			assert.Equal(t, 1, broke)
			time.AfterFunc(time.Hour, func() { _ = conn.Close() })
			n, err = conn.Read(make([]byte, 16))
			assert.True(t, errors.Is(err, tt.read), "%s: %v", tt.manner, err)
			assert.Equal(t, tt.read == nil, n == 1, tt.manner)
			_ = conn.Close()
			_ = server.Close()
		})
	}
	client, server := net.Pipe()
	conn := faultserver.NewBreakingConn(client, func() {})
	conn.Arm(faultserver.Break{Up: faultserver.Unlimited, Down: 3, Manner: faultserver.FIN})
	go func() { _, _ = io.WriteString(server, "abcdef") }()
	got, err := io.ReadAll(conn)
	assert.NoError(t, err, "a FIN is the end of the stream")
	assert.Equal(t, "abc", string(got))
	_ = conn.Close()
	_ = server.Close()
}
