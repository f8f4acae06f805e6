package rivergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
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

// What each end of a CreateInvoice does with the job, with attempts left and after the last one, what the merchant
// receives when the job ends, what the guard has of the order, and how many requests were sent.
func TestInvoice(t *testing.T) {
	for name, test := range map[string]struct {
		prepare     func(s *shop)
		state, last rivertype.JobState
		told        string
		order       gateway.OrderState
		sent        int
	}{
		"created":                              {func(*shop) {}, completed, completed, "succeeded", gateway.OrderCreated, 1},
		"unknown":                              {inject(lost), cancelled, cancelled, "unknown", gateway.OrderUnknown, 1},
		"unknown, where it may be repeated":    {(*shop).losesRepeatable, failed, cancelled, "unknown", gateway.OrderUnknown, 1},
		"rejected":                             {refused(422), cancelled, cancelled, "rejected", gateway.OrderFree, 1},
		"rejected for now":                     {refused(429), failed, cancelled, "rejected", gateway.OrderFree, 1},
		"not sent":                             {(*shop).cannotConnect, failed, cancelled, "not sent", gateway.OrderFree, 0},
		"in flight elsewhere":                  {(*shop).begin, snoozed, snoozed, "", gateway.OrderInFlight, 0},
		"created elsewhere":                    {ended(gateway.OutcomeSucceeded), completed, completed, "succeeded", gateway.OrderCreated, 0},
		"created elsewhere, for another price": {(*shop).endedOther, cancelled, cancelled, "conflict", gateway.OrderCreated, 0},
		"unknown from before":                  {ended(gateway.OutcomeUnknown), cancelled, cancelled, "unknown", gateway.OrderUnknown, 0},
		"the guard's database fails":           {(*shop).closeGuard, failed, cancelled, "unknown", gateway.OrderFree, 0},
		"no options for the merchant":          {change(`{"merchant": "shop-b"}`), failed, cancelled, "not sent", gateway.OrderFree, 0},
	} {
		for attempts, want := range map[int]rivertype.JobState{25: test.state, 1: test.last} {
			t.Run(name+map[int]string{1: ", at the last attempt"}[attempts], func(t *testing.T) {
				s := newShop(t)
				job := s.insert(request("A-17"), InsertOptions{Job: river.InsertOpts{MaxAttempts: attempts}})
				test.prepare(s)
				job, err := s.runInvoice(job)
				told := ""
				if want == completed || want == cancelled {
					told = test.told
				}
				if got := committed(t, "A-17"); job.State != want || got != told {
					t.Errorf("the job is %s, want %s; told %q, want %q: %v", job.State, want, got, told, err)
				}
				if output := string(job.Output()); strings.Contains(output, `"delivered": true`) != (told != "") || !strings.Contains(output, told) {
					t.Errorf("the job has %s", output)
				}
				s.checkOrder("A-17", test.order)
				if sent := len(s.gw.Requests()); sent != test.sent {
					t.Errorf("%d were sent, want %d", sent, test.sent)
				}
			})
		}
	}
}

var lost = gatewaytest.FaultCommitThenDrop()

func inject(f gatewaytest.Fault) func(*shop) {
	return func(s *shop) { s.gw.InjectFault(gatewaytest.AnyOperation, 1, f) }
}

func refused(status int) func(*shop) { return inject(gatewaytest.FaultRefuse(status, "No")) }

// change changes the arguments of the jobs.
func change(args string) func(*shop) {
	return func(s *shop) { s.exec(`UPDATE river_job SET args = args || '` + args + `'`) }
}

// losesRepeatable loses a response of a gateway that returns the existing invoice.
func (s *shop) losesRepeatable() {
	inject(lost)(s)
	s.with(gateway.WithIdempotentOrders())
}

func (s *shop) cannotConnect() { s.cfg.BaseURL = "http://127.0.0.1:1" }

// closeGuard gives the jobs a guard without a database.
func (s *shop) closeGuard() {
	closed := stdlib.OpenDBFromPool(pool)
	check(s.t, closed.Close())
	s.cfg.Guard = must(sqlguard.New(closed))
}

// begin begins the order in another process. No run waits for it.
func (s *shop) begin() {
	s.with(gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: 100 * time.Millisecond}))
	_, err := s.guard.Begin(s.t.Context(), s.order("A-17"))
	check(s.t, err)
}

func (s *shop) order(id string) gateway.Order {
	return gateway.Order{Gateway: s.gw.URL, Request: request(id)}
}

