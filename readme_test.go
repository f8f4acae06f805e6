package gateway_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/documented/everycall"
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

// A short README is read.
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

// Every module that a user imports has its line for a copy, and so has the client itself.
func TestGettingStarted_replaces(t *testing.T) {
	t.Parallel()
	packages := regexp.MustCompile(`packages=\((.*)\)`).FindStringSubmatch(fileText(t, ".ci/api"))
	require.NotNil(t, packages)
	var modules int
	for named := range strings.FieldsSeq(packages[1]) {
		module, _, _ := strings.Cut(named, ":")
		for _, err := os.Stat(filepath.Join(module, "go.mod")); err != nil; _, err = os.Stat(filepath.Join(module, "go.mod")) {
			module = filepath.Dir(module)
		}
		line := strings.TrimSuffix("/"+module, "/.")
		assert.Contains(t, fileText(t, "docs/getting-started.md"),
			"\n    go mod edit -replace github.com/cryptogw/gateway"+line+"=/path/to/gateway"+line+"\n")
		modules++
	}
	assert.Greater(t, modules, 5)
}

func TestCHANGELOG_version(t *testing.T) {
	t.Parallel()
	assert.Contains(t, fileText(t, "CHANGELOG.md"), "\n## ["+gateway.Version+"]")
}

// Every Go block of the README and of the guides is code that is compiled and run: a
// whole file of the examples, or lines of one.
func TestGuides_code(t *testing.T) {
	t.Parallel()
	sources := compiled(t)
	guides, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for guide, least := range map[string]int{"README.md": 2, "docs/getting-started.md": 2, "docs/checkout.md": 3, "docs/testing.md": 2} {
		assert.GreaterOrEqual(t, strings.Count(fileText(t, guide), "```go"), least, guide)
	}
	for _, guide := range append(guides, "README.md", skillFile) {
		text := fileText(t, guide)
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1)
		require.Len(t, blocks, strings.Count(text, "```go"), "%s: a block is not closed, or not at the start of a line", guide)
		for _, block := range blocks {
			if code := block[1]; strings.Contains(code, "\npackage ") || strings.HasPrefix(code, "package ") {
				assert.True(t, isWholeFile(sources, code), "%s: no example is:\n%s", guide, code)
			} else {
				assert.Greater(t, strings.Count(code, "\n"), 3, "%s: too short to be told from other code:\n%s", guide, code)
				assert.True(t, isPart(sources, code), "%s: no example has:\n%s", guide, code)
			}
		}
	}
}

// A link to a file of the repository leads somewhere.
func TestGuides_links(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	code := regexp.MustCompile("``.*?``")
	for _, pattern := range []string{"*.md", "docs/*.md", "*/README.md", "examples/*/README.md"} {
		guides, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, guide := range guides {
			for _, to := range link.FindAllStringSubmatch(code.ReplaceAllString(fileText(t, guide), ""), -1) {
				_, err := os.Stat(filepath.Join(filepath.Dir(guide), to[1]))
				assert.NoError(t, err, guide)
			}
		}
	}
}

