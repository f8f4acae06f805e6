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

// jobEnv holds the job of a process of the race.
const jobEnv = "SQLGUARD_JOB"

// A job is what a process of the race is told.
type job struct {
	Driver, DSN, Table string
	URL                string // of the gateway, which is also told how far the process has come
	Name               string
	Seed               uint64
	Orders             int
}

// work is the main function of a process of the race: it goes through all
// orders, twice, and prints how often it met with what.
func work(text string) int {
	var j job
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	met, err := map[string]int{}, json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run(ctx, met)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(met)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (j job) run(ctx context.Context, met map[string]int) error {
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
	client, err := gateway.New(j.URL, "a-key-for-tests", gateway.WithUserAgent(j.Name), gateway.WithOrderGuard(witness{guard, j}))
	if err != nil {
		return err
	}
	settled := make([]bool, j.Orders)
	random := rand.New(rand.NewPCG(j.Seed, 0))
	for range 2 {
		for _, n := range random.Perm(j.Orders) {
			if settled[n] {
				continue
			}
			_, err := client.CreateInvoice(ctx, request(n))
			word, done := judge(err)
			met[word]++
			settled[n] = done
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

// judge says in a word what came of a request, and whether the process has
// done what it can for the order.
func judge(err error) (word string, done bool) {
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

// A witness tells the gateway how far the process has come, and waits for the
// answer, which does not come if the process is to die.
type witness struct {
	*Guard
	job
}

func (w witness) Begin(ctx context.Context, orderID string, resubmit bool) error {
	w.tell(ctx, beginning)
	err := w.Guard.Begin(ctx, orderID, resubmit)
	if err == nil {
		w.tell(ctx, taken)
	}
	return err
}

func (w witness) End(ctx context.Context, orderID string, outcome gateway.Outcome) error {
	w.tell(ctx, ending)
	err := w.Guard.End(ctx, orderID, outcome)
	w.tell(ctx, ended)
	return err
}

func (w witness) tell(ctx context.Context, point string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/told/"+point, nil)
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
