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

// processEnv makes the binary of the tests a shop.
const processEnv = "SHOP_TEST_PROCESS"

// A process is a shop in a process of its own.
type process struct {
	url string
	cmd *exec.Cmd
}

// startProcess starts a shop with the settings that a merchant would give it.
func (st *stage) startProcess() *process {
	st.t.Helper()
	cmd := exec.CommandContext(st.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"=yes", "GORACE=halt_on_error=1",
		"GATEWAY_BASE_URL="+st.gw.URL, "GATEWAY_API_KEY="+st.gw.APIKey, "DATABASE_URL="+st.database,
		"SHOP_ADDR=127.0.0.1:0", "SHOP_ADMIN_PASSWORD="+testPassword, "SHOP_INVOICE_TIMEOUT=1s")
	cmd.Dir = st.t.TempDir()
	stdout, err := cmd.StdoutPipe()
	require.NoError(st.t, err)
	require.NoError(st.t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(st.t, err)
	require.NotContains(st.t, line, testPassword)
	p := &process{strings.Fields(line)[0], cmd}
	st.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return p
}

// Fifty buyers press everything twice on two servers over one database, while
// the gateway makes every kind of trouble and one server is killed.
func TestCrowd_everyOrderHasOneInvoiceOrIsUnknown(t *testing.T) {
	const buyers = 50
	st := newStage(t)
	st.database = newPostgres(t).database(t)
	one, two := st.startProcess(), st.startProcess()
	troubles := []gatewaytest.Fault{
		{},
		{},
		{},
		gatewaytest.CommitThenDrop(), gatewaytest.Reset(), gatewaytest.BadGateway(), gatewaytest.MalformedJSON(),
		gatewaytest.Truncate(20), gatewaytest.Stall(), gatewaytest.SlowBody(20 * time.Millisecond), gatewaytest.Refuse(429, "later"),
	}
	for range 20 * buyers {
		st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, troubles[rand.IntN(len(troubles))])
	}
	paths, visitors := make([]string, buyers), make([]*visitor, buyers)
	var crowd sync.WaitGroup
	for i := range buyers {
		visitors[i] = newVisitor(t)
		crowd.Go(func() {
			paths[i] = visitors[i].buyWildly(one.url, two.url, st.pair("BTC", "Bitcoin"), st.pair("LTC", "Litecoin"))
		})
	}
	eventually(t, "a third of the orders are under way", func() bool { return st.sent() >= buyers/3 })
	require.NoError(t, two.cmd.Process.Kill()) // kill -9
	crowd.Wait()
	st.gw.ClearFaults()
	anna := newVisitor(t).asMerchant(one.url)
	before := st.settled(anna, one.url)
	for i, v := range visitors { // those who were told that nothing was made try once more
		require.Equal(t, paths[i], v.post(one.url+paths[i]+"/pay").location)
	}

	found := st.audit(anna, one.url, paths)
	t.Logf("before everybody tried once more: %v", before)
	t.Logf("buyers: %d; requests for an invoice: %d; what they met: %v; committed: %d; orders: %v",
		buyers, st.sent(), st.met(), len(st.gw.Invoices()), found)
	assert.Positive(t, found[stateCreated])
	assert.Positive(t, found[stateUnknown])
	assert.Equal(t, buyers, found[stateCreated]+found[stateUnknown], "orders that were lost, or go on for ever")

	require.NoError(t, one.cmd.Process.Signal(os.Interrupt))
	assert.NoError(t, one.cmd.Wait(), "it closes as it should")
}

// buyWildly presses every button twice at once, on both servers, and goes on
// for as long as the shop lets them. It returns the path of the order. A
// server may be gone at any time.
func (v *visitor) buyWildly(one, two string, pairs ...string) (path string) {
	everywhere := func(path string, form ...string) {
		var presses sync.WaitGroup
		for i := range 4 {
			presses.Go(func() {
				form := formOf(form...)
				form.Add("pair", pairs[i%2])
				form.Add("price", "$240.00")
				_, _ = v.do(http.MethodPost, []string{one, two}[i/2]+path, form)
			})
		}
		presses.Wait()
	}
	v.get(one + "/")
	everywhere("/orders", "product", "lamp")
	path = v.post(one+"/orders", "product", "lamp").location
	for range 4 {
		everywhere(path + "/pay")
	}
	return path
}

