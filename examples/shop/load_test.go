package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// processEnv makes the test binary run a shop.
const processEnv = "SHOP_TEST_PROCESS"

// A process is a shop in its own process.
type process struct {
	url string
	cmd *exec.Cmd
}

// startProcess starts a shop that is configured by its environment.
func (h *harness) startProcess() *process {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"=yes", "GORACE=halt_on_error=1",
		"GATEWAY_BASE_URL="+h.gw.URL, "GATEWAY_API_KEY="+h.gw.APIKey, "DATABASE_URL="+h.database,
		"SHOP_ADDR=127.0.0.1:0", "SHOP_ADMIN_PASSWORD="+testPassword, "SHOP_INVOICE_TIMEOUT=1s")
	cmd.Dir = h.t.TempDir()
	stdout, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(h.t, err)
	require.NotContains(h.t, line, testPassword)
	p := &process{strings.Fields(line)[0], cmd}
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return p
}

// invoiceFaults returns every kind of fault, and no fault several times.
func invoiceFaults() []gatewaytest.Fault {
	return []gatewaytest.Fault{
		{},
		{},
		{},
		gatewaytest.CommitThenDrop(), gatewaytest.Reset(), gatewaytest.BadGateway(), gatewaytest.MalformedJSON(),
		gatewaytest.Truncate(20), gatewaytest.Stall(), gatewaytest.SlowBody(20 * time.Millisecond), gatewaytest.Refuse(429, "later"),
	}
}

// Fifty buyers send every request several times to two servers over one
// database, while the gateway injects every kind of fault and one server is
// killed.
func TestLoad_everyOrderHasOneInvoiceOrIsUnknown(t *testing.T) {
	const buyers = 50
	h := newHarness(t)
	h.database = newPostgres(t).database(t)
	one, two := h.startProcess(), h.startProcess()
	faults := invoiceFaults()
	for range 20 * buyers {
		h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, faults[rand.IntN(len(faults))])
	}
	paths, visitors := make([]string, buyers), make([]*visitor, buyers)
	var wg sync.WaitGroup
	for i := range buyers {
		visitors[i] = newVisitor(t)
		wg.Go(func() {
			paths[i] = visitors[i].buyConcurrently(one.url, two.url, h.pair("BTC", "Bitcoin"), h.pair("LTC", "Litecoin"))
		})
	}
	eventually(t, "a third of the orders are being sent", func() bool { return h.sent() >= buyers/3 })
	require.NoError(t, two.cmd.Process.Kill()) // kill -9
	wg.Wait()
	h.gw.ClearFaults()
	anna := newVisitor(t).logIn(one.url)
	before := h.waitUntilReconciled(anna, one.url)
	for i, v := range visitors { // the buyers whose page shows that no invoice was created try again
		require.Equal(t, paths[i], v.post(one.url+paths[i]+"/pay").location)
	}

	counts := h.checkOrders(anna, one.url, paths)
	t.Logf("before the last retry: %v", before)
	t.Logf("buyers: %d; requests for an invoice: %d; faults: %v; committed: %d; orders: %v",
		buyers, h.sent(), h.faultCounts(), len(h.gw.Invoices()), counts)
	assert.Positive(t, counts[stateCreated])
	assert.Positive(t, counts[stateUnknown])
	assert.Equal(t, buyers, counts[stateCreated]+counts[stateUnknown], "orders that are lost or never final")

	require.NoError(t, one.cmd.Process.Signal(os.Interrupt))
	assert.NoError(t, one.cmd.Wait(), "graceful shutdown")
}

// buyConcurrently sends every request of a purchase twice to both servers,
// several times, and returns the path of the order. A server may be gone at
// any time.
func (v *visitor) buyConcurrently(one, two string, pairs ...string) (path string) {
	postEverywhere := func(path string, form ...string) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				form := formOf(form...)
				form.Add("pair", pairs[i%2])
				form.Add("price", "$240.00")
				_, _ = v.do(http.MethodPost, []string{one, two}[i/2]+path, form)
			})
		}
		wg.Wait()
	}
	v.get(one + "/")
	postEverywhere("/orders", "product", "lamp")
	path = v.post(one+"/orders", "product", "lamp").location
	for range 4 {
		postEverywhere(path + "/pay")
	}
	return path
}

