package rivergateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// start starts the engine with the workers, until the test or the caller ends it. Events
// are of the jobs whose run has ended.
func (s *shop) start(periodic ...*river.PeriodicJob) (stop func(), events <-chan *river.Event) {
	s.t.Helper()
	workers := river.NewWorkers()
	check(s.t, s.jobs().AddWorkers(workers))
	engine, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, PeriodicJobs: periodic, RescueStuckJobsAfter: s.rescue,
	})
	check(s.t, err)
	events, cancel := engine.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobInterrupted)
	s.t.Cleanup(cancel)
	ctx := context.WithoutCancel(s.t.Context())
	check(s.t, engine.Start(ctx))
	stop = func() { check(s.t, engine.StopAndCancel(ctx)) }
	s.t.Cleanup(stop)
	return stop, events
}

// A deploy while nothing of an invoice was sent loses nothing: the job goes back to the
// queue, without an attempt, and the next process sends it.
func TestEngine_stoppedBeforeSending(t *testing.T) {
	s := newShop(t)
	running := make(chan struct{}, 1)
	works := s.cfg
	s.cfg.APIKey = ""
	s.with(gateway.WithAPIKeySource(func(ctx context.Context) (string, error) {
		running <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}))
	stop, events := s.start()
	job := s.insert(request("A-17"), InsertOptions{Job: river.InsertOpts{MaxAttempts: 1}})
	<-running
	stop()
	event := <-events
	if told := committed(t, "A-17"); event.Kind != river.EventKindJobInterrupted || event.Job.Attempt != 0 || told != "" {
		t.Errorf("%s, attempt %d, told %q", event.Kind, event.Job.Attempt, told)
	}
	s.checkOrder("A-17", gateway.OrderFree)

	s.cfg = works
	_, events = s.start()
	if event := <-events; event.Job.State != completed || event.Job.ID != job.ID || len(s.gw.Requests()) != 1 {
		t.Errorf("%s, %d sent", event.Kind, len(s.gw.Requests()))
	}
}

// A deploy while an invoice is being sent waits for its outcome: StopAndCancel does not cut it.
func TestEngine_stoppedWhileSending(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration // of the invoice; 0 for the default, and a response after the job was cancelled
		state   rivertype.JobState
		told    string
		order   gateway.OrderState
	}{
		"and a response comes": {0, completed, "succeeded", gateway.OrderCreated},
		"and none comes":       {100 * time.Millisecond, cancelled, "unknown", gateway.OrderUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			sent, cancelled := make(chan struct{}, 1), make(chan struct{})
			held := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				sent <- struct{}{}
				if <-cancelled; test.timeout > 0 {
					<-req.Context().Done()
				}
				_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":{"id":"inv-1"},"meta":{}}`)
			}))
			t.Cleanup(held.Close)
			s.cfg.BaseURL = held.URL
			s.with(gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: test.timeout}),
				gateway.WithObserver(gateway.Observer{Start: func(ctx context.Context, _ gateway.Call) context.Context {
					context.AfterFunc(ctx, func() { close(cancelled) })
					return ctx
				}}))
			stop, events := s.start()
			s.insert(request("A-17"), InsertOptions{})
			<-sent
			stop()
			event := <-events
			if told := committed(t, "A-17"); event.Job.State != test.state || told != test.told {
				t.Errorf("%s, told %q", event.Job.State, told)
			}
			s.checkOrder("A-17", test.order)
		})
	}
}

// With the settings of the README, a job whose process died is run again after 90 seconds. By default
// River leaves it alone for the 9 minutes that a run may take. A job whose merchant was told that it is cancelled is
// not run again.
func TestEngine_rescue(t *testing.T) {
	for name, test := range map[string]struct {
		run     time.Duration
		rescued int // with a job that is older
		state   rivertype.JobState
	}{
		"after 90 seconds": {90 * time.Second, 2, completed},
		"by default":       {0, 1, rivertype.JobStateRunning},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, sqlguard.WithLease(time.Minute))
			s.cfg.RunTimeout, s.rescue = test.run, 90*time.Second
			s.with(gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: 20 * time.Second}))
			job, told := s.insert(request("A-17"), InsertOptions{}), s.insert(request("told"), InsertOptions{})
			s.insert(request("old"), InsertOptions{})
			s.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '100 seconds'`)
			s.exec(`UPDATE river_job SET attempted_at = now() - interval '2 days' WHERE args->>'orderId' IN ('old', 'told')`)
			must(queue.JobCancel(t.Context(), told.ID))
			_, events := s.start()
			for range test.rescued {
				if event := <-events; event.Job.State != completed {
					t.Errorf("%s is %s", event.Job.EncodedArgs, event.Job.State)
				}
			}
			job, told = must(queue.JobGet(t.Context(), job.ID)), must(queue.JobGet(t.Context(), told.ID))
			if job.State != test.state || told.State != cancelled || len(s.gw.Requests()) != test.rescued {
				t.Errorf("%s, want %s; %s, %d sent", job.State, test.state, told.State, len(s.gw.Requests()))
			}
		})
	}
}
