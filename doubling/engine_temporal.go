package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// inTemporal runs a workflow with one activity in Temporal's environment for tests. Each
// attempt is made by another worker process, as Temporal may choose any; the first is
// stopped when a deploy is the fault.
func inTemporal(ctx context.Context, c *cell) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	var failed error
	createInvoice := func(_ context.Context, order string) error {
		process, send, err := c.process(ctx)
		if err != nil {
			failed = err
			return nil
		}
		return send(process, order)
	}
	env.RegisterActivityWithOptions(createInvoice, activity.RegisterOptions{Name: "createInvoice"})
	env.ExecuteWorkflow(orderWorkflow, c.order)
	if failed == nil && !env.IsWorkflowCompleted() {
		failed = env.GetWorkflowError()
	}
	return failed
}

func orderWorkflow(ctx workflow.Context, order string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 5},
	})
	return workflow.ExecuteActivity(ctx, "createInvoice", order).Get(ctx, nil)
}
