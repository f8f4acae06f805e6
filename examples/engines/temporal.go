package engines

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/cryptogw/gateway"
)

// Activities are what a worker of Temporal has.
type Activities struct {
	Client *gateway.Client // with a guard over a database that all workers share
}

// CreateInvoice returns an unknown outcome as it is: the policy of OrderWorkflow knows it
// by its type, which an error that wraps it hides. Of a refusal the type is not enough:
// the guard's may end when another call for the order does.
func (a *Activities) CreateInvoice(ctx context.Context, order gateway.InvoiceRequest) error {
	_, err := a.Client.CreateInvoice(ctx, order)
	if final(err) && gateway.OutcomeOf(err) != gateway.OutcomeUnknown {
		return temporal.NewNonRetryableApplicationError(err.Error(), "InvoiceRefused", err)
	}
	return err
}

// OrderWorkflow creates the invoice of an order.
func OrderWorkflow(ctx workflow.Context, order gateway.InvoiceRequest) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 5 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			NonRetryableErrorTypes: []string{"OutcomeUnknownError"},
		},
	})
	var a *Activities
	return workflow.ExecuteActivity(ctx, a.CreateInvoice, order).Get(ctx, nil)
}
