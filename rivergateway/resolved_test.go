package rivergateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
)

// A lookup is a resolver that is a function.
type lookup func(ctx context.Context, unknown []sqlguard.Order) ([]sqlguard.Finding, error)

func (l lookup) Resolve(ctx context.Context, unknown []sqlguard.Order) ([]sqlguard.Finding, error) {
	return l(ctx, unknown)
}

// finds returns a resolver that finds the same of all orders.
func finds(r sqlguard.Resolution) lookup {
	return func(_ context.Context, unknown []sqlguard.Order) (all []sqlguard.Finding, _ error) {
		for _, o := range unknown {
			all = append(all, sqlguard.Finding{Order: o, Resolution: r})
		}
		return all, nil
	}
}

// ask runs a periodic job with a resolver, and returns its report, job, event and error.
func (s *shop) ask(resolver sqlguard.Resolver) (report PendingReport, job *rivertype.JobRow, event river.EventKind, err error) {
	s.t.Helper()
	s.cfg.Resolver = resolver
	s.cfg.OnPending = func(_ context.Context, r PendingReport) error {
		report = r
		return nil
	}
	job, event, err = s.runNewPending()
	return report, job, event, err
}

// tell runs the jobs that a resolver has caused, once, and returns their states.
func (s *shop) tell() (states []rivertype.JobState) {
	s.t.Helper()
	jobs, err := s.river.JobList(s.t.Context(), river.NewJobListParams().Kinds(resolvedArgs{}.Kind()))
	check(s.t, err)
	for _, job := range jobs.Jobs {
		if job.State != rivertype.JobStateCompleted {
			job, _, _ = run[resolvedArgs](s, &resolvedWorker{Jobs: s.jobs()}, job)
		}
		states = append(states, job.State)
	}
	return states
}

// An order of which the response was lost is looked up by the resolver. The report has what it
// found, and OnInvoice is told of it, once. Nothing is sent.
func TestResolver(t *testing.T) {
	for name, test := range map[string]struct {
		resolver lookup
		state    sqlguard.State
		told     string // after "unknown"
		invoice  string
		count    int // that are pending afterwards
		by       string
	}{
		"an invoice exists": {
			finds(sqlguard.Resolution{Exists: true, Invoice: []byte(elsewhere)}), sqlguard.StateCreated, "succeeded", elsewhere, 0, resolvedBy,
		},
		"an invoice exists, and nothing is known of it": {
			finds(sqlguard.Resolution{Exists: true}), sqlguard.StateCreated, "succeeded", "", 0, resolvedBy,
		},
		"none exists, as the ledger says": {
			finds(sqlguard.Resolution{By: "resolver:ledger"}), sqlguard.StateFree, "not sent", "", 0, "resolver:ledger",
		},
		"nothing is found out": {
			func(context.Context, []sqlguard.Order) ([]sqlguard.Finding, error) { return nil, nil }, sqlguard.StateUnknown, "", "", 1, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			inject(gatewaytest.FaultCommitThenDrop())(s)
			_, _, _ = s.runInvoice(s.insert(request("A-17"), InsertOptions{}))
			s.growOld()
			report, job, event, err := s.ask(test.resolver)
			if err != nil || report.ResolverErr != nil || event != river.EventKindJobCompleted {
				t.Fatalf("%s: %v, %v", event, err, report.ResolverErr)
			}
			if found := 1 - test.count; report.Count != test.count || len(report.Orders) != test.count || report.Resolved.Asked != 1 ||
				len(report.Resolved.Resolved) != found || found == 1 && !strings.Contains(string(job.Output()), `"resolved": 1`) {
				t.Errorf("%+v, stored %s", report, job.Output())
			}
			s.checkOrder("A-17", test.state)
			for range 2 { // it is told once
				for _, state := range s.tell() {
					if state != rivertype.JobStateCompleted {
						t.Errorf("the job is %s", state)
					}
				}
				_, _, _, err = s.ask(test.resolver)
				check(t, err)
			}
			told := s.committed("A-17")
			if want := strings.TrimSuffix("unknown,"+test.told, ","); strings.Join(told, ",") != want || len(s.gw.Requests()) != 1 {
				t.Fatalf("told %q, want %q; %d were sent", told, want, len(s.gw.Requests()))
			}
			if r := s.results[len(s.results)-1]; test.told == "succeeded" && (string(r.Invoice.Raw) != test.invoice || !r.Invoice.Replayed) ||
				test.told == "not sent" && (r.Invoice != nil || !strings.HasSuffix(r.Reason, "no invoice exists, as was found by resolver:ledger")) {
				t.Errorf("told %+v", r)
			}
			if order, err := s.guard.Order(t.Context(), "", "A-17"); err != nil || order.Resolution.By != test.by {
				t.Errorf("resolved by %q, %v", order.Resolution.By, err)
			}
		})
	}
}

