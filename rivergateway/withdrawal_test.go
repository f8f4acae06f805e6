package rivergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// insertWithdrawal inserts the job that waits for the first withdrawal of the gateway.
func (s *shop) insertWithdrawal(o InsertOptions) *rivertype.JobRow {
	s.t.Helper()
	return s.inserted(func(tx pgx.Tx) (*rivertype.JobInsertResult, error) {
		return InsertWithdrawalTx(s.t.Context(), s.river, tx, s.withdrawal(), o)
	})
}

func (s *shop) withdrawal() string { return s.gw.Withdrawals()[0].WithdrawRequestID }

func wrongWithdrawal(f gatewaytest.Fault) func(*shop) {
	return func(s *shop) { s.gw.InjectFault(gatewaytest.OpWithdrawal, 1, f) }
}

// age makes the jobs older.
func (s *shop) age(by string) {
	s.exec(`UPDATE river_job SET created_at = created_at - interval '` + by + `'`)
}

// refusedInquiry refuses the inquiry of a job of some age.
func refusedInquiry(age string, status int) func(*shop) {
	return func(s *shop) {
		s.age(age)
		wrongWithdrawal(gatewaytest.FaultRefuse(status, "No"))(s)
	}
}

func withdrawalStatus(status string) func(*shop) {
	return func(s *shop) { check(s.t, s.gw.SetWithdrawalStatus(s.withdrawal(), status)) }
}

// withdrawalTests are inquiries: what each does with the job, and what the merchant receives when the job ends.
var withdrawalTests = map[string]struct {
	prepare     func(s *shop)
	event, last river.EventKind          // after the run, and if the engine makes no further attempt
	status      gateway.WithdrawalStatus // "" with a reason
	reason      bool
}{
	"pending":                    {withdrawalStatus("PENDING"), snoozed, snoozed, "", false},
	"a status that is not known": {withdrawalStatus("SENDING"), snoozed, snoozed, "", false},
	"completed":                  {withdrawalStatus("COMPLETED"), completed, completed, "COMPLETED", false},
	"failed":                     {withdrawalStatus("FAILED"), completed, completed, "FAILED", false},
	"a failure that may pass":    {wrongWithdrawal(gatewaytest.FaultPage(502)), snoozed, snoozed, "", false},
	"a page of a CDN":            {wrongWithdrawal(gatewaytest.FaultPage(http.StatusForbidden)), snoozed, snoozed, "", false},
	"a page of a CDN with 200":   {wrongWithdrawal(gatewaytest.FaultPage(http.StatusOK)), snoozed, snoozed, "", false},
	"not found yet":              {refusedInquiry("23 hours", http.StatusNotFound), snoozed, snoozed, "", false},
	"refused on the first day":   {refusedInquiry("23 hours", http.StatusForbidden), snoozed, snoozed, "", false},
	"refused after a day":        {refusedInquiry("1 day", http.StatusForbidden), failed, cancelled, "", true},
	"not found after a day":      {refusedInquiry("1 day", http.StatusNotFound), failed, cancelled, "", true},
	"a page after a day":         {func(s *shop) { s.age("1 day"); wrongWithdrawal(gatewaytest.FaultPage(http.StatusForbidden))(s) }, snoozed, snoozed, "", false},
	"an end without an amount":   {responds(`{"status":"COMPLETED"}`), completed, completed, "COMPLETED", true},
	"an invalid identifier":      {func(s *shop) { s.change(`{"withdrawRequestId": ".."}`) }, cancelled, cancelled, "", true},
	"no options for it":          {func(s *shop) { s.change(`{"merchant": "shop-b"}`) }, failed, cancelled, "", true},
	"a fee that is not known yet": {func(s *shop) {
		responds(`{"status":"PENDING","destination":"T1","amount":"120.50","fee":null,"coin":"USDT","network":"Tron","withdrawRequestId":"` + s.withdrawal() + `"}`)(s)
	}, snoozed, snoozed, "", false},
	"a status that is final by the configuration": {func(s *shop) {
		s.cfg.Final = []gateway.WithdrawalStatus{"CANCELED"}
		withdrawalStatus("CANCELED")(s)
	}, completed, completed, "CANCELED", false},
	"an end with a NUL in a text": {func(s *shop) {
		responds(fmt.Sprintf(`{"status":"COMPLETED","destination":"T\u0000","amount":"1","fee":"1","coin":"A\\u0000","network":"","withdrawRequestId":%q}`, s.withdrawal()))(s)
	}, completed, completed, "COMPLETED", false},
}

func TestWithdrawal(t *testing.T) {
	for name, test := range withdrawalTests {
		t.Run(name, func(t *testing.T) {
			atEachAttempt(t, test.event, test.last, func(s *shop, o InsertOptions, want river.EventKind) {
				var results []WithdrawalResult
				s.cfg.OnWithdrawal = func(_ context.Context, _ pgx.Tx, r WithdrawalResult) error {
					results = append(results, r)
					return nil
				}
				job := s.insertWithdrawal(o)
				test.prepare(s)
				job, event, err := run[withdrawalArgs](s, &withdrawalWorker{Jobs: s.jobs()}, job)
				ends := want == completed || want == cancelled
				if event != want || (len(results) == 1) != ends || ends && len(job.Output()) == 0 {
					s.t.Errorf("the job is %s (%s), told %+v, stored %s: %v", job.State, event, results, job.Output(), err)
				}
				for _, r := range results {
					if r.Status != test.status || (r.Reason != "") != test.reason || (r.Withdrawal == nil) != test.reason || r.JobID != job.ID ||
						!strings.Contains(string(job.EncodedArgs), fmt.Sprintf("%q", r.WithdrawRequestID)) {
						s.t.Errorf("told %+v", r)
					}
				}
				if name == "an end with a NUL in a text" && (!strings.Contains(string(job.Output()), "\"T\ufffd\"") || !strings.Contains(string(job.Output()), `"A\\u0000"`)) {
					s.t.Errorf("stored with the job: %s", job.Output())
				}
			})
		})
	}
}

