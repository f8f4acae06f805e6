package rivergateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
)

// The states of an order, and its outcomes.
const (
	free, inFlight, created, unknown = gateway.OrderFree, gateway.OrderInFlight, gateway.OrderCreated, gateway.OrderUnknown
	isCreated, isUnknown             = gateway.OutcomeSucceeded, gateway.OutcomeUnknown
)

const rawInvoice = `{"b":"\u0000","a":1e99999, "z":1.500}` // PostgreSQL would change it as JSON, or refuse it

// An invoiceRow is a run of the job of an order, after an earlier one whose OnInvoice failed, unless first is nil: the
// state of the job with attempts left and after the last one, what the merchant is told when the job ends, what the
// guard has of the order, and how many requests were sent in all.
type invoiceRow struct {
	first, prepare func(s *shop)
	state, last    rivertype.JobState
	told           string
	order          gateway.OrderState
	sent           int
}

// What an earlier run has stored is told, unless the guard has something newer.
func TestInvoice(t *testing.T) {
	succeeds := func(s *shop) { s.gw.SetResult(gatewaytest.OpCreateInvoice, rawInvoice) }
	notRecorded := all((*shop).forget, elsewhere("A-17", isUnknown))
	otherPrice := all(elsewhere("A-17", isCreated), change(`{"price": "99.50"}`))
	repeatable := all(inject(lost), with(gateway.WithIdempotentOrders()))
	rows := map[string]invoiceRow{
		"created":                              {nil, all(), completed, completed, "succeeded", created, 1},
		"unknown":                              {nil, inject(lost), cancelled, cancelled, "unknown", unknown, 1},
		"unknown, where it may be repeated":    {nil, repeatable, failed, cancelled, "unknown", unknown, 1},
		"rejected":                             {nil, refused(422), cancelled, cancelled, "rejected", free, 1},
		"rejected for now":                     {nil, refused(429), failed, cancelled, "rejected", free, 1},
		"a key that cannot be read":            {nil, (*shop).cannotRead, failed, cancelled, "not sent", free, 0},
		"not sent":                             {nil, func(s *shop) { s.cfg.BaseURL = "http://127.0.0.1:1" }, failed, cancelled, "not sent", free, 0},
		"in flight elsewhere":                  {nil, elsewhere("A-17"), snoozed, snoozed, "", inFlight, 0},
		"created elsewhere":                    {nil, elsewhere("A-17", isCreated), completed, completed, "succeeded", created, 0},
		"created elsewhere, for another price": {nil, otherPrice, cancelled, cancelled, "conflict", created, 0},
		"unknown from before":                  {nil, elsewhere("A-17", isUnknown), cancelled, cancelled, "unknown", unknown, 0},
		"the guard's database fails":           {nil, (*shop).closeGuard, failed, cancelled, "unknown", free, 0},
		"no options for the merchant":          {nil, change(`{"merchant": "shop-b"}`), failed, cancelled, "not sent", free, 0},

		"succeeded":                            {succeeds, all(), completed, completed, "succeeded", created, 1},
		"succeeded, and the guard has lost it": {succeeds, (*shop).forget, completed, completed, "succeeded", free, 1},
		"succeeded, and could not be recorded": {succeeds, notRecorded, completed, completed, "succeeded", unknown, 1},
		"refused":                              {refused(422), all(), cancelled, cancelled, "rejected", free, 1},
		"refused, then created elsewhere":      {refused(422), elsewhere("A-17", isCreated), completed, completed, "succeeded", created, 1},
		"refused, then unknown elsewhere":      {refused(422), elsewhere("A-17", isUnknown), cancelled, cancelled, "unknown", unknown, 1},
		"refused, and in flight elsewhere":     {refused(422), elsewhere("A-17"), snoozed, snoozed, "", inFlight, 1},
		"refused, and the guard fails":         {refused(422), (*shop).closeGuard, retryable, discarded, "", free, 1},
		"unknown, not told":                    {page(502), all(), cancelled, cancelled, "unknown", unknown, 1},
		"unknown, and the guard has lost it":   {page(502), (*shop).forget, cancelled, cancelled, "unknown", free, 1},
		"unknown, and an invoice is found":     {page(502), found(true), completed, completed, "succeeded", created, 1},
		"unknown, and none is found":           {page(502), found(false), completed, completed, "succeeded", created, 2},
	}
	for _, status := range []int{401, 402, 403, 404, 405, 407} {
		rows[fmt.Sprintf("the set-up is refused, %d", status)] = invoiceRow{nil, refused(status), failed, cancelled, "rejected", free, 1}
	}
	for name, test := range rows {
		for attempts, want := range map[int]rivertype.JobState{25: test.state, 1: test.last} {
			t.Run(name+map[int]string{1: ", at the last attempt"}[attempts], func(t *testing.T) {
				s := newShop(t)
				job := s.insert("A-17", InsertOptions{Job: river.InsertOpts{MaxAttempts: attempts}})
				var stored InvoiceResult
				if test.first != nil {
					test.first(s)
					job, stored = s.storeResult(job)
				}
				test.prepare(s)
				job, err := s.run(job)
				told := ""
				if job.State == completed || job.State == cancelled {
					told = test.told
				}
				s.checkOrder(told, test.order, test.sent)
				output := string(job.Output())
				if job.State != want || strings.Contains(output, `"delivered": true`) != (told != "") || !strings.Contains(output, told) {
					t.Errorf("the job is %s, want %s, and has %s: %v", job.State, want, output, err)
				}
				isNew := test.first == nil || told != stored.Outcome.String() || test.order == created || stored.Outcome == isUnknown && test.order == unknown
				for _, r := range s.results {
					if r.JobID != job.ID || (r.Reason == "") != (r.Outcome == isCreated) || !isNew && !reflect.DeepEqual(r.stored(), stored.stored()) {
						t.Errorf("told %+v, after %+v", r, stored)
					}
				}
			})
		}
	}
}

