package main

import (
	"errors"
	"io"
	"io/fs"
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
	directory := filepath.Join(t.TempDir(), "new", "orders")
	created := func(more ...string) outcome {
		return call(t.Context(), t, gw, order(append(more, "--orders", directory)...)...)
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
	directory := t.TempDir()
	require.Zero(t, call(t.Context(), t, gw, order("--orders", directory)...).code)
	got := call(t.Context(), t, gw, order("--orders", directory, "--price", "11")...)
	assert.Equal(t, exitConflict, got.code)
	assert.Contains(t, got.err, `order "A-17" has an invoice for another request, of price 10.5 and amount 10.49: `)
	assert.Contains(t, got.err, gw.Invoices()[0].ID)
	assert.Contains(t, got.err, "Use that invoice, or another --order.\n")
	failed := decode[failure](t, call(t.Context(), t, gw, order("--orders", directory, "--coin", "BTC", "-o", "json")...).err)
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
		directory := t.TempDir()
		first := call(t.Context(), t, gw, order("--orders", directory, "-o", "json")...)
		again := call(t.Context(), t, gw, order("--orders", directory, "-o", "json")...)
		server.Close()
		require.Zero(t, first.code, first.err)
		require.Zero(t, again.code, again.err)
		assert.Empty(t, again.err)
		assert.Contains(t, again.stdout, test.replayed)
		if test.result == result {
			assert.Equal(t, decode[invoiceRecord](t, first.stdout).Response, decode[invoiceRecord](t, again.stdout).Response)
		} else {
			assert.Contains(t, call(t.Context(), t, gw, order("--orders", directory)...).stdout, "Its response was not kept.")
		}
		assert.True(t, decode[invoiceRecord](t, again.stdout).Replayed)
		assert.Equal(t, 1, sent)
		content, err := os.ReadFile(newOrderDirectory(directory).name(orderA17()))
		require.NoError(t, err)
		assert.NotContains(t, string(content), gw.APIKey)
	}
}

// An outcome that the directory cannot keep is told.
func TestInvoice_notKept(t *testing.T) {
	gw := standIn(t)
	invoice := &gateway.Invoice{OrderID: "A-17", Raw: []byte("{}")}
	var stdout, stderr strings.Builder
	s := &session{Console: cli.Console{Out: &stdout, Err: &stderr}, format: cli.FormatTable}
	full := errors.New("no space left on device")
	require.NoError(t, s.printInvoice(invoice, note(invoice, full)))
	assert.Equal(t, "The next run will not know that this invoice exists: the directory of --orders could not keep it: no space left on device\n", stderr.String())
	assert.ErrorContains(t, &invoiceError{&gateway.OutcomeUnknownError{}, full}, "no space left on device")
	assert.Empty(t, gw.Requests())
}

// orderA17 is what the guard is asked about order().
func orderA17() gateway.Order {
	return gateway.Order{RequestID: "r-1", Request: gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.490000"),
	}}
}

func resubmitted(o gateway.Order) gateway.Order {
	o.Resubmit = true
	return o
}

// A process that is killed leaves what it has written to the end: nothing before the order
// was sent, an unknown outcome until that is recorded, and then the invoice, byte for byte.
func TestOrderDirectory_killed(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	o := orderA17()
	created := gateway.OrderRecord{
		Outcome: gateway.OutcomeSucceeded, Request: o.Request, RequestID: "r-1", SentAt: time.Now().UTC(), StatusCode: 201,
		Invoice: []byte("{ \"id\":\n\"<é>\" }"),
	}
	d := newOrderDirectory(path)
	require.Equal(t, gateway.OrderFree, begun(t, d, o).State)
	name := d.name(o)
	sending, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, created, ended(t, d, created))
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(whole), string(sending)))

	for size := range len(whole) + 1 {
		require.NoError(t, os.WriteFile(name, whole[:size], 0o600))
		d := newOrderDirectory(path)
		lease := begun(t, d, o)
		switch {
		case size < len(sending):
			require.Equal(t, gateway.Lease{}, lease)
			require.Equal(t, gateway.OutcomeNotSent, ended(t, d, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent}).Outcome)
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Empty(t, content)
		case size < len(whole):
			require.Equal(t, gateway.OrderUnknown, lease.State)
			require.Equal(t, "r-1", lease.Known.RequestID)
			require.False(t, lease.Known.SentAt.IsZero())
			resubmits(t, path, whole[:len(sending)])
		default:
			require.Equal(t, gateway.OrderCreated, lease.State)
			require.True(t, created.Request.Price.Equal(lease.Known.Request.Price))
			lease.Known.Request = created.Request
			require.Equal(t, created, *lease.Known)
		}
	}
}