// A resolver that fails changes nothing, and the report is made all the same.
func TestResolver_fails(t *testing.T) {
	for name, test := range map[string]struct {
		resolver lookup
		text     string
		waits    bool // until the time for it is over
	}{
		"an error": {func(_ context.Context, unknown []sqlguard.Order) ([]sqlguard.Finding, error) {
			return []sqlguard.Finding{{Order: unknown[0]}}, errors.New("the ledger is closed")
		}, "the ledger is closed", false},
		"it waits for the end of its context": {func(ctx context.Context, _ []sqlguard.Order) ([]sqlguard.Finding, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "deadline exceeded", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.ended("A-17", gateway.OutcomeUnknown)
			var report PendingReport
			s.cfg.Resolver = test.resolver
			s.cfg.OnPending = func(_ context.Context, r PendingReport) error {
				report = r
				return nil
			}
			jobs := s.jobs()
			if test.waits {
				jobs.resolve = 3 * time.Second
			}
			inserted, err := s.river.Insert(t.Context(), pendingArgs{}, nil)
			check(t, err)
			_, event, err := run[pendingArgs](s, &pendingWorker{Jobs: jobs}, inserted.Job)
			if event != river.EventKindJobFailed || err == nil || !strings.Contains(err.Error(), test.text) || !errors.Is(err, report.ResolverErr) {
				t.Errorf("%s: %v; reported %v", event, err, report.ResolverErr)
			}
			if report.Count != 1 || len(report.Orders) != 1 || len(report.Resolved.Resolved) != 0 || len(s.tell()) != 0 {
				t.Errorf("%+v", report)
			}
			s.checkOrder("A-17", sqlguard.StateUnknown)
		})
	}
}

// A finding that is refused has nothing told. What becomes of the order later is.
func TestResolver_refused(t *testing.T) {
	s := newShop(t)
	s.ended("A-17", gateway.OutcomeUnknown)
	report, _, _, err := s.ask(lookup(func(_ context.Context, unknown []sqlguard.Order) ([]sqlguard.Finding, error) {
		other := sqlguard.Order{ID: "A-18", Attempts: 1}
		return []sqlguard.Finding{
			{Order: unknown[0], Resolution: sqlguard.Resolution{Exists: true}}, {Order: unknown[0]}, {Order: other},
		}, nil
	}))
	check(t, err)
	if report.Count != 1 || len(report.Resolved.Refused) != 2 || len(report.Resolved.Resolved) != 0 {
		t.Errorf("%+v", report)
	}
	if states := s.tell(); !slices.Equal(states, []rivertype.JobState{rivertype.JobStateScheduled}) || len(s.results) != 0 {
		t.Errorf("%s, told %v", states, s.results)
	}
	check(t, s.guard.Resolve(t.Context(), report.Orders[0], sqlguard.Resolution{Exists: true, By: "anna@shop.example"}))
	if states := s.tell(); !slices.Equal(states, []rivertype.JobState{rivertype.JobStateCompleted}) || strings.Join(s.committed("A-17"), ",") != "succeeded" {
		t.Errorf("%s, told %v", states, s.committed("A-17"))
	}
}

// growOld makes the orders an hour older: no request is on its way.
func (s *shop) growOld() {
	s.t.Helper()
	s.exec(`UPDATE gateway_orders SET begun_at = begun_at - 3600000000, lease_until = lease_until - 3600000000, ended_at = ended_at - 3600000000, open_since = open_since - 3600000000`)
}

