package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// countIn returns an observer that counts what a client does. Published with expvar.Publish, the
// counts are served at /debug/vars.
func countIn(counts *expvar.Map) gateway.Observer {
	return gateway.Observer{
		Attempt: func(_ context.Context, a gateway.Attempt) {
			counts.Add(a.Operation, 1)
			if a.Err != nil {
				counts.Add(a.Operation+"_failed", 1)
			}
			if a.Wait > 0 {
				counts.Add(a.Operation+"_retried", 1)
			}
		},
		Drift: func(context.Context, gateway.Drift) { counts.Add("drift", 1) },
	}
}

// Metrics are an observer.
func ExampleWithObserver() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{Status: "ON_HOLD", Destination: "T1", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})
	gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultPage(502))

	counts := new(expvar.Map)
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithObserver(countIn(counts)))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Withdrawal(context.Background(), id); err != nil {
		log.Fatal(err)
	}
	fmt.Println(counts)
	// Output: {"drift": 1, "withdrawal": 2, "withdrawal_failed": 1, "withdrawal_retried": 1}
}

// The logger records what the client does, and never the key.
func ExampleWithLogger() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	id := gw.AddWithdrawal(gatewaytest.Withdrawal{Status: "ON_HOLD", Destination: "T1", Amount: "50", Fee: "1", Coin: "USDT", Network: "Tron"})

	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithLogger(logger))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Withdrawal(context.Background(), id); err != nil {
		log.Fatal(err)
	}
	// Output: level=WARN msg="gateway: drift" operation=withdrawal kind="unknown status" pointer=/result/status reason="\"ON_HOLD\" is not documented"
}

// withoutTimes removes the times from a log, so that the output is always the same.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindDuration {
		return slog.Attr{}
	}
	return a
}

// A rateLimiter sends requests at a steady rate. A request whose context ends while it
// waits is not sent.
type rateLimiter struct {
	next  http.RoundTripper
	every *time.Ticker
}

func (l *rateLimiter) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-l.every.C:
		return l.next.RoundTrip(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// A rate limit is a RoundTripper. It applies to retries too, and a request that it
// holds until the context ends was not sent.
func ExampleWithMiddleware_rateLimit() {
	gw := gatewaytest.NewServer()
	defer gw.Close()

	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	limit := func(next http.RoundTripper) http.RoundTripper { return &rateLimiter{next: next, every: every} }
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithMiddleware(limit))
	if err != nil {
		log.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			if _, err := client.ExchangeRates(context.Background()); err != nil {
				log.Print(err)
			}
		})
	}
	callers.Wait()
	fmt.Println(len(gw.Requests()), "requests, one after the other")
	// Output: 10 requests, one after the other
}

// A middleware finds the call of a request in its context.
func ExampleWithMiddleware() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	tracing := func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			call, _ := gateway.CallFromContext(req.Context())
			fmt.Println("span:", call.Operation)
			return next.RoundTrip(req)
		})
	}
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithMiddleware(tracing))
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	_, _ = client.ExchangeRates(context.Background())
	_, _ = client.CreateInvoice(context.Background(), order("A-17"))
	// Output:
	// span: exchange_rates
	// span: create_invoice
}

// A key that changes is read when it is needed, from a file that another program replaces.
func ExampleAPIKeyFile() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "gateway-key")
	replaceBy := func(key string) {
		_ = os.WriteFile(file+".new", []byte(key+"\n"), 0o600)
		_ = os.Rename(file+".new", file)
	}

	client, err := gateway.New(gw.URL, "", gateway.WithAPIKeySource(gateway.APIKeyFile(file)))
	if err != nil {
		log.Fatal(err)
	}
	replaceBy("a key that was revoked")
	_, err = client.Balance(context.Background(), gateway.BalanceQuery{})
	fmt.Println("refused:", errors.Is(err, gateway.ErrUnauthorized))

	replaceBy(gw.APIKey)
	_, err = client.Balance(context.Background(), gateway.BalanceQuery{})
	fmt.Println("after the change:", err)
	// Output:
	// refused: true
	// after the change: <nil>
}

// The variables are normally set by the environment of the program.
func ExampleFromEnv() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	_ = os.Setenv("GATEWAY_BASE_URL", gw.URL)
	_ = os.Setenv("GATEWAY_API_KEY", gw.APIKey)
	defer os.Unsetenv("GATEWAY_BASE_URL")
	defer os.Unsetenv("GATEWAY_API_KEY")

	client, err := gateway.FromEnv()
	if err != nil {
		log.Fatal(err)
	}
	balance, err := client.Balance(context.Background(), gateway.BalanceQuery{CoinSymbol: "BTC"})
	if err != nil {
		log.Fatal(err)
	}
	total, err := balance.Total("BTC")
	fmt.Println(total, err)
	// Output: 0.48215003 <nil>
}

// Two clients of one program share what they know of the orders.
func ExampleMemoryGuard() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	guard := &gateway.MemoryGuard{Remember: 1000}

	for range 2 {
		client := connect(gw, gateway.WithOrderGuard(guard))
		invoice, err := client.CreateInvoice(context.Background(), order("A-17"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(invoice.OrderID, invoice.Replayed)
	}
	// Output:
	// A-17 false
	// A-17 true
}

// run runs the server of a shop until ctx ends, such as that of signal.NotifyContext for SIGTERM.
func run(ctx context.Context, client *gateway.Client, server *http.Server, listener net.Listener) error {
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := client.Check(starting); err != nil {
		return err // such as a key that is refused, or a guard without its table
	}
	failed, stopped := make(chan error, 1), make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.Background(), 220*time.Second)
	defer cancel()
	go func() { stopped <- server.Shutdown(stopping) }()     // no new requests
	return errors.Join(client.Shutdown(stopping), <-stopped) // no new invoices, also of goroutines and workers
}