// storeResult runs a job whose OnInvoice fails, so that nothing of it is committed, and returns what it was told.
func (s *shop) storeResult(job *rivertype.JobRow) (*rivertype.JobRow, InvoiceResult) {
	failure := errors.New("a\x00b")
	s.cfg.OnInvoice = func(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
		if _ = s.onInvoice(ctx, tx, r); r.Invoice != nil {
			panic("a\ufffdb")
		}
		return failure
	}
	job, err := s.run(job)
	r := s.results[0]
	if job.State != failed && job.State != discarded || s.committed("A-17") != "" || job.Errors[0].Error != "a\ufffdb" {
		s.t.Errorf("%s, %+v, told %q: %v", job.State, job.Errors, s.committed("A-17"), err)
	}
	if hasResponse := r.StatusCode == 502 && len(r.Body) > 0 && !r.SentAt.IsZero(); hasResponse != (r.Outcome == isUnknown) ||
		r.Invoice != nil && string(r.Invoice.Raw) != rawInvoice {
		s.t.Errorf("told %+v", r)
	}
	s.cfg.OnInvoice, s.results = s.onInvoice, nil
	return must(queue.JobRetry(s.t.Context(), job.ID)), r
}

var lost = gatewaytest.FaultCommitThenDrop()

// Steps that prepare a run.
func all(steps ...func(*shop)) func(*shop) {
	return func(s *shop) {
		for _, step := range steps {
			step(s)
		}
	}
}

func with(opts ...gateway.Option) func(*shop) {
	return func(s *shop) { s.cfg.Options = append(s.cfg.Options, opts...) }
}

func inject(f gatewaytest.Fault) func(*shop) {
	return func(s *shop) { s.gw.InjectFault(gatewaytest.AnyOperation, 1, f) }
}

func refused(status int) func(*shop) { return inject(gatewaytest.FaultRefuse(status, "No")) }

func page(status int) func(*shop) { return inject(gatewaytest.FaultPage(status)) }

// change changes the arguments of the jobs.
func change(args string) func(*shop) {
	return func(s *shop) { s.exec(`UPDATE river_job SET args = args || '` + args + `'`) }
}

func (s *shop) cannotRead() {
	s.cfg.APIKey = nil
	with(gateway.WithAPIKeySource(gateway.APIKeyFile("/no/file")))(s)
}

// closeGuard gives the jobs a guard without a database.
func (s *shop) closeGuard() {
	closed := stdlib.OpenDBFromPool(pool)
	_ = closed.Close()
	s.cfg.Guard = must(sqlguard.New(closed))
}

