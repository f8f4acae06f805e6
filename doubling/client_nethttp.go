package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// netHTTP is the standard library, with a timeout.
var netHTTP = client{
	name:    "net/http",
	madeFor: "any HTTP; it follows redirects, 307 with the body",
	success: `{}`,
	open: func(e environment) (create, error) {
		c := &http.Client{Timeout: e.timeout}
		return func(ctx context.Context, order string) error {
			body := strings.NewReader(`{"orderId":"` + order + `"}`)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/invoices", body)
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
