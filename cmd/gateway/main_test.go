package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestRun_help(t *testing.T) {
	for line, want := range map[string][]string{
		"help":                   {"  coins       The coins", "  withdrawal  ", "  gateway outcomes ", "GATEWAY_API_KEY_FILE"},
		"-h":                     {"  coins       The coins"},
		"help outcomes":          {"   5  outcome unknown\n", " 130  interrupted\n", "*)   echo \"look the order up"},
		"help coins":             {"  gateway coins [flags]", "  gateway coins --coin USDT\n", "--plain-http", "(default 1m0s)"},
		"coins -h":               {"  gateway coins [flags]"},
		"help invoice create":    {"  gateway invoice create --order ID", "--resubmit"},
		"help withdrawal":        {"  get  ", "  wait  ", "  watch  "},
		"withdrawal wait --help": {"  gateway withdrawal wait ID"},
		"mock --help":            {"gateway mock --env >mock.env", "--repeated"},
	} {
		t.Run(line, func(t *testing.T) {
			got := call(t.Context(), t, nil, words(line)...)
			assert.Equal(t, cli.ExitDone, got.code)
			assert.Empty(t, got.err)
			for _, text := range want {
				assert.Contains(t, got.stdout, text)
			}
			for text := range strings.Lines(got.stdout) {
				assert.LessOrEqual(t, len(text), 130, text)
			}
		})
	}
}

// A mistake in the arguments has what is right, and nothing is asked.
func TestRun_usage(t *testing.T) {
	refuses(t, map[string]string{
		"":                              "gateway asks a payment gateway",
		"pay":                           "gateway: there is no such command\nSee: gateway --help\n",
		"invioce create":                "gateway: there is no such command: did you mean invoice?\nSee: gateway --help\n",
		"help pay":                      "gateway: there is no such command\nSee: gateway --help\n",
		"invoice":                       "gateway invoice is followed by create\nSee: gateway invoice --help\n",
		"withdrawal wathc":              "gateway withdrawal is followed by get, wait or watch: did you mean watch?\nSee: gateway withdrawal --help\n",
		"coins --all":                   "gateway coins: there is no flag --all here\n",
		"coins -n 3":                    "gateway coins: argument 2 is no flag: did you mean --network?\n",
		"coins --o json":                "gateway coins: argument 2 is no flag: did you mean --output?\n",
		"coins USDT":                    "gateway coins: there is one argument too many\nSee: gateway coins --help\n",
		"coins -o xml":                  "gateway coins: --output: it is table or json here\n",
		"coins --timeout -1s":           "--timeout is negative",
		"coins --network Tron":          "--network needs --coin",
		"coins --coin a/b":              "coinSymbol: must not contain any of",
		"balance --network a\x01":       "networkName: must not contain control",
		"withdrawal get":                "gateway withdrawal get: the ID of a withdrawal is missing\n",
		"withdrawal get ..":             "withdrawRequestId: must not be a dot segment",
		"withdrawal wait w-1 w-1":       "gateway withdrawal wait: identifier 2 is the same as an earlier one",
		"withdrawal wait --every -1s w": "intervals must not be negative",
		"mock -o json":                  "gateway mock: there is no flag -o here",
	})
}

// The form of a flag before this one is refused with that of now, and never taken for another: -order
// begins with -o, and -host with -h.
func TestRun_oldForm(t *testing.T) {
	old := map[string]string{}
	for line, name := range map[string]string{
		"invoice create -order A-17": "order", "invoice create -orders o": "orders", "coins -coin=BTC": "coin", "mock -host mock": "host",
		"mock -env": "env", "withdrawal get w-1 -timeout 1s": "timeout", "coins -help": "help", "-url https://gateway.invalid coins": "url",
	} {
		old[line] = "gateway: flags begin with two hyphens: write --" + name + "\n"
	}
	refuses(t, old)
	got := call(t.Context(), t, standIn(t), "withdrawal", "get", "--timeout", "1m", "--", "-order")
	assert.Equal(t, exitRefused, got.code, "it is an argument: %s", got.err)
	got = call(t.Context(), t, standIn(t), "coins", "--coin", "-order", "-o", "json")
	assert.Equal(t, exitRefused, got.code, "it is a value: %s", got.err)
}

