package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/gatewaytest"
)

func order(more ...string) []string {
	return append([]string{"invoice", "create", "--order", "A-17", "--price", "10.50", "--amount", "10.490000"}, more...)
}

func TestInvoice_succeeded(t *testing.T) {
	gw := standIn(t)
	out := call(t.Context(), t, gw, order("--currency", "usd", "--coin", "USDT", "--network", "Tron")...)
	require.Zero(t, out.code, out.err)
	assert.Contains(t, out.stdout, "The invoice for order A-17 exists. Response:\n{")
	require.Len(t, gw.Invoices(), 1)
	got := gw.Invoices()[0]
	assert.Contains(t, out.stdout, got.ID)
	got.ID, got.CreatedAt = "", time.Time{}
	assert.Equal(t, gatewaytest.Invoice{
		OrderID: "A-17", Price: "10.50", Amount: "10.490000", PriceQuoted: true, AmountQuoted: true,
		BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}, got)
}

func TestInvoice_json(t *testing.T) {
	gw := standIn(t)
	got := decode[invoiceRecord](t, call(t.Context(), t, gw, order("-o", "json")...).stdout)
	assert.Equal(t, "A-17", got.OrderID)
	assert.Contains(t, string(got.Response), gw.Invoices()[0].ID)
}

// The output has about the size of the response, whatever its whitespace and depth.
func TestInvoice_response(t *testing.T) {
	result := "{\n\t\"a\": [" + strings.Repeat("[", 5000) + "1" + strings.Repeat(",1", 5000) + strings.Repeat("]", 5000) + "]\n}"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":`+result+`,"meta":{}}`)
	}))
	defer server.Close()
	for _, format := range []string{cli.FormatTable, cli.FormatJSON} {
		got := call(t.Context(), t, &gatewaytest.Server{URL: server.URL, APIKey: "key-of-the-test"}, order("-o", format)...)
		assert.Zero(t, got.code, got.err)
		assert.Contains(t, got.stdout, `{"a":[[[`)
		assert.Less(t, len(got.stdout), len(result)+200)
	}
}

// An error as JSON has the outcome too.
func TestInvoice_jsonErrors(t *testing.T) {
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(429, "slowly"))
	got := call(t.Context(), t, gw, order("-o", "json")...)
	unknown := decode[failure](t, got.err)
	assert.Contains(t, unknown.Error, "gateway: create_invoice: outcome unknown")
	unknown.Error = ""
	assert.Equal(t, failure{ExitCode: exitUnknown, Meaning: "outcome unknown", Outcome: "unknown"}, unknown)
	assert.Empty(t, got.stdout)
	got = call(t.Context(), t, gw, order("-o", "json")...)
	assert.Equal(t, failure{
		Error: `the service refused the invoice: gateway: create_invoice: 429: "slowly"`, ExitCode: exitRefused,
		Meaning: "refused by the service", Outcome: "rejected", Status: 429, SafeToRetry: true,
	}, decode[failure](t, got.err))
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultPage(530))
	assert.Equal(t, 530, decode[failure](t, call(t.Context(), t, gw, order("-o", "json")...).err).Status)
	got = call(t.Context(), t, gw, "invoice", "create", "-o", "json", "--price", "ten")
	assert.Equal(t, failure{
		Error: "gateway invoice create: --price: write it like 10.50", ExitCode: cli.ExitUsage, Meaning: "usage",
	}, decode[failure](t, got.err))
}

func TestInvoice_usage(t *testing.T) {
	refuses(t, map[string]string{
		"invoice create --price 1 --amount 1":                             "gateway invoice create: --order is missing\nSee: gateway invoice create --help\n",
		"invoice create --order A-17 --amount 1":                          "--price is missing, or not above zero",
		"invoice create --order A-17 --price 1 --amount -5":               "--amount is missing, or not above zero",
		"invoice create --price ten":                                      "--price: write it like 10.50",
		"invoice create --amount 1,5":                                     "--amount: write it like 10.50",
		"invoice create --order A-17 --price 1 --amount 1 now":            "there is one argument too many",
		"invoice create --order A-17 --price 1 --amount 1 --resubmit":     "--resubmit needs --orders",
		"invoice create --order A-17 --price 1 --amount 1 --currency a\b": "nothing was sent: gateway: create_invoice: baseCurrency: must not contain",
	})
}

