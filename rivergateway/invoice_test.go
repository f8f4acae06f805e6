package rivergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
)

// What the engine does with a job after a run.
const (
	completed = river.EventKindJobCompleted
	cancelled = river.EventKindJobCancelled
	failed    = river.EventKindJobFailed
	snoozed   = river.EventKindJobSnoozed
)

var stateAfter = map[river.EventKind]rivertype.JobState{
	completed: rivertype.JobStateCompleted, cancelled: rivertype.JobStateCancelled, failed: rivertype.JobStateAvailable, snoozed: rivertype.JobStateScheduled,
}

// noTable is the state of an order whose table is gone.
const noTable gateway.OrderState = -1

// invoiceTests are the ends of a CreateInvoice: what each does with the job, what the merchant receives when the job ends, and what
// the guard has of the order.
var invoiceTests = map[string]struct {
	prepare     func(s *shop)
	event, last river.EventKind // after the run, and if the engine makes no further attempt
	outcome     string
	order       gateway.OrderState
	sent        int
}{
	"created":                              {func(*shop) {}, completed, completed, "succeeded", gateway.OrderCreated, 1},
	"unknown":                              {inject(gatewaytest.FaultCommitThenDrop()), cancelled, cancelled, "unknown", gateway.OrderUnknown, 1},
	"unknown, where it may be repeated":    {(*shop).losesRepeatable, failed, cancelled, "unknown", gateway.OrderUnknown, 1},
	"rejected":                             {inject(gatewaytest.FaultRefuse(http.StatusUnprocessableEntity, "No")), cancelled, cancelled, "rejected", gateway.OrderFree, 1},
	"rejected for now":                     {inject(gatewaytest.FaultRefuse(http.StatusTooManyRequests, "Slow down")), failed, cancelled, "rejected", gateway.OrderFree, 1},
	"not sent":                             {(*shop).cannotConnect, failed, cancelled, "not sent", gateway.OrderFree, 0},
	"in flight elsewhere":                  {func(s *shop) { s.doNotWait(); s.begin() }, snoozed, snoozed, "", gateway.OrderInFlight, 0},
	"created elsewhere":                    {func(s *shop) { s.ended("A-17", gateway.OutcomeSucceeded) }, completed, completed, "succeeded", gateway.OrderCreated, 0},
	"created elsewhere, for another price": {func(s *shop) { s.ended("A-17", gateway.OutcomeSucceeded); s.change(`{"price": "99.50"}`) }, cancelled, cancelled, "conflict", gateway.OrderCreated, 0},
	"unknown from before":                  {func(s *shop) { s.ended("A-17", gateway.OutcomeUnknown) }, cancelled, cancelled, "unknown", gateway.OrderUnknown, 0},
	"the guard has no database":            {func(s *shop) { s.exec(`DROP TABLE gateway_orders CASCADE`) }, failed, cancelled, "unknown", noTable, 0},
	"no options for the merchant":          {func(s *shop) { s.change(`{"merchant": "shop-b"}`) }, failed, cancelled, "not sent", gateway.OrderFree, 0},
}

// atEachAttempt runs a test with attempts left, and with none.
func atEachAttempt(t *testing.T, event, last river.EventKind, test func(s *shop, o InsertOptions, want river.EventKind)) {
	t.Run("attempts are left", func(t *testing.T) { test(newShop(t), InsertOptions{}, event) })
	t.Run("the last attempt", func(t *testing.T) { test(newShop(t), InsertOptions{Job: river.InsertOpts{MaxAttempts: 1}}, last) })
}

