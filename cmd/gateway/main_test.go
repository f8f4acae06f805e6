package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/mock"
)

// A mistake in the arguments ends with code 2, before anything is printed or sent.
func TestRun_usage(t *testing.T) {
	t.Setenv(envDB, "")
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, used.Close()) }()
	gw := standIn(t)
	for line, text := range map[string]string{
		"":                               "another command must follow\nRun 'gateway --help' for usage.\n",
		"pay":                            `unknown command "pay" for "gateway"`,
		"invoice":                        "another command must follow",
		"invoice creat":                  `unknown command "creat" for "gateway invoice"`,
		"coins --all":                    "unknown flag: --all\nRun 'gateway coins --help' for usage.\n",
		"coins -o xml":                   "it is one of table, json",
		"balance --coin=":                "--coin is empty: give it a value, or leave it out",
		"withdrawal":                     "accepts 1 arg(s), received 0",
		"withdrawal ..":                  "withdrawRequestId: must not be a dot segment",
		"invoice create --order A-17":    `required flag(s) "amount", "price" not set`,
		"invoice create --price ten":     "write it like 10.50",
		order + "--orders=":              "--orders is empty",
		"mock now":                       `unknown command "now" for "gateway mock"`,
		"mock --addr foo":                "the address of --addr cannot be used: ",
		"orders pending -o xml":          "it is one of table, json, csv",
		"orders pending":                 "no database is named: set GATEWAY_ORDERS_DB: postgres://",
		"orders prune --days 0":          "--days is a number from 1 to 36500",
		"orders prune --days 213505":     "--days is a number from 1 to 36500", // which overflows to one day
		"orders prune":                   `required flag(s) "days" not set`,
		"orders mark":                    `required flag(s) "from" not set`,
		"orders forget A-1":              `required flag(s) "attempt" not set`,
		"orders resolve --token T":       `required flag(s) "by" not set`,
		"orders resolve --by a --exists": "at least one of the flags in the group [from token] is required",
		"orders resolve --by a --token T --from f":               "none of the others can be",
		"orders resolve --by a --from f --exists":                "none of the others can be",
		"orders resolve --by a --token T":                        "give --exists or --absent",
		"orders resolve --by a --token T --exists --absent":      "give --exists or --absent",
		"orders resolve --by a --token T --absent=false":         "give --exists or --absent",
		"orders resolve --by a --token T --exists":               "the token is missing, or not whole",
		"orders resolve --by a --from absent.csv":                "the file: open absent.csv: no such file or directory",
		"mock --addr " + used.Addr().String():                    "address already in use",
		"orders resolve --by a --token T --exists --invoice f.j": "--invoice: open f.j: no such file",
	} {
		got := call(t, gw, line)
		assert.Equal(t, exitUsage, got.code, line)
		assert.Contains(t, got.err, text, line)
		assert.Empty(t, got.stdout, line)
	}
	assert.Contains(t, call(t, nil, "rates").err, "GATEWAY_BASE_URL: is required\nTo try the command without a gateway, start a stand-in: gateway mock prints the variables to set.\n")
	gw.APIKey = ""
	assert.Equal(t, exitUsage, call(t, gw, "balance").code)
	assert.Equal(t, call(t, gw, order).err, "This needs the API key.\nSet GATEWAY_API_KEY or GATEWAY_API_KEY_FILE; the key is never an argument.\n")
	assert.Empty(t, gw.Requests())
	assert.Zero(t, call(t, gw, "rates").code, "without a key")
}

// The exit code of each error; an invoice has its outcome.
func TestExitCode(t *testing.T) {
	t.Parallel()
	invoice := func(err error) error { return &invoiceError{err} }
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"done":                                {nil, exitDone},
		"another error":                       {errors.New("no"), exitFailed},
		"usage":                               {usage("no"), exitUsage},
		"an argument":                         {&gateway.ArgumentError{}, exitUsage},
		"a refusal":                           {fmt.Errorf("coins: %w", &gateway.APIError{Operation: "coin_networks", StatusCode: 404}), exitRefused},
		"a response that cannot be read":      {&gateway.DecodeError{Operation: "balance"}, exitFailed},
		"Ctrl-C":                              {fmt.Errorf("wait: %w", context.Canceled), exitInterrupted},
		"a deadline":                          {context.DeadlineExceeded, exitFailed},
		"no response to a read":               {&gateway.TransportError{Operation: "balance", Phase: gateway.PhaseRead}, exitNotSent},
		"a wait that took too long":           {&gateway.WaitError{Err: &gateway.TransportError{Operation: "withdrawal", Err: context.DeadlineExceeded}}, exitFailed},
		"a withdrawal that failed":            {&gateway.WaitError{Err: gateway.ErrWithdrawalFailed}, exitLeft},
		"pending orders":                      {errLeft, exitLeft},
		"a gateway that differs":              {errDiffers, exitDiffers},
		"an unknown outcome":                  {invoice(&gateway.OutcomeUnknownError{Cause: context.Canceled}), exitUnknown},
		"another error of an invoice":         {invoice(errors.New("no")), exitUnknown},
		"an invoice for another request":      {invoice(&gateway.OrderConflictError{}), exitConflict},
		"an order that is in flight":          {invoice(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseOrder, Err: context.Canceled}), exitUnknown},
		"an invoice with a wrong argument":    {invoice(&gateway.ArgumentError{}), exitUsage},
		"an invoice that is still being sent": {invoice(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseWait, Err: gateway.ErrStillSending}), exitUnknown},
		"no proof that an invoice is unsent":  {invoice(&gateway.TransportError{Operation: "create_invoice", Phase: gateway.PhaseTLS}), exitUnknown},
	} {
		assert.Equal(t, test.want, exitCode(test.err), name)
	}
}

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

	stub := mock.New()
	defer stub.Close()
	server := httptest.NewServer(stub)
	defer server.Close()
	script = strings.ReplaceAll(script, "http://127.0.0.1:8090", server.URL)
	run := exec.CommandContext(t.Context(), "bash", "-c", script)
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), asProcess+"=1", "PATH="+commandDir(t)+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	run.Stderr = &stderr
	printed, err := run.Output()
	assert.NoError(t, err, stderr.String())
	assert.Equal(t, want, strings.Fields(string(printed)), stderr.String())
}
