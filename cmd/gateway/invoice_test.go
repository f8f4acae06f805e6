package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The request has the flags, and the exit code is the outcome.
func TestInvoice(t *testing.T) {
	never := gatewaytest.Fault{}
	for name, test := range map[string]struct {
		fault       gatewaytest.Fault
		args        string
		code        int
		stdout, err string
	}{
		"created":         {never, "--currency usd --coin USDT --network Tron", exitDone, "The invoice for order A-17 exists. Response:\n{", ""},
		"created as JSON": {never, "-o json", exitDone, `{"orderId":"A-17","response":{`, ""},
		"refused":         {gatewaytest.FaultRefuse(422, "no"), "", exitRefused, "", `gateway: create_invoice: 422: "no"`},
		"refused for now": {gatewaytest.FaultRefuse(429, "slowly"), "", exitRefused, "", "Too many requests. Run it again later.\n"},
		"lost":            {gatewaytest.FaultCommitThenDrop(), "", exitUnknown, "", "The invoice may exist. Look the order up before you run this again; gateway orders resolve records"},
		"a page":          {gatewaytest.FaultPage(530), "", exitUnknown, "", "530"},
		"no price":        {never, "--price 0", exitUsage, "", "price: "},
		"no time":         {never, "--timeout 1us", exitNotSent, "", "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			gw := standIn(t)
			if test.args == "" {
				gw.InjectFault(gatewaytest.OpCreateInvoice, 1, test.fault)
			}
			got := call(t, gw, order+test.args)
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
	var stderr strings.Builder
	call(t, standIn(t), "rates") // sets the environment
	assert.Equal(t, exitFailed, run(t.Context(), strings.Fields(order), console{out: fullDisk{}, err: &stderr}))
	response, said, _ := strings.Cut(stderr.String(), "\n")
	assert.Contains(t, response, `"orderId":"A-17"`)
	assert.Equal(t, "the invoice exists, but stdout failed: no space left on device\n", said)
}

// The text of a gateway cannot control the terminal, and stays the same JSON.
func TestInvoice_controls(t *testing.T) {
	gw := standIn(t)
	gw.SetResult(gatewaytest.OpCreateInvoice, "{\"id\":\"\u202e\u009b\U000e0001\",\r\n\t\"pay\":1}")
	for _, more := range []string{"", "-o json"} {
		assert.Contains(t, call(t, gw, order+more).stdout, `{"id":"\u202e\u009b\udb40\udc01",`)
	}
	var stderr strings.Builder
	run(t.Context(), strings.Fields(order), console{out: fullDisk{}, err: &stderr})
	assert.Contains(t, stderr.String(), `{"id":"\u202e\u009b\udb40\udc01",`)
}

// With --orders an order is created once, and is unknown until a person resolves it.
func TestInvoice_orders(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "orders.db")
	t.Setenv(envDB, "sqlite:"+file)
	create := func(more string) outcome { return call(t, gw, order+more, "--orders", file) }
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	first := create("")
	assert.Equal(t, exitUnknown, first.code)
	assert.Contains(t, first.err, "This is a new, empty order file")
	again := create("")
	assert.Equal(t, exitUnknown, again.code)
	assert.Contains(t, again.err, "gateway orders resolve records what you found")
	assert.NotContains(t, again.err, "new, empty")
	assert.Len(t, gw.Requests(), 1, "nothing is sent")

	assert.Equal(t, exitLeft, call(t, nil, "orders pending").code)
	s := &session{}
	require.NoError(t, s.openDatabase("sqlite:"+file, false))
	_, err := s.db.Exec("UPDATE gateway_orders SET lease_until = begun_at - 1000000") // as if time had passed
	require.NoError(t, err)
	s.closeDatabase()
	listed := decode[[]orderRecord](t, call(t, nil, "orders pending -o json").stdout)
	resolved := call(t, nil, "orders resolve --absent --by anna --margin 0s --token "+listed[0].Token)
	require.Equal(t, exitDone, resolved.code, resolved.err)
	made := create("-o json")
	require.Equal(t, exitDone, made.code, made.err)
	replayed := create("-o json")
	assert.Equal(t, "This invoice exists since an earlier run. Nothing was sent.\n", replayed.err)
	assert.Equal(t, decode[invoiceRecord](t, made.stdout).Response, decode[invoiceRecord](t, replayed.stdout).Response)
	assert.True(t, decode[invoiceRecord](t, replayed.stdout).Replayed)

	conflict := create("--price 11")
	assert.Equal(t, exitConflict, conflict.code)
	assert.Contains(t, conflict.err, "Its invoice: "+string(decode[invoiceRecord](t, made.stdout).Response))
	assert.Contains(t, conflict.err, "Use that invoice, or another --order.\n")
	assert.Len(t, gw.Requests(), 2)

	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(content), gw.APIKey)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody else can read it")
}

// When the time is up, a run waits for the invoice that is being sent.
func TestInvoice_timeIsUp(t *testing.T) {
	gw := standIn(t)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(time.Millisecond))
	got := call(t, gw, order+"--timeout 100ms -o json")
	assert.Equal(t, exitDone, got.code, got.err)
	assert.Equal(t, "The time is up, and the invoice is still being sent. This run waits until its outcome is known.\n", got.err)
	made := decode[invoiceRecord](t, got.stdout)
	assert.Contains(t, string(made.Response), gw.Invoices()[0].ID)
	assert.False(t, made.Replayed)
	assert.Len(t, gw.Requests(), 1)
}

// An outcome that cannot be recorded at first is recorded later.
func TestInvoice_recordsLater(t *testing.T) {
	gw := standIn(t)
	file := filepath.Join(t.TempDir(), "orders.db")
	require.Equal(t, exitDone, call(t, gw, order, "--orders", file).code)
	s := &session{}
	require.NoError(t, s.openDatabase("sqlite:"+file, false))
	defer s.closeDatabase()
	_, err := s.db.Exec(`CREATE TRIGGER full BEFORE UPDATE ON gateway_orders WHEN NEW.order_id = 'A-18' BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
	require.NoError(t, err)
	told, writes := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), strings.Fields(order+"--order A-18 --orders "+file), console{out: io.Discard, err: writes})
		_ = writes.Close()
	}()
	lines := bufio.NewScanner(told)
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), "could not record the outcome: ")
	_, err = s.db.Exec(`DROP TRIGGER full`)
	require.NoError(t, err)
	assert.False(t, lines.Scan(), lines.Text())
	assert.Equal(t, exitDone, <-code)
	replayed := call(t, gw, order+"--order A-18 --orders", file)
	assert.Equal(t, "This invoice exists since an earlier run. Nothing was sent.\n", replayed.err)
}

// A file that cannot be used says nothing about the order, and nothing is sent.
func TestInvoice_unusableOrders(t *testing.T) {
	gw := standIn(t)
	for path, reason := range map[string]string{
		os.DevNull:                                    "is not a regular file",
		filepath.Join(t.TempDir(), "no", "o"):         "the file of the database: ",
		file(t, strings.Repeat("no database ", 1000)): "is not a database",
	} {
		got := call(t, gw, order, "--orders", path)
		assert.Equal(t, exitUnknown, got.code, got.err)
		assert.Contains(t, got.err, "the file of --orders cannot be used, and this run has sent nothing: ")
		assert.Contains(t, got.err, reason)
	}
	assert.Empty(t, gw.Requests())
}
