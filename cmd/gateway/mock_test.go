package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The mock prints how to reach it, as docs/getting-started.md says, serves the command itself, and Ctrl-C ends it.
func TestMock(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	variables, written := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, strings.Fields("mock --addr 127.0.0.1:0"), console{out: written, err: io.Discard})
	}()
	text := make([]byte, 1000)
	n, err := variables.Read(text)
	require.NoError(t, err)
	found := regexp.MustCompile(`^export GATEWAY_BASE_URL=(\S+)\nexport GATEWAY_API_KEY=(\S+)\n$`).FindStringSubmatch(string(text[:n]))
	require.NotNil(t, found, "%s", text)
	page, err := os.ReadFile("../../docs/getting-started.md")
	require.NoError(t, err)
	for line := range strings.Lines(strings.Replace(string(text[:n]), strings.TrimSuffix(found[1], "/gateway"), "http://127.0.0.1:8090", 1)) {
		assert.Contains(t, string(page), "    "+line)
	}
	gw := &gatewaytest.Server{URL: found[1], APIKey: found[2]}
	assert.Contains(t, call(t, gw, "rates").stdout, "BTC")
	assert.Zero(t, call(t, gw, order).code)
	interrupt()
	assert.Equal(t, exitDone, <-code)
}