// faultCounts counts the faults of requests for an invoice.
func (h *harness) faultCounts() map[string]int {
	faults := map[string]int{}
	for _, r := range h.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			faults[r.Fault]++
		}
	}
	return faults
}

// waitUntilReconciled waits until no order is being sent, and counts the
// orders.
func (h *harness) waitUntilReconciled(anna *visitor, server string) (counts map[state]int) {
	h.t.Helper()
	db, err := openDatabase(h.t.Context(), h.database)
	require.NoError(h.t, err)
	defer db.Close()
	eventually(h.t, "the leases of the killed process end", func() bool {
		anna.get(server + "/admin") // reconciles the recorded states
		counts, err = orderStore{db}.count(h.t.Context())
		return err == nil && counts[stateSending] == 0
	})
	return counts
}

// checkOrders compares the recorded orders with the gateway's invoices.
func (h *harness) checkOrders(anna *visitor, server string, paths []string) map[state]int {
	h.t.Helper()
	db, err := openDatabase(h.t.Context(), h.database)
	require.NoError(h.t, err)
	defer db.Close()
	counts, orderIDs := map[state]int{}, map[string]bool{}
	for _, path := range paths {
		id := strings.TrimPrefix(path, "/orders/")
		o, err := orderStore{db}.byID(h.t.Context(), id)
		if !assert.NoError(h.t, err, "order not found") {
			continue
		}
		invoices := h.gw.InvoicesFor(id)
		counts[o.State]++
		orderIDs[id] = true
		assert.LessOrEqual(h.t, len(invoices), 1, "an order has two invoices")
		assert.Equal(h.t, o.State == stateCreated, len(invoices) == 1 && o.State != stateUnknown, "%s with %d invoices", o.State, len(invoices))
		if o.State == stateUnknown {
			assert.Contains(h.t, anna.get(server+"/admin/orders/"+id).visibleText(), "Does the gateway have an invoice for this order?")
		}
		if len(invoices) == 1 {
			assert.Equal(h.t, []string{o.Coin, o.Amount.String()}, []string{invoices[0].CoinSymbol, invoices[0].Amount})
		}
	}
	for _, invoice := range h.gw.Invoices() {
		assert.True(h.t, orderIDs[invoice.OrderID], "invoice without an order")
	}
	return counts
}

// No order is lost in a database outage, and the pages report the outage.
func TestDatabase_outage(t *testing.T) {
	h := newHarness(t)
	server := newPostgres(t)
	h.database = server.database(t)
	_, web := h.open()
	v := newVisitor(t)
	path := v.order(web.URL, "mug")
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/healthz").status)

	server.stop()
	assert.Equal(t, http.StatusServiceUnavailable, v.get(web.URL+"/healthz").status)
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/").status, "products need no database")
	for _, res := range []response{v.get(web.URL + path), v.post(web.URL+"/orders", "product", "lamp"), v.pay(web.URL, path, h.pair("BTC", "Bitcoin"))} {
		assert.Equal(t, http.StatusServiceUnavailable, res.status)
		assert.Contains(t, res.visibleText(), "No order has been lost. Please try again in a moment.")
		assert.NotContains(t, res.text, "connect", "the error is in the log only")
		assert.Equal(t, "5", res.header.Get("Retry-After"))
	}
	assert.Zero(t, h.sent(), "an invoice that cannot be recorded is not sent")

	server.start(t)
	eventually(t, "the database is back", func() bool { return v.get(web.URL+"/healthz").status == http.StatusOK })
	require.Equal(t, path, v.pay(web.URL, path, h.pair("BTC", "Bitcoin")).location)
	assert.Contains(t, v.get(web.URL+path).visibleText(), "Pay your order")
	assert.Len(t, h.gw.Invoices(), 1)
}

