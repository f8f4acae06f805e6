package rivergateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// Workers without a shared guard cannot be made, also not by an option of the client.
func TestNew(t *testing.T) {
	s := newShop(t)
	for name, change := range map[string]func(*Config){
		"Guard":      func(c *Config) { c.Guard = nil },
		"Pool":       func(c *Config) { c.Pool = nil },
		"RunTimeout": func(c *Config) { c.RunTimeout = -1 },
		"Final":      func(c *Config) { c.Final = []gateway.WithdrawalStatus{"CANCELED", "PENDING"} },
		"baseURL":    func(c *Config) { c.BaseURL = "ftp://gateway.example" },
		"apiKey":     func(c *Config) { c.APIKey = nil },
	} {
		cfg := s.cfg
		change(&cfg)
		_, err := New(cfg)
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GATEWAY_BASE_URL", s.gw.URL)
	t.Setenv("GATEWAY_API_KEY", s.gw.APIKey)
	s.cfg.BaseURL, s.cfg.APIKey = "", nil
	with(gateway.WithOrderGuard(new(gateway.MemoryGuard)))(s)
	_, err := s.run(s.insert("A-17", InsertOptions{}))
	if s.checkOrder("succeeded", gateway.OrderCreated, 1); err != nil {
		t.Error(err)
	}
	workers := river.NewWorkers()
	if jobs := must(New(s.cfg)); jobs.AddWorkers(workers) != nil || jobs.AddWorkers(workers) == nil {
		t.Error("the workers can be registered once")
	}
}

// A program that prints or logs its Config, or its Jobs, shows no key, also not in a field of its own.
func TestConfig_secret(t *testing.T) {
	s := newShop(t)
	jobs := must(New(s.cfg))
	for _, value := range []any{s.cfg, &s.cfg, map[string]*Config{"river": &s.cfg}, struct{ river Config }{s.cfg}, jobs, *jobs, struct{ jobs Jobs }{*jobs}} {
		var shown strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			_, _ = fmt.Fprintf(&shown, verb+"\n", value)
		}
		slog.New(slog.NewTextHandler(&shown, nil)).Info("the program starts", "value", value)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("the program starts", "value", value)
		_ = json.NewEncoder(&shown).Encode(value)
		if text := shown.String(); strings.Contains(text, s.gw.APIKey) || strings.Contains(text, fmt.Sprintf("%x", s.gw.APIKey)) {
			t.Errorf("%T is shown as %s", value, text)
		}
	}
}

// start starts the engine with the workers, until the test ends. Events are of the jobs whose run has ended.
func (s *shop) start(rescue time.Duration, periodic ...*river.PeriodicJob) (*river.Client[pgx.Tx], <-chan *river.Event) {
	workers := river.NewWorkers()
	must(0, must(New(s.cfg)).AddWorkers(workers))
	e := must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger: slog.New(slog.DiscardHandler), TestOnly: true, PeriodicJobs: periodic, RescueStuckJobsAfter: rescue,
	}))
	events, cancel := e.Subscribe(river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobInterrupted)
	s.t.Cleanup(cancel)
	must(0, e.Start(context.Background()))
	s.t.Cleanup(func() { must(0, e.StopAndCancel(context.Background())) })
	return e, events
}

// respond responds to an invoice.
func respond(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	if status == http.StatusCreated {
		_, _ = io.WriteString(w, `{"message":"Operation was successful.","result":{"id":"1"},"meta":{}}`)
	} else {
		_, _ = io.WriteString(w, `{"message":"No","result":{},"meta":{}}`)
	}
}