// With --orders an order is created once, whatever becomes of the processes.
func TestInvoice_orders(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "orders.db")
	created := func(more ...string) outcome {
		return call(t.Context(), t, gw, order(append(more, "--orders", file)...)...)
	}

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "no"))
	assert.Equal(t, exitRefused, created().code, "a refusal resolves the order")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultPage(502))
	assert.Equal(t, exitUnknown, created().code)
	sent := gw.Requests()
	again := created()
	assert.Equal(t, exitUnknown, again.code)
	first := sent[len(sent)-1].Header.Get("X-Request-Id")
	assert.Regexp(t, `outcome unknown: an invoice of 20\d\d-\S+Z for order "A-17" may exist, .*502: .*; X-Request-Id `+first+
		"\nLook the order up. If it has no invoice, run this again with --resubmit.\n$", again.err)
	assert.Len(t, gw.Requests(), len(sent), "nothing is sent")

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "no"))
	assert.Equal(t, exitUnknown, created("--resubmit").code, "a refusal proves nothing about the earlier one")
	assert.Contains(t, created().err, "X-Request-Id "+first)
	new := created("--resubmit")
	assert.Zero(t, new.code, new.err)
	for _, more := range [][]string{nil, {"--resubmit"}, {"--price", "10.5"}} {
		assert.Equal(t, outcome{stdout: new.stdout, err: "This invoice exists since an earlier run. Nothing was sent.\n"}, created(more...))
	}
	assert.Len(t, gw.Invoices(), 1)
	assert.Zero(t, created("--order", "A-18").code)
}

// An order that has an invoice for another request gets no other one, and the message has it.
func TestInvoice_conflict(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "orders.db")
	require.Zero(t, call(t.Context(), t, gw, order("--orders", file)...).code)
	got := call(t.Context(), t, gw, order("--orders", file, "--price", "11")...)
	assert.Equal(t, exitConflict, got.code)
	assert.Contains(t, got.err, `order "A-17" has an invoice for another request, of price 10.50 and amount 10.490000: `)
	assert.Contains(t, got.err, gw.Invoices()[0].ID)
	assert.Contains(t, got.err, "Use that invoice, or another --order.\n")
	failed := decode[failure](t, call(t.Context(), t, gw, order("--orders", file, "--coin", "BTC", "-o", "json")...).err)
	assert.Equal(t, failure{ExitCode: exitConflict, Meaning: "another request", Outcome: "conflict"}, failure{"", failed.ExitCode, failed.Meaning, failed.Outcome, failed.Status, failed.SafeToRetry})
	assert.Len(t, gw.Invoices(), 1)
}

// The bytes of a response are those of the gateway in every run, and no file has the key.
func TestInvoice_replayed(t *testing.T) {
	const result = "{\n\t\"a\" : \"<\\u00e9\u2028é&\", \"b\": 1.50 , \"c\": \"key-of-the-test\"}"
	large := `{"a":"` + strings.Repeat("x", 70_000) + `"}`
	for _, test := range []struct{ result, replayed string }{{result, `"response":{"a":"`}, {large, `"response":null`}} {
		sent := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":`+test.result+`,"meta":{}}`)
		}))
		gw := &gatewaytest.Server{URL: server.URL, APIKey: "key-of-the-test"}
		file := filepath.Join(t.TempDir(), "orders.db")
		first := call(t.Context(), t, gw, order("--orders", file, "-o", "json")...)
		again := call(t.Context(), t, gw, order("--orders", file, "-o", "json")...)
		server.Close()
		require.Zero(t, first.code, first.err)
		require.Zero(t, again.code, again.err)
		assert.Empty(t, again.err)
		assert.Contains(t, again.stdout, test.replayed)
		if test.result == result {
			assert.Equal(t, decode[invoiceRecord](t, first.stdout).Response, decode[invoiceRecord](t, again.stdout).Response)
		} else {
			assert.Contains(t, call(t.Context(), t, gw, order("--orders", file)...).stdout, "Its response was not kept.")
		}
		assert.True(t, decode[invoiceRecord](t, again.stdout).Replayed)
		assert.Equal(t, 1, sent)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(content), gw.APIKey)
	}
}

