package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
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
		"SHOP_ADDR=127.0.0.1:0", "SHOP_MERCHANTS="+testMerchants(), "SHOP_INVOICE_ADDRESS=/address", "SHOP_INVOICE_AMOUNT=/amount", "SHOP_INVOICE_TIMEOUT=1s")
	cmd.Dir = h.t.TempDir()
	stdout, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(h.t, err)
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
		gatewaytest.FaultCommitThenDrop(), gatewaytest.FaultReset(), gatewaytest.FaultBadGateway(), gatewaytest.FaultMalformedJSON(),
		gatewaytest.FaultTruncate(20), gatewaytest.FaultStall(), gatewaytest.FaultSlowBody(20 * time.Millisecond), gatewaytest.FaultRefuse(429, "later"),
	}
}

// The load: CI uses the defaults, and the note of a release more.
var (
	buyers   = flag.Int("buyers", 50, "buyers of the load test")
	duration = flag.Duration("duration", 5*time.Second, "how long they buy")
)

// Buyers who send every request several times to three servers over one database, while
// the gateway injects every kind of fault and one server is killed, get one invoice for
// each order, or an order that is listed as unknown.
func TestLoad(t *testing.T) {
	h := newHarness(t)
	h.database = newPostgres(t).database(t)
	servers := []*process{h.startProcess(), h.startProcess(), h.startProcess()}
	faults := invoiceFaults()
	for range 100 * *buyers {
		h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, faults[rand.IntN(len(faults))])
	}
	load := &load{servers: servers, pairs: []string{h.pair("BTC", "Bitcoin"), h.pair("LTC", "Litecoin")}}
	ctx, stop := context.WithTimeout(t.Context(), *duration)
	defer stop()
	var wg sync.WaitGroup
	for range *buyers {
		wg.Go(func() {
			for ctx.Err() == nil {
				load.buy(newVisitor(t))
			}
		})
	}
	time.AfterFunc(*duration/2, func() { _ = servers[2].cmd.Process.Kill() }) // kill -9
	wg.Wait()
	h.gw.ClearFaults()
	anna := newVisitor(t).logIn(servers[0].url)
	counts, doubled := map[state]int{}, 0
	eventually(t, "the leases of the killed process end", func() bool {
		counts, doubled = h.checkOrders()
		return counts[stateSending] == 0
	})
	slices.Sort(load.times)
	t.Logf("buyers: %d for %v; orders: %v; requests for an invoice: %d; committed: %d; doubled: %d; p95 of a request: %v of %d",
		*buyers, *duration, counts, h.sent(), len(h.gw.Invoices()), doubled, load.times[len(load.times)*95/100], len(load.times))
	assert.Zero(t, doubled)
	assert.Positive(t, counts[stateCreated])
	assert.Positive(t, counts[stateUnknown])
	assert.Contains(t, anna.get(servers[0].url+"/admin").visibleText(), fmt.Sprintf(" %d to look up at the gateway", counts[stateUnknown]))
	require.NoError(t, servers[0].cmd.Process.Signal(os.Interrupt))
	assert.NoError(t, servers[0].cmd.Wait(), "graceful shutdown")
}

// A load is what all buyers share.
type load struct {
	servers []*process
	pairs   []string
	mu      sync.Mutex
	times   []time.Duration // of the requests that got a response
}

// buy makes a purchase: every form is sent from several tabs to several servers, one of
// which may be gone.
func (l *load) buy(v *visitor) {
	do := func(server int, method, path string, form ...string) string {
		begun := time.Now()
		res, err := v.do(method, l.servers[server].url+path, formOf(form...))
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.times = append(l.times, time.Since(begun))
		}
		return res.text
	}
	id := regexp.MustCompile(`[A-Z2-7]{26}-lamp`).FindString(do(0, "GET", "/"))
	for _, path := range []string{"/orders", "/orders/" + id + "/pay", "/orders/" + id + "/pay"} {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { do(i%3, "POST", path, "order", id, "pair", l.pairs[i%2], "price", "$240.00") })
		}
		wg.Wait()
	}
	do(1, "GET", "/orders/"+id)
}

