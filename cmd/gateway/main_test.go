package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestRun_help(t *testing.T) {
	for line, want := range map[string][]string{
		"help":                 {"  gateway coins ", "  gateway withdrawal watch ", "  gateway help outcomes", "GATEWAY_API_KEY_FILE"},
		"-h":                   {"  gateway coins "},
		"help outcomes":        {"   5  outcome unknown\n", " 130  interrupted\n", "*)   echo \"look the order up"},
		"help coins":           {"usage: gateway coins [-coin SYMBOL", "  gateway coins -coin USDT\n", "-plain-http", "(default 1m0s)"},
		"coins -h":             {"usage: gateway coins "},
		"help invoice":         {"usage: gateway invoice create ", "-resubmit"},
		"help withdrawal":      {"usage: gateway withdrawal get ID", "usage: gateway withdrawal wait ID", "usage: gateway withdrawal watch ID"},
		"help withdrawal wait": {"usage: gateway withdrawal wait ID"},
	} {
		t.Run(line, func(t *testing.T) {
			got := call(t.Context(), t, nil, words(line)...)
			assert.Equal(t, exitDone, got.code)
			assert.Empty(t, got.err)
			for _, text := range want {
				assert.Contains(t, got.stdout, text)
			}
			for text := range strings.Lines(got.stdout) {
				assert.LessOrEqual(t, len(text), 128, text)
			}
		})
	}
}

// Every command has a help with an example of itself, and states how long it may take.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		assert.Contains(t, c.text, "\n\n  gateway "+c.name, c.name)
		assert.NotEmpty(t, c.short, c.name)
		assert.True(t, c.local || c.timeout > 0, c.name)
		var unset flag.FlagSet
		unset.SetOutput(io.Discard)
		assert.NotNil(t, c.define(&unset), c.name)
		assert.True(t, c.local || unset.Lookup("key") == nil, "the key of a gateway is never an argument")
	}
}

func TestRun_usage(t *testing.T) {
	refuses(t, map[string]string{
		"pay":                          `there is no command "pay"`,
		"help pay":                     "there is no help of \"pay\"\nSee: gateway help",
		"invoice":                      "gateway invoice is followed by create\n",
		"withdrawal wathc":             "gateway withdrawal is followed by get, or wait, or watch: did you mean watch?\nSee: gateway help withdrawal\n",
		"coins -all":                   "gateway coins: there is no flag -all\nSee: gateway help coins\n",
		"coins USDT":                   `gateway coins: number 1 is one argument too many`,
		"coins -o xml":                 `invalid value "xml" for flag -o: it is table or json`,
		"coins -timeout -1s":           "-timeout is negative",
		"coins -network Tron":          "-network needs -coin",
		"coins -coin a/b":              "coinSymbol: must not contain any of",
		"rates now":                    `"now" is one argument too many`,
		"balance -network a\x01":       "networkName: must not contain control",
		"withdrawal get":               "gateway withdrawal get: an argument is missing",
		"withdrawal get ..":            "withdrawRequestId: must not be a dot segment",
		"withdrawal wait w-1 w-1":      `gateway withdrawal wait: identifier 2 is the same as an earlier one`,
		"withdrawal wait -every -1s w": "intervals must not be negative",
		"probe now":                    `"now" is one argument too many`,
	})
	got := call(t.Context(), t, nil)
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.err, "gateway asks a payment gateway")
	assert.Empty(t, got.stdout)
}

