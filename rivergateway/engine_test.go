package rivergateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// start starts the engine with the workers, until the test or the caller ends it. Events
// are of the jobs whose run has ended.
func (s *shop) start(periodic ...*river.PeriodicJob) (engine *river.Client[pgx.Tx], events <-chan *river.Event) {
	s.t.Helper()
	workers := river.NewWorkers()
	check(s.t, s.jobs().AddWorkers(workers))
	engine, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, PeriodicJobs: periodic, RescueStuckJobsAfter: s.rescue,
	})
	check(s.t, err)
	events, cancel := engine.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobInterrupted)
	s.t.Cleanup(cancel)
	check(s.t, engine.Start(context.WithoutCancel(s.t.Context())))
	s.t.Cleanup(func() { s.stop(engine) })
	return engine, events
}

func (s *shop) stop(engine *river.Client[pgx.Tx]) {
	s.t.Helper()
	check(s.t, engine.StopAndCancel(context.WithoutCancel(s.t.Context())))
}

// A deploy while nothing of an invoice was sent loses nothing: the job goes back to the
// queue, without an attempt, and the next process sends it.
func TestEngine_stoppedBeforeSending(t *testing.T) {
	s := newShop(t)
	running := make(chan struct{}, 1)
	key := s.cfg.APIKey
	s.cfg.APIKey = ""
	options := s.cfg.Options
	s.cfg.Options = append(options, gateway.WithAPIKeySource(func(ctx context.Context) (string, error) {
		running <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}))
	engine, events := s.start()
	job := s.insert(request("A-17"), InsertOptions{Job: river.InsertOpts{MaxAttempts: 1}})
	<-running
	s.stop(engine)
	if event := <-events; event.Kind != river.EventKindJobInterrupted || event.Job.Attempt != 0 || len(s.gw.Requests()) != 0 || len(s.results) != 0 {
		t.Errorf("%s, attempt %d, %d sent, told %v", event.Kind, event.Job.Attempt, len(s.gw.Requests()), s.results)
	}
	s.checkOrder("A-17", gateway.OrderFree)

	s.cfg.APIKey, s.cfg.Options = key, options
	_, events = s.start()
	if event := <-events; event.Kind != river.EventKindJobCompleted || event.Job.ID != job.ID || len(s.gw.Requests()) != 1 {
		t.Errorf("%s, %d sent", event.Kind, len(s.gw.Requests()))
	}
}

// A deploy while an invoice is being sent waits for its outcome: StopAndCancel does not cut it.
func TestEngine_stoppedWhileSending(t *testing.T) {
	for name, test := range map[string]struct {
		responds bool // after the job was cancelled
		event    river.EventKind
		outcome  string
		order    gateway.OrderState
	}{
		"and a response comes": {true, completed, "succeeded", gateway.OrderCreated},
		"and none comes":       {false, cancelled, "unknown", gateway.OrderUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			sent, cancelled := make(chan struct{}, 1), make(chan struct{})
			held := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				sent <- struct{}{}
				if <-cancelled; !test.responds {
					<-req.Context().Done()
				}
				_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":{"id":"inv-1"},"meta":{}}`)
			}))
			t.Cleanup(held.Close)
			s.cfg.BaseURL = held.URL
			s.cfg.Options = append(s.cfg.Options, gateway.WithObserver(gateway.Observer{Start: func(ctx context.Context, _ gateway.Call) context.Context {
				context.AfterFunc(ctx, func() { close(cancelled) })
				return ctx
			}}))
			if !test.responds {
				s.cfg.Options = append(s.cfg.Options, gateway.WithRetry(gateway.RetryPolicy{InvoiceTimeout: time.Second}))
			}
			engine, events := s.start()
			s.insert(request("A-17"), InsertOptions{})
			<-sent
			s.stop(engine)
			if event := <-events; event.Kind != test.event || event.Job.State != stateAfter[test.event] {
				t.Errorf("%s, %s", event.Kind, event.Job.State)
			}
			if results := s.committed("A-17"); len(results) != 1 || results[0] != test.outcome {
				t.Errorf("told %v", results)
			}
			s.checkOrder("A-17", test.order)
		})
	}
}

// With the settings of the README, a job whose process died is run again after 90 seconds. By default
// River leaves it alone for the 9 minutes that a run may take.
func TestEngine_rescue(t *testing.T) {
	for name, test := range map[string]struct {
		run     time.Duration
		rescued int // with a job that is older
		state   rivertype.JobState
	}{
		"of the README": {90 * time.Second, 2, rivertype.JobStateCompleted},
		"default":       {0, 1, rivertype.JobStateRunning},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, sqlguard.WithLease(time.Minute))
			s.cfg.RunTimeout, s.rescue = test.run, 90*time.Second
			s.cfg.Options = []gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, InvoiceTimeout: 20 * time.Second})}
			job := s.insert(request("A-17"), InsertOptions{})
			s.insert(request("old"), InsertOptions{})
			s.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '100 seconds'`)
			s.exec(`UPDATE river_job SET attempted_at = now() - interval '2 days' WHERE args->>'orderId' = 'old'`)
			_, events := s.start()
			for range test.rescued {
				if event := <-events; event.Kind != river.EventKindJobCompleted {
					t.Errorf("%s of %s", event.Kind, event.Job.EncodedArgs)
				}
			}
			job, err := s.river.JobGet(t.Context(), job.ID)
			check(t, err)
			if job.State != test.state {
				t.Errorf("it is %s, want %s", job.State, test.state)
			}
		})
	}
}

// The periodic job runs when the engine starts.
func TestPeriodicPending(t *testing.T) {
	s := newShop(t)
	reports := make(chan PendingReport, 1)
	s.cfg.OnPending = func(_ context.Context, r PendingReport) error {
		select {
		case reports <- r:
			return nil
		default:
			return errors.New("two reports at the start")
		}
	}
	s.ended("A-17", gateway.OutcomeUnknown)
	s.start(PeriodicPending(time.Hour))
	if report := <-reports; report.Count != 1 || report.Orders[0].OrderID != "A-17" {
		t.Errorf("%+v", report)
	}
}
