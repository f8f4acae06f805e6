package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// Every Go block of a page is code that is compiled and run: a whole file of the examples, or
// lines of one.
func TestGuides_code(t *testing.T) {
	t.Parallel()
	sources := compiled(t)
	for guide, least := range map[string]int{"README.md": 2, "docs/getting-started.md": 1, "docs/checkout.md": 1, "docs/testing.md": 2} {
		assert.GreaterOrEqual(t, strings.Count(fileText(t, guide), "```go"), least, guide)
	}
	for _, guide := range tracked(t, ".md") {
		text := fileText(t, guide)
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1)
		require.Len(t, blocks, strings.Count(text, "```go"), "%s: a block is not closed, or not at the start of a line", guide)
		for _, block := range blocks {
			if code := block[1]; strings.Contains(code, "\npackage ") || strings.HasPrefix(code, "package ") {
				assert.True(t, isWholeFile(sources, code), "%s: no example is:\n%s", guide, code)
			} else {
				assert.Greater(t, strings.Count(code, "\n"), 2, "%s: too short to be told from other code:\n%s", guide, code)
				assert.True(t, isPart(sources, code), "%s: no example has:\n%s", guide, code)
			}
		}
	}
}

// A link to a file of the repository leads somewhere, and one to a heading leads to it.
func TestGuides_links(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^):]*?)(?:#([^)]*))?\)`)
	block := regexp.MustCompile("(?ms)^```.*?^```$")
	heading, dropped := regexp.MustCompile(`(?m)^#+ (.*)$`), regexp.MustCompile(`[^\w\- ]`)
	for _, guide := range tracked(t, ".md") {
		for _, to := range link.FindAllStringSubmatch(block.ReplaceAllString(fileText(t, guide), ""), -1) {
			target := guide
			if to[1] != "" {
				target = filepath.Join(filepath.Dir(guide), to[1])
			}
			if _, err := os.Stat(target); !assert.NoError(t, err, guide) || to[2] == "" {
				continue
			}
			var anchors []string
			for _, title := range heading.FindAllStringSubmatch(fileText(t, target), -1) {
				anchors = append(anchors, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-"))
			}
			assert.Contains(t, anchors, to[2], "%s: of %s", guide, target)
		}
	}
}

// compiled returns the sources that code of a page may come from, by path.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, pattern := range []string{"example_*test.go", "*/example_*test.go", "readme_test.go"} { // which has the recipe
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			sources[path] = fileText(t, path)
		}
	}
	err := filepath.WalkDir("examples", func(path string, entry fs.DirEntry, err error) error {
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

// This is the recipe of the documentation of package gatewaytest, character for
// character.
func TestSynctestRecipe_Withdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		client, err := gateway.New(gw.URL, gw.APIKey,
			gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
		if err != nil {
			t.Fatal(err)
		}

		// The withdrawal completes in a week, and the limit is 100 requests a day.
		const week = 7 * 24 * time.Hour
		id := gw.Withdrawals()[0].WithdrawRequestID
		if err := gw.SetStatusAfter(id, week, "COMPLETED"); err != nil {
			t.Fatal(err)
		}
		gw.SetRateLimit(100, 24*time.Hour)

		begun := time.Now()
		paid, err := client.WaitWithdrawal(t.Context(), id, gateway.WaitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); paid.Status != gateway.WithdrawalCompleted || waited < week {
			t.Errorf("%s after %v", paid.Status, waited)
		}
	})
}

// recipe is the source text of the test above.
func recipe(t *testing.T) string {
	t.Helper()
	source := fileText(t, "readme_test.go")
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "TestSynctestRecipe_Withdrawal" {
			return source[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]
		}
	}
	require.Fail(t, "there is no recipe")
	return ""
}

// What the documentation shows is what is compiled and run here.
func TestSynctestRecipe_IsInTheDocumentation(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	for line := range strings.Lines(fileText(t, "gatewaytest/doc.go")) {
		doc.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), "\t"))
	}
	assert.Contains(t, doc.String(), recipe(t))
}