// A flag of a variable that is not set is refused, and not taken as one left out.
func TestRun_empty(t *testing.T) {
	gw := standIn(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, args := range [][]string{
		{"coins", "-coin", ""},
		{"coins", "-url="},
		{"balance", "-network", ""},
		{"probe", "-withdrawal", ""},
		order("-orders", ""), order("-currency", ""),
		{"mock", "-addr", ""},
	} {
		got := call(ended, t, gw, args...)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Contains(t, got.err, " is empty: give it a value, or leave it out\nSee: gateway help", args)
	}
	assert.Empty(t, gw.Requests())
}

// An error of the arguments is JSON wherever -o json stands.
func TestRun_usageJSON(t *testing.T) {
	gw := standIn(t)
	for _, line := range []string{"pay -o json", "coins -all -o json", "coins now --o=json", "coins -o json -all", "withdrawal get -o=json"} {
		assert.Equal(t, exitUsage, decode[failure](t, call(t.Context(), t, gw, words(line)...).err).ExitCode, line)
	}
	for _, line := range []string{"coins -all -- -o json", "coins -all -o", "coins -all -o table -o=json"} {
		assert.NotContains(t, call(t.Context(), t, gw, words(line)...).err, "{", line)
	}
}

// Arguments may stand before and between the flags; after "--" there are no flags.
func TestRun_order(t *testing.T) {
	gw := standIn(t)
	gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "1", WithdrawRequestID: "-o"})
	gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "1", WithdrawRequestID: "w"})
	for _, line := range []string{"withdrawal get w -o json -- -o", "withdrawal get -o json -- w -o", "withdrawal get -o=json w -- -o"} {
		got := call(t.Context(), t, gw, words(line)...)
		assert.Equal(t, exitDone, got.code, got.err)
		var all []withdrawalRecord
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &all))
		require.Len(t, all, 2)
		assert.Equal(t, "w-o", all[0].WithdrawRequestID+all[1].WithdrawRequestID)
	}
}

func TestRun_notConfigured(t *testing.T) {
	for _, c := range commands() {
		if c.local {
			continue
		}
		args := words(c.name)
		switch {
		case c.name == "quote":
			args = append(args, "10.50")
		case c.least > 0:
			args = append(args, "w-1")
		case c.name == "invoice create":
			args = order()
		}
		got := call(t.Context(), t, nil, args...)
		assert.Equal(t, exitUsage, got.code, c.name)
		assert.Equal(t, "no gateway is named: set GATEWAY_BASE_URL or give -url, and set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE for the key\n", got.err)
	}
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
		"-url":                    {url: "https://gateway.invalid", key: gw.APIKey, args: "-url " + gw.URL},
		"no key":                  {url: gw.URL, code: exitUsage, text: "Set GATEWAY_API_KEY or GATEWAY_API_KEY_FILE;"},
		"http":                    {url: "http://gateway.invalid", key: "k", code: exitUsage, text: "GATEWAY_BASE_URL: must begin with https://"},
		"http, -plain-http":       {url: "http://gateway.invalid", key: "k", args: "-plain-http -timeout 1ns", code: exitNotSent, text: "deadline"},
		"http with the variable":  {url: "http://gateway.invalid", key: "k", plain: "1", args: "-timeout 1ns", code: exitNotSent, text: "deadline"},
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

func invoiceFailure(err error) error { return &invoiceError{error: err} }

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"done":                       {nil, exitDone},
		"another error":              {errors.New("no"), exitFailed},
		"usage":                      {&usageError{text: "no"}, exitUsage},
		"an argument":                {&gateway.ArgumentError{}, exitUsage},
		"a refusal":                  {fmt.Errorf("coins: %w", &gateway.APIError{Operation: "coin_networks", StatusCode: 404}), exitRefused},
		"not understood":             {&gateway.DecodeError{Operation: "balance"}, exitFailed},
		"Ctrl-C":                     {fmt.Errorf("wait: %w", context.Canceled), exitInterrupted},
		"a deadline":                 {context.DeadlineExceeded, exitFailed},
		"an unknown outcome":         {invoiceFailure(&gateway.OutcomeUnknownError{Cause: context.Canceled}), exitUnknown},
		"another request":            {invoiceFailure(&gateway.OrderConflictError{}), exitUnknown},
		"an order that is in flight": {invoiceFailure(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseOrder, Err: context.Canceled}), exitUnknown},
		"no proxy, a read":           {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseProxy}, exitNotSent},
		"no response, a read":        {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseRead}, exitFailed},
		"no proof, an invoice":       {invoiceFailure(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseTLS}), exitUnknown},
		"a wait that took too long":  {&gateway.WaitError{Err: &gateway.TransportError{Operation: "withdrawal", Err: context.DeadlineExceeded}}, exitFailed},
		"a withdrawal that failed":   {&gateway.WithdrawalFailedError{}, exitWithdrawal},
	} {
		assert.Equal(t, test.want, exitCode(test.err), name)
		assert.NotEmpty(t, meaning(exitCode(test.err)), name)
	}
}