// met counts the troubles of requests for an invoice.
func (st *stage) met() map[string]int {
	troubles := map[string]int{}
	for _, r := range st.gw.Requests() {
		if r.Operation == gatewaytest.OpCreateInvoice {
			troubles[r.Fault]++
		}
	}
	return troubles
}

// settled waits until no order is under way, and counts them.
func (st *stage) settled(anna *visitor, server string) (counts map[state]int) {
	st.t.Helper()
	db, err := openDatabase(st.t.Context(), st.database)
	require.NoError(st.t, err)
	defer db.Close()
	eventually(st.t, "the leases of the killed process end", func() bool {
		anna.get(server + "/admin") // settles what is known by now
		counts, err = orderBook{db}.count(st.t.Context())
		return err == nil && counts[stateSending] == 0
	})
	return counts
}

// audit compares what the shop says of each order with what the gateway has.
func (st *stage) audit(anna *visitor, server string, paths []string) map[state]int {
	st.t.Helper()
	db, err := openDatabase(st.t.Context(), st.database)
	require.NoError(st.t, err)
	defer db.Close()
	found, known := map[state]int{}, map[string]bool{}
	for _, path := range paths {
		id := strings.TrimPrefix(path, "/orders/")
		o, err := orderBook{db}.byID(st.t.Context(), id)
		if !assert.NoError(st.t, err, "an order is lost") {
			continue
		}
		invoices := st.gw.InvoicesFor(id)
		found[o.State]++
		known[id] = true
		assert.LessOrEqual(st.t, len(invoices), 1, "an order has two invoices")
		assert.Equal(st.t, o.State == stateCreated, len(invoices) == 1 && o.State != stateUnknown, "%s with %d invoices", o.State, len(invoices))
		if o.State == stateUnknown {
			assert.Contains(st.t, anna.get(server+"/admin/orders/"+id).words(), "What have you found at the gateway?")
		}
		if len(invoices) == 1 {
			assert.Equal(st.t, []string{o.Coin, o.Amount.String()}, []string{invoices[0].CoinSymbol, invoices[0].Amount})
		}
	}
	for _, invoice := range st.gw.Invoices() {
		assert.True(st.t, known[invoice.OrderID], "an invoice of no order")
	}
	return found
}

// A database that goes away and comes back loses nothing, and the pages say
// what is the matter meanwhile.
func TestDatabase_goesAwayAndComesBack(t *testing.T) {
	st := newStage(t)
	server := newPostgres(t)
	st.database = server.database(t)
	_, web := st.open()
	v := newVisitor(t)
	path := v.order(web.URL, "mug")
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/healthz").status)

	server.stop()
	assert.Equal(t, http.StatusServiceUnavailable, v.get(web.URL+"/healthz").status)
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/").status, "the goods are there")
	for _, a := range []answer{v.get(web.URL + path), v.post(web.URL+"/orders", "product", "lamp"), v.pay(web.URL, path, st.pair("BTC", "Bitcoin"))} {
		assert.Equal(t, http.StatusServiceUnavailable, a.status)
		assert.Contains(t, a.words(), "Nothing that you did is lost. Please try again in a moment.")
		assert.NotContains(t, a.text, "connect", "the error is for the log")
		assert.Equal(t, "5", a.header.Get("Retry-After"))
	}
	assert.Zero(t, st.sent(), "what can not be recorded is not sent")

	server.start(t)
	eventually(t, "the database is back", func() bool { return v.get(web.URL+"/healthz").status == http.StatusOK })
	require.Equal(t, path, v.pay(web.URL, path, st.pair("BTC", "Bitcoin")).location)
	assert.Contains(t, v.get(web.URL+path).words(), "Pay your order")
	assert.Len(t, st.gw.Invoices(), 1)
}