func TestInvoice(t *testing.T) {
	for name, test := range invoiceTests {
		t.Run(name, func(t *testing.T) {
			atEachAttempt(t, test.event, test.last, func(s *shop, o InsertOptions, want river.EventKind) {
				job := s.insert(request("A-17"), o)
				test.prepare(s)
				job, event, err := s.runInvoice(job)
				if event != want || job.State != stateAfter[want] {
					s.t.Errorf("the job is %s (%s), want %s: %v", job.State, event, want, err)
				}
				outcome := test.outcome
				if want == failed {
					outcome = ""
				}
				if results := strings.Join(s.committed("A-17"), ", "); results != outcome {
					s.t.Errorf("told %q, want %q", results, outcome)
				}
				s.checkOrder("A-17", test.order)
				if sent := len(s.gw.Requests()); sent != test.sent {
					s.t.Errorf("%d were sent, want %d", sent, test.sent)
				}
				stored, ok := InvoiceResultOf(job)
				if created := stored.Invoice != nil && len(stored.Invoice.Raw) > 0; ok != (outcome != "") || ok && stored.Outcome.String() != outcome ||
					created != (outcome == "succeeded") || outcome == "conflict" && !strings.Contains(stored.Reason, "an invoice for another request, of price") {
					s.t.Errorf("the job has %+v, %v", stored, ok)
				}
			})
		})
	}
}

// change changes the arguments of the jobs.
func (s *shop) change(args string) { s.exec(`UPDATE river_job SET args = args || '` + args + `'`) }

func inject(f gatewaytest.Fault) func(*shop) {
	return func(s *shop) { s.gw.InjectFault(gatewaytest.OpCreateInvoice, 1, f) }
}

func (s *shop) cannotConnect() { s.cfg.BaseURL = "http://127.0.0.1:1" }

// losesRepeatable loses a response of a gateway that returns the existing invoice.
func (s *shop) losesRepeatable() {
	inject(gatewaytest.FaultCommitThenDrop())(s)
	s.cfg.Options = append(s.cfg.Options, gateway.WithIdempotentOrders())
}

// order is an order, as another process sends it.
func (s *shop) order(id string) gateway.Order {
	return gateway.Order{Gateway: s.gw.URL, Request: request(id)}
}

// begin begins the order A-17 in another process.
func (s *shop) begin() {
	_, err := s.guard.Begin(s.t.Context(), s.order("A-17"))
	check(s.t, err)
}

// ended has another process send and end an order.
func (s *shop) ended(id string, outcome gateway.Outcome) {
	o := s.order(id)
	lease, err := s.guard.Begin(s.t.Context(), o)
	check(s.t, err)
	o.Attempt = lease.Attempt
	_, err = s.guard.End(s.t.Context(), o, gateway.OrderRecord{Outcome: outcome, Request: request(id), Invoice: []byte(elsewhere)})
	check(s.t, err)
}

const elsewhere = `{"from": "elsewhere"}`

// doNotWait keeps a run from waiting for another call.
func (s *shop) doNotWait() {
	s.cfg.Options = append(s.cfg.Options, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: 100 * time.Millisecond}))
}

func (s *shop) exec(text string) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), text)
	check(s.t, err)
}

func (s *shop) checkOrder(id string, want gateway.OrderState) {
	s.t.Helper()
	if want == noTable {
		return
	}
	order, err := s.guard.Order(s.t.Context(), "", id)
	check(s.t, err)
	if order.State != want {
		s.t.Errorf("the order is %s, want %s", order.State, want)
	}
}

// The merchant's event is stored with the job: an unknown outcome with its evidence, a success as the response came, also if
// PostgreSQL cannot store that as JSON.
func TestInvoice_result(t *testing.T) {
	const raw = `{"b":"\u0000","a":1e99999,"z":1.500}`
	for name, test := range map[string]struct {
		prepare func(s *shop)
		want    func(r InvoiceResult) bool
	}{
		"unknown": {inject(gatewaytest.FaultPage(502)), func(r InvoiceResult) bool {
			return r.StatusCode == http.StatusBadGateway && !r.SentAt.IsZero() && len(r.Body) > 0 && strings.Contains(r.Reason, "outcome unknown")
		}},
		"created": {responds(raw), func(r InvoiceResult) bool {
			return r.Invoice != nil && string(r.Invoice.Raw) == raw && !r.Invoice.CreatedAt.IsZero()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			test.prepare(s)
			job, _, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			stored, ok := InvoiceResultOf(job)
			told := s.results[0]
			if !ok || !stored.Delivered || told.Delivered || stored.JobID != job.ID || !test.want(stored) || !test.want(told) {
				t.Errorf("stored %+v, told %+v: %v", stored, told, err)
			}
			told.Delivered = true
			if stored.Invoice != nil && told.Invoice != nil && stored.Invoice.CreatedAt.Equal(told.Invoice.CreatedAt) {
				stored.Invoice, told.Invoice = nil, nil // its other members are not stored
			}
			text1, err1 := json.Marshal(stored)
			text2, err2 := json.Marshal(told)
			if check(t, errors.Join(err1, err2)); string(text1) != string(text2) {
				t.Errorf("stored %s, told %s", text1, text2)
			}
		})
	}
}