// A server starts if its gateway and its guard work, and ends when nothing is being sent.
func ExampleClient_Shutdown() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	ctx, stop := context.WithCancel(context.Background())
	client := connect(gw, gateway.WithObserver(gateway.Observer{Attempt: func(_ context.Context, a gateway.Attempt) {
		if a.Operation == gateway.OpCreateInvoice {
			stop() // before the call returns
		}
	}}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		invoice, err := client.CreateInvoice(r.Context(), order("A-17"))
		fmt.Println("invoice:", invoice != nil, err)
	})}
	go func() {
		if resp, err := http.Post("http://"+listener.Addr().String(), "", nil); err == nil {
			_ = resp.Body.Close()
		}
	}()
	fmt.Println("the end:", run(ctx, client, server, listener))

	_, err = client.CreateInvoice(context.Background(), order("A-18"))
	fmt.Println(gateway.OutcomeOf(err), errors.Is(err, gateway.ErrShutdown))
	// Output:
	// invoice: true <nil>
	// the end: <nil>
	// not sent true
}

// invoices is what a shop needs of a *gateway.Client.
type invoices interface {
	CreateInvoice(ctx context.Context, r gateway.InvoiceRequest, opts ...gateway.CallOption) (*gateway.Invoice, error)
}

// A fakeGateway creates an invoice, or returns an error.
type fakeGateway struct{ err error }

func (f fakeGateway) CreateInvoice(_ context.Context, r gateway.InvoiceRequest, _ ...gateway.CallOption) (*gateway.Invoice, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &gateway.Invoice{OrderID: r.OrderID, Request: r, Raw: json.RawMessage(`{"id":"4711","address":"TXYZ"}`)}, nil
}

// A fake returns errors that are made by hand: each means what its type says.
func Example_fake() {
	for _, err := range []error{
		nil,
		&gateway.ArgumentError{Operation: gateway.OpCreateInvoice, Name: "price", Reason: "must be above zero"},
		&gateway.OrderConflictError{OrderID: "A-17"},
		&gateway.OutcomeUnknownError{Operation: gateway.OpCreateInvoice, OrderID: "A-17"},
	} {
		var shop invoices = fakeGateway{err}
		_, err := shop.CreateInvoice(context.Background(), order("A-17"))
		fmt.Println(gateway.OutcomeOf(err))
	}
	// Output:
	// succeeded
	// not sent
	// conflict
	// unknown
}

// A server of httptest answers with what a gateway has answered.
func Example_ownServer() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":{"id":"4711","address":"TXYZ"},"meta":{}}`)
	}))
	defer server.Close()
	client, err := gateway.New(server.URL, "a-key-for-tests")
	if err != nil {
		log.Fatal(err)
	}
	invoice, err := client.CreateInvoice(context.Background(), order("A-17"))
	if err != nil {
		log.Fatal(err)
	}
	address, ok := invoice.Text("address")
	fmt.Println(address, ok)
	// Output: TXYZ true
}

// final reports whether a queue must not run a job again after this error of CreateInvoice.
func final(err error) bool {
	switch {
	case err == nil, gateway.SafeToRetry(err):
		return false
	case gateway.OutcomeOf(err) == gateway.OutcomeNotSent: // another run may send it
		return errors.Is(err, gateway.ErrInvalidArgument)
	default: // an invoice may exist, or the service refuses it again
		return true
	}
}

// A queue asks after each run of a job whether another one can help.
func Example_queue() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))
	stopped, stop := context.WithCancel(context.Background())
	stop()

	for _, job := range []struct {
		name  string
		ctx   context.Context
		order string
		fault gatewaytest.Fault
	}{
		{"the response is lost", context.Background(), "A-17", gatewaytest.FaultCommitThenDrop()},
		{"the job runs again by mistake", context.Background(), "A-17", gatewaytest.FaultRefuse(429, "too many requests")},
		{"the service refuses it", context.Background(), "A-18", gatewaytest.FaultRefuse(422, "no such currency")},
		{"the service is busy", context.Background(), "A-19", gatewaytest.FaultRefuse(429, "too many requests")},
		{"the worker is told to stop", stopped, "A-20", gatewaytest.Fault{}},
		{"the order has no id", context.Background(), "", gatewaytest.Fault{}},
	} {
		gw.ClearFaults()
		gw.InjectFault(gatewaytest.OpCreateInvoice, 1, job.fault)
		_, err := client.CreateInvoice(job.ctx, order(job.order))
		fmt.Printf("%s: %v, final: %v\n", job.name, gateway.OutcomeOf(err), final(err))
	}
	// Output:
	// the response is lost: unknown, final: true
	// the job runs again by mistake: unknown, final: true
	// the service refuses it: rejected, final: true
	// the service is busy: rejected, final: false
	// the worker is told to stop: not sent, final: false
	// the order has no id: not sent, final: true
}

// Without a guard, the merchant's own database must keep an order from being sent twice.
func ExampleWithOrderGuard() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw, gateway.WithOrderGuard(nil))

	for range 2 {
		if _, err := client.CreateInvoice(context.Background(), order("A-17")); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("invoices for A-17:", len(gw.InvoicesFor("A-17")))
	// Output: invoices for A-17: 2
}
