package rivergateway

import (
	"cmp"
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

// withdrawalTests are inquiries: what each does with the job, and what the merchant is told.
var withdrawalTests = map[string]struct {
	prepare func(s *shop)
	last    bool // the engine makes no further attempt
	event   river.EventKind
	id      string // of the withdrawal, if it is not that of the gateway
	status  gateway.WithdrawalStatus
	reason  bool
	calls   int
	stored  []string
}{
	"pending":                    {prepare: withdrawalStatus("PENDING"), last: true, event: river.EventKindJobSnoozed},
	"a status that is not known": {prepare: withdrawalStatus("SENDING"), last: true, event: river.EventKindJobSnoozed},
	"completed":                  {prepare: withdrawalStatus("COMPLETED"), event: river.EventKindJobCompleted, status: "COMPLETED", calls: 1},
	"failed":                     {prepare: withdrawalStatus("FAILED"), event: river.EventKindJobCompleted, status: "FAILED", calls: 1},
	"a failure that may pass":    {prepare: wrongWithdrawal(gatewaytest.FaultPage(502)), last: true, event: river.EventKindJobSnoozed},
	"a page of a CDN":            {prepare: wrongWithdrawal(gatewaytest.FaultPage(http.StatusForbidden)), last: true, event: river.EventKindJobSnoozed},
	"a page of a CDN with 200":   {prepare: wrongWithdrawal(gatewaytest.FaultPage(http.StatusOK)), last: true, event: river.EventKindJobSnoozed},
	"not found yet":              {prepare: refusedInquiry("23 hours", http.StatusNotFound), last: true, event: river.EventKindJobSnoozed},
	"a fee that is not known yet": {
		prepare: func(s *shop) {
			s.gw.SetResult(gatewaytest.OpWithdrawal, `{"status":"PENDING","destination":"T1","amount":"120.50","fee":null,`+
				`"coin":"USDT","network":"Tron","withdrawRequestId":"`+s.withdrawal()+`"}`)
		},
		last: true, event: river.EventKindJobSnoozed,
	},
	"a status that is final by the configuration": {
		prepare: func(s *shop) {
			s.cfg.Final = []gateway.WithdrawalStatus{"CANCELED"}
			withdrawalStatus("CANCELED")(s)
		},
		event: river.EventKindJobCompleted, status: "CANCELED", calls: 1,
	},
	"refused on the first day": {prepare: refusedInquiry("23 hours", http.StatusForbidden), last: true, event: river.EventKindJobSnoozed},
	"refused after a day":      {prepare: refusedInquiry("1 day", http.StatusForbidden), event: river.EventKindJobFailed},
	"refused after a day, for the last time": {
		prepare: refusedInquiry("1 day", http.StatusForbidden), last: true, event: river.EventKindJobCancelled, reason: true, calls: 1,
	},
	"not found after a day, for the last time": {
		prepare: refusedInquiry("1 day", http.StatusNotFound), last: true, event: river.EventKindJobCancelled, reason: true, calls: 1,
	},
	"a page of a CDN after a day": {
		prepare: func(s *shop) { s.age("1 day"); wrongWithdrawal(gatewaytest.FaultPage(http.StatusForbidden))(s) }, last: true, event: river.EventKindJobSnoozed,
	},
	"an end without an amount": {
		prepare: func(s *shop) {
			s.cfg.Options = append(s.cfg.Options, gateway.WithHTTPClient(&http.Client{Transport: respondWith(`{"status":"COMPLETED"}`)}))
		},
		event: river.EventKindJobCompleted, status: "COMPLETED", reason: true, calls: 1,
	},
	"an end with a NUL in a text": {
		prepare: func(s *shop) {
			s.cfg.Options = append(s.cfg.Options, gateway.WithHTTPClient(&http.Client{Transport: respondWith(fmt.Sprintf(
				`{"status":"COMPLETED","destination":"T\u0000","amount":"1","fee":"1","coin":"A\\u0000","network":"","withdrawRequestId":%q}`, s.withdrawal()))}))
		},
		event: river.EventKindJobCompleted, status: "COMPLETED", calls: 1, stored: []string{"\"T\ufffd\"", `"A\\u0000"`},
	},
	"an identifier that no inquiry can have": {
		prepare: func(s *shop) { s.exec(`UPDATE river_job SET args = args || '{"withdrawRequestId": ".."}'`) },
		event:   river.EventKindJobCancelled, id: "..", reason: true, calls: 1,
	},
	"no options for the merchant": {
		prepare: func(s *shop) { s.exec(`UPDATE river_job SET args = args || '{"merchant": "shop-b"}'`) },
		event:   river.EventKindJobFailed,
	},
}

func TestWithdrawal(t *testing.T) {
	for name, test := range withdrawalTests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			var results []WithdrawalResult
			s.cfg.OnWithdrawal = func(_ context.Context, _ pgx.Tx, r WithdrawalResult) error {
				results = append(results, r)
				return nil
			}
			o := InsertOptions{}
			if test.last {
				o.Job.MaxAttempts = 1
			}
			job := s.insertWithdrawal(o)
			test.prepare(s)
			job, event, err := run[withdrawalArgs](s, &withdrawalWorker{Jobs: s.jobs()}, job)
			if event != test.event || len(results) != test.calls {
				t.Errorf("the job is %s (%s), told %+v: %v", job.State, event, results, err)
			}
			for _, r := range results {
				if r.Status != test.status || (r.Reason != "") != test.reason || (r.Withdrawal == nil) != test.reason ||
					r.JobID != job.ID || r.WithdrawRequestID != cmp.Or(test.id, s.withdrawal()) {
					t.Errorf("told %+v", r)
				}
			}
			if len(results) > 0 && len(job.Output()) == 0 {
				t.Error("nothing is stored with the job")
			}
			for _, text := range test.stored {
				if !strings.Contains(string(job.Output()), text) {
					t.Errorf("stored with the job: %s", job.Output())
				}
			}
		})
	}
}

// A wait is told once: if OnWithdrawal fails, nothing of it is committed, and the next run
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
