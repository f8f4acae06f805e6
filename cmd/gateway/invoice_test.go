package main

import (
	"context"
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func order(more ...string) []string {
	return append([]string{"invoice", "create", "-order", "A-17", "-price", "10.50", "-amount", "10.490000"}, more...)
}

func TestInvoice_succeeded(t *testing.T) {
	gw := standIn(t)
	out := call(t.Context(), t, gw, order("-currency", "usd", "-coin", "USDT", "-network", "Tron")...)
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
		_, _ = io.WriteString(w, `{"message":"The Operation was Successful","result":`+result+`,"meta":{}}`)
	}))
	defer server.Close()
	for _, format := range []string{formatTable, formatJSON} {
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
	got = call(t.Context(), t, gw, "invoice", "create", "-o", "json", "-price", "ten")
	assert.Equal(t, failure{
		Error: `gateway invoice create: invalid value "ten" for flag -price: write it like 10.50`, ExitCode: exitUsage, Meaning: "usage",
	}, decode[failure](t, got.err))
}

func TestInvoice_usage(t *testing.T) {
	refuses(t, map[string]string{
		"invoice create -price 1 -amount 1":                           "gateway invoice create: -order is missing\nSee: gateway help invoice create\n",
		"invoice create -order A-17 -amount 1":                        "-price is missing, or not above zero",
		"invoice create -order A-17 -price 1 -amount -5":              "-amount is missing, or not above zero",
		"invoice create -price ten":                                   `invalid value "ten" for flag -price: write it like 10.50`,
		"invoice create -amount 1,5":                                  `invalid value for flag -amount: write it like 10.50`,
		"invoice create -order A-17 -price 1 -amount 1 now":           `"now" is one argument too many`,
		"invoice create -order A-17 -price 1 -amount 1 -resubmit":     "-resubmit needs -orders",
		"invoice create -order A-17 -price 1 -amount 1 -currency a\b": "nothing was sent: gateway: create_invoice: baseCurrency: must not contain",
	})
}

// With -orders an order is created once, whatever becomes of the processes.
func TestInvoice_orders(t *testing.T) {
	gw := standIn(t)
	directory := filepath.Join(t.TempDir(), "new", "orders")
	created := func(more ...string) outcome {
		return call(t.Context(), t, gw, order(append(more, "-orders", directory)...)...)
	}

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "no"))
	assert.Equal(t, exitRefused, created().code, "a refusal resolves the order")
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultBadGateway())
	assert.Equal(t, exitUnknown, created().code)
	sent := len(gw.Requests())
	again := created()
	assert.Equal(t, exitUnknown, again.code)
	assert.Contains(t, again.err, "an earlier invoice for this order has an unknown outcome")
	assert.Len(t, gw.Requests(), sent, "nothing is sent")

	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(422, "no"))
	assert.Equal(t, exitRefused, created("-resubmit").code)
	assert.Equal(t, exitUnknown, created().code, "a refusal proves nothing about the earlier one")
	assert.Zero(t, created("-resubmit").code)
	for _, more := range [][]string{nil, {"-resubmit"}} {
		got := created(more...)
		assert.Equal(t, exitFailed, got.code)
		assert.Contains(t, got.err, "already created")
	}
	assert.Len(t, gw.Invoices(), 1)
	assert.Zero(t, created("-order", "A-18").code)
}

// An order whose process was killed while it was sent has an unknown outcome, also if it
// was killed while it recorded one; not if it was killed before it was sent.
func TestOrderDirectory_killed(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	begin := func(orderID string, resubmit bool) error {
		d := newOrderDirectory(path)
		err := d.Begin(t.Context(), orderID, resubmit)
		if err == nil {
			err = d.file.Close() // as the end of a process does
		}
		return err
	}
	require.NoError(t, begin("A-17", false))
	require.ErrorIs(t, begin("A-17", false), gateway.ErrOrderOutcomeUnknown)
	require.NoError(t, begin("A-17", true))
	require.ErrorIs(t, begin("A-17", false), gateway.ErrOrderOutcomeUnknown)
	for content, want := range map[string]error{
		"": nil, "sent": gateway.ErrOrderOutcomeUnknown, "?": gateway.ErrOrderOutcomeUnknown,
		orderCreated + orderSent[len(orderCreated):]: gateway.ErrOrderCreated,
	} {
		require.NoError(t, os.WriteFile(newOrderDirectory(path).name("A-18"), []byte(content), 0o600))
		require.ErrorIs(t, begin("A-18", false), want, content)
	}
}