// compiled returns the sources that README code may come from, by path.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	tests, err := filepath.Glob("example_*test.go")
	require.NoError(t, err)
	for _, path := range append(tests, "sqlguard/example_test.go", "readme_test.go") { // which has the recipes
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

// The table of calls has every operation, with the route of the method's own comment and
// the place where the stand-in finds the key.
func TestREADME_calls(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `((?:GET|POST) [^`]+)` \\| ([^|]+) \\|$")
	table := map[string][]string{}
	for _, cells := range row.FindAllStringSubmatch(readme(t), -1) {
		table[cells[1]] = cells[2:]
	}
	routes, keys := documentedRoutes(t), keysSent(t)
	assert.Len(t, table, len(everycall.All()))
	for _, c := range everycall.All() {
		require.Contains(t, routes, c.Name, "the comment of the method ends with its route")
		assert.Equal(t, []string{routes[c.Name], keys[c.Name]}, table[c.Name], c.Name)
	}
}

func TestExamples_everyMethod(t *testing.T) {
	t.Parallel()
	examples := fileText(t, "example_test.go")
	for _, name := range sendingMethods() {
		assert.Contains(t, examples, "\nfunc ExampleClient_"+name+"() {")
	}
}

// sendingMethods are the methods of a client that take a context, but for the one that
// sends nothing.
func sendingMethods() []string {
	var names []string
	for method := range reflect.TypeFor[*gateway.Client]().Methods() {
		if method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() && method.Name != "PrepareInvoice" {
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

// keysSent calls every method and returns, in the terms of the README, where the
// stand-in found the key.
func keysSent(t *testing.T) map[string]string {
	t.Helper()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client, err := gateway.New(gw.URL, gw.APIKey)
	require.NoError(t, err)
	values := everycall.KnownTo(gw)
	terms := map[string]string{"": "not sent", "header": "header `x-api-key`", "body": "body `apiKey`"}
	keys := map[string]string{}
	for i, c := range everycall.All() {
		_, err := c.Do(t.Context(), client, values)
		require.NoError(t, err, c.Name)
		require.Len(t, gw.Requests(), i+1, c.Name)
		keys[c.Name] = terms[gw.Requests()[i].KeyIn]
	}
	return keys
}

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

// withoutNetwork returns a stand-in without a network and a client for it. The test
// closes the stand-in in its bubble.
func withoutNetwork(t *testing.T, opts ...gateway.Option) (*gatewaytest.Server, *gateway.Client) {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	client, err := gateway.New(gw.URL, gw.APIKey, append(opts, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))...)
	require.NoError(t, err)
	return gw, client
}

// statusCounts counts the requests by the status of their responses.
func statusCounts(gw *gatewaytest.Server) map[int]int {
	counts := map[int]int{}
	for _, r := range gw.Requests() {
		counts[r.Status]++
	}
	return counts
}

// The wait is as long as necessary, and a refusal by the rate limit does not end it.
func TestSynctestRecipe_Week(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const week, hour = 7 * 24 * time.Hour, time.Hour
		gw, client := withoutNetwork(t)
		id := gw.Withdrawals()[0].WithdrawRequestID
		require.NoError(t, gw.SetStatusAfter(id, 3*24*hour, "PROCESSING"))
		require.NoError(t, gw.SetStatusAfter(id, week, "COMPLETED"))
		gw.SetRateLimit(100, 24*hour)
		begun := gw.Now()

		seen := []gateway.WithdrawalStatus{}
		for w, err := range client.WatchWithdrawal(t.Context(), id, gateway.WaitOptions{}) {
			require.NoError(t, err)
			seen = append(seen, w.Status)
		}
		assert.Equal(t, []gateway.WithdrawalStatus{"PENDING", "PROCESSING", "COMPLETED"}, seen)
		assert.GreaterOrEqual(t, gw.Now().Sub(begun), week)
		assert.Less(t, gw.Now().Sub(begun), week+hour)
		counts := statusCounts(gw)
		assert.Equal(t, 701, counts[201], "all that a week allows, and the first of the next day")
		assert.Less(t, counts[429], 8*24, "one in an hour at most")
		assert.Greater(t, counts[429], 7*12)
	})
}

// Many calls exceed a rate limit at once, and all of them succeed in the end.
func TestSynctestRecipe_ManyCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw, client := withoutNetwork(t, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 5}))
		gw.SetRateLimit(10, 9500*time.Millisecond)
		begun := time.Now()
		var calls sync.WaitGroup
		for range 30 {
			calls.Go(func() {
				_, err := client.ExchangeRates(t.Context())
				assert.NoError(t, err)
			})
		}
		calls.Wait()
		assert.Equal(t, 20*time.Second, time.Since(begun), "two windows, of which Retry-After counts whole seconds")
		assert.Equal(t, map[int]int{200: 30, 429: 20 + 10}, statusCounts(gw))
	})
}

// An invoice that the rate limit refuses is not created and not sent again.
func TestSynctestRecipe_RateLimitedInvoice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw, client := withoutNetwork(t)
		gw.SetRateLimit(1, time.Minute)
		_, err := client.ExchangeRates(t.Context())
		require.NoError(t, err)
		_, err = client.CreateInvoice(t.Context(), order("A-17"))
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		require.ErrorIs(t, err, gateway.ErrRateLimited)
		assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
		assert.Equal(t, time.Minute, refusal.RetryAfter)
		assert.Empty(t, gw.Invoices())
		gw.Advance(refusal.RetryAfter)
		_, err = client.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		assert.Len(t, gw.InvoicesFor("A-17"), 1)
	})
}

// The responses of a stand-in with drift are read in every shape, like those without.
func TestSynctestRecipe_Drift(t *testing.T) {
	t.Parallel()
	for _, shape := range gatewaytest.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw, client := withoutNetwork(t)
				gw.SetShape(shape)
				right := allResults(t, gw, client)
				gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDriftFields())
				assert.Equal(t, right, allResults(t, gw, client))
				gw.ClearFaults()
				gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultDrift())
				drifted := allResults(t, gw, client)
				last := drifted[len(drifted)-1].(gateway.Withdrawal)
				assert.False(t, last.Status.Known())
				last.Status = gateway.WithdrawalPending
				drifted[len(drifted)-1] = last
				assert.Equal(t, right, drifted)
			})
		})
	}
}

// allResults are the results of all methods, without their raw parts.
func allResults(t *testing.T, gw *gatewaytest.Server, client *gateway.Client) []any {
	t.Helper()
	ctx := t.Context()
	pairs, err := client.CoinNetworks(ctx)
	require.NoError(t, err)
	byID, err := client.CoinNetwork(ctx, pairs[5].ID)
	require.NoError(t, err)
	pair, err := client.CoinNetworkBySymbol(ctx, "USDT", "Tron")
	require.NoError(t, err)
	bySymbol, err := client.CoinNetworksOf(ctx, "USDT")
	require.NoError(t, err)
	rates, err := client.ExchangeRates(ctx)
	require.NoError(t, err)
	balance, err := client.Balance(ctx, gateway.BalanceQuery{CoinSymbol: "BTC"})
	require.NoError(t, err)
	invoice, err := client.CreateInvoice(ctx, order(fmt.Sprint("A-", len(gw.Requests()))))
	require.NoError(t, err)
	price, ok := invoice.Text("price")
	require.True(t, ok)
	withdrawal, err := client.Withdrawal(ctx, gw.Withdrawals()[0].WithdrawRequestID)
	require.NoError(t, err)
	return []any{pairs, *byID, *pair, bySymbol, rates.Rates, balance.Amounts, price, *withdrawal}
}
