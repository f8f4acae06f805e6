package main

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

const (
	id      = "w-1"
	pending = "w-1: PENDING, 25.5 USDT, fee 1, on Tron to TXYZ\n"
	done    = "w-1: COMPLETED, 25.5 USDT, fee 1, on Tron to TXYZ\n"
	heading = "ID   STATUS     AMOUNT  FEE  COIN  NETWORK  DESTINATION\n"
)

// add adds withdrawals to a stand-in.
func add(gw *gatewaytest.Server, ids ...string) *gatewaytest.Server {
	for _, id := range ids {
		gw.AddWithdrawal(gatewaytest.Withdrawal{
			Destination: "TXYZ", Amount: "25.50", Fee: "1", Coin: "USDT", Network: "Tron", WithdrawRequestID: id,
		})
	}
	return gw
}

func TestWithdrawalGet(t *testing.T) {
	gw := add(standIn(t), id, "w-2")
	require.NoError(t, gw.SetWithdrawalStatus("w-2", "COMPLETED"))
	assert.Equal(t, outcome{stdout: heading +
		"w-1  PENDING    25.5    1    USDT  Tron     TXYZ\n" +
		"w-2  COMPLETED  25.5    1    USDT  Tron     TXYZ\n"}, call(t.Context(), t, gw, "withdrawal", "get", id, "w-2"))
	got := call(t.Context(), t, gw, "withdrawal", "get", id, "-o", "json")
	assert.JSONEq(t, `[{"withdrawRequestId":"w-1","status":"PENDING","amount":"25.5","fee":"1","coin":"USDT","network":"Tron","destination":"TXYZ"}]`, got.stdout)
}

// What is found is printed, even if another one is not.
func TestWithdrawalGet_someUnknown(t *testing.T) {
	got := call(t.Context(), t, add(standIn(t), id), "withdrawal", "get", "w-0", id)
	assert.Equal(t, exitRefused, got.code)
	assert.Equal(t, "gateway: withdrawal: 404: \"no such withdrawal\"\n", got.err)
	assert.Contains(t, got.stdout, "w-1  PENDING")
}

func TestWithdrawalWatch(t *testing.T) {
	gw := add(standIn(t), id)
	require.NoError(t, gw.SetStatusAfterRequests(id, 2, "AWAITING APPROVAL"))
	require.NoError(t, gw.SetStatusAfterRequests(id, 3, "COMPLETED"))
	assert.Equal(t, outcome{stdout: pending + strings.Replace(pending, "PENDING", "AWAITING APPROVAL", 1) + done},
		call(t.Context(), t, gw, "withdrawal", "watch", "--every", "1ms", id))
	assert.Len(t, gw.Requests(), 4)
}

// With JSON each change is a line, as soon as there is one.
func TestWithdrawalWatch_json(t *testing.T) {
	gw := add(standIn(t), id, "w-2")
	require.NoError(t, gw.SetStatusAfterRequests(id, 1, "COMPLETED"))
	require.NoError(t, gw.SetStatusAfterRequests("w-2", 1, "FAILED"))
	got := call(t.Context(), t, gw, "withdrawal", "watch", "--every", "1ms", id, "w-2", "-o", "json")
	assert.Equal(t, exitWithdrawal, got.code)
	seen := map[string]string{}
	for line := range strings.Lines(got.stdout) {
		w := decode[withdrawalRecord](t, line)
		seen[w.WithdrawRequestID] += string(w.Status) + " "
	}
	assert.Equal(t, map[string]string{id: "PENDING COMPLETED ", "w-2": "PENDING FAILED "}, seen)
	assert.Equal(t, "withdrawal failed", decode[failure](t, got.err).Meaning)
}

func TestWithdrawalWait(t *testing.T) {
	gw := add(standIn(t), id, "w-2")
	require.NoError(t, gw.SetStatusAfterRequests(id, 1, "COMPLETED"))
	require.NoError(t, gw.SetStatusAfterRequests("w-2", 2, "FAILED"))
	assert.Equal(t, outcome{stdout: heading + "w-1  COMPLETED  25.5    1    USDT  Tron     TXYZ\n"},
		call(t.Context(), t, gw, "withdrawal", "wait", "--every", "1ms", id))
	got := call(t.Context(), t, gw, "withdrawal", "wait", "--every", "1ms", id, "w-2")
	assert.Equal(t, exitWithdrawal, got.code)
	assert.Equal(t, "gateway: withdrawal \"w-2\": the service reports FAILED\n", got.err)
	assert.Contains(t, got.stdout, "w-1  COMPLETED")
	assert.Contains(t, got.stdout, "w-2  FAILED")
}

