package sqlguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const (
	outageProcesses = 16
	outageOrders    = 1000
	outageAtOnce    = 4 // calls of a process
	outageLimit     = 5 // unknown orders that open the circuit of a process

	outage = "outage" // what a process reports when it has tried all of its orders
)

// Sixteen processes send the invoices of 1,000 orders to a gateway that creates every invoice and loses
// every response. In each, at most 5 orders become unknown, those that were in flight then, and each that
// was tried later. The others are not sent, and are when the gateway has recovered.
func TestGuard_outage(t *testing.T) {
	w := newPostgres(t)
	g := w.guard(t)
	o := &lossy{bodies: map[string]int{}, waiting: make(chan struct{}), lost: make(chan struct{}, outageProcesses)}
	server := httptest.NewServer(o)
	defer server.Close()
	sold := o.run(t, job{Driver: w.driver, DSN: w.dsn, Table: w.table, URL: server.URL, Orders: outageOrders, Outage: true, Timeout: 10 * time.Minute})
	if t.Failed() {
		return
	}
	unknown := checkProcesses(t, sold)
	pending, err := g.PendingSummary(t.Context())
	check(t, err)
	if pending.Count != unknown {
		t.Errorf("%d orders are pending, and the processes know of %d", pending.Count, unknown)
	}
	for id, n := range o.bodies {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
	if len(o.bodies) != outageOrders {
		t.Errorf("%d orders have an invoice", len(o.bodies))
	}
}

// A lossy gateway creates every invoice, and loses the responses until every process waits.
type lossy struct {
	mu      sync.Mutex
	bodies  map[string]int // how often each order was sent
	waiting chan struct{}  // is closed when the gateway recovers
	lost    chan struct{}  // gets the report of each process, or that it has failed
}

func (o *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/progress/" + outage:
		o.lost <- struct{}{}
		<-o.waiting
		return
	case "/api/invoice/create":
	default:
		return // another report
	}
	var body struct{ OrderID string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(http.ErrAbortHandler)
	}
	o.mu.Lock()
	o.bodies[body.OrderID]++
	o.mu.Unlock()
	select {
	case <-o.waiting:
		respond(w, http.StatusCreated, "Operation was successful.", resultOf(body.OrderID))
	default:
		panic(http.ErrAbortHandler)
	}
}

// run returns what each process has counted.
func (o *lossy) run(t *testing.T, j job) []sold {
	t.Helper()
	results := make([]sold, outageProcesses)
	var all sync.WaitGroup
	for n := range outageProcesses {
		all.Go(func() {
			j := j
			j.Name, j.Seed = fmt.Sprintf("process-%d", n), uint64(n)
			text, err := json.Marshal(j)
			cmd, out, errs := exec.Command(os.Args[0]), &bytes.Buffer{}, &bytes.Buffer{}
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", jobEnv+"="+string(text))
			cmd.Stdout, cmd.Stderr = out, errs
			if err := errors.Join(err, cmd.Run()); err != nil {
				t.Errorf("%s: %v\n%s", j.Name, err, errs)
				o.lost <- struct{}{}
				return
			}
			var counted map[string]int
			if err := json.Unmarshal(out.Bytes(), &counted); err != nil {
				t.Error(err)
			}
			results[n] = counted
		})
	}
	for range outageProcesses {
		<-o.lost
	}
	close(o.waiting)
	all.Wait()
	return results
}

// sold is what a process counts: "unknown" and "held back" are its orders in the outage, "seconds" how
// long it lasted, and "created" the orders that were sent after it.
type sold = map[string]int

// checkProcesses returns how many orders are unknown.
func checkProcesses(t *testing.T, processes []sold) (unknown int) {
	t.Helper()
	heldBack := 0
	for n, p := range processes {
		unknown, heldBack = unknown+p["unknown"], heldBack+p["held back"]
		tried := bits.Len(uint(p["seconds"]) + 1) // after 1, 2, 4 … seconds
		if most := outageLimit + outageAtOnce - 1 + tried; p["unknown"] > most || p["unknown"] < outageLimit {
			t.Errorf("in process %d %d orders are unknown, want %d to %d", n, p["unknown"], outageLimit, most)
		}
		if p["created"] != p["held back"] {
			t.Errorf("process %d: %v", n, p)
		}
	}
	t.Logf("%d orders, %d processes: %d are unknown, and %d were held back", outageOrders, outageProcesses, unknown, heldBack)
	if unknown+heldBack != outageOrders {
		t.Errorf("%d are unknown, and %d were held back", unknown, heldBack)
	}
	return unknown
}

// sell is a process of the outage: it tries every sixteenth order, waits until the gateway has recovered,
// and sends what it has not sent: once one is created, no other is held back.
func (j job) sell(ctx context.Context, client *gateway.Client, results sold) error {
	left := make(chan int, j.Orders)
	begun := time.Now()
	err := j.tryAll(ctx, client, results, left)
	close(left)
	results["seconds"] = int(time.Since(begun) / time.Second)
	if err != nil {
		return err
	}
	reportingGuard{job: j}.report(ctx, outage)
	for n := range left {
		_, err := client.CreateInvoice(ctx, request(n))
		for errors.Is(err, gateway.ErrCircuitOpen) && results["created"] == 0 && wait(ctx, leastPause) == nil {
			_, err = client.CreateInvoice(ctx, request(n))
		}
		if err != nil {
			return fmt.Errorf("after %d were created: %w", results["created"], err)
		}
		results["created"]++
	}
	return nil
}

// tryAll tries every order of the process once, and keeps those that were not sent.
func (j job) tryAll(ctx context.Context, client *gateway.Client, results sold, left chan<- int) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	errs := []error{}
	for first := range outageAtOnce {
		all.Go(func() {
			for n := int(j.Seed) + first*outageProcesses; n < j.Orders; n += outageAtOnce * outageProcesses {
				_, err := client.CreateInvoice(ctx, request(n))
				mu.Lock()
				switch {
				case errors.Is(err, gateway.ErrCircuitOpen) && gateway.OutcomeOf(err) == gateway.OutcomeNotSent:
					results["held back"]++
					left <- n
				case gateway.OutcomeOf(err) == gateway.OutcomeUnknown && !gateway.SafeToRetry(err):
					results["unknown"]++
				default:
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