// elsewhere has another process begin an order, and end it if there is an outcome.
func elsewhere(id string, outcomes ...gateway.Outcome) func(*shop) {
	return func(s *shop) {
		o := gateway.Order{Gateway: s.gw.URL, Request: request(id)}
		o.Attempt = must(s.guard.Begin(s.t.Context(), o)).Attempt
		for _, outcome := range outcomes {
			must(s.guard.End(s.t.Context(), o, gateway.OrderRecord{Outcome: outcome, Request: o.Request, Invoice: []byte(`{}`)}))
		}
	}
}

// found has a person resolve the order.
func found(exists bool) func(*shop) {
	return func(s *shop) {
		order := must(s.guard.Order(s.t.Context(), "", "A-17"))
		must(0, s.guard.Resolve(s.t.Context(), order, gateway.Finding{Exists: exists, By: "anna@shop.example", Margin: time.Microsecond}))
	}
}

func (s *shop) forget() { s.exec(`DELETE FROM gateway_orders`) }

// A finding that is older than what was stored frees nothing.
func TestInvoiceResult_isTrueOf(t *testing.T) {
	at := time.Now()
	for resolved, want := range map[time.Time]bool{{}: true, at.Add(-1): true, at.Add(1): false} {
		if r := (InvoiceResult{askedAt: at}); r.isTrueOf(gateway.OrderStatus{Resolved: resolved}) != want {
			t.Errorf("resolved at %v, stored at %v", resolved, at)
		}
	}
}

// Whether the COMMIT is lost, or the response to it, or another run has overtaken this one because the engine took its
// process for dead, the merchant receives the result once.
func TestInvoice_end(t *testing.T) {
	overtaken := func(text string) func(*shop) {
		return func(s *shop) {
			with(gateway.WithObserver(gateway.Observer{End: func(context.Context, gateway.Call) { s.exec(`UPDATE river_job SET ` + text) }}))(s)
		}
	}
	for name, test := range map[string]struct {
		prepare func(*shop)
		state   rivertype.JobState
		told    string
		calls   int // of OnInvoice
		stored  bool
	}{
		"the response is lost, to a success":   {commit{arrives: true}.isLost, completed, "succeeded", 1, false},
		"the response is lost, to a rejection": {all(refused(422), commit{arrives: true}.isLost), cancelled, "rejected", 1, false},
		"the statement is lost":                {commit{arrives: false}.isLost, failed, "", 1, false},
		"another run":                          {overtaken(`attempted_at = attempted_at + interval '1 second'`), failed, "", 0, true},
		"another run, which has ended":         {overtaken(`state = 'cancelled', finalized_at = now()`), cancelled, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			test.prepare(s)
			job, err := s.run(s.insert("A-17", InsertOptions{}))
			_, stored := undelivered(job)
			if _, isEnd := errors.AsType[*river.JobCancelError](err); err == nil || isEnd || job.State != test.state || stored != test.stored ||
				s.committed("A-17") != test.told || len(s.results) != test.calls {
				t.Fatalf("%s, told %q in %d calls, stored %s: %v", job.State, s.committed("A-17"), len(s.results), job.Output(), err)
			}
			if s.cfg.Pool = pool; job.State == failed && !stored {
				_, _ = s.run(job)
				s.checkOrder("succeeded", created, 1)
			}
		})
	}
}

// A commit closes its connection, before or after PostgreSQL has it.
type commit struct{ arrives bool }

func (c commit) isLost(s *shop) {
	cfg := pool.Config()
	cfg.ConnConfig.Tracer = c
	s.cfg.Pool = must(pgxpool.NewWithConfig(context.Background(), cfg))
	s.t.Cleanup(s.cfg.Pool.Close)
}

func (c commit) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if net := conn.PgConn().Conn(); data.SQL == "commit" {
		if c.arrives {
			must(net.Write([]byte("Q\x00\x00\x00\x0bcommit\x00")))
			must(net.Read(make([]byte, 1)))
		}
		_ = net.Close()
	}
	return ctx
}