// A flag of a variable that is not set is refused, and not taken as one left out.
func TestRun_empty(t *testing.T) {
	gw := standIn(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, args := range [][]string{
		{"coins", "--coin", ""},
		{"coins", "--url="},
		{"balance", "--network", ""},
		{"probe", "--withdrawal", ""},
		order("--orders", ""), order("--currency", ""),
		{"mock", "--addr", ""},
	} {
		got := call(ended, t, gw, args...)
		assert.Equal(t, cli.ExitUsage, got.code, args)
		assert.Contains(t, got.err, " is empty: give it a value, or leave it out\nSee: gateway ", args)
	}
	assert.Empty(t, gw.Requests())
}

// An error of the arguments is JSON wherever -o json stands.
func TestRun_usageJSON(t *testing.T) {
	gw := standIn(t)
	for _, line := range []string{"pay -o json", "coins --all -o json", "coins now --output=json", "coins -o json --all", "withdrawal get -o=json", "--output json coins --all", "coins -price 3 -o json"} {
		assert.Equal(t, cli.ExitUsage, decode[failure](t, call(t.Context(), t, gw, words(line)...).err).ExitCode, line)
	}
	for _, line := range []string{"coins --all -- -o json", "coins --all -o", "coins --all -o json -o=table"} {
		assert.NotContains(t, call(t.Context(), t, gw, words(line)...).err, "{", line)
	}
}

// Arguments may stand before and between the flags; after "--" there are no flags.
func TestRun_order(t *testing.T) {
	gw := standIn(t)
	gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "1", WithdrawRequestID: "-o"})
	gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "1", WithdrawRequestID: "w"})
	for _, line := range []string{"-o json withdrawal get w -- -o", "withdrawal get w -o json -- -o", "withdrawal get -o json -- w -o", "withdrawal get -o=json w -- -o"} {
		got := call(t.Context(), t, gw, words(line)...)
		assert.Equal(t, cli.ExitDone, got.code, got.err)
		var all []withdrawalRecord
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &all))
		require.Len(t, all, 2)
		assert.Equal(t, "w-o", all[0].WithdrawRequestID+all[1].WithdrawRequestID)
	}
}

// Every command that asks a gateway needs one, has an example of itself and states how long it may take.
func TestRun_notConfigured(t *testing.T) {
	asked := 0
	for _, c := range leaves((&session{}).root()) {
		assert.Contains(t, c.Example, "  "+c.CommandPath())
		assert.NotEmpty(t, c.Short)
		if c.Flags().Lookup("url") == nil {
			continue
		}
		asked++
		assert.NotNil(t, c.Flags().Lookup("timeout"))
		assert.Nil(t, c.Flags().Lookup("key"), "the key of a gateway is never an argument")
		args := words(c.CommandPath())[1:]
		switch c.Name() {
		case "quote":
			args = append(args, "10.50")
		case "get", "wait", "watch":
			args = append(args, "w-1")
		case "create":
			args = order()
		}
		got := call(t.Context(), t, nil, args...)
		assert.Equal(t, cli.ExitUsage, got.code, args)
		assert.Equal(t, "no gateway is named: set GATEWAY_BASE_URL or give --url, and set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE for the key\n", got.err)
	}
	assert.Equal(t, 9, asked)
}

// leaves returns the commands of a tree that do something.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(all, leaves(sub)...)
	}
	if c.Runnable() && !c.HasSubCommands() {
		all = append(all, c)
	}
	return all
}

// A flag takes the place of its variable.
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
		"no key":                  {url: gw.URL, code: cli.ExitUsage, text: "Set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE;"},
		"http":                    {url: "http://gateway.invalid", key: "k", code: cli.ExitUsage, text: "GATEWAY_BASE_URL: must begin with https://"},
		"http, --plain-http":      {url: "http://gateway.invalid", key: "k", args: "--plain-http --timeout 1ns", code: exitNotSent, text: "deadline"},
		"http with the variable":  {url: "http://gateway.invalid", key: "k", plain: "1", args: "--timeout 1ns", code: exitNotSent, text: "deadline"},
		"a variable of no value":  {url: gw.URL, key: gw.APIKey, plain: "yes", code: cli.ExitUsage, text: "GATEWAY_PLAIN_HTTP: must be 1 or 0"},
		"a key and a file for it": {url: gw.URL, key: "k", file: file, code: cli.ExitUsage, text: "GATEWAY_API_KEY_FILE: must not be set together"},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, nil)
			t.Setenv(envBaseURL, test.url)
			t.Setenv(envAPIKey, test.key)
			t.Setenv(envAPIKeyFile, test.file)
			t.Setenv(envPlainHTTP, test.plain)
			var stdout, stderr strings.Builder
			code := run(t.Context(), append([]string{"balance"}, words(test.args)...), cli.Console{Out: &stdout, Err: &stderr})
			assert.Equal(t, test.code, code, stderr.String())
			assert.Contains(t, stderr.String(), test.text)
			assert.Equal(t, test.code == cli.ExitDone, stdout.Len() > 0)
		})
	}
}

