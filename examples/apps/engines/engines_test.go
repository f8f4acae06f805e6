package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/shopspring/decimal"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var order = gateway.InvoiceRequest{OrderID: "A-17", Price: decimal.New(1050, -2), Amount: decimal.New(1050, -2), BaseCurrency: "usd"}

// A shared guard stands for one over a database: the workers have it in common.
func newClient(t *testing.T, gw *gatewaytest.Server, shared gateway.OrderGuard) *gateway.Client {
	t.Helper()
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithOrderGuard(shared))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A guard refuses an order as in flight for as many times, as if another worker sent it
// with another request.
type guard struct {
	gateway.OrderGuard
	inFlight int
}

func newGuard() *guard {
	return &guard{OrderGuard: new(gateway.MemoryGuard)}
}

func (g *guard) Begin(ctx context.Context, o gateway.Order) (gateway.Lease, error) {
	if g.inFlight > 0 {
		g.inFlight--
		return gateway.Lease{State: gateway.OrderInFlight, Known: &gateway.OrderRecord{Request: gateway.InvoiceRequest{OrderID: "A-17"}}}, nil
	}
	return g.OrderGuard.Begin(ctx, o)
}

// cases are the ends of one call, and what an engine does with each.
var cases = []struct {
	name     string
	prepare  func(*gatewaytest.Server, *guard)
	final    bool
	errType  string // in Temporal, where it is final
	attempts int
	invoices int // after all attempts
}{
	{"succeeded", func(*gatewaytest.Server, *guard) {}, false, "", 1, 1},
	{"lost", faults(1, gatewaytest.FaultCommitThenDrop()), true, "OutcomeUnknownError", 1, 1},
	{"rejected", faults(-1, gatewaytest.FaultRefuse(422, "no such currency")), true, "InvoiceRefused", 1, 0},
	{"busy", faults(1, gatewaytest.FaultRefuse(429, "too many requests")), false, "", 2, 1},
	{"unknown from before", ended(order, gateway.OutcomeUnknown), true, "OutcomeUnknownError", 1, 0},
	{"created before", ended(order, gateway.OutcomeSucceeded), false, "", 1, 0},
	{"created before for another request", ended(gateway.InvoiceRequest{OrderID: "A-17"}, gateway.OutcomeSucceeded), true, "InvoiceRefused", 1, 0},
	{"in flight in another worker, which sends nothing", func(_ *gatewaytest.Server, g *guard) { g.inFlight = 1 }, false, "", 2, 1},
}

// ended is an order that another worker has sent.
func ended(r gateway.InvoiceRequest, outcome gateway.Outcome) func(*gatewaytest.Server, *guard) {
	return func(_ *gatewaytest.Server, g *guard) {
		o := gateway.Order{Request: r}
		_, _ = g.Begin(context.Background(), o)
		_, _ = g.End(context.Background(), o, gateway.OrderRecord{Outcome: outcome, Request: r, Invoice: []byte("{}")})
	}
}

func faults(times int, f gatewaytest.Fault) func(*gatewaytest.Server, *guard) {
	return func(gw *gatewaytest.Server, _ *guard) {
		gw.InjectFault(gatewaytest.OpCreateInvoice, times, f)
	}
}

func TestOrderWorkflow(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			gw, guard := gatewaytest.NewServer(), newGuard()
			defer gw.Close()
			c.prepare(gw, guard)
			attempts := 0
			err := inTemporal(t, OrderWorkflow, func(ctx context.Context, order gateway.InvoiceRequest) (*gateway.Invoice, error) {
				attempts++
				a := Activities{newClient(t, gw, guard)} // each attempt in another worker
				return a.CreateInvoice(ctx, order)
			})
			var failure *temporal.ApplicationError
			if got := errors.As(err, &failure); got != c.final || got && failure.Type() != c.errType {
				t.Errorf("%v", err)
			}
			if n := len(gw.InvoicesFor(order.OrderID)); n != c.invoices || attempts != c.attempts {
				t.Errorf("%d invoices of %d attempts, want %d of %d", n, attempts, c.invoices, c.attempts)
			}
		})
	}
}