// end has another process send and end an order.
func (s *shop) end(id string, outcome gateway.Outcome) {
	o := s.order(id)
	lease, err := s.guard.Begin(s.t.Context(), o)
	check(s.t, err)
	o.Attempt = lease.Attempt
	_, err = s.guard.End(s.t.Context(), o, gateway.OrderRecord{Outcome: outcome, Request: request(id), Invoice: []byte(`{}`)})
	check(s.t, err)
}

func ended(outcome gateway.Outcome) func(*shop) { return func(s *shop) { s.end("A-17", outcome) } }

func (s *shop) endedOther() {
	s.end("A-17", gateway.OutcomeSucceeded)
	change(`{"price": "99.50"}`)(s)
}

func (s *shop) checkOrder(id string, want gateway.OrderState) {
	s.t.Helper()
	order, err := s.guard.Order(s.t.Context(), "", id)
	check(s.t, err)
	if order.State != want {
		s.t.Errorf("the order is %s, want %s", order.State, want)
	}
}

// If OnInvoice fails, nothing of it is committed. The next run calls it with the same result, also if PostgreSQL cannot
// store that as JSON, and sends nothing.
func TestInvoice_hookFails(t *testing.T) {
	const raw = `{"b":"\u0000","a":1e99999, "z":1.500}`
	failure := errors.New("a\x00b")
	for name, test := range map[string]struct {
		prepare func(s *shop)
		fail    func() error
		want    func(r InvoiceResult) bool
	}{
		"succeeded": {result(gatewaytest.OpCreateInvoice, raw), func() error { panic("no such table") }, func(r InvoiceResult) bool {
			return string(r.Invoice.Raw) == raw && !r.Invoice.CreatedAt.IsZero() && r.Reason == ""
		}},
		"unknown": {inject(gatewaytest.FaultPage(502)), func() error { return failure }, func(r InvoiceResult) bool {
			return r.StatusCode == 502 && !r.SentAt.IsZero() && len(r.Body) > 0 && strings.Contains(r.Reason, "outcome unknown")
		}},
		"rejected": {refused(400), func() error { return failure }, func(r InvoiceResult) bool { return r.Reason != "" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			test.prepare(s)
			works := s.cfg.OnInvoice
			s.cfg.OnInvoice = func(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
				return errors.Join(works(ctx, tx, r), test.fail())
			}
			job, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			if told := committed(t, "A-17"); job.State != failed || told != "" || !strings.Contains(string(job.Output()), `"delivered": false`) {
				t.Errorf("%s, told %q, stored %s", job.State, told, job.Output())
			}
			if text := job.Errors[0].Error; name != "succeeded" && (!errors.Is(err, failure) || text != "a\ufffdb") {
				t.Errorf("%q: %v", text, err)
			}
			s.cfg.OnInvoice = works
			job, _ = s.runInvoice(job)
			if told := committed(t, "A-17"); told != name || job.FinalizedAt == nil || len(s.gw.Requests()) != 1 {
				t.Errorf("%s, told %q, %d were sent", job.State, told, len(s.gw.Requests()))
			}
			first, second := s.results[0], s.results[1]
			text1, err1 := json.Marshal(first)
			text2, err2 := json.Marshal(second)
			if check(t, errors.Join(err1, err2)); !test.want(first) || !test.want(second) || string(text1) != string(text2) {
				t.Errorf("told %s, then %s", text1, text2)
			}
		})
	}
}

func result(op gatewaytest.Operation, text string) func(*shop) {
	return func(s *shop) { s.gw.SetResult(op, text) }
}

// Whether the COMMIT is lost or the response to it, the merchant receives the result once.
func TestInvoice_commitLost(t *testing.T) {
	for name, test := range map[string]struct {
		lost    func(net.Conn, []byte) (int, error)
		prepare func(*shop)
		state   rivertype.JobState
		told    string // after the run
	}{
		"the response, of a success":   {responseLost, func(*shop) {}, completed, "succeeded"},
		"the response, of a rejection": {responseLost, refused(400), cancelled, "rejected"},
		"the statement":                {statementLost, func(*shop) {}, failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			test.prepare(s)
			s.cfg.Pool = losesCommit(t, test.lost)
			job, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			if _, cancelled := errors.AsType[*river.JobCancelError](err); err == nil || cancelled || len(s.results) != 1 {
				t.Fatalf("%v, %d calls: nothing was lost", err, len(s.results))
			}
			_, again := undelivered(job)
			if told := committed(t, "A-17"); job.State != test.state || told != test.told || again {
				t.Errorf("%s, told %q, stored %s", job.State, told, job.Output())
			}
			if test.told != "" {
				return
			}
			s.cfg.Pool = pool
			_, _ = s.runInvoice(job)
			if told := committed(t, "A-17"); told != "succeeded" || len(s.results[1].Invoice.Raw) == 0 || len(s.gw.Requests()) != 1 {
				t.Errorf("told %q, %+v", told, s.results)
			}
		})
	}
}

