package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A mistake in the arguments ends with code 2, before anything is printed or sent.
func TestRun_usage(t *testing.T) {
	t.Setenv(envDB, "")
	refuses(t, map[string]string{
		"":                               "gateway is followed by one of: balance, coins, ",
		"pay":                            `unknown command "pay" for "gateway"`,
		"invioce create":                 "Did you mean this?",
		"invoice":                        "gateway invoice is followed by one of: create\nRun 'gateway invoice --help' for usage.\n",
		"orders recnocile":               "gateway orders is followed by one of: forget, mark, migrate, pending, prune, resolve, show",
		"help coin":                      "there is no such command",
		"coins --all":                    "unknown flag: …\nRun 'gateway coins --help' for usage.\n",
		"coins -o xml":                   "it is one of table, json",
		"coins --timeout -1s":            "--timeout is negative",
		"coins --timeout soon":           `invalid argument "…" for "--timeout" flag: time: invalid duration "…"`,
		"coins --coin=":                  "--coin is empty: give it a value, or leave it out",
		"coins --network Tron":           "--network needs --coin",
		"coins --coin ..":                "coinSymbol: must not be a dot segment",
		"withdrawal":                     "accepts 1 arg(s), received 0",
		"withdrawal ..":                  "withdrawRequestId: must not be a dot segment",
		"invoice create --order A-17":    `required flag(s) "amount", "price" not set`,
		"invoice create --price ten":     "write it like 10.50",
		"mock --addr=":                   "--addr is empty",
		"orders pending --db=":           "--db is empty",
		"orders pending -o xml":          "it is one of table, json, csv",
		"orders pending":                 "no database is named: set GATEWAY_ORDERS_DB, or give --db-file or --db",
		"orders pending --db x":          "the database is postgres://",
		"orders prune --older-than 23h":  "--older-than: it is an age such as 400d or 9600h, at least 24h",
		"orders prune":                   `required flag(s) "older-than" not set`,
		"orders mark":                    `required flag(s) "from" not set`,
		"orders resolve A-17 --exists":   `required flag(s) "by" not set`,
		"orders resolve A-17 --by anna":  "at least one of the flags in the group [exists absent from] is required",
		"orders resolve --by a --exists": "give --from, --token or the ORDER",
		"orders resolve A-17 --by a --from f --dry-run":               "give --from, --token or the ORDER",
		"orders resolve A-17 --by a --exists --absent":                "none of the others can be",
		"orders resolve A-17 --by a --absent --invoice f":             "none of the others can be",
		"orders resolve --token MFRA --by a --absent --merchant m":    "none of the others can be",
		"orders resolve A-17 --by a --exists --db x --db-file y":      "give --db or --db-file, not both",
		"orders resolve A-17 --by a --exists --db sqlite:file://o.db": "after sqlite: comes the path of a file",
		"orders resolve A-17 --by a --exists --db postgres://a:b@c/d": "--db takes no password",
	})
}

// Every command has a text, an example of itself, and a bound of its time.
func TestRun_help(t *testing.T) {
	for _, c := range leaves((&session{}).root()) {
		if c.Name() == "help" || c.Name() == "version" {
			continue
		}
		got := call(t.Context(), t, nil, append(words(c.CommandPath())[1:], "--help")...)
		assert.Zero(t, got.code)
		assert.Contains(t, got.stdout, "\n  "+c.CommandPath())
		assert.Contains(t, c.Example, "  "+c.CommandPath())
		assert.NotNil(t, c.Flags().Lookup("timeout"), c.CommandPath())
		assert.Equal(t, c.Name() == "mock", c.Flags().Lookup("key") != nil, "the key of a gateway is never an argument")
	}
}

// leaves returns the commands of a tree that do something.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(all, leaves(sub)...)
	}
	if !c.HasSubCommands() {
		all = append(all, c)
	}
	return all
}

// A flag replaces its variable.
func TestRun_settings(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(gw.APIKey+"\n"), 0o600))
	for name, test := range map[string]struct {
		url, key, file, plain, args string
		code                        int
		text                        string
	}{
		"environment":             {url: gw.URL, key: gw.APIKey},
		"a file with the key":     {url: gw.URL, file: file},
		"--url":                   {url: "https://gateway.invalid", key: gw.APIKey, args: "--url " + gw.URL},
		"no gateway":              {code: exitUsage, text: "no gateway is named: set GATEWAY_BASE_URL or give --url"},
		"no key":                  {url: gw.URL, code: exitUsage, text: "Set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE;"},
		"http":                    {url: "http://gateway.invalid", key: "k", code: exitUsage, text: "GATEWAY_PLAIN_HTTP=1"},
		"http, --plain-http":      {url: "http://gateway.invalid", key: "k", args: "--plain-http --timeout 1ns", code: exitNotSent, text: "deadline"},
		"a variable of no value":  {url: gw.URL, key: gw.APIKey, plain: "yes", code: exitUsage, text: "GATEWAY_PLAIN_HTTP: must be 1 or 0"},
		"a key and a file for it": {url: gw.URL, key: "k", file: file, code: exitUsage, text: "GATEWAY_API_KEY_FILE: must not be set together"},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, nil)
			t.Setenv(envBaseURL, test.url)
			t.Setenv(envAPIKey, test.key)
			t.Setenv(envAPIKeyFile, test.file)
			t.Setenv(envPlainHTTP, test.plain)
			var stdout, stderr strings.Builder
			code := run(t.Context(), append([]string{"balance"}, words(test.args)...), console{out: &stdout, err: &stderr})
			assert.Equal(t, test.code, code, stderr.String())
			assert.Contains(t, stderr.String(), test.text)
			assert.Equal(t, test.code == exitDone, stdout.Len() > 0)
		})
	}
}

