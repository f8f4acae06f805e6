package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// add adds the withdrawal w-1 to a stand-in.
func add(gw *gatewaytest.Server) *gatewaytest.Server {
	gw.AddWithdrawal(gatewaytest.Withdrawal{Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: "w-1"})
	return gw
}

func TestWithdrawal(t *testing.T) {
	gw := add(standIn(t))
	assert.Equal(t, outcome{stdout: "status             PENDING\ndestination        TXYZ\namount             25.5\nfee                1\ncoin               USDT\nnetwork            Tron\nwithdrawRequestId  w-1\n"},
		call(t.Context(), t, gw, "withdrawal", "w-1"))
	got := call(t.Context(), t, gw, "withdrawal", "w-1", "-o", "json")
	assert.JSONEq(t, `{"withdrawRequestId":"w-1","status":"PENDING","amount":"25.5","fee":"1","coin":"USDT","network":"Tron","destination":"TXYZ"}`, got.stdout)
	got = call(t.Context(), t, gw, "withdrawal", "w-0")
	assert.Equal(t, outcome{exitRefused, "", "gateway: withdrawal: 404: \"no such withdrawal\"\n"}, got)
}

// The end of a wait is printed, with an exit code.
func TestWithdrawal_wait(t *testing.T) {
	for name, test := range map[string]struct {
		status string // after two inquiries
		args   string
		code   int
		stdout string
		err    string
	}{
		"it is COMPLETED": {"COMPLETED", "--every 1ms", exitDone, "COMPLETED", "w-1: COMPLETED\n"},
		"it FAILED":       {"FAILED", "--every 1ms", exitLeft, "FAILED", "the service reports FAILED"},
		"no time":         {"COMPLETED", "--timeout 1ns", exitFailed, "", "never seen"},
		"the time is up":  {"HELD", "--every 1ms --timeout 100ms -o json", exitFailed, `"status": "HELD"`, `last seen \"HELD\"`},
	} {
		t.Run(name, func(t *testing.T) {
			gw := add(standIn(t))
			require.NoError(t, gw.SetStatusAfterRequests("w-1", 2, test.status))
			got := call(t.Context(), t, gw, append(words("withdrawal w-1 --wait"), words(test.args)...)...)
			assert.Equal(t, test.code, got.code, got.err)
			assert.Contains(t, got.stdout, test.stdout)
			assert.Equal(t, test.stdout == "", got.stdout == "")
			assert.Contains(t, got.err, test.err)
		})
	}
}

// watch waits in virtual time, until Ctrl-C after long, and returns what stderr has.
func watch(t *testing.T, terminal bool, long time.Duration, prepare func(*gatewaytest.Server)) (written string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		prepare(add(gw))
		s := &session{console: console{out: &stdout, err: &stderr, terminal: terminal}, format: formatTable}
		p := &progress{session: s, begun: time.Now()}
		client, newErr := gateway.New(gw.URL, gw.APIKey, gateway.WithObserver(gateway.Observer{Attempt: p.attempt}),
			gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
		require.NoError(t, newErr)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		time.AfterFunc(long, interrupt)
		const every = 2300 * time.Millisecond // not a whole number of seconds
		err = s.follow(ctx, client, "w-1", gateway.WaitOptions{MinInterval: every, MaxInterval: every}, p)
	})
	return stderr.String(), err
}

// On a terminal a wait rewrites one line, which hides the one before and is removed in the end.
func TestWithdrawal_progress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(*gatewaytest.Server)
		want    []string
	}{
		"it ends": {func(gw *gatewaytest.Server) { require.NoError(t, gw.SetStatusAfter("w-1", 4*time.Second, "COMPLETED")) }, []string{
			"not seen yet, waited 0s", "PENDING, waited 0s", "PENDING, waited 2s", "PENDING, waited 4s", "COMPLETED, waited 4s", "",
		}},
		"Ctrl-C": {func(gw *gatewaytest.Server) {
			gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultRefuse(503, "not now"))
		}, []string{
			"not seen yet, waited 0s, the last inquiry failed", "not seen yet, waited 2s", "PENDING, waited 2s", "PENDING, waited 4s", "",
		}},
		"text of the service": {func(gw *gatewaytest.Server) {
			require.NoError(t, gw.SetStatusAfter("w-1", 0, "ON\x1b[2J\r\nHOLD"+strings.Repeat("!", 100)))
		}, []string{
			"not seen yet, waited 0s", "ON�[2J  HOLD!!!!!!!!!!!!, waited 0s", "ON�[2J  HOLD!!!!!!!!!!!!, waited 2s", "ON�[2J  HOLD!!!!!!!!!!!!, waited 4s", "",
		}},
	} {
		written, err := watch(t, true, 5*time.Second, test.prepare)
		assert.Equal(t, name == "it ends", err == nil)
		frames := strings.Split(strings.TrimSuffix(strings.TrimPrefix(written, "\r"), "\r"), "\r")
		for i := range frames {
			assert.GreaterOrEqual(t, len([]rune(frames[i])), lineWidth)
			frames[i] = strings.TrimRight(frames[i], " ")
		}
		assert.Equal(t, test.want, frames, name)
	}
}

// Elsewhere a wait prints a line for each change.
func TestWithdrawal_lines(t *testing.T) {
	t.Parallel()
	written, err := watch(t, false, time.Minute, func(gw *gatewaytest.Server) { require.NoError(t, gw.SetStatusAfter("w-1", 4*time.Second, "COMPLETED")) })
	require.NoError(t, err)
	assert.Equal(t, "2000-01-01T00:00:00Z w-1: PENDING\n2000-01-01T00:00:04Z w-1: COMPLETED\n", written)
}
