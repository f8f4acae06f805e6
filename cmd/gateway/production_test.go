//go:build unix

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands of docs/production.md print what stands beside them.
func TestProduction(t *testing.T) {
	page, err := os.ReadFile("../../docs/production.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```sh\n")
	require.True(t, found)
	script, _, _ := strings.Cut(rest, "```")
	var want []string
	for _, line := range regexp.MustCompile(`(?m)^(?:[A-Z].* )?(?:order|sent) .*# (\d+)`).FindAllStringSubmatch(script, -1) {
		want = append(want, line[1])
	}
	require.Greater(t, len(want), 10)

	bin, dir := commandDir(t), t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	script = strings.NewReplacer("127.0.0.1:8090", address, "gateway mock ", "gateway mock --addr "+address+" ").Replace(script)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a page whose mock does not start would wait for it
	defer cancel()
	run := exec.CommandContext(ctx, "bash", "-c", "trap 'kill %1' EXIT\n"+script)
	run.Dir = dir
	run.Env = append(os.Environ(), asProcess+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	run.Stderr = &stderr
	printed, err := run.Output()
	assert.NoError(t, err, stderr.String())
	assert.Equal(t, want, strings.Fields(string(printed)), stderr.String())
}