// The database goes away between an invoice and its record: the order is
// unknown to the shop, and nothing is sent again.
func TestDatabase_goesAwayWhileAnInvoiceIsSent(t *testing.T) {
	st := newStage(t)
	st.cfg.patience = 5 * time.Second
	server := newPostgres(t)
	st.database = server.database(t)
	_, web := st.open()
	v := newVisitor(t)
	path := v.order(web.URL, "mug")
	st.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.SlowBody(5*time.Millisecond))
	paid := make(chan answer)
	go func() {
		a, err := v.do(http.MethodPost, web.URL+path+"/pay", formOf("pair", st.pair("BTC", "Bitcoin"), "price", "$18.00"))
		assert.NoError(t, err)
		paid <- a
	}()
	eventually(t, "the invoice is committed", func() bool { return len(st.gw.Invoices()) == 1 })
	server.stop()
	assert.Equal(t, http.StatusServiceUnavailable, (<-paid).status)
	server.start(t)
	eventually(t, "the database is back", func() bool { return v.get(web.URL+"/healthz").status == http.StatusOK })
	assert.Contains(t, v.get(web.URL+path).words(), "Your invoice is being made", "as far as anybody knows")
	v.pay(web.URL, path, "")
	eventually(t, "the lease ends", func() bool { return strings.Contains(v.get(web.URL+path).text, "We are looking into your order") })
	assert.Equal(t, 1, st.sent())
}

// Without any settings the shop opens on a stand-in and a SQLite file.
func TestRun_needsNoSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"GATEWAY_BASE_URL", "DATABASE_URL", "SHOP_ADMIN_PASSWORD"} {
		t.Setenv(name, "")
	}
	t.Setenv("SHOP_ADDR", "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error)
	go func() { ended <- run(ctx, write, io.Discard) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+ is open \(gateway: a stand-in in this process, all made up; orders: SQLite, demo\.db; merchant: /admin, password: [A-Z2-7]{26}\)\n$`, line)
	url := strings.Fields(line)[0]
	v := newVisitor(t)
	assert.Contains(t, v.get(url+"/").words(), "Demo.")
	assert.Contains(t, v.get(url+v.order(url, "mug")).words(), "How would you like to pay?")
	resp, err := http.Get(url + v.order(url, "lamp")) //nolint:noctx // nobody's order
	require.NoError(t, err)
	assert.NoError(t, resp.Body.Close())
	stop()
	assert.NoError(t, <-ended)
	assert.FileExists(t, "demo.db")
}

func TestRun_saysWhatIsWrongWithItsSettings(t *testing.T) {
	for text, setting := range map[string][2]string{
		"SHOP_ADMIN_PASSWORD must have at least 12 characters": {"SHOP_ADMIN_PASSWORD", "secret"},
		"12 characters, spaces around them not counted":        {"SHOP_ADMIN_PASSWORD", "   secret      "},
		"SHOP_INVOICE_TIMEOUT must be from 1s to 1m":           {"SHOP_INVOICE_TIMEOUT", "1h"},
		"SHOP_INVOICE_TIMEOUT: time: invalid duration":         {"SHOP_INVOICE_TIMEOUT", "soon"},
		"DATABASE_URL: must be a postgres:// or file: address": {"DATABASE_URL", "mysql://"},
		"the database of DATABASE_URL does not answer":         {"DATABASE_URL", "postgres://127.0.0.1:1/x"},
		"must begin with https://":                             {"GATEWAY_BASE_URL", "http://gateway.example"},
		"SHOP_ADDR: listen tcp: address 8080":                  {"SHOP_ADDR", "8080"},
	} {
		t.Run(fmt.Sprint(setting), func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv(setting[0], setting[1])
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			assert.ErrorContains(t, run(ctx, whenWritten(stop), io.Discard), text)
		})
	}
}

func TestServe_endsWithItsListener(t *testing.T) {
	assert.NoError(t, closedAsAsked(http.ErrServerClosed))
	assert.Error(t, closedAsAsked(errors.New("no")))
}
