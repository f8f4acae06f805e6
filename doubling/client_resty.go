package main

import (
	"context"
	"fmt"

	"github.com/go-resty/resty/v2"
)

// restyRetries is resty with retries, of errors only, as SetRetryCount alone makes them.
var restyRetries = client{
	name:    "resty",
	variant: "`SetRetryCount(3)`",
	module:  "github.com/go-resty/resty/v2",
	madeFor: "any HTTP; with retries, requests that may be repeated: version 2 retries every method",
	success: `{}`,
	open: func(e environment) (create, error) {
		c := resty.New().SetTimeout(e.timeout).SetRetryCount(3).SetDisableWarn(true).SetLogger(silent{})
		return func(ctx context.Context, order string) error {
			resp, err := c.R().SetContext(ctx).SetBody(map[string]string{"orderId": order}).Post(e.url + "/invoices")
			if err != nil {
				return err
			}
			if resp.IsError() {
				return fmt.Errorf("status %d", resp.StatusCode())
			}
			return nil
		}, nil
	},
}

// silent is a log that nobody reads.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}