// The exit code of each error; an invoice has its outcome.
func TestExitCode(t *testing.T) {
	t.Parallel()
	invoice := func(err error) error { return &invoiceError{err} }
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"done":                               {nil, exitDone},
		"another error":                      {errors.New("no"), exitFailed},
		"usage":                              {usage("no"), exitUsage},
		"an argument":                        {&gateway.ArgumentError{}, exitUsage},
		"a refusal":                          {fmt.Errorf("coins: %w", &gateway.APIError{Operation: "coin_networks", StatusCode: 404}), exitRefused},
		"a response that cannot be read":     {&gateway.DecodeError{Operation: "balance"}, exitFailed},
		"Ctrl-C":                             {fmt.Errorf("wait: %w", context.Canceled), exitInterrupted},
		"a deadline":                         {context.DeadlineExceeded, exitFailed},
		"no connection for a read":           {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseDial}, exitNotSent},
		"no response to a read":              {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseRead}, exitNotSent},
		"a wait that took too long":          {&gateway.WaitError{Err: &gateway.TransportError{Operation: "withdrawal", Err: context.DeadlineExceeded}}, exitFailed},
		"a withdrawal that failed":           {&gateway.WaitError{Err: gateway.ErrWithdrawalFailed}, exitLeft},
		"pending orders":                     {errLeft, exitLeft},
		"a gateway that differs":             {errDiffers, exitDiffers},
		"an unknown outcome":                 {invoice(&gateway.OutcomeUnknownError{Cause: context.Canceled}), exitUnknown},
		"another error of an invoice":        {invoice(errors.New("no")), exitUnknown},
		"an invoice for another request":     {invoice(&gateway.OrderConflictError{}), exitConflict},
		"an order that is in flight":         {invoice(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseOrder, Err: context.Canceled}), exitUnknown},
		"an invoice with a wrong argument":   {invoice(&gateway.ArgumentError{}), exitUsage},
		"no proof that an invoice is unsent": {invoice(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseTLS}), exitUnknown},
	} {
		assert.Equal(t, test.want, exitCode(test.err), name)
	}
}

// Results are JSON or a table, and say what was skipped.
func TestReads(t *testing.T) {
	gw := standIn(t)
	gw.SetCatalog(gw.Catalog()[:1])
	for line, want := range map[string]string{
		"coins":                              "COIN  NETWORK  MIN AMOUNT  FEE",
		"coins -o json":                      `"minAmount": "`,
		"coins --coin DOGE":                  "!4 the gateway has no such coin, or not on that network",
		"rates":                              "COIN  USD",
		"rates --coin BTC -o json":           `"coinSymbol": "BTC"`,
		"rates --coin NONE":                  "!1 the gateway has no rate of that coin",
		"balance":                            "USDT  BNB Smart Chain (BEP20)  0\n",
		"balance --coin USDT -o json":        `"networkName": "Tron"`,
		"balance --coin USDT --network Tron": "COIN  NETWORK  AMOUNT\nUSDT  Tron     ",
		"version":                            "gateway ",
	} {
		got := call(t.Context(), t, gw, words(line)...)
		if code, text, failed := strings.Cut(strings.TrimPrefix(want, "!"), " "); failed && want[0] == '!' {
			assert.Equal(t, code, fmt.Sprint(got.code), line)
			assert.Contains(t, got.err, text, line)
			assert.Empty(t, got.stdout, line)
			continue
		}
		assert.Equal(t, exitDone, got.code, line+got.err)
		assert.Contains(t, got.stdout, want, line)
		assert.Empty(t, got.err, line)
	}
}

// A record that cannot be read is reported; of a balance it is an error after the rest.
func TestReads_skipped(t *testing.T) {
	pair, err := json.Marshal(standIn(t).Catalog()[0])
	require.NoError(t, err)
	server := serve(t, map[string]string{
		"/api/networks-coins": `[` + string(pair) + `,{"id":"1"}]`,
		"/api/balance/":       `{"USDT":"1","BTC":"much"}`,
		"/api/exchange-rate":  `[{"symbol":"BTC","usd":"1","eur":"1"},{"symbol":"X","usd":"?","eur":"1"}]`,
	})
	for line, want := range map[string]outcome{
		"coins":   {exitDone, "COIN  NETWORK", "skipped: "},
		"rates":   {exitDone, "BTC   1", "skipped: X"},
		"balance": {exitFailed, "USDT", "the balance is incomplete"},
	} {
		got := call(t.Context(), t, server, line)
		assert.Equal(t, want.code, got.code, line)
		assert.Contains(t, got.stdout, want.stdout, line)
		assert.Contains(t, got.err, want.err, line)
	}
}

