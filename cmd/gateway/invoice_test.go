package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// serve returns a gateway that answers with these results in the envelope.
func serve(t *testing.T, results map[string]string) *gatewaytest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":`+results[r.URL.Path]+`,"meta":{}}`)
	}))
	t.Cleanup(server.Close)
	return &gatewaytest.Server{URL: server.URL, APIKey: "key-of-the-test"}
}

// The request has the flags, and the exit code is the outcome.
func TestInvoice(t *testing.T) {
	for name, test := range map[string]struct {
		fault  gatewaytest.Fault
		args   []string
		code   int
		stdout string
		err    string
	}{
		"created":         {args: words("--currency usd --coin USDT --network Tron"), stdout: "The invoice for order A-17 exists. Response:\n{"},
		"created as JSON": {args: words("-o json"), stdout: `{"orderId":"A-17","response":{`},
		"refused":         {gatewaytest.FaultRefuse(422, "no"), nil, exitRefused, "", `gateway: create_invoice: 422: "no"`},
		"refused for now": {gatewaytest.FaultRefuse(429, "slowly"), nil, exitRefused, "", "Too many requests. Run it again later.\n"},
		"lost":            {gatewaytest.FaultCommitThenDrop(), nil, exitUnknown, "", "The invoice may exist. Look the order up before you run this again; gateway orders resolve records"},
		"a page":          {gatewaytest.FaultPage(530), words("-o json"), exitUnknown, "", `"outcome": "unknown",` + "\n" + `  "status": 530,`},
		"no price":        {args: words("--price 0"), code: exitUsage, err: "price: "},
		"a wrong text":    {args: []string{"--currency", "a\b"}, code: exitUsage, err: "baseCurrency: must not contain"},
		"no time":         {args: words("--timeout 1ns"), code: exitNotSent, err: "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			if test.code != 0 && test.args == nil || name == "a page" {
				gw.InjectFault(gatewaytest.OpCreateInvoice, 1, test.fault)
			}
			got := call(t.Context(), t, gw, order(test.args...)...)
			assert.Equal(t, test.code, got.code, got.err)
			assert.Contains(t, got.err, test.err)
			assert.True(t, strings.HasPrefix(got.stdout, test.stdout), got.stdout)
			assert.Equal(t, test.stdout == "", got.stdout == "")
			if test.code == 0 {
				require.Len(t, gw.Invoices(), 1)
				made := gw.Invoices()[0]
				assert.Equal(t, "A-17 10.50 10.490000", made.OrderID+" "+made.Price+" "+made.Amount)
				assert.Contains(t, got.stdout, made.ID)
			}
		})
	}
}

// The output is as large as the response, however it is indented and nested.
func TestInvoice_response(t *testing.T) {
	result := "{\n\t\"a\": [" + strings.Repeat("[", 5000) + "1" + strings.Repeat(",1", 5000) + strings.Repeat("]", 5000) + "]\n}"
	gw := serve(t, map[string]string{"/api/invoice/create": result})
	for _, format := range []string{formatTable, formatJSON} {
		got := call(t.Context(), t, gw, order("-o", format)...)
		assert.Zero(t, got.code, got.err)
		assert.Contains(t, got.stdout, `{"a":[[[`)
		assert.Less(t, len(got.stdout), len(result)+200)
	}
}