// The database fails between the creation and the record of an invoice: the
// order is unknown, and nothing is sent again.
func TestDatabase_outageDuringInvoice(t *testing.T) {
	h := newHarness(t)
	h.cfg.invoiceTimeout = 3 * time.Second // the lease is then 27 s, which the test waits for
	server := newPostgres(t)
	h.database = server.database(t)
	_, web := h.open()
	v := newVisitor(t)
	path := v.order(web.URL, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.SlowBody(5*time.Millisecond))
	paid := make(chan response)
	go func() {
		res, err := v.do(http.MethodPost, web.URL+path+"/pay", formOf("pair", h.pair("BTC", "Bitcoin"), "price", "$18.00"))
		assert.NoError(t, err)
		paid <- res
	}()
	eventually(t, "the invoice is committed", func() bool { return len(h.gw.Invoices()) == 1 })
	server.stop()
	assert.Equal(t, http.StatusServiceUnavailable, (<-paid).status)
	server.start(t)
	eventually(t, "the database is back", func() bool { return v.get(web.URL+"/healthz").status == http.StatusOK })
	assert.Contains(t, v.get(web.URL+path).visibleText(), "Your invoice is being created", "until the lease ends")
	v.pay(web.URL, path, "")
	eventually(t, "the lease ends", func() bool { return strings.Contains(v.get(web.URL+path).text, "Your order is being checked") })
	assert.Equal(t, 1, h.sent())
}

// Without settings the shop starts on a stand-in and a SQLite file.
func TestRun_defaultSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"GATEWAY_BASE_URL", "DATABASE_URL", "SHOP_ADMIN_PASSWORD"} {
		t.Setenv(name, "")
	}
	t.Setenv("SHOP_ADDR", "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	readOrder, writer := io.Pipe()
	runErr := make(chan error)
	go func() { runErr <- run(ctx, writer, io.Discard) }()
	line, err := bufio.NewReader(readOrder).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+ is ready \(gateway: a stand-in in this process with invented data; orders: SQLite, demo\.db; merchant: /admin, password: [A-Z2-7]{26}\)\n$`, line)
	url := strings.Fields(line)[0]
	v := newVisitor(t)
	assert.Contains(t, v.get(url+"/").visibleText(), "Demo.")
	assert.Contains(t, v.get(url+v.order(url, "mug")).visibleText(), "How would you like to pay?")
	resp, err := http.Get(url + v.order(url, "lamp")) //nolint:noctx // a request without cookies
	require.NoError(t, err)
	assert.NoError(t, resp.Body.Close())
	stop()
	assert.NoError(t, <-runErr)
	assert.FileExists(t, "demo.db")
}

func TestRun_invalidSettings(t *testing.T) {
	for text, setting := range map[string][2]string{
		"SHOP_ADMIN_PASSWORD must have at least 12 characters": {"SHOP_ADMIN_PASSWORD", "secret"},
		"12 characters, spaces around them not counted":        {"SHOP_ADMIN_PASSWORD", "   secret      "},
		"SHOP_INVOICE_TIMEOUT must be from 1s to 1m":           {"SHOP_INVOICE_TIMEOUT", "1h"},
		"SHOP_INVOICE_TIMEOUT: time: invalid duration":         {"SHOP_INVOICE_TIMEOUT", "soon"},
		"DATABASE_URL: must be a postgres:// or file: address": {"DATABASE_URL", "mysql://"},
		"the database of DATABASE_URL does not respond":        {"DATABASE_URL", "postgres://127.0.0.1:1/x"},
		"must begin with https://":                             {"GATEWAY_BASE_URL", "http://gateway.example"},
		"SHOP_ADDR: listen tcp: address 8080":                  {"SHOP_ADDR", "8080"},
	} {
		t.Run(fmt.Sprint(setting), func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv(setting[0], setting[1])
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			assert.ErrorContains(t, run(ctx, writerFunc(stop), io.Discard), text)
		})
	}
}

func TestServe_ignoreServerClosed(t *testing.T) {
	assert.NoError(t, ignoreServerClosed(http.ErrServerClosed))
	assert.Error(t, ignoreServerClosed(errors.New("no")))
}
