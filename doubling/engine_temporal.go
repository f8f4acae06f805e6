package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// inTemporal returns an engine that runs a workflow with one activity in Temporal's environment for
// tests. Temporal may choose any worker for an attempt: the same one again, or another one each time.
func inTemporal(others bool) func(context.Context, *cell) error {
	return func(ctx context.Context, c *cell) error {
		var process context.Context
		var send create
		var failed error
		err := inWorkflow(c.order, func(_ context.Context, order string) error {
			if others || process == nil || process.Err() != nil {
				if process, send, failed = c.process(ctx); failed != nil {
					return nil
				}
			}
			return send(process, order)
		})
		return errors.Join(failed, err)
	}
}

// inWorkflow runs a workflow with an activity.
func inWorkflow(order string, createInvoice func(context.Context, string) error) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivityWithOptions(createInvoice, activity.RegisterOptions{Name: "createInvoice"})
	env.ExecuteWorkflow(orderWorkflow, order)
	if !env.IsWorkflowCompleted() {
		return env.GetWorkflowError()
	}
	return nil
}

func orderWorkflow(ctx workflow.Context, order string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 5},
	})
	return workflow.ExecuteActivity(ctx, "createInvoice", order).Get(ctx, nil)
}
