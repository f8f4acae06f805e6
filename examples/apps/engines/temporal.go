package engines

import (
	"context"
	"errors"
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
// by its type, which an error that wraps it hides. Of others the type is not enough.
func (a *Activities) CreateInvoice(ctx context.Context, order gateway.InvoiceRequest) (*gateway.Invoice, error) {
	invoice, err := a.Client.CreateInvoice(ctx, order)
	if _, unknown := errors.AsType[*gateway.OutcomeUnknownError](err); final(err) && !unknown {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "InvoiceRefused", err)
	}
	return invoice, err
}

// OrderWorkflow creates the invoice of an order, and returns it.
func OrderWorkflow(ctx workflow.Context, order gateway.InvoiceRequest) (invoice *gateway.Invoice, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 5 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			NonRetryableErrorTypes: []string{"OutcomeUnknownError"},
		},
	})
	var a *Activities
	err = workflow.ExecuteActivity(ctx, a.CreateInvoice, order).Get(ctx, &invoice)
	return invoice, err
}