// An outcome that the file cannot keep is told.
func TestInvoice_notKept(t *testing.T) {
	gw := standIn(t)
	invoice := &gateway.Invoice{OrderID: "A-17", Raw: []byte("{}")}
	var stdout, stderr strings.Builder
	s := &session{Console: cli.Console{Out: &stdout, Err: &stderr}, format: cli.FormatTable}
	full := errors.New("no space left on device")
	require.NoError(t, s.printInvoice(invoice, note(invoice, full)))
	assert.Equal(t, "The next run will not know that this invoice exists: the file of --orders could not keep it: no space left on device\n", stderr.String())
	assert.ErrorContains(t, &invoiceError{&gateway.OutcomeUnknownError{}, full}, "no space left on device")
	assert.Empty(t, gw.Requests())
}

// orderA17 is what the guard is asked about order().
func orderA17() gateway.Order {
	return gateway.Order{RequestID: "r-1", Request: gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.490000"),
	}}
}

// While a process sends an order no other one does. Another one waits for it, and prints the same invoice.
func TestInvoice_inFlight(t *testing.T) {
	gw := standIn(t)
	setenv(t, gw)
	path := filepath.Join(t.TempDir(), "orders.db")
	first := &orderFile{path: path}
	o := orderA17()
	lease, err := first.Begin(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, gateway.OrderFree, lease.State)
	for _, more := range [][]string{{"--price", "11"}, {"--price", "11", "--resubmit"}} {
		got := call(t.Context(), t, gw, order(append(more, "--orders", path)...)...)
		assert.Equal(t, exitUnknown, got.code, got.err)
		assert.Contains(t, got.err, "an invoice for this order is being created")
		assert.Contains(t, got.err, "This run has sent nothing. Run it again")
		assert.Equal(t, len(more) == 3, strings.Contains(got.err, "without --resubmit"))
	}
	waited := make(chan outcome)
	go func() {
		var stdout, stderr strings.Builder
		code := run(t.Context(), order("--orders", path), cli.Console{Out: &stdout, Err: &stderr})
		waited <- outcome{code, stdout.String(), stderr.String()}
	}()
	_, err = first.End(t.Context(), o, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: o.Request, Invoice: []byte(`{"id": 7}`)})
	require.NoError(t, err)
	require.NoError(t, first.close())
	got := <-waited
	assert.Zero(t, got.code, got.err)
	assert.Contains(t, got.stdout, `{"id":7}`)
	assert.Empty(t, gw.Requests())
}

// Without the file nothing is sent.
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
		assert.Contains(t, got.err, `gateway: create_invoice: order: order "A-17": the order guard: `)
		assert.Contains(t, got.err, reason)
		assert.Contains(t, got.err, "This run has sent nothing.")
	}
	assert.Empty(t, gw.Requests())
}

// An order of another gateway is refused, with both named, and nobody else can read the file.
func TestInvoice_otherGateway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.db")
	first, second := standIn(t), standIn(t)
	require.Zero(t, call(t.Context(), t, first, order("--orders", path)...).code)
	got := call(t.Context(), t, second, order("--orders", path)...)
	assert.Equal(t, exitUnknown, got.code, got.err)
	for _, text := range []string{first.URL, second.URL, "gateway-orders gateway"} {
		assert.Contains(t, got.err, text)
	}
	assert.Empty(t, second.Requests())
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
