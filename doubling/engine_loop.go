package main

import "context"

// loop sends the invoice up to three times, until there is no error. After a deploy the
// next process does the same with an order that has no invoice yet.
func loop(ctx context.Context, c *cell) error {
	for {
		process, send, err := c.process(ctx)
		if err != nil {
			return err
		}
		for range 3 {
			if err = send(process, c.order); err == nil || process.Err() != nil {
				break
			}
		}
		if process.Err() == nil || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