// While a process sends an order no other one does, whatever an earlier one left.
func TestOrderDirectory_inFlight(t *testing.T) {
	gw := standIn(t)
	for _, earlier := range []bool{false, true} {
		path := t.TempDir()
		first := newOrderDirectory(path)
		require.NoError(t, first.Begin(t.Context(), "A-17", false))
		if earlier {
			require.NoError(t, first.End(t.Context(), "A-17", gateway.OutcomeUnknown))
			require.NoError(t, first.Begin(t.Context(), "A-17", true))
		}
		for _, more := range [][]string{nil, {"-resubmit"}} {
			got := call(t.Context(), t, gw, order(append(more, "-orders", path)...)...)
			assert.Equal(t, exitUnknown, got.code, got.err)
			assert.Contains(t, got.err, "an invoice for this order is being created")
		}
		assert.Empty(t, gw.Requests())
		require.NoError(t, first.End(t.Context(), "A-17", gateway.OutcomeSucceeded))
		assert.ErrorIs(t, first.Begin(t.Context(), "A-17", true), gateway.ErrOrderCreated)
	}
}

// The file of an order and the new directories on its way are on the disk before it is sent,
// also if an earlier run has left them; if they cannot be, it counts as not sent.
func TestOrderDirectory_synced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	path := filepath.Join(parent, "new", "orders")
	var synced []string
	begin := func(resubmit bool, failure error) error {
		synced = nil
		d := newOrderDirectory(path + string(filepath.Separator))
		d.sync = func(directory string) error {
			synced = append(synced, filepath.Clean(directory))
			if directory != d.path {
				return syncDirectory(directory)
			}
			assert.FileExists(t, d.name("A-17"))
			return failure
		}
		err := d.Begin(t.Context(), "A-17", resubmit)
		return errors.Join(err, d.file.Close())
	}
	full := errors.New("no space left on device")
	require.ErrorIs(t, begin(false, full), full)
	assert.Equal(t, []string{filepath.Dir(parent), parent, filepath.Dir(path), path}, synced)
	require.NoError(t, begin(false, nil), "nothing was sent")
	assert.Equal(t, []string{filepath.Dir(path), path}, synced)
	require.ErrorIs(t, begin(true, full), full)
	require.NoError(t, begin(true, nil))
	assert.Equal(t, []string{filepath.Dir(path), path}, synced)

	d := newOrderDirectory(filepath.Join(parent, "other"))
	d.sync = func(directory string) error {
		if _, err := os.Stat(d.path); err == nil && directory == parent {
			return full
		}
		return syncDirectory(directory)
	}
	for range 2 { // the second time, the directory is there
		require.ErrorIs(t, d.Begin(t.Context(), "A-17", false), full)
		assert.DirExists(t, d.path)
		assert.NoFileExists(t, d.name("A-17"))
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
	require.NoError(t, d.Begin(t.Context(), "A-17", false))
	require.NoError(t, d.End(t.Context(), "A-17", gateway.OutcomeUnknown))
}

// Without the directory nothing is sent.
func TestOrderDirectory_unusable(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	got := call(t.Context(), t, gw, order("-orders", file)...)
	assert.Equal(t, exitNotSent, got.code, got.err)
	assert.Contains(t, got.err, "nothing was sent: gateway: create_invoice: start: ")
	assert.Empty(t, gw.Requests())
	assert.Error(t, (&orderDirectory{}).End(context.Background(), "A-17", gateway.OutcomeSucceeded), "it has not begun")
}

// The file of an order is not one that never ends, nor another file.
func TestOrderDirectory_irregular(t *testing.T) {
	t.Parallel()
	for _, target := range []string{os.DevNull, "/dev/zero", "absent"} {
		d := newOrderDirectory(t.TempDir())
		require.NoError(t, os.Symlink(target, d.name("A-17")))
		require.Error(t, d.Begin(t.Context(), "A-17", true), target)
	}
	d := newOrderDirectory(t.TempDir())
	require.NoError(t, os.Mkdir(d.name("A-17"), 0o700))
	require.Error(t, d.Begin(t.Context(), "A-17", true))
}
