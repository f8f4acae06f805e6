// Package languages shows `gateway mock` from other languages: each program here loses a response
// after its invoice was committed, and finds exactly one invoice through the control API. It needs
// curl, Python (3.9 or later), Node.js (18 or later) and npm.
package languages

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain fails when the test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The types of the program in TypeScript are made of api/openapi.yaml and api/mock.yaml by
// openapi-typescript, which npm installs into a copy of this directory.
func TestLanguages(t *testing.T) {
	for _, tool := range []string{"curl", "python3", "node", "npm"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "this test needs %s", tool)
	}
	work := t.TempDir()
	require.NoError(t, os.CopyFS(work, os.DirFS(".")))
	openapi, err := filepath.Abs("../../api")
	require.NoError(t, err)
	run(t, work, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
	for _, document := range [][2]string{{"openapi.yaml", "gateway.d.ts"}, {"mock.yaml", "mock.d.ts"}} {
		run(t, work, "node_modules/.bin/openapi-typescript", filepath.Join(openapi, document[0]), "--output", document[1])
	}
	run(t, work, "node_modules/.bin/tsc")
	run(t, "../../cmd", "go", "build", "-o", work, "./gateway")

	mock := start(t, work)
	for name, program := range map[string][]string{
		"curl": {"bash", "lost.sh"}, "Python": {"python3", "lost.py"}, "TypeScript": {"node", "lost.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			order := "order-" + name
			lose := func() (string, error) {
				command := exec.CommandContext(t.Context(), program[0], append(program[1:], order)...)
				command.Dir, command.Env = work, append(os.Environ(), mock.env...)
				output, err := command.CombinedOutput()
				return string(output), err
			}
			output, err := lose()
			require.NoError(t, err, output)
			// There are two invoices now: the program has looked only if it fails.
			output, err = lose()
			assert.Error(t, err)
			assert.Contains(t, output, order+" has 2 invoices")
		})
	}
	log := mock.stop(t)
	assert.Regexp(t, `(?m)^Invoices committed: 6$`, log, "two for each language")
	assert.Contains(t, log, "  create_invoice: 10, of which 3 had a success and 7 met a fault", "no request was repeated")
}

// run runs a command in a directory.
func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), output)
}

// A mock is a `gateway mock` that is running.
type mock struct {
	command *exec.Cmd
	env     []string // of its clients
	log     bytes.Buffer
}

// setting is a line of what --env prints.
var setting = regexp.MustCompile(`^export (\w+)='(.*)'$`)

// start starts the mock on a free port. It listens when it has printed the settings.
func start(t *testing.T, dir string) *mock {
	t.Helper()
	m := &mock{command: exec.CommandContext(t.Context(), filepath.Join(dir, "gateway"), "mock", "--addr", "127.0.0.1:0", "--env")}
	m.command.Stderr = &m.log
	stdout, err := m.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, m.command.Start())
	lines := bufio.NewScanner(stdout)
	for len(m.env) < 2 && lines.Scan() {
		if found := setting.FindStringSubmatch(lines.Text()); found != nil {
			m.env = append(m.env, found[1]+"="+found[2])
		}
	}
	if len(m.env) < 2 {
		_ = m.command.Wait()
		require.Fail(t, "the mock has not started", m.log.String())
	}
	return m
}

// stop ends the mock as Ctrl-C does, and returns what it has printed.
func (m *mock) stop(t *testing.T) string {
	t.Helper()
	require.NoError(t, m.command.Process.Signal(os.Interrupt))
	require.NoError(t, m.command.Wait(), "%s", &m.log)
	return m.log.String()
}