// A deploy, or the deadline of a run, cuts no invoice that is being sent: the engine waits for its outcome. Before that,
// or after a refusal for now, the job goes back to the queue without an attempt, and the next process sends it.
func TestEngine_stopped(t *testing.T) {
	for name, test := range map[string]struct {
		run    time.Duration // its timeout, which ends it; 0 for the default, and StopAndCancel
		key    bool          // it is ended when the key is read, not when the gateway has the invoice
		status int           // of the response after that; 0 for none
		state  rivertype.JobState
		told   string
		order  gateway.OrderState
	}{
		"before it is sent":                 {0, true, 0, failed, "", free},
		"a success":                         {0, false, 201, completed, "succeeded", created},
		"a success after the run's timeout": {time.Second, false, 201, completed, "succeeded", created},
		"a refusal for now":                 {0, false, 429, failed, "", free},
		"no response":                       {0, false, 0, cancelled, "unknown", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, sqlguard.WithMerchants())
			working, ended := make(chan struct{}, 1), make(chan struct{})
			var sent atomic.Int32
			gw := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if sent.Add(1) > 1 || test.key {
					respond(w, http.StatusCreated)
					return
				}
				working <- struct{}{}
				if <-ended; test.status == 0 {
					panic(http.ErrAbortHandler)
				}
				respond(w, test.status)
			}))
			t.Cleanup(gw.Close)
			s.cfg.BaseURL, s.cfg.RunTimeout = gw.URL, test.run
			s.cfg.Merchant = func(context.Context, string) ([]gateway.CallOption, error) { return nil, nil }
			works := s.cfg
			s.cfg.Merchant = func(ctx context.Context, _ string) ([]gateway.CallOption, error) {
				context.AfterFunc(ctx, func() { close(ended) })
				return nil, nil
			}
			if test.key {
				s.cfg.APIKey = nil
				with(gateway.WithAPIKeySource(func(ctx context.Context) (string, error) {
					working <- struct{}{}
					<-ctx.Done()
					return "", ctx.Err()
				}))(s)
			}
			engine, events := s.start(0)
			s.insert("A-17", InsertOptions{Merchant: "shop-a", Job: river.InsertOpts{MaxAttempts: 1}})
			if <-working; test.run > 0 {
				must(0, engine.Stop(context.Background()))
			} else {
				must(0, engine.StopAndCancel(context.Background()))
			}
			job, order := (<-events).Job, must(s.guard.Order(t.Context(), "shop-a", "A-17"))
			if told := s.committed("A-17"); job.State != test.state || told != test.told || order.State != test.order || (job.Attempt == 0) != (told == "") {
				t.Fatalf("%s at attempt %d, told %q, the order is %s", job.State, job.Attempt, told, order.State)
			}
			if s.cfg = works; test.told == "" {
				_, events = s.start(0)
				if job := (<-events).Job; job.State != completed || s.committed("A-17") != "succeeded" {
					t.Errorf("then %s", job.State)
				}
			}
		})
	}
}

// With the settings of the README, a job whose process died is run again after 90 seconds. By default
// River leaves it alone for the 9 minutes that a run may take. A job whose merchant was told that it is cancelled is
// not run again.
func TestEngine_rescue(t *testing.T) {
	for run, rescued := range map[time.Duration]int{90 * time.Second: 2, 0: 1} {
		t.Run(run.String(), func(t *testing.T) {
			s := newShop(t)
			s.cfg.RunTimeout = run
			job, told := s.insert("A-17", InsertOptions{}), s.insert("told", InsertOptions{})
			s.insert("old", InsertOptions{})
			s.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '100 seconds'`)
			s.exec(`UPDATE river_job SET attempted_at = now() - interval '2 days' WHERE args->>'orderId' IN ('old', 'told')`)
			must(queue.JobCancel(t.Context(), told.ID))
			_, events := s.start(90 * time.Second)
			for range rescued {
				if job := (<-events).Job; job.State != completed {
					t.Errorf("%s is %s", job.EncodedArgs, job.State)
				}
			}
			job, told = must(queue.JobGet(t.Context(), job.ID)), must(queue.JobGet(t.Context(), told.ID))
			if (job.State == completed) != (rescued == 2) || told.State != cancelled || len(s.gw.Requests()) != rescued {
				t.Errorf("%s; %s, %d sent", job.State, told.State, len(s.gw.Requests()))
			}
		})
	}
}
