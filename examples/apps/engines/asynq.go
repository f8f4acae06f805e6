package engines

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hibiken/asynq"

	"github.com/cryptogw/gateway"
)

// TaskCreateInvoice is the type of the task whose payload is an InvoiceRequest.
const TaskCreateInvoice = "invoice:create"

// InvoiceHandler works tasks of asynq. The guard of its client is over a database that
// all workers share.
func InvoiceHandler(client *gateway.Client) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) error {
		var order gateway.InvoiceRequest
		if err := json.Unmarshal(task.Payload(), &order); err != nil {
			return fmt.Errorf("payload: %w: %w", err, asynq.SkipRetry)
		}
		_, err := client.CreateInvoice(ctx, order)
		if final(err) {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry) // asynq archives the task
		}
		return err
	}
}
