package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

// retryable is go-retryablehttp as it comes, with a timeout and without its log.
var retryable = client{
	name:    "go-retryablehttp",
	variant: "as it comes",
	module:  "github.com/hashicorp/go-retryablehttp",
	madeFor: "requests that may be repeated: it retries every method",
	success: `{}`,
	open: func(e environment) (create, error) {
		c := retryablehttp.NewClient()
		c.HTTPClient.Timeout, c.Logger = e.timeout, nil
		return func(ctx context.Context, order string) error {
			body := []byte(`{"orderId":"` + order + `"}`)
			req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, e.url+"/invoices", body)
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := c.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d", resp.StatusCode)
			}
			return nil
		}, nil
	},
}