// A status of --final ends a wait, and is no success.
func TestWithdrawalWait_final(t *testing.T) {
	for _, c := range []string{"wait", "watch"} {
		for _, args := range [][]string{{id}, {id, "w-2"}} {
			gw := add(standIn(t), id, "w-2")
			require.NoError(t, gw.SetStatusAfterRequests(id, 2, "CANCELED"))
			require.NoError(t, gw.SetStatusAfterRequests("w-2", 2, "COMPLETED"))
			gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultPage(http.StatusForbidden))
			got := call(t.Context(), t, gw, append([]string{"withdrawal", c, "--every", "1ms", "--final", "CANCELED,REJECTED"}, args...)...)
			assert.Equal(t, exitWithdrawal, got.code, got.err)
			assert.Contains(t, got.stdout, "CANCELED")
			assert.Equal(t, len(args) > 1, strings.Contains(got.stdout, "COMPLETED"))
			assert.Contains(t, got.err, "the status is final by --final or the file of GATEWAY_PROFILE")
		}
	}
}

// When the time is over, what was still waited for is printed too.
func TestWithdrawalWait_timeout(t *testing.T) {
	gw := add(standIn(t), id)
	for _, c := range []string{"wait", "watch"} {
		got := call(t.Context(), t, gw, "withdrawal", c, "--timeout", "1ns", id)
		assert.Equal(t, cli.ExitFailed, got.code)
		assert.Contains(t, got.err, "waiting for withdrawal \"w-1\"")
		assert.Empty(t, got.stdout)
	}
}

func TestWithdrawalWait_refused(t *testing.T) {
	for _, args := range [][]string{{"w-9"}, {"w-8", "w-9"}} {
		gw := standIn(t)
		gw.InjectFault(gatewaytest.OpWithdrawal, -1, gatewaytest.FaultRefuse(http.StatusGone, "no such withdrawal"))
		got := call(t.Context(), t, gw, append([]string{"withdrawal", "wait"}, args...)...)
		assert.Equal(t, exitRefused, got.code)
		assert.Equal(t, len(args), strings.Count(got.err, "\n"))
		assert.Empty(t, got.stdout)
	}
}

// every is not a multiple of a second, so that no inquiry coincides with a rewrite
// of the progress.
const every = 2300 * time.Millisecond

// A terminal is both outputs of a command that follows withdrawals in virtual time.
type terminal struct {
	each   bool          // watch, rather than wait
	ids    []string      // of the withdrawals
	long   time.Duration // until Ctrl-C
	pipe   bool          // whether it is no terminal
	format string        // a table if it is empty
}

// run returns the output and the error. The bubble fails the test if a goroutine
// remains.
func (term terminal) run(t *testing.T, prepare func(*gatewaytest.Server)) (string, error) {
	t.Helper()
	var out strings.Builder
	var err error
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		prepare(add(gw, term.ids...))
		s := &session{Console: cli.Console{Out: &out, Err: &out, ErrTerminal: !term.pipe}, format: cmp.Or(term.format, cli.FormatTable)}
		f := &follower{session: s, each: term.each, shown: newProgress(s.Console, len(term.ids))}
		client, newErr := gateway.New(gw.URL, gw.APIKey, gateway.WithObserver(f.shown.observer()),
			gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}),
			gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
		require.NoError(t, newErr)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		time.AfterFunc(term.long, interrupt)
		err = f.run(withdrawals(ctx, client, term.ids, gateway.WaitOptions{MinInterval: every, MaxInterval: every}, term.each))
	})
	return out.String(), err
}

// frames returns the successive contents of a terminal's last line.
func frames(t *testing.T, written string) []string {
	t.Helper()
	require.True(t, strings.HasPrefix(written, "\r"))
	all := strings.Split(written[1:], "\r")
	for i := range all {
		all[i] = strings.TrimRight(all[i], " ")
	}
	return all
}

func setStatusAfter(t *testing.T, after time.Duration, status string) func(*gatewaytest.Server) {
	return func(gw *gatewaytest.Server) { require.NoError(t, gw.SetStatusAfter(id, after, status)) }
}