// responds makes the gateway respond with a result.
func responds(result string) func(*shop) {
	return func(s *shop) {
		s.cfg.Options = append(s.cfg.Options, gateway.WithHTTPClient(&http.Client{Transport: respondWith(result)}))
	}
}

// If OnInvoice fails, nothing of it is committed. The next run calls it with the same
// result, and sends nothing.
func TestInvoice_hookFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("no such table") },
		"a panic":  func() error { panic("no such table") },
	} {
		for outcome, fault := range map[string]gatewaytest.Fault{
			"succeeded": {}, "unknown": gatewaytest.FaultCommitThenDrop(), "rejected": gatewaytest.FaultRefuse(http.StatusBadRequest, "No"),
		} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				s := newShop(t)
				if outcome != "succeeded" {
					inject(fault)(s)
				}
				works := s.cfg.OnInvoice
				s.cfg.OnInvoice = func(ctx context.Context, tx pgx.Tx, r InvoiceResult) error {
					return errors.Join(works(ctx, tx, r), fail())
				}
				job, event, _ := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
				if r, ok := InvoiceResultOf(job); event != river.EventKindJobFailed || len(s.committed("A-17")) != 0 || r.Delivered || !ok {
					t.Errorf("%s, told %v", event, s.committed("A-17"))
				}
				s.cfg.OnInvoice = works
				job, _, _ = s.runInvoice(job)
				if results := s.committed("A-17"); len(results) != 1 || results[0] != outcome || job.FinalizedAt == nil {
					t.Errorf("%s, told %v", job.State, results)
				}
				first, second := s.results[0], s.results[1]
				if len(s.gw.Requests()) != 1 || first.Outcome != second.Outcome || first.Reason != second.Reason ||
					outcome == "succeeded" && string(first.Invoice.Raw) != string(second.Invoice.Raw) {
					t.Errorf("told %+v, then %+v; %d were sent", first, second, len(s.gw.Requests()))
				}
			})
		}
	}
}

// A NUL in a text of the merchant's code is stored as U+FFFD, and the job has the state that
// the error calls for.
func TestWorkers_textWithNUL(t *testing.T) {
	failure := errors.New("a\x00b")
	for name, test := range map[string]struct {
		change func(*Config)
		run    func(s *shop) (*rivertype.JobRow, river.EventKind, error)
	}{
		"OnInvoice": {func(cfg *Config) {
			cfg.OnInvoice = func(context.Context, pgx.Tx, InvoiceResult) error { return failure }
		}, func(s *shop) (*rivertype.JobRow, river.EventKind, error) {
			return s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
		}},
		"OnWithdrawal": {func(cfg *Config) {
			cfg.OnWithdrawal = func(context.Context, pgx.Tx, WithdrawalResult) error { return failure }
		}, func(s *shop) (*rivertype.JobRow, river.EventKind, error) {
			withdrawalStatus("COMPLETED")(s)
			return run[withdrawalArgs](s, &withdrawalWorker{Jobs: s.jobs()}, s.insertWithdrawal(InsertOptions{}))
		}},
		"OnPending": {func(cfg *Config) {
			cfg.OnPending = func(context.Context, PendingReport) error { return failure }
		}, (*shop).runNewPending},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			test.change(&s.cfg)
			job, event, err := test.run(s)
			if event != river.EventKindJobFailed || len(job.Errors) != 1 || !strings.Contains(job.Errors[0].Error, "a\ufffdb") {
				t.Errorf("%s, %+v", event, job.Errors)
			}
			if !errors.Is(err, failure) {
				t.Error(err)
			}
		})
	}
}

func (s *shop) runNewPending() (*rivertype.JobRow, river.EventKind, error) {
	s.t.Helper()
	inserted, err := s.river.Insert(s.t.Context(), pendingArgs{}, nil)
	check(s.t, err)
	return run[pendingArgs](s, &pendingWorker{Jobs: s.jobs()}, inserted.Job)
}

