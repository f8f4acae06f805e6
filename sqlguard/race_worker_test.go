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
	"strings"
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
	Migrate            bool // whether it is the process of killMigration
	Outage             bool // whether it is a process of TestGuard_outage

	// Of a race in which the database stalls, the lease; otherwise 0.
	Lease   time.Duration
	Grant   string // which leases Begin grants
	Timeout time.Duration
}

// What Begin grants in a race.
const (
	grantSafe  = ""        // what the guard grants
	grantStale = "stale"   // without the clock of the process, leases from the arrival of the statement, as a control
	grantAll   = "without" // no guard, as a control
)

// work is the main function of a process of the race: it goes through all orders
// twice and prints how often it had each result.
func work(text string) int {
	var j job
	results, err := map[string]int{}, json.Unmarshal([]byte(text), &j)
	ctx, cancel := context.WithTimeout(context.Background(), j.Timeout)
	defer cancel()
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
	if j.Migrate {
		return j.migrateHalf(ctx, db)
	}
	client, err := j.client(ctx, db)
	if err != nil {
		return err
	}
	if j.Outage {
		return j.sell(ctx, client, results)
	}
	finished := make([]bool, j.Orders)
	random := rand.New(rand.NewPCG(j.Seed, 0))
	for range 2 {
		for _, n := range random.Perm(j.Orders) {
			if finished[n] {
				continue
			}
			invoice, err := createInvoice(ctx, client, n)
			word, done := classify(invoice, err)
			if word == failed && j.Lease > 0 && gateway.SafeToRetry(err) {
				word = "not begun" // the database stalls
			}
			results[word]++
			finished[n] = done
			if word == failed {
				return err
			}
		}
	}
	return nil
}

// client returns the client of the process, with its guard.
func (j job) client(ctx context.Context, db *sql.DB) (*gateway.Client, error) {
	opts := []Option{WithTable(j.Table)}
	retry := gateway.RetryPolicy{MaxAttempts: 3}
	if j.Lease > 0 {
		opts = append(opts, WithLease(j.Lease))
		retry = gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: j.Lease / 4} // less than is left after a Begin that took a quarter
	}
	guard, err := New(db, opts...)
	if err != nil {
		return nil, err
	}
	if err := guard.Migrate(ctx); err != nil {
		return nil, err
	}
	order := gateway.WithOrderGuard(reportingGuard{guard, j})
	switch j.Grant {
	case grantStale:
		retry.InvoiceTimeout = 2 * stallTime // for as long the client waits for Begin
		guard.patience = time.Hour
		guard.stmts.begin = strings.ReplaceAll(guard.stmts.begin, "clock_timestamp()", "now()")
	case grantAll:
		order = gateway.WithOrderGuard(nil)
	}
	options := []gateway.Option{gateway.WithUserAgent(j.Name), gateway.WithRetry(retry), order}
	if j.Outage {
		options = append(options, gateway.WithCircuitBreaker(outageLimit))
	}
	return gateway.New(j.URL, "a-key-for-tests", options...)
}

func orderName(n int) string { return fmt.Sprintf("order-%03d", n) }

func request(n int) gateway.InvoiceRequest {
	return gateway.InvoiceRequest{OrderID: orderName(n), Price: decimal.New(1050, -2), Amount: decimal.New(1050, -2)}
}

// withoutInvoice is an order that is created and whose invoice is not known.
const withoutInvoice = "created, without the invoice"

// A patience ends the wait of a call for an order in flight: that of a process that was
// killed would last as long as an invoice may take.
type patience struct {
	asked int
	end   context.CancelFunc
}

type patienceKey struct{}

func (p *patience) ask() {
	if p.asked++; p.asked == 20 {
		p.end()
	}
}

func createInvoice(ctx context.Context, client *gateway.Client, n int) (*gateway.Invoice, error) {
	ctx, cancel := withoutWait(ctx)
	defer cancel()
	return client.CreateInvoice(ctx, request(n))
}

// classify returns the result of a request in a word, and whether the process is
// done with the order.
func classify(invoice *gateway.Invoice, err error) (word string, done bool) {
	unknown, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
	switch {
	case err == nil && invoice.Replayed && !json.Valid(invoice.Raw):
		return withoutInvoice, true
	case err == nil && invoice.Replayed:
		return "replayed", true
	case err == nil:
		return "created", true
	case isUnknown && unknown.Replayed:
		return "refused: unknown", true
	case errors.Is(err, gateway.ErrOrderInFlight):
		return "refused: in flight", false
	case isUnknown:
		return "unknown", true
	case gateway.OutcomeOf(err) == gateway.OutcomeRejected:
		return "rejected", false
	default:
		return failed, false
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
	failed    = "failed"    // instead of taken: the database failed
)

// A reportingGuard reports the progress of the process to the gateway and waits
// for the response, which does not arrive if the process is killed.
type reportingGuard struct {
	*Guard
	job
}

func (w reportingGuard) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	w.report(ctx, beginning)
	lease, err := w.Guard.Begin(ctx, o)
	if w.Grant == grantStale {
		lease.Expires = time.Time{}
	}
	switch {
	case err != nil:
		w.report(ctx, failed)
	case lease.State == gateway.OrderFree:
		w.report(ctx, taken)
	case lease.State == gateway.OrderInFlight:
		if calls, ok := ctx.Value(patienceKey{}).(*patience); ok {
			calls.ask()
		}
	}
	return lease, err
}

func (w reportingGuard) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	w.report(ctx, ending)
	has, err := w.Guard.End(ctx, o, r)
	w.report(ctx, ended)
	return has, err
}

func (w reportingGuard) report(ctx context.Context, point string) {
	// Not by the end of the context, which is not what the process reports.
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, w.URL+"/progress/"+point, nil)
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