// Text of the service cannot control the terminal, and widens a table to some extent only.
func TestReads_hostile(t *testing.T) {
	gw := standIn(t)
	gw.SetBalance("B\x1b[2J\tC", strings.Repeat("é", 100_000), "1")
	got := call(t.Context(), t, gw, "balance")
	assert.Contains(t, got.stdout, "B�[2J C")
	assert.Contains(t, got.stdout, "é…  1\n")
	assert.NotContains(t, got.stdout, "\x1b")
	got = call(t.Context(), t, gw, "balance", "-o", "json")
	assert.Contains(t, got.stdout, `"B\u001b[2J\tC"`)
}

// A result that cannot be written is a failure.
func TestReads_unwritable(t *testing.T) {
	setenv(t, standIn(t))
	for _, line := range []string{"coins", "rates -o json", "balance", "probe", "version"} {
		var stderr strings.Builder
		assert.Equal(t, exitFailed, run(t.Context(), words(line), console{out: fullDisk{}, err: &stderr}), line)
		assert.Contains(t, stderr.String(), "no space left on device", line)
	}
}

// Text that an operator may type in a wrong place, the key among it, is in no error.
func TestSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(envDB, "sqlite:orders.db")
	require.Zero(t, call(t.Context(), t, nil, "orders", "migrate").code)
	gw := standIn(t)
	gw.InjectFault(gatewaytest.AnyOperation, -1, gatewaytest.FaultRefuse(http.StatusUnprocessableEntity, "no"))
	ended, end := context.WithCancel(t.Context())
	end()
	right := map[string][]string{
		"withdrawal": {"w-1"}, "invoice create": order()[2:], "mock": {"--addr", "127.0.0.1:0"}, "orders show": {"A-18"},
		"orders resolve": {"A-18", "--exists", "--by", "anna"}, "orders prune": {"--older-than", "400d"}, "orders mark": {"--from", "f.csv"},
	}
	for _, secret := range []string{"sk_live_4eC39HqLyjWDarjtT1zdp7dc", "k\"é\\+/=1", "postgres://u:hunter2/@host.example/shop"} {
		piece := strings.TrimPrefix(secret, "postgres://u:")
		for _, line := range misplaced((&session{}).root(), secret, right) {
			ctx := t.Context()
			if strings.Contains(strings.Join(line, " "), "mock") { // which would not end
				ctx = ended
			}
			setenv(t, gw)
			var stdout, stderr strings.Builder
			run(ctx, line, console{in: strings.NewReader(""), out: &stdout, err: &stderr})
			assert.NotContains(t, stderr.String(), secret, line)
			assert.NotContains(t, stderr.String(), piece[:min(7, len(piece))], line)
		}
	}
}

// misplaced returns command lines with a text in every position, for every flag and as a flag. A command line begins
// with the path of a command and what right has of it: the arguments that it needs.
func misplaced(root *cobra.Command, text string, right map[string][]string) (lines [][]string) {
	lines = append(lines, []string{text}, []string{"help", text}, []string{"--" + text + "=1"}, []string{"completion", "bash", text})
	for _, c := range leaves(root) {
		path := words(c.CommandPath())[1:]
		line := append(path, right[strings.Join(path, " ")]...)
		with := func(more ...string) { lines = append(lines, append(append([]string{}, line...), more...)) }
		with(text)
		with("--", text)
		for _, hyphens := range []string{"-", "--", "---", "-h", "-o"} {
			with(hyphens + text)
			with(hyphens + text + "=1")
			with(hyphens+text, "1")
		}
		c.InheritedFlags() // which c.Flags has then
		c.Flags().VisitAll(func(f *pflag.Flag) {
			with("--"+f.Name, text)
			with("--" + f.Name + "=" + text)
			with("--" + f.Name + text)
		})
	}
	return lines
}

// A program that is started has the exit codes, and a shell completes its commands.
func TestProcess(t *testing.T) {
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	setenv(t, gw)
	t.Setenv(asProcess, "1")
	for _, test := range []struct {
		args   []string
		code   int
		stdout string
	}{
		{words("rates"), exitDone, "BTC"},
		{words("pay"), exitUsage, ""},
		{order(), exitUnknown, ""},
		{words("__complete withd"), exitDone, "withdrawal\t"},
		{words("__complete orders re"), exitDone, "resolve\t"},
		{words("__complete coins -o j"), exitDone, "json\n"},
	} {
		command := exec.Command(os.Args[0], test.args...)
		stdout, _ := command.Output()
		assert.Equal(t, test.code, command.ProcessState.ExitCode(), test.args)
		assert.Contains(t, string(stdout), test.stdout)
	}
}