// The one line of the policy is enough with a guard in memory too, as long as no worker
// is killed. These controls double: without it, and with an error that hides the type.
func TestOrderWorkflow_oneLine(t *testing.T) {
	oneLine := &temporal.RetryPolicy{NonRetryableErrorTypes: []string{"OutcomeUnknownError"}, MaximumAttempts: 5}
	wrap := func(err error) error { return fmt.Errorf("order A-17: %w", err) }
	asItIs := func(err error) error { return err }
	for name, c := range map[string]struct {
		policy   *temporal.RetryPolicy
		returned func(error) error
		invoices int
	}{
		"one line":                  {oneLine, asItIs, 1},
		"control: without the line": {&temporal.RetryPolicy{MaximumAttempts: 5}, asItIs, 2},
		"control: a wrapped error":  {oneLine, wrap, 2},
	} {
		t.Run(name, func(t *testing.T) {
			gw := gatewaytest.NewServer()
			defer gw.Close()
			gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
			_ = inTemporal(t, func(ctx workflow.Context, order gateway.InvoiceRequest) error {
				ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: c.policy})
				return workflow.ExecuteActivity(ctx, "CreateInvoice", order).Get(ctx, nil)
			}, func(ctx context.Context, order gateway.InvoiceRequest) error {
				_, err := newClient(t, gw, newGuard()).CreateInvoice(ctx, order)
				if err != nil {
					err = c.returned(err)
				}
				return err
			})
			if n := len(gw.InvoicesFor(order.OrderID)); n != c.invoices {
				t.Errorf("%d invoices, want %d", n, c.invoices)
			}
		})
	}
}

// inTemporal runs a workflow, for the order, in Temporal's environment for tests, whose
// clock skips the waits between attempts.
func inTemporal(t *testing.T, flow, createInvoice any) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: "order"})
	env.RegisterActivityWithOptions(createInvoice, activity.RegisterOptions{Name: "CreateInvoice"})
	env.ExecuteWorkflow("order", order)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	return env.GetWorkflowError()
}

func TestInvoiceHandler(t *testing.T) {
	payload, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	task := asynq.NewTask(TaskCreateInvoice, payload)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			gw, guard := gatewaytest.NewServer(), newGuard()
			defer gw.Close()
			c.prepare(gw, guard)
			attempts := 0
			for range 5 { // as asynq does with a task that it retries
				attempts++
				if err = InvoiceHandler(newClient(t, gw, guard)).ProcessTask(t.Context(), task); err == nil || errors.Is(err, asynq.SkipRetry) {
					break
				}
			}
			if errors.Is(err, asynq.SkipRetry) != c.final {
				t.Errorf("%v", err)
			}
			if n := len(gw.InvoicesFor(order.OrderID)); n != c.invoices || attempts != c.attempts {
				t.Errorf("%d invoices of %d attempts, want %d of %d", n, attempts, c.invoices, c.attempts)
			}
		})
	}
}

func TestInvoiceHandler_payload(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	task := asynq.NewTask(TaskCreateInvoice, []byte(`{`))
	if err := InvoiceHandler(newClient(t, gw, newGuard())).ProcessTask(t.Context(), task); !errors.Is(err, asynq.SkipRetry) {
		t.Errorf("%v", err)
	}
}

// Where nothing was sent and it may pass, the engine tries again: a cancelled context, a
// guard whose database does not respond.
func TestFinal_notSent(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, cancelled := newClient(t, gw, newGuard()).CreateInvoice(ctx, order)
	_, guardFails := newClient(t, gw, brokenGuard{}).CreateInvoice(t.Context(), order)
	for _, err := range []error{cancelled, guardFails} {
		if _, unknown := errors.AsType[*gateway.OutcomeUnknownError](err); unknown || final(err) {
			t.Errorf("%v", err)
		}
	}
	if !final(errors.New("of another package")) || final(nil) {
		t.Error("an error of which nothing is known, or none")
	}
}

type brokenGuard struct{}

func (brokenGuard) Begin(context.Context, gateway.Order) (gateway.Lease, error) {
	return gateway.Lease{}, errors.New("no connection")
}

func (brokenGuard) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	return r, nil
}