// begun asks for the lease of an order, which does not fail.
func begun(t *testing.T, d *orderDirectory, o gateway.Order) gateway.Lease {
	t.Helper()
	lease, err := d.Begin(t.Context(), o)
	require.NoError(t, err)
	return lease
}

// ended ends a call that has the lease.
func ended(t *testing.T, d *orderDirectory, r gateway.OrderRecord) gateway.OrderRecord {
	t.Helper()
	has, err := d.End(t.Context(), orderA17(), r)
	require.NoError(t, err)
	return has
}

// resubmits begins an order of unknown outcome again, which is refused, and asserts that
// its file has what it had before.
func resubmits(t *testing.T, path string, before []byte) {
	t.Helper()
	d := newOrderDirectory(path)
	again := resubmitted(orderA17())
	again.RequestID = "r-2"
	require.Equal(t, "r-1", begun(t, d, again).Known.RequestID)
	sending, _, err := readOrder(d.file)
	require.NoError(t, err)
	require.Equal(t, "r-2", sending.RequestID)
	has := ended(t, d, gateway.OrderRecord{Outcome: gateway.OutcomeRejected})
	require.Equal(t, gateway.OutcomeUnknown, has.Outcome, "that proves nothing about the earlier one")
	require.Equal(t, "r-1", has.RequestID)
	content, err := os.ReadFile(d.name(again))
	require.NoError(t, err)
	require.Equal(t, string(before), string(content))
}

// The outcome of an order whose file is damaged is unknown; what is no file of an order ends
// nothing, and the file of many calls is not read from its beginning.
func TestOrderDirectory_content(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := newOrderDirectory(path)
	o := orderA17()
	write := func(content string) { require.NoError(t, os.WriteFile(d.name(o), []byte(content), 0o600)) }
	line := `{"outcome":"succeeded","request":{"orderId":"A-17","price":"1e999","amount":"1"},"invoice":"{}"}` + "\n"
	for content, want := range map[string]gateway.OrderState{
		"": gateway.OrderFree, "?": gateway.OrderFree, "?\n": gateway.OrderUnknown, line: gateway.OrderCreated, line + "{}\n": gateway.OrderUnknown,
		strings.Repeat("?", 2*maxLine) + "\n" + line: gateway.OrderCreated,
	} {
		write(content)
		d := newOrderDirectory(path)
		lease := begun(t, d, o)
		require.Equal(t, want, lease.State, "%.100q", content)
		if want == gateway.OrderFree {
			require.NoError(t, d.file.Close())
		} else {
			require.Equal(t, gateway.InvoiceRequest{}, lease.Known.Request)
		}
	}
	write(strings.Repeat("?", 2*maxLine+1))
	_, err := d.Begin(t.Context(), resubmitted(o))
	require.ErrorContains(t, err, "is not the file of an order")
}

// While a process sends an order no other one does, whatever an earlier one left. Another one
// waits for it, and prints the same invoice.
func TestOrderDirectory_inFlight(t *testing.T) {
	gw := standIn(t)
	setenv(t, gw)
	for _, earlier := range []bool{false, true} {
		path := t.TempDir()
		o := orderA17()
		first := newOrderDirectory(path)
		begun(t, first, o)
		if earlier {
			ended(t, first, gateway.OrderRecord{Request: o.Request})
			begun(t, first, resubmitted(o))
		}
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
		ended(t, first, gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded, Request: o.Request, Invoice: []byte(`{"id": 7}`)})
		got := <-waited
		assert.Zero(t, got.code, got.err)
		assert.Contains(t, got.stdout, `{"id":7}`)
		assert.Empty(t, gw.Requests())
	}
}

