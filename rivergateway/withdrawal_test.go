package rivergateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

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

// A wait ends with a status, and the withdrawal if it could be read.
func TestWithdrawal(t *testing.T) {
	const noFee = `{"status":"PENDING","destination":"T1","amount":"120.50","fee":null,"coin":"USDT","network":"Tron","withdrawRequestId":"w"}`
	runAll(t, map[string]row{
		"pending":                      {nil, status("PENDING"), snoozed, snoozed, "", free, 0},
		"a status that is not known":   {nil, status("SENDING"), snoozed, snoozed, "", free, 0},
		"completed":                    {nil, status("COMPLETED"), completed, completed, "COMPLETED", free, 0},
		"completed, and told again":    {status("COMPLETED"), all(), completed, completed, "COMPLETED", free, 0},
		"failed":                       {nil, status("FAILED"), completed, completed, "FAILED", free, 0},
		"final by the configuration":   {nil, status("CANCELED"), completed, completed, "CANCELED", free, 0},
		"an end without an amount":     {nil, withdrawn(`{"status":"COMPLETED"}`), completed, completed, "COMPLETED" + withoutRecord, free, 0},
		"a fee that is not known yet":  {nil, withdrawn(noFee), snoozed, snoozed, "", free, 0},
		"a failure that may pass":      {nil, page(502), snoozed, snoozed, "", free, 0},
		"refused on the first day":     {nil, after("23 hours", refused(403)), snoozed, snoozed, "", free, 0},
		"refused after a day":          {nil, after("1 day", refused(403)), failed, cancelled, withoutRecord, free, 0},
		"not found after a day":        {nil, after("1 day", refused(404)), failed, cancelled, withoutRecord, free, 0},
		"a page of a CDN after a day":  {nil, after("1 day", page(403)), snoozed, snoozed, "", free, 0},
		"pending after a day":          {nil, after("1 day", status("PENDING")), snoozed, snoozed, "", free, 0},
		"an invalid identifier":        {nil, change(`{"withdrawRequestId": ".."}`), cancelled, cancelled, withoutRecord, free, 0},
		"no function for its merchant": {nil, change(`{"merchant": "shop-b"}`), failed, cancelled, withoutRecord, free, 0},
		"no options for it":            {nil, (*shop).hasNoOptions, failed, cancelled, withoutRecord, free, 0},
	}, func(s *shop, o InsertOptions) *rivertype.JobRow {
		job := must(inTx(nil, InsertWithdrawalTx, s.withdrawal(), o)).Job
		if second := must(inTx(nil, InsertWithdrawalTx, s.withdrawal(), o)).Job; second.ID != job.ID {
			t.Error("a withdrawal has two jobs")
		}
		return job
	})
}

func TestIntervalAfter(t *testing.T) {
	for _, test := range [][3]time.Duration{ // how long it has waited, Retry-After, and the interval
		{-time.Second, 0, minInterval},
		{time.Minute, 0, 15 * time.Second},
		{time.Hour, time.Second, maxInterval},
		{time.Second, 20 * time.Minute, 20 * time.Minute},
		{time.Hour, 48 * time.Hour, maxRetryAfter},
	} {
		if got := intervalAfter(test[0], &gateway.APIError{RetryAfter: test[1]}); got != test[2] {
			t.Errorf("%v: %v", test, got)
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
	_, events := s.start(river.Config{PeriodicJobs: []*river.PeriodicJob{PeriodicPending(time.Hour)}})
	if r := <-reports; r.Count != 102 || len(r.Orders) != 100 || r.Orders[0].OrderID != "A-18" || !r.Oldest.Equal(r.Orders[0].Since) {
		t.Errorf("%d orders since %v, %d in the report, the first %+v", r.Count, r.Oldest, len(r.Orders), r.Orders[0])
	}
	if job := (<-events).Job; job.State != discarded || job.Errors[0].Error != "a\ufffdb" || len(job.Output()) == 0 {
		t.Errorf("%s, %+v, stored %s", job.State, job.Errors, job.Output())
	}
}
