package wiremock_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/internal/stranger"
	"github.com/cryptogw/gateway/contract/internal/surface"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is the one that the stubs know.
const key = "wiremock-key"

// known are the identifiers in the stubs.
func known() surface.Known {
	return surface.Known{Pair: "7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11", Withdrawal: "c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"}
}

// A server is a WireMock with the stubs of mappings/.
type server struct{ origin string }

// start runs one on a free loopback port.
func start(t *testing.T) server {
	t.Helper()
	jars, err := filepath.Glob("../npm/node_modules/wiremock/build/wiremock-standalone-*.jar")
	require.NoError(t, err)
	require.Len(t, jars, 1, "`bash contract/ci-strangers.sh` installs it")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "mappings"), os.DirFS("mappings")))
	port := stranger.Start(t, regexp.MustCompile(`^port: +(\d+)`),
		"java", "-jar", jars[0], "--port", "0", "--bind-address", "127.0.0.1",
		"--container-threads", "100", // each answer that is slow keeps one
		"--root-dir", dir)
	return server{"http://127.0.0.1:" + port}
}

// client returns a client whose connections are used once, so that every attempt
// meets the server anew.
func (s server) client(t *testing.T, policy gateway.RetryPolicy, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithRetry(policy)}, opts...)
	client, err := gateway.New(s.origin+"/merchant", key, opts...)
	require.NoError(t, err)
	return client
}

// admin asks WireMock for something, and reads its answer.
func (s server) admin(t *testing.T, method, path, body string, answer any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.origin+"/__admin/"+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Less(t, resp.StatusCode, 300, "%s", text)
	if answer != nil {
		require.NoError(t, json.Unmarshal(text, answer), "%s", text)
	}
}

// stub answers every request to the gateway like this, whatever else is stubbed;
// more is further members of the stub, such as a scenario.
func (s server) stub(t *testing.T, response, more string) {
	t.Helper()
	s.admin(t, http.MethodPost, "mappings", fmt.Sprintf(
		`{"priority":1,"request":{"method":"ANY","urlPathPattern":"/merchant/.*"},"response":%s%s}`, response, more), nil)
}

// reset forgets what a test has stubbed, and the journal.
func (s server) reset(t *testing.T) {
	t.Helper()
	s.admin(t, http.MethodPost, "reset", "", nil)
}

// arrived is how many requests the journal has.
func (s server) arrived(t *testing.T) int {
	t.Helper()
	var found struct{ Count int }
	s.admin(t, http.MethodPost, "requests/count", `{"method":"ANY","urlPathPattern":"/merchant/.*"}`, &found)
	return found.Count
}
