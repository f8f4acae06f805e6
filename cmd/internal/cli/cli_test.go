package cli_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// tree is a program with a command of each kind.
func tree(done *[]string) *cobra.Command {
	root := &cobra.Command{Use: "shop", Long: "shop sells."}
	leaf := func(use string, least, most int) *cobra.Command {
		c := &cobra.Command{Use: use, Short: "Does " + use, Args: cli.Args(least, most, "the ORDER"), RunE: func(_ *cobra.Command, args []string) error {
			*done = append(*done, args...)
			return nil
		}}
		c.Flags().String("order", "", "an `ID`")
		c.Flags().Bool("verbose", false, "say more")
		c.Flags().Duration("wait", time.Second, "how `long`")
		var format string
		cli.OutputFlag(c, &format, "table", cli.FormatTable, cli.FormatJSON)
		return c
	}
	group := &cobra.Command{Use: "invoice", Short: "Invoices"}
	group.AddCommand(leaf("create", 0, 1))
	root.AddCommand(leaf("sell", 1, 2), group, cli.Exits("exits", "The exit codes:", "", []cli.Exit{{Code: 1, Meaning: "failed", Text: "It\nfailed."}}))
	return root
}

// What is printed for a command line: stdout, or "!" and the error.
func TestExecute(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"sell A-1":                         "",
		"sell --order -x A-1 --verbose":    "",
		"sell --verbose=false -- -order":   "",
		"--wait 1s sell A-1":               "",
		"":                                 "!shop sells.\n\nUsage:",
		"sel A-1":                          "!shop: there is no such command: did you mean sell?",
		"sell":                             "!shop sell: the ORDER is missing",
		"sell a b c":                       "!shop sell: there is one argument too many",
		"invoice":                          "!shop invoice is followed by create",
		"invoice craete":                   "!shop invoice is followed by create: did you mean create?",
		"sell A-1 -order x":                "!shop: flags begin with two hyphens: write --order",
		"sell A-1 -order=x":                "!shop: flags begin with two hyphens: write --order",
		"sell A-1 -help":                   "!shop: flags begin with two hyphens: write --help",
		"sell A-1 --ordre x":               "!shop sell: argument 3 is no flag: did you mean --order?",
		"sell A-1 -ordre x":                "!shop sell: --output: it is table or json here",
		"sell A-1 -x":                      "!shop sell: argument 3 is no flag",
		"sell A-1 --order=":                "!shop sell: --order is empty: give it a value, or leave it out",
		"sell A-1 --order":                 "!shop sell: --order needs a value",
		"sell A-1 --wait soon":             "!shop sell: --wait: it is a duration such as 90s or 5m",
		"sell A-1 --verbose=maybe":         "!shop sell: --verbose: it stands alone, or is followed by =true or =false",
		"sell A-1 --=":                     "!shop sell: a flag begins with more than two hyphens, or has no name",
		"help sell":                        "Usage:\n  shop sell [flags]",
		"help exits":                       "The exit codes:\n\n   1  failed\n      It\n      failed.\n",
		"help invoice create":              "Usage:\n  shop invoice create [flags]",
		"help invoice craete":              "!shop invoice is followed by create: did you mean create?",
		"help sell A-1":                    "!shop help: there is one argument too many",
		"completion":                       "!shop completion is followed by bash, fish, powershell or zsh",
		"completion bash now":              "!shop completion bash: there is one argument too many",
		"--version":                        "shop version ",
		cobra.ShellCompRequestCmd + " sel": "sell\tDoes sell\n:4\n",
	} {
		var stdout, stderr strings.Builder
		var done []string
		err := cli.Execute(context.Background(), tree(&done), strings.Fields(line), cli.Console{Out: &stdout, Err: &stderr})
		got := stdout.String()
		if err != nil {
			got = "!" + err.Error()
			assert.Empty(t, stdout.String(), line)
			assert.ErrorAs(t, err, new(*cli.UsageError), line)
		}
		assert.Contains(t, got, want, line)
		assert.Equal(t, want == "", len(done) > 0, line)
	}
}

// The format of an error is that which is asked for, wherever something is wrong.
func TestAskedFormat(t *testing.T) {
	for line, want := range map[string]string{
		"sell -o json": "json", "sell --output=json --bogus": "json", "sell --bogus -o=json": "json", "sell --order": "", "sell -- -o json": "", "-h -ojson": "json",
		"sell -price 3 -o json": "json", "-o json sell -order 3": "json", "-o json sell -o table": "table", "sell -o": "",
	} {
		assert.Equal(t, want, cli.AskedFormat(strings.Fields(line), ""), line)
	}
	t.Setenv("SHOP_OUTPUT", "json")
	assert.Equal(t, "json", cli.AskedFormat(nil, "SHOP_OUTPUT"))
	assert.Equal(t, "table", cli.AskedFormat([]string{"-o", "table"}, "SHOP_OUTPUT"))
}

// Why something cannot be used is told without its name.
func TestReason(t *testing.T) {
	t.Parallel()
	_, absent := os.Open("the-name")
	lookup := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "the-name"}}
	for want, err := range map[string]error{
		fs.ErrNotExist.Error():    &fs.PathError{Op: "open", Path: "the-name", Err: fs.ErrNotExist},
		"no such host":            &url.Error{Op: "Get", URL: "http://the-name", Err: lookup},
		"missing port in address": &net.AddrError{Err: "missing port in address", Addr: "the-name"},
		"connection refused":      &net.OpError{Op: "dial", Addr: &net.UnixAddr{Name: "the-name"}, Err: errors.New("connection refused")},
		"it is another":           errors.New("it is another"),
	} {
		assert.EqualError(t, cli.Reason(err), want)
	}
	assert.NotContains(t, cli.Reason(absent).Error(), "the-name")
}

// Columns are aligned, their heads are bold on a terminal only, and only the last one is of any width.
func TestConsole_table(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 600)
	for _, test := range []struct {
		console cli.Console
		head    string
	}{
		{cli.Console{}, "A   B\n"}, {cli.Console{OutTerminal: true}, "\x1b[1mA   B\x1b[0m\n"}, {cli.Console{OutTerminal: true, WithoutColor: true}, "A   B\n"},
	} {
		var out strings.Builder
		test.console.Out = &out
		assert.NoError(t, test.console.WriteTable([]string{"A", "B"}, [][]string{{"\x1b!", long}}))
		assert.Equal(t, test.head+"�!  "+long+"\n", out.String())
	}
	var out strings.Builder
	assert.NoError(t, cli.Console{Out: &out}.WriteRows([][]string{{long, "1"}}))
	assert.Equal(t, long[:2*511]+"…  1\n", out.String())
}

func TestStandard(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	c := cli.Standard()
	assert.True(t, c.WithoutColor)
	assert.Equal(t, os.Stdin, c.In)
	assert.Equal(t, os.Stdout, c.Out)
	assert.Equal(t, os.Stderr, c.Err)
}