func (commit) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// An order has one job, unless that was cancelled, if the merchant's transaction commits. What is sent is the request
// of that job, with every digit.
func TestInsertInvoiceTx(t *testing.T) {
	s := newShop(t)
	price, amount, one := "12345678901234567890123456789012.10", "0.000000000000000000000000000100", decimal.NewFromInt(1)
	coin := gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString(price), BaseCurrency: "usd",
		Amount: decimal.RequireFromString(amount), CoinSymbol: "USDT", NetworkName: "Tron",
	}
	equal, moved, otherCoin, otherPrice := coin, coin, coin, coin
	equal.Price = decimal.RequireFromString(price + "00")
	moved.Amount, otherCoin.CoinSymbol, otherPrice.Price = one, "BTC", one
	noCoin, noCoinMoved := request("A-18"), request("A-18")
	noCoinMoved.Amount = one
	refused(422)(s)
	failure := errors.New("rolled back")
	var last int64
	for _, test := range []struct {
		name     string
		request  gateway.InvoiceRequest
		merchant string
		fails    error // the merchant's transaction
		want     error
		isNew    bool
		run      rivertype.JobState // then; empty for no run
	}{
		{"rolled back", coin, "", failure, failure, true, ""},
		{"the first", coin, "", nil, nil, true, ""},
		{"a second, equal request", equal, "", nil, nil, false, ""},
		{"a second request, after the rate moved", moved, "", nil, nil, false, cancelled},
		{"after a rejection", coin, "", nil, nil, true, completed},
		{"after a success", moved, "", nil, nil, false, ""},
		{"another coin", otherCoin, "", nil, ErrOtherRequest, false, ""},
		{"another price", otherPrice, "", nil, ErrOtherRequest, false, ""},
		{"another merchant", coin, "shop-b", nil, nil, true, ""},
		{"an invalid request", gateway.InvoiceRequest{OrderID: "A-18"}, "", nil, gateway.ErrInvalidArgument, false, ""},
		{"an order without a coin", noCoin, "", nil, nil, true, ""},
		{"another amount without a coin", noCoinMoved, "", nil, ErrOtherRequest, false, ""},
	} {
		inserted, err := inTx(test.fails, InsertInvoiceTx, test.request, InsertOptions{Merchant: test.merchant})
		if !errors.Is(err, test.want) || inserted != nil && (inserted.Job.ID != last) != test.isNew {
			t.Errorf("%s: %+v after job %d: %v", test.name, inserted, last, err)
		}
		if inserted != nil {
			last = inserted.Job.ID
		}
		if test.run != "" {
			if job, err := s.run(inserted.Job); job.State != test.run {
				t.Errorf("%s: %s: %v", test.name, job.State, err)
			}
		}
	}
	want := `"price":"` + price + `","orderId":"A-17","baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron","amount":"` + amount + `"`
	for _, sent := range s.gw.Requests() {
		if !strings.Contains(string(sent.Body), want) {
			t.Errorf("sent %s", sent.Body)
		}
	}
}

// Jobs for several merchants are sent with the options of each.
func TestInvoice_merchants(t *testing.T) {
	s := newShop(t, sqlguard.WithMerchants())
	shared := append(make([]gateway.CallOption, 0, 2), gateway.WithAPIKey(s.gw.APIKey))
	s.cfg.APIKey = func() string { return "another-key" }
	s.cfg.Merchant = func(_ context.Context, merchant string) ([]gateway.CallOption, error) {
		if merchant != "shop-b" {
			return nil, errors.New("unknown\x00merchant")
		}
		return shared, nil
	}
	job, err := s.run(s.insert("A-17", InsertOptions{Merchant: "shop-b"}))
	order := must(s.guard.Order(t.Context(), "shop-b", "A-17"))
	if job.State != completed || s.results[0].Merchant != "shop-b" || order.State != created || shared[:2][1] != nil {
		t.Errorf("%s, told %+v, %s, options %v: %v", job.State, s.results, order.State, shared[:2], err)
	}
	job, err = s.run(s.insert("A-17", InsertOptions{Merchant: "shop-c", Job: river.InsertOpts{MaxAttempts: 1}}))
	if told := s.committed("A-17"); job.State != cancelled || told != "succeeded, not sent" || !strings.Contains(job.Errors[0].Error, "unknown\ufffdmerchant") {
		t.Errorf("%s, told %q, %+v: %v", job.State, told, job.Errors, err)
	}
}