// losesCommit returns a pool whose connections send a COMMIT by a function.
func losesCommit(t *testing.T, send func(net.Conn, []byte) (int, error)) *pgxpool.Pool {
	t.Helper()
	cfg := pool.Config()
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return commitConn{conn, send}, err
	}
	losing, err := pgxpool.NewWithConfig(t.Context(), cfg)
	check(t, err)
	t.Cleanup(losing.Close)
	return losing
}

type commitConn struct {
	net.Conn
	send func(net.Conn, []byte) (int, error)
}

func (c commitConn) Write(p []byte) (int, error) {
	if !bytes.Contains(p, []byte("commit\x00")) {
		return c.Conn.Write(p)
	}
	return c.send(c.Conn, p)
}

func responseLost(conn net.Conn, p []byte) (int, error) {
	n, err1 := conn.Write(p)
	_, err2 := conn.Read(make([]byte, 1)) // it has committed
	return n, errors.Join(err1, err2, conn.Close())
}

func statementLost(conn net.Conn, _ []byte) (int, error) { return 0, conn.Close() }

// A run that is overtaken by another, because the engine took its process for dead, tells nothing.
func TestInvoice_takenOver(t *testing.T) {
	for name, overtake := range map[string]string{
		"another run":                  `UPDATE river_job SET attempted_at = attempted_at + interval '1 second'`,
		"another run, which has ended": `UPDATE river_job SET state = 'cancelled', finalized_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.with(gateway.WithObserver(gateway.Observer{End: func(context.Context, gateway.Call) { s.exec(overtake) }}))
			job, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			if stored, ok := undelivered(job); len(s.results) != 0 || !ok || stored.Outcome != gateway.OutcomeSucceeded {
				t.Errorf("told %v, stored %+v: %v", s.results, stored, err)
			}
		})
	}
}

// The job of an unknown order is not sent again, also by hand, until a person has looked the order up.
func TestInvoice_resolved(t *testing.T) {
	s := newShop(t)
	inject(gatewaytest.FaultReset())(s)
	job := s.insert(request("A-17"), InsertOptions{})
	for n, told := range []string{"unknown", "unknown, unknown", "unknown, unknown, succeeded"} {
		if n == 2 {
			pending, err := s.guard.Pending(t.Context(), gateway.PendingQuery{})
			check(t, err)
			check(t, s.guard.Resolve(t.Context(), pending[0], gateway.Finding{By: "anna@shop.example", Margin: time.Microsecond}))
		}
		if n > 0 {
			must(queue.JobRetry(t.Context(), job.ID))
		}
		_, _ = s.runInvoice(job)
		if got := committed(t, "A-17"); got != told || len(s.gw.Requests()) != max(1, n) {
			t.Errorf("told %q, want %q; %d were sent", got, told, len(s.gw.Requests()))
		}
	}
}

// An order has one job, unless that was cancelled, if the merchant's transaction commits.
func TestInsertInvoiceTx(t *testing.T) {
	s := newShop(t)
	insert := func(r gateway.InvoiceRequest, o InsertOptions, afterwards error) (*rivertype.JobRow, error) {
		var job *rivertype.JobRow
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			inserted, err := InsertInvoiceTx(t.Context(), queue, tx, r, o)
			if inserted != nil {
				job = inserted.Job
			}
			return errors.Join(err, afterwards)
		})
		return job, err
	}
	equal, other := request("A-17"), request("A-17")
	equal.Price = decimal.RequireFromString("10.500000000")
	other.CoinSymbol = "BTC"
	refused(400)(s)
	rolledBack := errors.New("rolled back")
	var before *rivertype.JobRow
	for _, test := range []struct {
		name    string
		request gateway.InvoiceRequest
		options InsertOptions
		fails   error // the merchant's transaction, afterwards
		want    error
		isNew   bool
		run     rivertype.JobState // then; empty for no run
	}{
		{"rolled back", request("A-17"), InsertOptions{}, rolledBack, rolledBack, true, ""},
		{"the first", request("A-17"), InsertOptions{}, nil, nil, true, ""},
		{"a second, equal request", equal, InsertOptions{}, nil, nil, false, cancelled},
		{"after a rejection", request("A-17"), InsertOptions{}, nil, nil, true, completed},
		{"after a success", request("A-17"), InsertOptions{}, nil, nil, false, ""},
		{"another request", other, InsertOptions{}, nil, ErrOtherRequest, false, ""},
		{"an invalid request", gateway.InvoiceRequest{OrderID: "A-18"}, InsertOptions{}, nil, gateway.ErrInvalidArgument, false, ""},
		{"another merchant", request("A-17"), InsertOptions{Merchant: "shop-b"}, nil, nil, true, ""},
	} {
		job, err := insert(test.request, test.options, test.fails)
		if !errors.Is(err, test.want) || job != nil && test.isNew == (before != nil && job.ID == before.ID) {
			t.Errorf("%s: job %+v after %+v: %v", test.name, job, before, err)
		}
		if job != nil {
			before = job
		}
		if test.run != "" {
			if job, err = s.runInvoice(job); job.State != test.run {
				t.Errorf("%s: %s: %v", test.name, job.State, err)
			}
		}
	}
	if n := must(queue.JobList(t.Context(), nil)); len(n.Jobs) != 3 {
		t.Errorf("%d jobs", len(n.Jobs))
	}
}

// Everything is sent as it is in the request, with every digit of an amount.
func TestInsertInvoiceTx_digits(t *testing.T) {
	s := newShop(t)
	for price, wire := range map[string]string{
		"10.50": "10.50", "0.000000000000000000000000000001": "0.000000000000000000000000000001", "1e3": "1000",
		"12345678901234567890123456789012.10": "12345678901234567890123456789012.10",
	} {
		_, _ = s.runInvoice(s.insert(gateway.InvoiceRequest{
			OrderID: "of " + price, Price: decimal.RequireFromString(price), Amount: decimal.RequireFromString("7.0"),
			BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
		}, InsertOptions{}))
		sent := s.gw.Requests()
		body := string(sent[len(sent)-1].Body)
		for _, member := range []string{
			`"price":"` + wire + `"`, `"amount":"7.0"`, `"orderId":"of ` + price,
			`"baseCurrency":"usd"`, `"coinSymbol":"USDT"`, `"networkName":"Tron"`,
		} {
			if !strings.Contains(body, member) {
				t.Errorf("%s is not in %s", member, body)
			}
		}
	}
}

