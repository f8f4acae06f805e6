package rivergateway

import (
	"context"
	"errors"
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
func (s *shop) insertWithdrawal(attempts int) *rivertype.JobRow {
	return must(inTx(nil, InsertWithdrawalTx, s.withdrawal(), InsertOptions{Job: river.InsertOpts{MaxAttempts: attempts}})).Job
}

func (s *shop) withdrawal() string { return s.gw.Withdrawals()[0].WithdrawRequestID }

func status(text string) func(*shop) {
	return func(s *shop) { must(0, s.gw.SetWithdrawalStatus(s.withdrawal(), text)) }
}

// after prepares the inquiry of a job of some age.
func after(age string, prepare func(*shop)) func(*shop) {
	return func(s *shop) {
		s.exec(`UPDATE river_job SET created_at = created_at - interval '` + age + `'`)
		prepare(s)
	}
}

func withdrawn(text string) func(*shop) {
	return func(s *shop) { s.gw.SetResult(gatewaytest.OpWithdrawal, text) }
}

// What an inquiry does with the job, with attempts left and after the last one, and what the merchant receives when the
// job ends: a status with the withdrawal, or a reason, or both a status and a reason. If OnWithdrawal fails, the next
// run calls it again.
func TestWithdrawal(t *testing.T) {
	const noFee = `{"status":"PENDING","destination":"T1","amount":"120.50","fee":null,"coin":"USDT","network":"Tron","withdrawRequestId":"w"}`
	for name, test := range map[string]struct {
		prepare     func(s *shop)
		state, last rivertype.JobState
		status      gateway.WithdrawalStatus
		reason      bool
	}{
		"pending":                     {status("PENDING"), snoozed, snoozed, "", false},
		"a status that is not known":  {status("SENDING"), snoozed, snoozed, "", false},
		"completed":                   {status("COMPLETED"), completed, completed, "COMPLETED", false},
		"failed":                      {status("FAILED"), completed, completed, "FAILED", false},
		"final by the configuration":  {status("CANCELED"), completed, completed, "CANCELED", false},
		"an end without an amount":    {withdrawn(`{"status":"COMPLETED"}`), completed, completed, "COMPLETED", true},
		"a fee that is not known yet": {withdrawn(noFee), snoozed, snoozed, "", false},
		"a failure that may pass":     {page(502), snoozed, snoozed, "", false},
		"refused on the first day":    {after("23 hours", refused(403)), snoozed, snoozed, "", false},
		"refused after a day":         {after("1 day", refused(403)), failed, cancelled, "", true},
		"not found after a day":       {after("1 day", refused(404)), failed, cancelled, "", true},
		"a page of a CDN after a day": {after("1 day", page(403)), snoozed, snoozed, "", false},
		"pending after a day":         {after("1 day", status("PENDING")), snoozed, snoozed, "", false},
		"an invalid identifier":       {change(`{"withdrawRequestId": ".."}`), cancelled, cancelled, "", true},
		"no options for it":           {change(`{"merchant": "shop-b"}`), failed, cancelled, "", true},
	} {
		for attempts, want := range map[int]rivertype.JobState{25: test.state, 1: test.last} {
			t.Run(name+map[int]string{1: ", at the last attempt"}[attempts], func(t *testing.T) {
				s := newShop(t)
				var results []WithdrawalResult
				failure := errors.New("no such table")
				s.cfg.OnWithdrawal = func(ctx context.Context, tx pgx.Tx, r WithdrawalResult) error {
					results = append(results, r)
					must(tx.Exec(ctx, `INSERT INTO results VALUES ('w', $1)`, r.Status))
					return failure
				}
				s.cfg.Final = []gateway.WithdrawalStatus{"CANCELED"}
				job := s.insertWithdrawal(attempts)
				test.prepare(s)
				if want == completed {
					if job, err := s.run(job); !errors.Is(err, failure) || s.committed("w") != "" || len(results) != 1 {
						t.Errorf("%s, told %q: %v", job.State, s.committed("w"), err)
					}
					s.exec(`UPDATE river_job SET state = 'available', finalized_at = NULL`)
				}
				failure, results = nil, nil
				job, err := s.run(job)
				if ends := want == completed || want == cancelled; job.State != want || (len(results) == 1) != ends || ends && s.committed("w") != string(test.status) {
					t.Errorf("the job is %s, want %s; told %+v: %v", job.State, want, results, err)
				}
				for _, r := range results {
					if r.Status != test.status || (r.Reason != "") != test.reason || (r.Withdrawal == nil) != test.reason || r.JobID != job.ID ||
						!strings.Contains(string(job.EncodedArgs), `"`+r.WithdrawRequestID+`"`) {
						t.Errorf("told %+v", r)
					}
				}
				if again := s.insertWithdrawal(attempts); want == completed && again.ID != job.ID {
					t.Error("a withdrawal has two jobs")
				}
			})
		}
	}
}

func TestIntervalAfter(t *testing.T) {
	for _, test := range []struct {
		waited, retryAfter, want time.Duration
	}{
		{-time.Second, 0, minInterval},
		{time.Minute, 0, 15 * time.Second},
		{time.Hour, time.Second, maxInterval},
		{time.Second, 20 * time.Minute, 20 * time.Minute},
		{time.Hour, 48 * time.Hour, maxRetryAfter},
	} {
		if got := intervalAfter(test.waited, &gateway.APIError{RetryAfter: test.retryAfter}); got != test.want {
			t.Errorf("after %v: %v, want %v", test.waited, got, test.want)
		}
	}
}

// The periodic job runs when the engine starts, and reports the orders that a person must look up.
func TestPeriodicPending(t *testing.T) {
	s := newShop(t)
	reports := make(chan PendingReport, 1)
	s.cfg.OnPending = func(_ context.Context, r PendingReport) error {
		reports <- r
		return errors.New("a\x00b")
	}
	all(elsewhere("A-17", isUnknown), elsewhere("A-18", isUnknown))(s)
	s.exec(`UPDATE gateway_orders SET open_since = open_since - 3600000000 WHERE order_id = 'A-18';
		INSERT INTO gateway_orders (merchant, order_id, gateway, version, open_since, record)
		SELECT '', n, gateway, 1, open_since, record FROM gateway_orders, generate_series(1, 100) AS n WHERE order_id = 'A-17'`)
	_, events := s.start(0, PeriodicPending(time.Hour))
	if r := <-reports; r.Count != 102 || len(r.Orders) != 100 || r.Orders[0].OrderID != "A-18" || !r.Oldest.Equal(r.Orders[0].Since) {
		t.Errorf("%d orders since %v, %d in the report, the first %+v", r.Count, r.Oldest, len(r.Orders), r.Orders[0])
	}
	event := <-events
	if job := event.Job; job.State != discarded || job.Errors[0].Error != "a\ufffdb" || len(job.Output()) == 0 {
		t.Errorf("%s, %+v, stored %s", job.State, job.Errors, job.Output())
	}
}
