package gateway_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/everycall"
)

func readme(t *testing.T) string {
	t.Helper()
	return fileText(t, "README.md")
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// A line more is a line less that is read.
func TestREADME_length(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, len(strings.Split(strings.TrimSpace(readme(t)), "\n")), 150)
}

func TestREADME_commands(t *testing.T) {
	t.Parallel()
	lines := strings.Split(readme(t), "\n")
	for _, command := range []string{"go run ./examples/quickstart", "go test ./..."} {
		assert.Contains(t, lines, "    "+command)
	}
	assert.FileExists(t, "examples/quickstart/main.go")
}

// Every module that go.mod names is named with its licence.
func TestREADME_dependencies(t *testing.T) {
	t.Parallel()
	modules := regexp.MustCompile(`(?m)^\t([\w.-]+\.\w+/\S+) v\S+$`).FindAllStringSubmatch(fileText(t, "go.mod"), -1)
	require.GreaterOrEqual(t, len(modules), 3)
	for _, module := range modules {
		assert.Contains(t, readme(t), module[1])
	}
}

func TestCHANGELOG_version(t *testing.T) {
	t.Parallel()
	assert.Contains(t, fileText(t, "CHANGELOG.md"), gateway.Version)
}

// Every Go block of the README is code that is compiled and run: a whole
// program of the examples, or lines of an example.
func TestREADME_code(t *testing.T) {
	t.Parallel()
	sources := compiled(t)
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(readme(t), -1)
	require.GreaterOrEqual(t, len(blocks), 4)
	require.Len(t, blocks, strings.Count(readme(t), "```go"), "a block is not closed, or not at the start of a line")
	programs := 0
	for _, block := range blocks {
		code := block[1]
		if strings.Contains(code, "package main") {
			programs++
			assert.True(t, isWholeFile(sources, code), "no example is:\n%s", code)
			continue
		}
		assert.Greater(t, strings.Count(code, "\n"), 3, "too short to be told from other code:\n%s", code)
		assert.True(t, isPart(sources, code), "no example has:\n%s", code)
	}
	assert.Equal(t, 1, programs)
}

// compiled returns the sources that README code may come from, by path.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	tests, err := filepath.Glob("example_*test.go")
	require.NoError(t, err)
	for _, path := range tests {
		sources[path] = fileText(t, path)
	}
	err = filepath.WalkDir("examples", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".go") {
			sources[path] = fileText(t, path)
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(sources), 6)
	return sources
}

func isWholeFile(sources map[string]string, code string) bool {
	for _, source := range sources {
		if source == code {
			return true
		}
	}
	return false
}

// isPart reports whether the lines of code stand together in a source, however
// far indented.
func isPart(sources map[string]string, code string) bool {
	for _, source := range sources {
		if strings.Contains(flushLeft(source), flushLeft(code)) {
			return true
		}
	}
	return false
}

var indent = regexp.MustCompile(`(?m)^\t+`)

// flushLeft starts with a line end, so that a part begins where a line does.
func flushLeft(code string) string { return "\n" + indent.ReplaceAllString(code, "") }

func TestREADME_codeIsCompared(t *testing.T) {
	t.Parallel()
	sources := map[string]string{"a.go": "func a() {\n\tif b() {\n\t\tc()\n\t}\n}\n"}
	assert.True(t, isPart(sources, "if b() {\n\tc()\n}\n"))
	assert.False(t, isPart(sources, "if b() {\n\td()\n}\n"))
	assert.False(t, isPart(sources, "b() {\n\tc()\n}\n"))
	assert.False(t, isWholeFile(sources, "if b() {\n\tc()\n}\n"))
	assert.True(t, isWholeFile(sources, sources["a.go"]))
}

// The table of calls has every method that sends, with the route of the
// method's own comment and the place where the stand-in finds the key.
func TestREADME_calls(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `((?:GET|POST) [^`]+)`[^|]* \\| ([^|]+) \\|$")
	table := map[string][]string{}
	for _, cells := range row.FindAllStringSubmatch(readme(t), -1) {
		table[cells[1]] = cells[2:]
	}
	routes, keys := documentedRoutes(t), keysSent(t)
	sending := sendingMethods()
	require.GreaterOrEqual(t, len(sending), 10)
	assert.Len(t, table, len(sending))
	for _, name := range sending {
		require.Contains(t, routes, name, "the comment of the method ends with its route")
		require.Contains(t, keys, name, "everycall has the method")
		assert.Equal(t, []string{routes[name], keys[name]}, table[name], name)
	}
}

func TestExamples_everyMethod(t *testing.T) {
	t.Parallel()
	examples := fileText(t, "example_test.go")
	for _, name := range sendingMethods() {
		assert.Contains(t, examples, "\nfunc ExampleClient_"+name+"() {")
	}
}

// sendingMethods are the methods of a client that take a context.
func sendingMethods() []string {
	var names []string
	for method := range reflect.TypeFor[*gateway.Client]().Methods() {
		if method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() {
			names = append(names, method.Name)
		}
	}
	return names
}

// documentedRoutes are the last lines of the comments of the client's methods.
func documentedRoutes(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	routes := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if method, ok := decl.(*ast.FuncDecl); ok && method.Recv != nil && method.Doc != nil {
				lines := strings.Split(strings.TrimSpace(method.Doc.Text()), "\n")
				if last := lines[len(lines)-1]; strings.Contains(last, " /api/") {
					routes[method.Name.Name] = last
				}
			}
		}
	}
	return routes
}

// keysSent calls every method and returns, in the words of the README, where the
// stand-in found the key.
func keysSent(t *testing.T) map[string]string {
	t.Helper()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	require.NoError(t, err)
	values := everycall.KnownTo(gw)
	values.WithdrawalID = gw.Withdrawals()[1].WithdrawRequestID // in a final state
	words := map[string]string{"": "not sent", "header": "header `x-api-key`", "body": "body `apiKey`"}
	keys := map[string]string{}
	for i, c := range append(everycall.All(), everycall.Derived()...) {
		_, err := c.Do(t.Context(), client, values)
		require.NoError(t, err, c.Name)
		require.Len(t, gw.Requests(), i+1, c.Name)
		keys[c.Name] = words[gw.Requests()[i].KeyIn]
	}
	return keys
}
