package sqlguard

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
)

// jobEnv is the environment variable with the job of a process of the race.
const jobEnv = "SQLGUARD_JOB"

// A job is the input of a process of the race.
type job struct {
	Driver, DSN, Table string
	URL                string // of the gateway, to which the process also reports its progress
	Name               string
	Seed               uint64
	Orders             int
}

// work is the main function of a process of the race: it goes through all orders
// twice and prints how often it had each result.
func work(text string) int {
	var j job
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	results, err := map[string]int{}, json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run(ctx, results)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (j job) run(ctx context.Context, results map[string]int) error {
	db, err := sql.Open(j.Driver, j.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(2)
	guard, err := New(db, WithTable(j.Table))
	if err != nil {
		return err
	}
	if err := guard.CreateTable(ctx); err != nil {
		return err
	}
	client, err := gateway.New(j.URL, "a-key-for-tests", gateway.WithUserAgent(j.Name), gateway.WithOrderGuard(reportingGuard{guard, j}))
	if err != nil {
		return err
	}
	finished := make([]bool, j.Orders)
	random := rand.New(rand.NewPCG(j.Seed, 0))
	for range 2 {
		for _, n := range random.Perm(j.Orders) {
			if finished[n] {
				continue
			}
			_, err := client.CreateInvoice(ctx, request(n))
			word, done := classify(err)
			results[word]++
			finished[n] = done
			if word == "failed" {
				return err
			}
		}
	}
	return nil
}

func orderName(n int) string { return fmt.Sprintf("order-%03d", n) }

func request(n int) gateway.InvoiceRequest {
	return gateway.InvoiceRequest{OrderID: orderName(n), Price: decimal.New(1050, -2), Amount: decimal.New(1050, -2)}
}

// classify returns the result of a request in a word, and whether the process is
// done with the order.
func classify(err error) (word string, done bool) {
	switch {
	case err == nil:
		return "created", true
	case errors.Is(err, ErrOrderCreated):
		return "refused: created", true
	case errors.Is(err, gateway.ErrOrderOutcomeUnknown):
		return "refused: unknown", true
	case errors.Is(err, gateway.ErrOrderInFlight):
		return "refused: in flight", false
	case gateway.OutcomeOf(err) == gateway.OutcomeUnknown:
		return "unknown", true
	case gateway.OutcomeOf(err) == gateway.OutcomeRejected:
		return "rejected", false
	default:
		return "failed", false
	}
}

// The points of a CreateInvoice at which a process may be killed.
const (
	beginning = "beginning" // before Begin
	taken     = "taken"     // after it
	received  = "received"  // the gateway has the request
	committed = "committed" // and has created the invoice
	ending    = "ending"    // before End
	ended     = "ended"     // after it
)

// A reportingGuard reports the progress of the process to the gateway and waits
// for the response, which does not arrive if the process is killed.
type reportingGuard struct {
	*Guard
	job
}

func (w reportingGuard) Begin(ctx context.Context, orderID string, resubmit bool) error {
	w.report(ctx, beginning)
	err := w.Guard.Begin(ctx, orderID, resubmit)
	if err == nil {
		w.report(ctx, taken)
	}
	return err
}

func (w reportingGuard) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	w.report(ctx, ending)
	err := w.Guard.End(ctx, orderID, outcome)
	w.report(ctx, ended)
	return err
}

func (w reportingGuard) report(ctx context.Context, point string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/progress/"+point, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("User-Agent", w.Name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	_ = resp.Body.Close()
}