func invoiceFailure(err error) error { return &invoiceError{error: err} }

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"done":                       {nil, cli.ExitDone},
		"another error":              {errors.New("no"), cli.ExitFailed},
		"usage":                      {&cli.UsageError{Text: "no"}, cli.ExitUsage},
		"an argument":                {&gateway.ArgumentError{}, cli.ExitUsage},
		"a refusal":                  {fmt.Errorf("coins: %w", &gateway.APIError{Operation: "coin_networks", StatusCode: 404}), exitRefused},
		"not understood":             {&gateway.DecodeError{Operation: "balance"}, cli.ExitFailed},
		"Ctrl-C":                     {fmt.Errorf("wait: %w", context.Canceled), exitInterrupted},
		"a deadline":                 {context.DeadlineExceeded, cli.ExitFailed},
		"an unknown outcome":         {invoiceFailure(&gateway.OutcomeUnknownError{Cause: context.Canceled}), exitUnknown},
		"another request":            {invoiceFailure(&gateway.OrderConflictError{}), exitConflict},
		"an order that is in flight": {invoiceFailure(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseOrder, Err: context.Canceled}), exitUnknown},
		"no proxy, a read":           {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseProxy}, exitNotSent},
		"no response, a read":        {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseRead}, cli.ExitFailed},
		"no proof, an invoice":       {invoiceFailure(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseTLS}), exitUnknown},
		"a wait that took too long":  {&gateway.WaitError{Err: &gateway.TransportError{Operation: "withdrawal", Err: context.DeadlineExceeded}}, cli.ExitFailed},
		"a withdrawal that failed":   {&gateway.WithdrawalFailedError{}, exitWithdrawal},
	} {
		assert.Equal(t, test.want, exitCode(test.err), name)
		assert.NotEmpty(t, cli.Meaning(exits(), exitCode(test.err)), name)
	}
}

// Colors are for a terminal only, and text of the service cannot control it.
func TestConsole_terminal(t *testing.T) {
	gw := standIn(t)
	gw.SetBalance("B\x1b[2J\tC", "Bitcoin", "1")
	setenv(t, gw)
	for name, test := range map[string]struct {
		console cli.Console
		head    string
	}{
		"pipe":     {cli.Console{}, "COIN "},
		"terminal": {cli.Console{OutTerminal: true}, "\x1b[1mCOIN "},
		"NO_COLOR": {cli.Console{OutTerminal: true, WithoutColor: true}, "COIN "},
	} {
		var stdout strings.Builder
		test.console.Out, test.console.Err = &stdout, &stdout
		assert.Zero(t, run(t.Context(), []string{"balance"}, test.console), name)
		assert.True(t, strings.HasPrefix(stdout.String(), test.head), name)
		assert.NotContains(t, stdout.String(), "\x1b[2J")
		assert.Contains(t, stdout.String(), "B�[2J C")
		assert.Contains(t, stdout.String(), "\nUSDT     Tron  ") // aligned
	}
}

// A cell of a table has a bound, because it widens all rows; JSON has the whole text.
func TestConsole_wide(t *testing.T) {
	gw := standIn(t)
	name := strings.Repeat("é", 100_000)
	gw.SetBalance("WIDE", name, "1")
	got := call(t.Context(), t, gw, "balance")
	assert.Contains(t, got.stdout, "é…  1\n")
	assert.Less(t, len(got.stdout), 10_000)
	assert.Contains(t, call(t.Context(), t, gw, "balance", "-o", "json").stdout, name)
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A result that cannot be written is a failure; of an invoice, stderr has it.
func TestRun_unwritable(t *testing.T) {
	gw := standIn(t)
	setenv(t, gw)
	id := gw.Withdrawals()[1].WithdrawRequestID
	for _, format := range []string{cli.FormatTable, cli.FormatJSON} {
		for _, args := range [][]string{
			{"coins"},
			{"rates"},
			{"balance"},
			order("--order", "A-"+format),
			{"withdrawal", "get", id},
			{"withdrawal", "wait", id},
			{"withdrawal", "watch", id},
			{"probe"},
		} {
			var stderr strings.Builder
			code := run(t.Context(), append(args, "-o", format), cli.Console{Out: fullDisk{}, Err: &stderr})
			assert.Equal(t, cli.ExitFailed, code, args)
			assert.Contains(t, stderr.String(), "no space left on device", args)
			if args[0] == "invoice" {
				assert.Contains(t, stderr.String(), "exists, but its response could not be written")
				assert.Contains(t, stderr.String(), gw.InvoicesFor("A-" + format)[0].ID)
			}
		}
	}
}

// GATEWAY_OUTPUT is what -o is without it, and what an error is in.
func TestRun_output(t *testing.T) {
	gw := standIn(t)
	t.Setenv(envOutput, "json")
	assert.Equal(t, "BTC", decode[[]rateRecord](t, call(t.Context(), t, gw, "rates", "--coin", "BTC").stdout)[0].CoinSymbol)
	assert.Contains(t, call(t.Context(), t, gw, "rates", "-o", "table").stdout, "COIN")
	assert.Contains(t, decode[failure](t, call(t.Context(), t, gw, "rates", "now").err).Error, "there is one argument too many")
	t.Setenv(envOutput, "xml")
	got := call(t.Context(), t, gw, "rates")
	assert.Equal(t, cli.ExitUsage, got.code)
	assert.Equal(t, "gateway rates: GATEWAY_OUTPUT is table or json\nSee: gateway rates --help\n", got.err)
	assert.Zero(t, call(t.Context(), t, gw, "version").code, "where it does not count")
}

func TestVersion(t *testing.T) {
	assert.Regexp(t, `^gateway \S+, go1\.\S+, \w+/\w+\n$`, call(t.Context(), t, nil, "version").stdout)
}