// If the response to the COMMIT is lost, or the COMMIT, the merchant receives the stored result
// if the merchant was. The next run calls OnInvoice if not.
func TestInvoice_commitLost(t *testing.T) {
	for name, test := range map[string]struct {
		lost  func(net.Conn, []byte) (int, error)
		calls int
		fault func(*shop)
		state rivertype.JobState
	}{
		"the response, of a success":   {responseLost, 1, func(*shop) {}, rivertype.JobStateCompleted},
		"the response, of a rejection": {responseLost, 1, inject(gatewaytest.FaultRefuse(http.StatusBadRequest, "No")), rivertype.JobStateCancelled},
		"the statement":                {statementLost, 0, func(*shop) {}, rivertype.JobStateAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			test.fault(s)
			works := s.cfg.Pool
			s.cfg.Pool = s.losesCommit(test.lost)
			job, _, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			r, ok := InvoiceResultOf(job)
			if _, cancelled := errors.AsType[*river.JobCancelError](err); err == nil || cancelled || len(s.results) != 1 {
				t.Fatalf("%v, %d calls: nothing was lost", err, len(s.results))
			}
			if committed := len(s.committed("A-17")); job.State != test.state || committed != test.calls || r.Delivered != (test.calls == 1) || !ok {
				t.Errorf("%s; told %d times, stored: %v, %v", job.State, committed, r.Delivered, ok)
			}
			if test.calls == 1 {
				return
			}
			s.cfg.Pool = works
			job, _, _ = s.runInvoice(job)
			r, _ = InvoiceResultOf(job)
			if committed := len(s.committed("A-17")); committed != 1 || !r.Delivered || r.Invoice == nil || len(s.gw.Requests()) != 1 {
				t.Errorf("told %d times, stored: %+v", committed, r)
			}
		})
	}
}

// losesCommit returns a pool whose connections send a COMMIT by a function.
func (s *shop) losesCommit(send func(net.Conn, []byte) (int, error)) *pgxpool.Pool {
	s.t.Helper()
	cfg := s.pool.Config()
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return commitConn{conn, send}, err
	}
	pool, err := pgxpool.NewWithConfig(s.t.Context(), cfg)
	check(s.t, err)
	s.t.Cleanup(pool.Close)
	return pool
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

// The tables of River can be in a schema of their own.
func TestMarkDelivered_schema(t *testing.T) {
	s := newShop(t)
	job, _, _ := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
	s.exec(`CREATE SCHEMA "Jobs"; CREATE TABLE "Jobs".river_job AS SELECT id, jsonb_build_object('a', 1) AS metadata FROM river_job`)
	check(t, s.inTx(func(tx pgx.Tx) error { return markDelivered(t.Context(), tx, "Jobs", job) }))
	var metadata string
	check(t, s.pool.QueryRow(t.Context(), `SELECT metadata FROM "Jobs".river_job`).Scan(&metadata))
	if want := fmt.Sprintf(`{"a": 1, "gateway_delivered": %q}`, runOf(job)); metadata != want {
		t.Errorf("%s, want %s", metadata, want)
	}
}