// Jobs for several merchants are sent with the options of each.
func TestInvoice_merchants(t *testing.T) {
	s := newShop(t, sqlguard.WithMerchants())
	s.cfg.APIKey = "another-key"
	shared := append(make([]gateway.CallOption, 0, 2), gateway.WithAPIKey(s.gw.APIKey))
	s.cfg.Merchant = func(_ context.Context, merchant string) ([]gateway.CallOption, error) {
		if merchant != "shop-b" {
			return nil, errors.New("unknown\x00merchant")
		}
		return shared, nil
	}
	job, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{Merchant: "shop-b"}))
	order, err2 := s.guard.Order(t.Context(), "shop-b", "A-17")
	if check(t, err2); job.State != completed || s.results[0].Merchant != "shop-b" || order.State != gateway.OrderCreated {
		t.Errorf("%s, told %+v, %s: %v", job.State, s.results, order.State, err)
	}
	if shared[:2][1] != nil {
		t.Error("an array of the merchant's was written to")
	}
	job, err = s.runInvoice(s.insert(request("A-17"), InsertOptions{Merchant: "shop-c", Job: river.InsertOpts{MaxAttempts: 1}}))
	told := committed(t, "A-17")
	if job.State != cancelled || told != "succeeded, not sent" || !strings.Contains(job.Errors[0].Error, "unknown\ufffdmerchant") {
		t.Errorf("%s, told %q, %+v: %v", job.State, told, job.Errors, err)
	}
}

// A run that was interrupted uses up no attempt, whatever it returns.
func TestTryAgain(t *testing.T) {
	refused := &gateway.APIError{StatusCode: http.StatusTooManyRequests}
	job := &rivertype.JobRow{Attempt: 25, MaxAttempts: 25}
	interrupted, cancel1 := context.WithCancel(t.Context())
	cancel1()
	expired, cancel2 := context.WithTimeout(t.Context(), 0)
	defer cancel2()
	for ctx, isInterrupted := range map[context.Context]bool{t.Context(): false, expired: false, interrupted: true} {
		err, last := tryAgain(ctx, refused), isLastAttempt(ctx, job)
		if !errors.Is(err, gateway.ErrRateLimited) || errors.Is(err, context.Canceled) != isInterrupted || last == isInterrupted {
			t.Errorf("%v: %v, last: %v", ctx.Err(), err, last)
		}
	}
}