// That none exists is refused, and not told, while the request may be on its way.
func TestResolver_tooEarly(t *testing.T) {
	s := newShop(t)
	s.ended("A-17", gateway.OutcomeUnknown)
	for _, refused := range []int{1, 0} {
		report, _, _, err := s.ask(finds(sqlguard.Resolution{}))
		check(t, err)
		if report.Count != refused || len(report.Resolved.Refused) != refused {
			t.Errorf("%+v", report)
		}
		if s.tell(); len(s.results) == 0 != (refused == 1) {
			t.Errorf("told %v", s.results)
		}
		s.growOld()
	}
}

// A process that dies before the finding is recorded leaves a job that tells nothing. The next
// run of the resolver causes no second one.
func TestResolver_diesBeforeRecording(t *testing.T) {
	s := newShop(t)
	s.ended("A-17", gateway.OutcomeUnknown)
	dies := errors.New("it dies")
	exists := lookup(finds(sqlguard.Resolution{Exists: true}))
	s.cfg.Resolver = lookup(func(ctx context.Context, unknown []sqlguard.Order) ([]sqlguard.Finding, error) {
		if dies == nil {
			return exists(ctx, unknown)
		}
		_, err := (&tellingResolver{Config{Resolver: exists, OnInvoice: s.cfg.OnInvoice}, river.QueueDefault}).Resolve(ctx, unknown)
		return nil, errors.Join(err, dies)
	})
	for _, want := range []river.EventKind{river.EventKindJobFailed, river.EventKindJobCompleted} {
		engine, events := s.start() // it has unique jobs, unlike a run without an engine
		_, err := engine.Insert(t.Context(), pendingArgs{}, &river.InsertOpts{MaxAttempts: 1})
		check(t, err)
		event := <-events
		for event.Job.Kind != (pendingArgs{}).Kind() {
			event = <-events
		}
		if event.Kind != want {
			t.Errorf("%s: %v", event.Kind, event.Job.Errors)
		}
		s.stop(engine)
		if dies != nil && len(s.results) != 0 {
			t.Errorf("told %v", s.results)
		}
		dies = nil
	}
	if states := s.tell(); !slices.Equal(states, []rivertype.JobState{rivertype.JobStateCompleted}) || strings.Join(s.committed("A-17"), ",") != "succeeded" {
		t.Errorf("%s, told %v", states, s.committed("A-17"))
	}
}

// Whoever has sent an order again since is told of it, not the merchant of the finding before.
func TestResolver_sentAgainSince(t *testing.T) {
	s := newShop(t)
	s.ended("A-17", gateway.OutcomeUnknown)
	s.growOld()
	_, _, _, err := s.ask(finds(sqlguard.Resolution{}))
	check(t, err)
	s.ended("A-17", gateway.OutcomeSucceeded)
	if states := s.tell(); !slices.Equal(states, []rivertype.JobState{rivertype.JobStateCompleted}) || len(s.results) != 0 {
		t.Errorf("%s, told %v", states, s.results)
	}
}

// While OnInvoice has not accepted that an order is unknown, it is not told what was found.
func TestResolver_jobHasNotEnded(t *testing.T) {
	s := newShop(t)
	inject(gatewaytest.FaultCommitThenDrop())(s)
	s.cfg.OnInvoice = nil
	job := s.insert(request("A-17"), InsertOptions{})
	s.ended("A-17", gateway.OutcomeUnknown)
	s.cfg.OnInvoice = s.onInvoice
	_, _, _, err := s.ask(finds(sqlguard.Resolution{Exists: true}))
	check(t, err)
	if states := s.tell(); !slices.Equal(states, []rivertype.JobState{rivertype.JobStateScheduled}) || len(s.results) != 0 {
		t.Errorf("%s, told %v", states, s.results)
	}
	_, err = s.river.JobCancel(t.Context(), job.ID)
	check(t, err)
	if states := s.tell(); !slices.Equal(states, []rivertype.JobState{rivertype.JobStateCompleted}) || strings.Join(s.committed("A-17"), ",") != "succeeded" {
		t.Errorf("%s, told %v", states, s.committed("A-17"))
	}
}
