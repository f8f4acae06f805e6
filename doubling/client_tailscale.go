package main

import (
	"context"
	"net/http"
	"net/url"

	"tailscale.com/client/tailscale/v2"
)

// tailscaleKey is tailscale-client-go-v2.
var tailscaleKey = client{
	name:    "tailscale-client-go-v2",
	module:  "tailscale.com/client/tailscale/v2",
	madeFor: "settings and keys of a network; it does not retry",
	success: `{"id":"k1","key":"tskey"}`,
	open: func(e environment) (create, error) {
		base, err := url.Parse(e.url)
		if err != nil {
			return nil, err
		}
		c := &tailscale.Client{BaseURL: base, APIKey: "key", HTTP: &http.Client{Timeout: e.timeout}}
		return func(ctx context.Context, order string) error {
			_, err := c.Keys().CreateAuthKey(ctx, tailscale.CreateKeyRequest{Description: order})
			return err
		}, nil
	},
}