// Colors are for a terminal only, and text of the service cannot control it.
func TestConsole_terminal(t *testing.T) {
	gw := standIn(t)
	gw.SetBalance("B\x1b[2J\tC", "Bitcoin", "1")
	setenv(t, gw)
	for name, test := range map[string]struct {
		console console
		head    string
	}{
		"pipe":     {console{}, "COIN "},
		"terminal": {console{outTerminal: true}, "\x1b[1mCOIN "},
		"NO_COLOR": {console{outTerminal: true, withoutColor: true}, "COIN "},
	} {
		var stdout strings.Builder
		test.console.out, test.console.err = &stdout, &stdout
		assert.Zero(t, run(t.Context(), []string{"balance"}, test.console), name)
		assert.True(t, strings.HasPrefix(stdout.String(), test.head), name)
		assert.NotContains(t, stdout.String(), "\x1b[2J")
		assert.Contains(t, stdout.String(), "B�[2J�C")
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

func TestStandard(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	c := standard()
	assert.True(t, c.withoutColor)
	assert.Equal(t, os.Stdout, c.out)
	assert.Equal(t, os.Stderr, c.err)
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, file.Close()) }()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { assert.NoError(t, device.Close()) }()
	assert.False(t, isTerminal(file))
	assert.True(t, isTerminal(device), "a character device, as a terminal is one")
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A result that cannot be written is a failure; of an invoice, stderr has it.
func TestRun_unwritable(t *testing.T) {
	gw := standIn(t)
	setenv(t, gw)
	id := gw.Withdrawals()[1].WithdrawRequestID
	for _, format := range []string{formatTable, formatJSON} {
		for _, args := range [][]string{
			{"coins"},
			{"rates"},
			{"balance"},
			order("-order", "A-"+format),
			{"withdrawal", "get", id},
			{"withdrawal", "wait", id},
			{"withdrawal", "watch", id},
			{"probe"},
		} {
			var stderr strings.Builder
			code := run(t.Context(), append(args, "-o", format), console{out: fullDisk{}, err: &stderr})
			assert.Equal(t, exitFailed, code, args)
			assert.Contains(t, stderr.String(), "no space left on device", args)
			if args[0] == "invoice" {
				assert.Contains(t, stderr.String(), "exists, but its response could not be written")
				assert.Contains(t, stderr.String(), gw.InvoicesFor("A-" + format)[0].ID)
			}
		}
	}
}

// A name that is mistyped is a question, unless it could be the key.
func TestRun_mistyped(t *testing.T) {
	refuses(t, map[string]string{
		"invioce create":  "there is no command \"invioce\": did you mean invoice?\nSee: gateway help",
		"coins -coni BTC": "gateway coins: there is no flag -coni: did you mean -coin?",
		"help outcoms":    "there is no help of \"outcoms\": did you mean outcomes?\nSee: gateway help",
		"pay":             "there is no command \"pay\"\nSee: gateway help",
	})
}

// GATEWAY_OUTPUT is what -o is without it, and what an error is in.
func TestRun_output(t *testing.T) {
	gw := standIn(t)
	t.Setenv(envOutput, "json")
	assert.Equal(t, "BTC", decode[[]rateRecord](t, call(t.Context(), t, gw, "rates", "-coin", "BTC").stdout)[0].CoinSymbol)
	assert.Contains(t, call(t.Context(), t, gw, "rates", "-o", "table").stdout, "COIN")
	assert.Contains(t, decode[failure](t, call(t.Context(), t, gw, "rates", "now").err).Error, "is one argument too many")
	t.Setenv(envOutput, "xml")
	got := call(t.Context(), t, gw, "rates")
	assert.Equal(t, exitUsage, got.code)
	assert.Equal(t, "gateway rates: GATEWAY_OUTPUT is table or json\nSee: gateway help rates\n", got.err)
	assert.Zero(t, call(t.Context(), t, gw, "version").code, "where it does not count")
}

func TestVersion(t *testing.T) {
	assert.Regexp(t, `^gateway \S+, go1\.\S+, \w+/\w+\n$`, call(t.Context(), t, nil, "version").stdout)
}

// Completion has every command and flag.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := call(t.Context(), t, nil, "completion", shell)
		require.Zero(t, got.code, got.err)
		for _, c := range commands() {
			for _, word := range words(c.name) {
				assert.Contains(t, got.stdout, word)
			}
		}
		for _, name := range []string{"resubmit", "latency", "every"} {
			assert.Contains(t, got.stdout, name)
		}
	}
	refuses(t, map[string]string{"completion tcsh": "gateway completion: the shell is bash, zsh or fish"})
}