// With --orders an order is created once, and is unknown until a person resolves it.
func TestInvoice_orders(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "orders.db")
	t.Setenv(envDB, "sqlite:"+file)
	create := func(more ...string) outcome {
		return call(t.Context(), t, gw, order(append([]string{"--orders", file}, more...)...)...)
	}
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	first := create()
	assert.Equal(t, exitUnknown, first.code)
	assert.Contains(t, first.err, "This is a new, empty order file")
	again := create()
	assert.Equal(t, exitUnknown, again.code)
	assert.Contains(t, again.err, "gateway orders resolve records what you found")
	assert.NotContains(t, again.err, "new, empty")
	assert.Len(t, gw.Requests(), 1, "nothing is sent")

	assert.Equal(t, exitLeft, call(t.Context(), t, nil, "orders", "pending").code)
	s := &session{}
	require.NoError(t, s.openDatabase("sqlite:"+file, false))
	_, err := s.db.Exec("UPDATE gateway_orders SET lease_until = begun_at - 1000000") // as if time had passed
	require.NoError(t, err)
	s.closeDatabase()
	listed := decode[[]orderRecord](t, call(t.Context(), t, nil, words("orders pending -o json")...).stdout)
	resolved := call(t.Context(), t, nil, words("orders resolve --absent --by anna --margin 0s --token "+listed[0].Token)...)
	require.Equal(t, exitDone, resolved.code, resolved.err)
	made := create("-o", "json")
	require.Equal(t, exitDone, made.code, made.err)
	replayed := create("-o", "json")
	assert.Equal(t, "This invoice exists since an earlier run. Nothing was sent.\n", replayed.err)
	assert.Equal(t, decode[invoiceRecord](t, made.stdout).Response, decode[invoiceRecord](t, replayed.stdout).Response)
	assert.True(t, decode[invoiceRecord](t, replayed.stdout).Replayed)

	conflict := create("--price", "11")
	assert.Equal(t, exitConflict, conflict.code)
	assert.Contains(t, conflict.err, "Its invoice: {")
	assert.Contains(t, conflict.err, "Use that invoice, or another --order.\n")
	assert.JSONEq(t, string(decode[invoiceRecord](t, made.stdout).Response), string(decode[failure](t, create("--price", "11", "-o", "json").err).Invoice))
	assert.Len(t, gw.Requests(), 2)

	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(content), gw.APIKey)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody else can read it")
}

// A file that cannot be used says nothing about the order, and nothing is sent.
func TestInvoice_unusableOrders(t *testing.T) {
	gw := standIn(t)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600))
	for path, reason := range map[string]string{
		t.TempDir():                           "is not a regular file",
		os.DevNull:                            "is not a regular file",
		filepath.Join(t.TempDir(), "no", "o"): "the file of the database: ",
		text:                                  "is not a database",
	} {
		got := call(t.Context(), t, gw, order("--orders", path)...)
		assert.Equal(t, exitUnknown, got.code, got.err)
		assert.Contains(t, got.err, "the file of --orders cannot be used, and this run has sent nothing: ")
		assert.Contains(t, got.err, reason)
	}
	assert.Empty(t, gw.Requests())
}

// An order of another gateway is refused, and nothing is sent.
func TestInvoice_otherGateway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.db")
	first, second := standIn(t), standIn(t)
	require.Zero(t, call(t.Context(), t, first, order("--orders", path)...).code)
	got := call(t.Context(), t, second, order("--orders", path)...)
	assert.Equal(t, exitUnknown, got.code, got.err)
	assert.Contains(t, got.err, first.URL)
	assert.Empty(t, second.Requests())
}

// A full or closed stdout does not change the exit code of an invoice, which stderr has then.
func TestInvoice_stdout(t *testing.T) {
	gw := standIn(t)
	setenv(t, gw)
	t.Setenv(asProcess, "1")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	read, closed, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	for name, stdout := range map[string]*os.File{"full": full, "closed": closed} {
		for _, format := range []string{formatTable, formatJSON} {
			create := exec.Command(os.Args[0], order("--order", name+format, "-o", format)...)
			var stderr strings.Builder
			create.Stdout, create.Stderr = stdout, &stderr
			assert.NoError(t, create.Run(), stderr.String())
			assert.Contains(t, stderr.String(), "The invoice exists, but stdout failed: ")
			assert.Contains(t, stderr.String(), gw.InvoicesFor(name + format)[0].ID)
		}
		require.NoError(t, stdout.Close())
	}
}
