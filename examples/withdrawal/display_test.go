package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

// every is not a multiple of a second, so that no inquiry coincides with a rewrite
// of the line.
const every = 2300 * time.Millisecond

// onTerminal and inFile return the two displays.
func onTerminal(out *strings.Builder) display { return &statusLine{out: out} }
func inFile(out *strings.Builder) display     { return lines{out: out} }

// wait follows the withdrawal in virtual time for the given duration and returns
// the output. The bubble fails the test if a goroutine remains.
func wait(t *testing.T, on func(*strings.Builder) display, long time.Duration, prepare func(*gatewaytest.Server)) (string, error) {
	t.Helper()
	var out strings.Builder
	var err error
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		add(gw)
		prepare(gw)
		shown := on(&out)
		client, newErr := gateway.New(gw.URL, gw.APIKey, gateway.WithObserver(shown),
			gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}),
			gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
		require.NoError(t, newErr)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		time.AfterFunc(long, interrupt)
		err = follow(ctx, client, id, gateway.WaitOptions{MinInterval: every, MaxInterval: every}, shown)
	})
	return out.String(), err
}

// frames returns the successive contents of the line.
func frames(t *testing.T, written string) []string {
	t.Helper()
	require.True(t, strings.HasPrefix(written, "\r"))
	all := strings.Split(written[1:], "\r")
	end := len(all) - 1
	for i, frame := range all[:end] {
		width := lineWidth
		if i == end-1 {
			width += len("^C")
		}
		assert.Len(t, frame, width, "it covers the previous line")
		all[i] = strings.TrimRight(frame, " ")
	}
	return all
}

func setStatusAfter(t *testing.T, after time.Duration, status string) func(*gatewaytest.Server) {
	return func(gw *gatewaytest.Server) { require.NoError(t, gw.SetStatusAfter(id, after, status)) }
}

func TestFollow_onATerminal(t *testing.T) {
	t.Parallel()
	written, err := wait(t, onTerminal, time.Minute, setStatusAfter(t, 4*time.Second, "COMPLETED"))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"not seen yet, waited 0s",
		"PENDING, waited 0s, asked 0s ago",
		"PENDING, waited 1s, asked 1s ago",
		"PENDING, waited 2s, asked 2s ago",
		"PENDING, waited 3s, asked 0s ago",
		"PENDING, waited 4s, asked 1s ago",
		"COMPLETED, waited 4s, asked 0s ago",
		"",
		"COMPLETED: 25.5 USDT, fee 1, on Tron to TXYZ\n",
	}, frames(t, written))
}

func TestFollow_inAFile(t *testing.T) {
	t.Parallel()
	written, err := wait(t, inFile, time.Minute, setStatusAfter(t, 4*time.Second, "COMPLETED"))
	require.NoError(t, err)
	assert.Equal(t, pending+"COMPLETED: 25.5 USDT, fee 1, on Tron to TXYZ\n", written)
}

func TestFollow_failed(t *testing.T) {
	t.Parallel()
	written, err := wait(t, onTerminal, time.Minute, setStatusAfter(t, 0, "FAILED"))
	require.EqualError(t, err, `gateway: withdrawal "w-1": the service reports FAILED`)
	assert.Equal(t, 1, cli.Code(err))
	assert.Equal(t, []string{
		"not seen yet, waited 0s",
		"FAILED, waited 0s, asked 0s ago",
		"",
		"FAILED: 25.5 USDT, fee 1, on Tron to TXYZ\n",
	}, frames(t, written))
}

// After Ctrl-C the last known withdrawal replaces the line, with the cursor below.
func TestFollow_interrupted(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]func(*strings.Builder) display{"terminal": onTerminal, "file": inFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written, err := wait(t, on, 1500*time.Millisecond, func(*gatewaytest.Server) {})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, `waiting for withdrawal "w-1": last seen "PENDING"`)
			assert.Equal(t, 130, cli.Code(err))
			assert.True(t, strings.HasSuffix(written, pending), written)
			assert.Equal(t, 1, strings.Count(written, "\n"))
		})
	}
}

// Without a withdrawal the line is empty, for the error message.
func TestFollow_neverSeen(t *testing.T) {
	t.Parallel()
	written, err := wait(t, onTerminal, 2500*time.Millisecond, func(gw *gatewaytest.Server) {
		gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.Refuse(503, "not now"))
		gw.InjectFault(gatewaytest.OpWithdrawal, -1, gatewaytest.Stall())
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{
		"not seen yet, waited 0s",
		"not seen yet, waited 1s, asked 1s ago (failed)",
		"not seen yet, waited 2s, asked 2s ago (failed)",
		"",
		"",
	}, frames(t, written))
}

// Text from the service can neither control the terminal nor break the line.
func TestFollow_hostileStatus(t *testing.T) {
	t.Parallel()
	status := "ON\x1b[2J\r\nHOLD" + strings.Repeat("!", 100)
	for want, on := range map[string]func(*strings.Builder) display{"!!!, waited 0s": onTerminal, "!!!: 25.5 USDT": inFile} {
		written, err := wait(t, on, 500*time.Millisecond, setStatusAfter(t, 0, status))
		require.ErrorIs(t, err, context.Canceled)
		assert.NotContains(t, written, "\x1b")
		assert.Equal(t, 1, strings.Count(written, "\n"))
		assert.Contains(t, written, "ON�[2J��HOLD!!!")
		assert.Contains(t, written, want)
	}
}

func TestDisplayOn(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, file.Close()) }()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { assert.NoError(t, device.Close()) }()
	assert.IsType(t, lines{}, displayOn(file))
	assert.IsType(t, lines{}, displayOn(&strings.Builder{}))
	assert.IsType(t, &statusLine{}, displayOn(device), "a character device, as a terminal is one")
}