// A run that is overtaken by another, because the engine took its process for dead, tells
// nothing.
func TestInvoice_takenOver(t *testing.T) {
	for name, overtake := range map[string]string{
		"another run":                  `UPDATE river_job SET attempted_at = attempted_at + interval '1 second'`,
		"another run, which has ended": `UPDATE river_job SET state = 'cancelled', finalized_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.cfg.Options = append(s.cfg.Options, gateway.WithHTTPClient(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				s.exec(overtake)
				return http.DefaultTransport.RoundTrip(req)
			})}))
			job, _, _ := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			stored, ok := InvoiceResultOf(job)
			if len(s.results) != 0 || !ok || stored.Delivered || stored.Outcome != gateway.OutcomeSucceeded {
				t.Errorf("told %v, stored %+v", s.results, stored)
			}
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// respondWith responds to every invoice with this result.
func respondWith(result string) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_, _ = io.Copy(io.Discard, req.Body)
			_ = req.Body.Close()
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
			Body: io.NopCloser(strings.NewReader(`{"message":"Operation was successful.","result":` + result + `,"meta":{}}`)),
		}, nil
	}
}

// A person looks up an order with an unknown outcome, and has its job run again.
func TestInvoice_resolved(t *testing.T) {
	for name, test := range map[string]struct {
		exists bool
		found  []byte
		sent   int
	}{"an invoice exists": {true, []byte(elsewhere), 1}, "none exists": {false, nil, 2}} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			inject(gatewaytest.FaultReset())(s)
			if test.exists {
				s.gw.ClearFaults()
				inject(gatewaytest.FaultCommitThenDrop())(s)
			}
			job, _, _ := s.runInvoice(s.insert(request("A-17"), InsertOptions{}))

			job, err := s.river.JobRetry(t.Context(), job.ID) // too early
			check(t, err)
			job, _, _ = s.runInvoice(job)
			if results := s.committed("A-17"); len(results) != 2 || results[1] != "unknown" || s.results[1].SentAt.IsZero() {
				t.Errorf("told %v: %+v", results, s.results)
			}

			pending, err := s.guard.Pending(t.Context(), gateway.PendingQuery{})
			check(t, err)
			check(t, s.guard.Resolve(t.Context(), pending[0], gateway.Finding{Exists: test.exists, By: "anna@shop.example", Invoice: test.found, Margin: time.Microsecond}))
			job, err = s.river.JobRetry(t.Context(), job.ID)
			check(t, err)
			job, _, _ = s.runInvoice(job)
			if results := s.committed("A-17"); job.State != rivertype.JobStateCompleted || len(results) != 3 || results[2] != "succeeded" {
				t.Errorf("%s, told %v", job.State, results)
			}
			if len(s.gw.Requests()) != test.sent {
				t.Errorf("%d were sent, want %d", len(s.gw.Requests()), test.sent)
			}
			if r := s.results[2]; r.Invoice == nil || test.exists != (string(r.Invoice.Raw) == elsewhere) {
				t.Errorf("told %+v", r)
			}
		})
	}
}

// The job of an order is inserted if the merchant's transaction commits, and once.
func TestInsertInvoiceTx(t *testing.T) {
	s := newShop(t)
	rolledBack := errors.New("rolled back")
	err := s.inTx(func(tx pgx.Tx) error {
		_, err := InsertInvoiceTx(t.Context(), s.river, tx, request("A-17"), InsertOptions{})
		return errors.Join(err, rolledBack)
	})
	if err == nil || err.Error() != rolledBack.Error() || s.countJobs() != 0 {
		t.Errorf("%v, %d jobs", err, s.countJobs())
	}
	first := s.insert(request("A-17"), InsertOptions{})
	if again := s.insert(request("A-17"), InsertOptions{}); again.ID != first.ID {
		t.Error("the order has two jobs")
	}
	if other := s.insert(request("A-17"), InsertOptions{Merchant: "shop-b"}); other.ID == first.ID {
		t.Error("two merchants share a job")
	}
	_, _, _ = s.runInvoice(first)
	equal := request("A-17")
	equal.Price = decimal.RequireFromString(equal.Price.StringFixed(9)) // other digits
	if again := s.insert(equal, InsertOptions{}); again.ID != first.ID {
		t.Error("the order has two jobs after the first is completed")
	}
	other := request("A-17")
	other.CoinSymbol = "BTC"
	for want, r := range map[error]gateway.InvoiceRequest{ErrOtherRequest: other, gateway.ErrInvalidArgument: {OrderID: "A-18"}} {
		err := s.inTx(func(tx pgx.Tx) error {
			_, err := InsertInvoiceTx(t.Context(), s.river, tx, r, InsertOptions{})
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if s.countJobs() != 2 {
		t.Errorf("%d jobs", s.countJobs())
	}
}

func (s *shop) countJobs() (n int) {
	s.t.Helper()
	check(s.t, s.pool.QueryRow(s.t.Context(), `SELECT count(*) FROM river_job`).Scan(&n))
	return n
}

// An order that was rejected, or never sent, can be inserted again.
func TestInsertInvoiceTx_afterRejection(t *testing.T) {
	s := newShop(t)
	inject(gatewaytest.FaultRefuse(http.StatusBadRequest, "No"))(s)
	first := s.insert(request("A-17"), InsertOptions{})
	_, _, _ = s.runInvoice(first)
	second := s.insert(request("A-17"), InsertOptions{})
	if job, _, _ := s.runInvoice(second); first.ID == second.ID || job.State != rivertype.JobStateCompleted {
		t.Errorf("job %d is %s", job.ID, job.State)
	}
}

// Every digit of an amount is sent as it is in the request.
func TestInsertInvoiceTx_digits(t *testing.T) {
	s := newShop(t)
	var bodies []string
	s.cfg.Options = append(s.cfg.Options, gateway.WithHTTPClient(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		bodies = append(bodies, string(body))
		return nil, errors.Join(err, errors.New("lost"))
	})}))
	r := request("A-17")
	for _, text := range []string{"10.50", "0.000000000000000000000000000001", "1e3", "12345678901234567890123456789012.10"} {
		bodies, r.OrderID = nil, text
		r.Price = decimal.RequireFromString(text)
		r.Amount = r.Price
		_, _, _ = s.runInvoice(s.insert(r, InsertOptions{}))
		client, err := gateway.New(s.gw.URL, s.gw.APIKey, s.cfg.Options...)
		check(t, err)
		_, _ = client.CreateInvoice(t.Context(), r)
		if len(bodies) != 2 || bodies[0] != bodies[1] {
			t.Errorf("sent %v", bodies)
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
			return nil, errors.New("unknown merchant")
		}
		return shared, nil
	}
	job, _, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{Merchant: "shop-b"}))
	if job.State != rivertype.JobStateCompleted || s.results[0].Merchant != "shop-b" {
		t.Errorf("%s, told %+v: %v", job.State, s.results, err)
	}
	if shared[:2][1] != nil {
		t.Error("an array of the merchant's was written to")
	}
	if order, err := s.guard.Order(t.Context(), "shop-b", "A-17"); err != nil || order.State != gateway.OrderCreated {
		t.Errorf("%+v, %v", order, err)
	}
	job, _, err = s.runInvoice(s.insert(request("A-17"), InsertOptions{Merchant: "shop-c"}))
	if job.State != rivertype.JobStateAvailable || !strings.Contains(err.Error(), "unknown merchant") {
		t.Errorf("%s: %v", job.State, err)
	}
}

// The database has no key.
func TestInvoice_secret(t *testing.T) {
	s := newShop(t)
	s.cfg.Options = append(s.cfg.Options, gateway.WithHTTPClient(&http.Client{Transport: respondWith(`{"apiKey":"` + s.gw.APIKey + `"}`)}))
	_, _, _ = s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
	s.cfg.BaseURL = s.gw.URL
	_, _, _ = s.runInvoice(s.insert(request("A-18"), InsertOptions{}))
	var rows string
	check(t, s.pool.QueryRow(t.Context(), `SELECT string_agg(river_job::text, ' ') FROM river_job`).Scan(&rows))
	if !strings.Contains(rows, "A-17") || strings.Contains(rows, s.gw.APIKey) {
		t.Errorf("the jobs are %s", rows)
	}
}

// A run that was interrupted uses up no attempt, whatever it returns.
func TestTryAgain(t *testing.T) {
	refused := &gateway.APIError{StatusCode: http.StatusTooManyRequests}
	running, cancel := context.WithCancel(t.Context())
	job := &rivertype.JobRow{Attempt: 25, MaxAttempts: 25}
	if err := tryAgain(running, refused); err != error(refused) || !isLastAttempt(running, job) {
		t.Errorf("%v, last: %v", err, isLastAttempt(running, job))
	}
	cancel()
	if err := tryAgain(running, refused); !errors.Is(err, context.Canceled) || !errors.Is(err, gateway.ErrRateLimited) || isLastAttempt(running, job) {
		t.Errorf("interrupted: %v, last: %v", err, isLastAttempt(running, job))
	}
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := tryAgain(expired, refused); err != error(refused) || !isLastAttempt(expired, job) {
		t.Errorf("after the time of a run: %v", err)
	}
}
