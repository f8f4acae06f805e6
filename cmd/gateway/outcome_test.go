package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

var update = flag.Bool("update", false, "write the table of cmd/README.md")

// An errorClass is one way in which a run ends.
type errorClass struct {
	name  string
	args  string
	ended bool // whether Ctrl-C comes first
	do    func(*testing.T, *gatewaytest.Server)
}

// inject returns a preparation that injects a fault.
func inject(op gatewaytest.Operation, f gatewaytest.Fault) func(*testing.T, *gatewaytest.Server) {
	return func(_ *testing.T, gw *gatewaytest.Server) { gw.InjectFault(op, -1, f) }
}

const createOrder = "invoice create --order A-17 --price 10.50 --amount 10.50"

func errorClasses() []errorClass {
	balance, invoice := gatewaytest.OpBalance, gatewaytest.OpCreateInvoice
	noKey := func(t *testing.T, _ *gatewaytest.Server) { t.Setenv(envAPIKey, "") }
	closed := func(_ *testing.T, gw *gatewaytest.Server) { gw.Close() }
	noHost := func(t *testing.T, _ *gatewaytest.Server) {
		t.Setenv(envBaseURL, "https://"+strings.Repeat("x", 64)+".invalid") // no name has so long a label: no server is asked
	}
	noCertificate := func(t *testing.T, _ *gatewaytest.Server) { t.Setenv(envBaseURL, withoutCertificate(t)) }
	earlier := func(faults ...gatewaytest.Fault) func(*testing.T, *gatewaytest.Server) {
		return func(t *testing.T, gw *gatewaytest.Server) {
			t.Chdir(t.TempDir())
			for _, f := range faults {
				gw.InjectFault(invoice, 1, f)
			}
			run(t.Context(), words(createOrder+" --orders o"), cli.Console{Out: io.Discard, Err: io.Discard})
		}
	}
	failed := func(_ *testing.T, gw *gatewaytest.Server) { _ = gw.SetWithdrawalStatus(id, "FAILED") }
	return []errorClass{
		{"a result", "balance --coin BTC", false, nil},
		{"wrong arguments", "balance --coin", false, nil},
		{"no key", "balance", false, noKey},
		{"an argument that the client refuses", createOrder + " --currency US/D\x01", false, nil},
		{"no connection, a read", "balance", false, closed},
		{"no connection, an invoice", createOrder, false, closed},
		{"a host that does not exist, a read", "balance", false, noHost},
		{"a host that does not exist, an invoice", createOrder, false, noHost},
		{"a host that does not exist, a wait", "withdrawal wait w-1 --timeout 2s", false, noHost},
		{"a certificate that is wrong, a read", "balance", false, noCertificate},
		{"a certificate that is wrong, an invoice", createOrder, false, noCertificate},
		{"a connection that breaks, a read", "balance", false, inject(balance, gatewaytest.FaultReset())},
		{"a connection that breaks, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultReset())},
		{"a response that is lost, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultCommitThenDrop())},
		{"an order that an earlier run has created", createOrder + " --orders o", false, earlier()},
		{"an order that an earlier run has created for another price", createOrder + " --orders o --price 11", false, earlier()},
		{"an order whose response an earlier run has lost", createOrder + " --orders o", false, earlier(gatewaytest.FaultCommitThenDrop())},
		{"a file of --orders that cannot be used", createOrder + " --orders main.go", false, nil},
		{"a refusal, a read", "balance", false, inject(balance, gatewaytest.FaultRefuse(403, "not you"))},
		{"a refusal, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultRefuse(422, "no such coin"))},
		{"a refusal for now, a read", "balance", false, inject(balance, gatewaytest.FaultRefuse(429, "slowly"))},
		{"a refusal for now, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultRefuse(429, "slowly"))},
		{"a failure of the service, a read", "balance", false, inject(balance, gatewaytest.FaultPage(502))},
		{"a failure of the service, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultPage(502))},
		{"a response that is not understood, a read", "balance", false, inject(balance, gatewaytest.FaultEdit("/result", `{"id":,}`))},
		{"a response that is not understood, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultEdit("/result", `{"id":,}`))},
		{"a redirect, a read", "balance", false, inject(balance, gatewaytest.FaultRedirect(302, "https://other.example"))},
		{"a redirect, an invoice", createOrder, false, inject(invoice, gatewaytest.FaultRedirect(307, "https://other.example"))},
		{"the time is over, a read", "balance --timeout 1ns", false, nil},
		{"the time is over, an invoice", createOrder + " --timeout 1ns", false, nil},
		{"the time is over, a wait", "withdrawal wait w-1 --timeout 1ns", false, nil},
		{"a withdrawal that FAILED", "withdrawal wait w-1", false, failed},
		{"a withdrawal that FAILED, only looked at", "withdrawal get w-1", false, failed},
		{"an interface that differs", "probe", false, inject(gatewaytest.OpCoinNetworks, gatewaytest.FaultEdit("/result", `{"id":,}`))},
		{"Ctrl-C, a read", "balance", true, nil},
		{"Ctrl-C before an invoice is sent", createOrder, true, nil},
		{"Ctrl-C, a wait", "withdrawal wait w-1", true, nil},
	}
}

// withoutCertificate returns the URL of a server whose certificate nobody has signed.
func withoutCertificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

var changing = regexp.MustCompile(`(dial|read|write) tcp:? [^;(]*[^;( ]|certificate: [^;(]*[^;( ]|127\.0\.0\.1:\d+(->127\.0\.0\.1:\d+)?|\d+(\.\d+)?[mµn]?s\b|test-key-[0-9a-f]+|20\d\d-\S+Z|open main\.go.*`)

// row runs the command and returns its exit code, and its row of the table.
func (c errorClass) row(t *testing.T) (code int, row string) {
	t.Helper()
	gw := add(standIn(t), id)
	setenv(t, gw)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	if c.do != nil {
		c.do(t, gw)
	}
	if c.ended {
		interrupt()
	}
	var stdout, stderr strings.Builder
	code = run(ctx, words(c.args), cli.Console{Out: &stdout, Err: &stderr})
	result := "nothing"
	if stdout.Len() > 0 {
		result = "the result"
	}
	text, _, _ := strings.Cut(stderr.String(), "\n")
	text = changing.ReplaceAllString(text, "…")
	if limit := 110; len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return code, fmt.Sprintf("%s\n  gateway %q\n  %d, stdout: %s\n  stderr: %s\n", c.name, c.args, code, result, text)
}

// How each command line ends is in testdata/outcomes.txt, and by exit code in cmd/README.md.
func TestOutcomes_table(t *testing.T) {
	all, byCode := "", map[int][]string{}
	for _, c := range errorClasses() {
		t.Run(c.name, func(t *testing.T) {
			code, row := c.row(t)
			all += row
			byCode[code] = append(byCode[code], c.name)
		})
	}
	rows := "| Exit code | What happens |\n|---|---|\n"
	for _, e := range exits() {
		rows += fmt.Sprintf("| %d, %s | %s |\n", e.Code, e.Meaning, joined(byCode[e.Code]))
		delete(byCode, e.Code)
	}
	assert.Empty(t, byCode)

	const begin, end = "<!-- outcomes -->\n", "<!-- end -->\n"
	content, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), begin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile("../README.md", []byte(before+begin+rows+end+after), 0o600))
		require.NoError(t, os.WriteFile("testdata/outcomes.txt", []byte(all), 0o600))
		return
	}
	assert.Equal(t, rows, table, "go test ./gateway -run TestOutcomes_table -update")
	content, err = os.ReadFile("testdata/outcomes.txt")
	require.NoError(t, err)
	assert.Equal(t, string(content), all, "go test ./gateway -run TestOutcomes_table -update")
}

// joined joins names such as "no connection, a read" and "no connection, an invoice".
func joined(names []string) (text string) {
	last := ""
	for _, name := range names {
		what, call, both := strings.Cut(name, ", ")
		switch {
		case both && what == last:
			text = strings.TrimSuffix(text, ")") + ", " + call + ")"
		case both:
			text += "; " + what + " (" + call + ")"
		default:
			text += "; " + name
		}
		last = what
	}
	return strings.TrimPrefix(text, "; ")
}

// The example of the help survives `set -e`, and does something of its own for each outcome.
// It is not parallel: a process that is started shares the file locks of other tests for a moment.
func TestOutcomes_example(t *testing.T) {
	_, example, found := strings.Cut(outcomes().Long, "In a shell:\n\n")
	require.True(t, found)
	for code, want := range map[int]string{
		cli.ExitDone: "the invoice exists", exitNotSent: "nothing was sent: try again later", cli.ExitUsage: "correct it, or wait after status 429; no invoice exists",
		exitRefused: "correct it, or wait after status 429; no invoice exists", exitInterrupted: "interrupted before anything was sent",
		exitConflict: "the invoice of the order is for another request: use that, or another order",
		exitUnknown:  "look the order up before anything else", 134: "look the order up before anything else",
	} {
		script := fmt.Sprintf("set -eu\ngateway() { return %d; }\n%s", code, example)
		output, err := exec.Command("bash", "-c", script).CombinedOutput()
		require.NoError(t, err, "%s", output)
		assert.Equal(t, want+"\n", string(output))
	}
}

// An error names flags and variables, never what is Go.
func TestOutcomes_noGo(t *testing.T) {
	table, err := os.ReadFile("testdata/outcomes.txt")
	require.NoError(t, err)
	inGo := `\b(With|Allow|Err)[A-Z]\w+|\bNew\b`
	assert.NotRegexp(t, inGo, string(table))
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	orders := filepath.Join(t.TempDir(), "orders.db")
	for range 2 {
		got := call(t.Context(), t, gw, order("--orders", orders)...)
		assert.Equal(t, exitUnknown, got.code)
		assert.NotRegexp(t, inGo, got.err)
	}
	got := call(t.Context(), t, &gatewaytest.Server{URL: "http://gateway.example", APIKey: "k"}, "rates")
	assert.Equal(t, cli.ExitUsage, got.code)
	assert.Contains(t, got.err, "GATEWAY_PLAIN_HTTP=1")
	assert.NotRegexp(t, inGo, got.err)
}

// A refusal for now says when to run the command again.
func TestOutcomes_rateLimited(t *testing.T) {
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(429, "slowly").RetryAfter("7"))
	assert.Contains(t, call(t.Context(), t, gw, order()...).err, "\nToo many requests. Run it again after 7s.\n")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(429, "slowly"))
	assert.Contains(t, call(t.Context(), t, gw, order("-o", "table")...).err, "\nToo many requests. Run it again after 1m0s.\n")
}

// An error names a flag or a variable, and no option of the Go client.
func TestInTermsOfFlags(t *testing.T) {
	t.Parallel()
	_, plain := gateway.New("http://gateway.example", "a-key")
	keyless, err := gateway.New("https://gateway.example", "")
	require.NoError(t, err)
	_, missing := keyless.Balance(t.Context(), gateway.BalanceQuery{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"message":"fine","result":{"id":"1"}}`)
	}))
	t.Cleanup(other.Close)
	another, err := gateway.New(other.URL, "a-key")
	require.NoError(t, err)
	_, unread := another.CreateInvoice(t.Context(), orderA17().Request)
	_, form := another.Balance(t.Context(), gateway.BalanceQuery{})
	paged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"message":"fine","result":{"USDT":"1"},"meta":{"total":2}}`)
	}))
	t.Cleanup(paged.Close)
	another, err = gateway.New(paged.URL, "a-key")
	require.NoError(t, err)
	_, page := another.Balance(t.Context(), gateway.BalanceQuery{})
	guard := &gateway.MemoryGuard{}
	_, err = guard.End(t.Context(), orderA17(), gateway.OrderRecord{}) // without a cause
	require.NoError(t, err)
	guarded, err := gateway.New(other.URL, "a-key", gateway.WithOrderGuard(guard))
	require.NoError(t, err)
	_, earlier := guarded.CreateInvoice(t.Context(), orderA17().Request)
	for want, err := range map[string]error{
		"GATEWAY_PLAIN_HTTP=1":                    plain,
		"set GATEWAY_API_KEY or GATEWAY_API_KEY_": missing,
		"then use --resubmit":                     earlier,
		"in the file of GATEWAY_PROFILE":          unread,
		"by the file of GATEWAY_PROFILE":          form,
		"ask for one coin with --coin":            page,
	} {
		require.Error(t, err, want)
		text := inTermsOfFlags(err.Error())
		assert.Contains(t, text, want)
		assert.NotRegexp(t, `With[A-Z]|AllowResubmit`, text)
	}
}
