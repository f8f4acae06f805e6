//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/cli/clitest"
	"github.com/cryptogw/gateway/cmd/internal/database"
	"github.com/cryptogw/gateway/gatewaytest"
)

// binary builds the command.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway")
	output, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

// The process has the exit codes, and Ctrl-C ends a wait.
func TestProcess(t *testing.T) {
	path := binary(t)
	gw := add(standIn(t), id)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	setenv(t, gw)

	for _, test := range []struct {
		args []string
		code int
	}{{[]string{"rates"}, cli.ExitDone}, {[]string{"pay"}, cli.ExitUsage}, {order(), exitUnknown}} {
		command := exec.Command(path, test.args...)
		_ = command.Run()
		assert.Equal(t, test.code, command.ProcessState.ExitCode(), test.args)
	}

	wait := exec.Command(path, "withdrawal", "watch", id)
	var stderr strings.Builder
	wait.Stderr = &stderr
	stdout, err := wait.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, wait.Start())
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, pending, line)
	require.NoError(t, wait.Process.Signal(os.Interrupt))
	_, err = lines.ReadString('\n')
	require.Error(t, err, "there is no more output")
	_ = wait.Wait()
	assert.Equal(t, exitInterrupted, wait.ProcessState.ExitCode())
	assert.Contains(t, stderr.String(), "context canceled")
	assert.NotContains(t, stderr.String(), gw.APIKey)
	clitest.Complete(t, path, map[string]string{
		"gateway wi": "withdrawal", "gateway withdrawal w": "wait watch", "gateway rates --co": "--coin", "gateway -o json coins --net": "--network", "gateway mock --late": "--latency",
		"gateway coins -o ": "table json", "gateway help invoice ": "create", "gateway completion z": "zsh",
	})
	testSecondInterrupt(t, path)
	testClosedStdout(t, path)
	testCrash(t, path)
	testKilled(t, path)
}

// testSecondInterrupt ends a process twice that nobody reads from, after its invoice was
// created: the exit code is not that of a process that has sent nothing.
func testSecondInterrupt(t *testing.T, path string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":{"id":"`+strings.Repeat("x", 1<<20)+`"},"meta":{}}`)
	}))
	defer server.Close()
	t.Setenv(envBaseURL, server.URL)

	create := exec.Command(path, order()...)
	stdout, err := create.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, create.Start())
	_, err = io.ReadFull(stdout, make([]byte, 1))
	require.NoError(t, err)
	defer time.AfterFunc(10*time.Second, func() { _ = create.Process.Kill() }).Stop() // fails the test
	go func() {
		for create.Process.Signal(os.Interrupt) == nil {
			runtime.Gosched()
		}
	}()
	ended, err := create.Process.Wait()
	require.NoError(t, err)
	assert.Equal(t, exitUnknown, ended.ExitCode(), ended.String())
	require.NoError(t, stdout.Close())
}

// testCrash lets a process crash whose invoice was received: its exit code is not that of
// wrong arguments, with which a Go program that crashes ends by default.
func testCrash(t *testing.T, path string) {
	t.Helper()
	received := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(received)
		<-r.Context().Done()
	}))
	defer server.Close()
	t.Setenv(envBaseURL, server.URL)
	create := exec.Command(path, order()...)
	require.NoError(t, create.Start())
	<-received
	require.NoError(t, create.Process.Signal(syscall.SIGQUIT))
	_ = create.Wait()
	status := create.ProcessState.Sys().(syscall.WaitStatus)
	assert.Equal(t, syscall.SIGABRT, status.Signal(), create.ProcessState)
	assert.False(t, status.CoreDump(), "the memory of the process has the key")
}

// testKilled kills a process whose invoice was received: the next run knows of it.
func testKilled(t *testing.T, path string) {
	t.Helper()
	received := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		received <- r.Header.Get("X-Request-Id")
		<-r.Context().Done()
	}))
	defer server.Close()
	t.Setenv(envBaseURL, server.URL)
	file := filepath.Join(t.TempDir(), "orders.db")
	create := order("--orders", file)
	killed := exec.Command(path, create...)
	require.NoError(t, killed.Start())
	id := <-received
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()
	for _, want := range []string{"an invoice for this order is being created", `an invoice of 20\S+Z for order "A-17" may exist, .*the process did not record an outcome; X-Request-Id ` + id} {
		next := exec.Command(path, append(create, "--timeout", "1s")...)
		output, _ := next.CombinedOutput()
		assert.Equal(t, exitUnknown, next.ProcessState.ExitCode())
		assert.Regexp(t, want, string(output))
		db, err := database.SQLite(file, false)
		require.NoError(t, err)
		_, err = db.Exec("UPDATE gateway_orders SET lease_until = begun_at") // as time does
		require.NoError(t, errors.Join(err, db.Close()))
	}
	assert.Empty(t, received, "nothing was sent")
}

// testClosedStdout creates an invoice whose response nobody takes.
func testClosedStdout(t *testing.T, path string) {
	t.Helper()
	setenv(t, standIn(t))
	create := exec.Command(path, order()...)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	create.Stdout = write
	var stderr strings.Builder
	create.Stderr = &stderr
	_ = create.Run()
	require.NoError(t, write.Close())
	assert.Equal(t, cli.ExitFailed, create.ProcessState.ExitCode())
	assert.Contains(t, stderr.String(), "exists, but its response could not be written")
}