// checkOrders compares all orders with the gateway's invoices, and counts the orders by
// the state that their page shows, and those that have more than one invoice.
func (h *harness) checkOrders() (counts map[state]int, doubled int) {
	h.t.Helper()
	db, err := openDatabase(h.t.Context(), h.database)
	require.NoError(h.t, err)
	defer db.Close()
	invoices := map[string][]gatewaytest.Invoice{}
	for _, invoice := range h.gw.Invoices() {
		invoices[invoice.OrderID] = append(invoices[invoice.OrderID], invoice)
	}
	counts = map[state]int{}
	require.NoError(h.t, db.eachOrder(h.t.Context(), filter{To: utcNow()}, func(o order) error {
		now, own := o.State, invoices[o.ID]
		counts[now]++
		delete(invoices, o.ID)
		switch {
		case now == stateSending:
		case len(own) > 1:
			doubled++
		case len(own) == 1 && now == stateCreated:
			assert.Contains(h.t, string(o.Invoice), own[0].ID)
			assert.Equal(h.t, o.Coin, own[0].CoinSymbol)
			assert.True(h.t, o.Amount.Equal(decimal.RequireFromString(own[0].Amount)))
		default:
			assert.Equal(h.t, now == stateCreated, len(own) == 1 && now != stateUnknown, "%s with %d invoices", now, len(own))
		}
		return nil
	}))
	assert.Empty(h.t, invoices, "invoices without an order")
	return counts, doubled
}

// No order is lost in a database outage, and the pages report the outage.
func TestDatabase_outage(t *testing.T) {
	h := newHarness(t)
	server := newPostgres(t)
	h.database = server.database(t)
	_, web := h.open()
	v := newVisitor(t)
	path, lamp := v.order(web.URL, "mug"), v.buyForm(web.URL, "lamp")
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/healthz").status)

	server.stop()
	assert.Equal(t, http.StatusServiceUnavailable, v.get(web.URL+"/healthz").status)
	assert.Equal(t, http.StatusOK, v.get(web.URL+"/").status, "products need no database")
	for _, res := range []response{v.get(web.URL + path), v.post(web.URL+"/orders", "order", lamp), v.pay(web.URL, path, h.pair("BTC", "Bitcoin"))} {
		assert.Equal(t, http.StatusServiceUnavailable, res.status)
		assert.Contains(t, res.visibleText(), "No order is lost. Please try again in a moment.")
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
	t.Parallel()
	h := newHarness(t)
	h.cfg.invoiceTimeout = 3 * time.Second // the lease is then 27 s, which the test waits for
	server := newPostgres(t)
	h.database = server.database(t)
	s, web := h.open()
	v := newVisitor(t)
	path := v.order(web.URL, "mug")
	h.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultSlowBody(5*time.Millisecond))
	paid := make(chan response)
	go func() {
		res, err := v.do(http.MethodPost, web.URL+path+"/pay", formOf("pair", h.pair("BTC", "Bitcoin"), "price", "$18.00"))
		assert.NoError(t, err)
		paid <- res
	}()
	eventually(t, "the invoice is committed", func() bool { return len(h.gw.Invoices()) == 1 })
	server.stop()
	<-paid // its status depends on the database's last moments
	s.sending.Wait()
	server.start(t)
	eventually(t, "the database is back", func() bool { return v.get(web.URL+"/healthz").status == http.StatusOK })
	assert.Contains(t, v.get(web.URL+path).visibleText(), "Your order is being sent", "until the lease ends")
	v.pay(web.URL, path, "")
	eventually(t, "the lease ends", func() bool { return strings.Contains(v.get(web.URL+path).text, "We are checking your order") })
	assert.Equal(t, 1, h.sent())
}

// Without settings the shop starts on a stand-in and a SQLite file.
func TestRun_defaultSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"GATEWAY_BASE_URL", "DATABASE_URL", "SHOP_MERCHANTS"} {
		t.Setenv(name, "")
	}
	t.Setenv("SHOP_ADDR", "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	readOrder, writer := io.Pipe()
	runErr := make(chan error)
	go func() { runErr <- run(ctx, writer, io.Discard) }()
	line, err := bufio.NewReader(readOrder).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+ is ready \(gateway: a stand-in in this process with invented data; orders: SQLite, demo\.db; merchant: /admin, name demo, password [A-Z2-7]{26}\)\n$`, line)
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