// The file of an order and the new directories on its way are on the disk before it is sent,
// also if an earlier run has left them; if they cannot be, nothing is sent.
func TestOrderDirectory_synced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	path := filepath.Join(parent, "new", "orders")
	var synced []string
	begin := func(o gateway.Order, failure error) (gateway.OrderState, error) {
		synced = nil
		d := newOrderDirectory(path + string(filepath.Separator))
		d.sync = func(directory string) error {
			synced = append(synced, directory)
			if directory != path {
				return syncDirectory(directory)
			}
			assert.FileExists(t, d.name(o))
			return failure
		}
		lease, err := d.Begin(t.Context(), o)
		_ = d.file.Close()
		return lease.State, err
	}
	full := errors.New("no space left on device")
	_, err := begin(orderA17(), full)
	require.ErrorIs(t, err, full)
	assert.Equal(t, []string{filepath.Dir(parent), parent, filepath.Dir(path), filepath.Dir(path), path}, synced)
	state, err := begin(orderA17(), nil)
	require.NoError(t, err)
	assert.Equal(t, gateway.OrderFree, state, "nothing was sent")
	assert.Equal(t, []string{filepath.Dir(path), path}, synced)
	state, err = begin(orderA17(), full)
	require.NoError(t, err)
	assert.Equal(t, gateway.OrderUnknown, state)
	assert.Empty(t, synced, "nothing is written for an order that is not sent")
	_, err = begin(resubmitted(orderA17()), full)
	require.ErrorIs(t, err, full)
	state, err = begin(resubmitted(orderA17()), nil)
	require.NoError(t, err)
	assert.Equal(t, gateway.OrderFree, state)
	assert.Equal(t, []string{filepath.Dir(path), path}, synced)
	d := newOrderDirectory(path)
	for _, failure := range []error{full, nil} {
		d.syncFile = func(file *os.File) error {
			content, err := os.ReadFile(file.Name())
			assert.Equal(t, 3, strings.Count(string(content), "\n"), "a line for each call that was begun")
			return errors.Join(err, failure, file.Sync())
		}
		_, err := d.Begin(t.Context(), resubmitted(orderA17()))
		require.ErrorIs(t, err, failure)
	}
	d.syncFile = func(*os.File) error { return full }
	_, err = d.End(t.Context(), orderA17(), gateway.OrderRecord{Outcome: gateway.OutcomeSucceeded})
	require.ErrorIs(t, err, full)

	d = newOrderDirectory(filepath.Join(parent, "other"))
	d.sync = func(directory string) error {
		if _, err := os.Stat(d.path); err == nil && directory == parent {
			return full
		}
		return syncDirectory(directory)
	}
	for range 2 { // the second time, the directory is there
		_, err := d.Begin(t.Context(), orderA17())
		require.ErrorIs(t, err, full)
		assert.DirExists(t, d.path)
	}
}

// A directory of somebody else need not be readable where it is.
func TestOrderDirectory_unreadableParent(t *testing.T) {
	t.Parallel()
	d := newOrderDirectory(t.TempDir())
	d.sync = func(directory string) error {
		if directory == d.path {
			return nil
		}
		return &fs.PathError{Op: "open", Path: directory, Err: fs.ErrPermission}
	}
	begun(t, d, orderA17())
	ended(t, d, gateway.OrderRecord{})
}

// Without the directory nothing is sent.
func TestOrderDirectory_unusable(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	got := call(t.Context(), t, gw, order("--orders", file)...)
	assert.Equal(t, exitUnknown, got.code, got.err)
	assert.Contains(t, got.err, `gateway: create_invoice: order: order "A-17": the order guard: open `)
	assert.Contains(t, got.err, "This run has sent nothing.")
	assert.Empty(t, gw.Requests())
	_, err := (&orderDirectory{}).End(t.Context(), orderA17(), gateway.OrderRecord{})
	assert.Error(t, err, "it has not begun")
}

// The file of an order is not one that never ends, nor another file.
func TestOrderDirectory_irregular(t *testing.T) {
	t.Parallel()
	for _, target := range []string{os.DevNull, "/dev/zero", "absent"} {
		d := newOrderDirectory(t.TempDir())
		require.NoError(t, os.Symlink(target, d.name(orderA17())))
		_, err := d.Begin(t.Context(), resubmitted(orderA17()))
		require.Error(t, err, target)
	}
	d := newOrderDirectory(t.TempDir())
	require.NoError(t, os.Mkdir(d.name(orderA17()), 0o700))
	_, err := d.Begin(t.Context(), resubmitted(orderA17()))
	require.Error(t, err)
}