func TestProgress_wait(t *testing.T) {
	t.Parallel()
	written, err := terminal{ids: []string{id}, long: time.Minute}.run(t, setStatusAfter(t, 4*time.Second, "COMPLETED"))
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
		heading + "w-1  COMPLETED  25.5    1    USDT  Tron     TXYZ\n",
	}, frames(t, written))
	for frame := range strings.SplitSeq(strings.TrimPrefix(written, "\r"), "\r") {
		assert.True(t, strings.HasPrefix(frame, "ID") || len(frame) >= lineWidth, "it covers the previous line")
	}
}

// A change is printed above the progress.
func TestProgress_watch(t *testing.T) {
	t.Parallel()
	written, err := terminal{each: true, ids: []string{id}, long: time.Minute}.run(t, setStatusAfter(t, 0, "COMPLETED"))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"not seen yet, waited 0s", "COMPLETED, waited 0s, asked 0s ago", "",
		done, "COMPLETED, waited 0s, asked 0s ago", "", "",
	}, frames(t, written))
}

func TestProgress_many(t *testing.T) {
	t.Parallel()
	written, err := terminal{ids: []string{id, "w-2"}, long: 1500 * time.Millisecond}.run(t, setStatusAfter(t, 0, "FAILED"))
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, exitInterrupted, exitCode(err))
	all := frames(t, written)
	assert.Equal(t, []string{"0 of 2 have ended, waited 0s", "1 of 2 have ended, waited 0s, asked 0s ago"}, all[:2])
	assert.Contains(t, all[2], "1 of 2 have ended, waited 1s")
	assert.Contains(t, all[4], "w-1  FAILED ")
	assert.Contains(t, all[4], "w-2  PENDING ", "the last known status")
}

// Without a terminal there is no progress.
func TestProgress_pipe(t *testing.T) {
	t.Parallel()
	written, err := terminal{each: true, ids: []string{id}, long: time.Minute, pipe: true}.run(t, setStatusAfter(t, 4*time.Second, "COMPLETED"))
	require.NoError(t, err)
	assert.Equal(t, pending+done, written)
}

// Ctrl-C ends a wait; the error has the last known status.
func TestProgress_interrupted(t *testing.T) {
	t.Parallel()
	for _, term := range []terminal{{}, {pipe: true}, {each: true}, {each: true, pipe: true}} {
		term.ids, term.long = []string{id}, 1500*time.Millisecond
		written, err := term.run(t, func(*gatewaytest.Server) {})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `waiting for withdrawal "w-1": last seen "PENDING"`)
		assert.Equal(t, exitInterrupted, exitCode(err))
		assert.Contains(t, written, "PENDING")
		assert.True(t, strings.HasSuffix(written, "\n") || strings.HasSuffix(written, "\r"), "the cursor is in the first column")
	}
}

func TestProgress_neverSeen(t *testing.T) {
	t.Parallel()
	written, err := terminal{ids: []string{id}, long: 2500 * time.Millisecond}.run(t, func(gw *gatewaytest.Server) {
		gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultRefuse(503, "not now"))
		gw.InjectFault(gatewaytest.OpWithdrawal, -1, gatewaytest.FaultStall())
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

// In the JSON of a watch that is interrupted, each change is there once.
func TestProgress_interruptedJSON(t *testing.T) {
	t.Parallel()
	written, err := terminal{each: true, ids: []string{id}, long: 1500 * time.Millisecond, pipe: true, format: cli.FormatJSON}.
		run(t, func(*gatewaytest.Server) {})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, id, decode[withdrawalRecord](t, written).WithdrawRequestID)
}

// Text from the service can neither control the terminal nor break the line.
func TestProgress_hostileStatus(t *testing.T) {
	t.Parallel()
	status := "ON\x1b[2J\r\nHOLD" + strings.Repeat("!", 100)
	for want, term := range map[string]terminal{"!!!, waited 0s": {each: true}, "!!!, 25.5 USDT": {each: true, pipe: true}} {
		term.ids, term.long = []string{id}, 500*time.Millisecond
		written, err := term.run(t, setStatusAfter(t, 0, status))
		require.ErrorIs(t, err, context.Canceled)
		assert.NotContains(t, written, "\x1b")
		assert.Equal(t, 1, strings.Count(written, "\n"))
		assert.Contains(t, written, "ON�[2J  HOLD!!!")
		assert.Contains(t, written, want)
	}
}