// A wait has one event: if OnWithdrawal fails, nothing of it is committed, and the next run
// calls it again.
func TestWithdrawal_hookFails(t *testing.T) {
	s := newShop(t)
	check(t, s.gw.SetWithdrawalStatus(s.withdrawal(), "COMPLETED"))
	calls := 0
	s.cfg.OnWithdrawal = func(ctx context.Context, tx pgx.Tx, r WithdrawalResult) error {
		calls++
		_, err := tx.Exec(ctx, `INSERT INTO results VALUES ($1, $2, true)`, r.WithdrawRequestID, r.Status)
		if calls == 1 {
			return errors.Join(err, errors.New("no such table"))
		}
		return err
	}
	job := s.insertWithdrawal(InsertOptions{})
	for range 2 {
		job, _, _ = run[withdrawalArgs](s, &withdrawalWorker{Jobs: s.jobs()}, job)
	}
	if results := s.committed(s.withdrawal()); calls != 2 || len(results) != 1 || job.State != rivertype.JobStateCompleted {
		t.Errorf("%d calls, told %v, %s", calls, results, job.State)
	}
	if again := s.insertWithdrawal(InsertOptions{}); again.ID != job.ID {
		t.Error("a withdrawal has two jobs")
	}
}

func TestIntervalAfter(t *testing.T) {
	throttled := &gateway.APIError{StatusCode: http.StatusTooManyRequests, RetryAfter: 20 * time.Minute}
	for _, test := range []struct {
		waited time.Duration
		err    error
		want   time.Duration
	}{
		{-time.Second, nil, minInterval},
		{time.Second, nil, minInterval},
		{time.Minute, nil, 15 * time.Second},
		{time.Hour, nil, maxInterval},
		{time.Second, throttled, 20 * time.Minute},
		{time.Hour, &gateway.APIError{RetryAfter: time.Second}, maxInterval},
		{time.Hour, &gateway.APIError{RetryAfter: 48 * time.Hour}, maxRetryAfter},
	} {
		if got := intervalAfter(test.waited, test.err); got != test.want {
			t.Errorf("after %v and %v: %v, want %v", test.waited, test.err, got, test.want)
		}
	}
}

// The periodic job reports the orders that a person must look up.
func TestPending(t *testing.T) {
	s := newShop(t)
	var reports []PendingReport
	s.cfg.OnPending = func(_ context.Context, r PendingReport) error {
		reports = append(reports, r)
		return nil
	}
	for _, prepare := range []func(){
		func() {},
		func() {
			for _, id := range []string{"A-17", "A-18"} {
				s.ended(id, gateway.OutcomeUnknown)
			}
			s.exec(`UPDATE gateway_orders SET open_since = open_since - 3600000000 WHERE order_id = 'A-18'`)
		},
		func() {
			s.exec(`INSERT INTO gateway_orders (merchant, order_id, gateway, version, open_since, record)
				SELECT '', n, gateway, 1, extract(epoch FROM now()) * 1000000, record FROM gateway_orders, generate_series(1, 1000) AS n WHERE order_id = 'A-17'`)
		},
	} {
		prepare()
		job, _, err := s.runNewPending()
		check(t, err)
		if len(job.Output()) == 0 {
			t.Error("nothing is stored with the job")
		}
	}
	if none := reports[0]; none.Count != 0 || none.Age != 0 || !none.Oldest.IsZero() {
		t.Errorf("%+v", none)
	}
	if two := reports[1]; two.Count != 2 || two.Orders[0].OrderID != "A-18" || two.Age < time.Hour || !two.Oldest.Equal(two.Orders[0].Since) {
		t.Errorf("%+v", two)
	}
	if many := reports[2]; many.Count != 1002 || len(many.Orders) != mostOrders || many.Orders[0].OrderID != "A-18" {
		t.Errorf("%d orders, %d in the report", many.Count, len(many.Orders))
	}
}

// Workers without a shared guard cannot be made, also not by an option of the client.
func TestNew(t *testing.T) {
	s := newShop(t)
	for name, change := range map[string]func(*Config){
		"Guard":      func(c *Config) { c.Guard = nil },
		"Pool":       func(c *Config) { c.Pool = nil },
		"RunTimeout": func(c *Config) { c.RunTimeout = -1 },
		"Final":      func(c *Config) { c.Final = []gateway.WithdrawalStatus{"CANCELED", "PENDING"} },
		"baseURL":    func(c *Config) { c.BaseURL = "ftp://gateway.example" },
	} {
		cfg := s.cfg
		change(&cfg)
		_, err := New(cfg)
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.cfg.Options = append(s.cfg.Options, gateway.WithOrderGuard(new(gateway.MemoryGuard)))
	_, _, _ = s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
	s.checkOrder("A-17", gateway.OrderCreated)

	t.Setenv("GATEWAY_BASE_URL", s.gw.URL)
	t.Setenv("GATEWAY_API_KEY", s.gw.APIKey)
	s.cfg.BaseURL, s.cfg.APIKey = "", ""
	if job, _, err := s.runInvoice(s.insert(request("A-18"), InsertOptions{})); job.State != rivertype.JobStateCompleted {
		t.Errorf("with the environment: %s: %v", job.State, err)
	}
	s.checkOrder("A-18", gateway.OrderCreated)

	workers := river.NewWorkers()
	if jobs := s.jobs(); jobs.AddWorkers(workers) != nil || jobs.AddWorkers(workers) == nil {
		t.Error("the workers can be registered once")
	}
}
