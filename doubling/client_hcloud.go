package main

import (
	"context"
	"net/http"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// hcloudServer is hcloud-go, which retries some errors. A server has the name of the order, and Hetzner
// refuses a name that the project has.
func hcloudServer(honours bool) client {
	return client{
		name:    "hcloud-go",
		variant: asTheName.variant(honours),
		module:  "github.com/hetznercloud/hcloud-go/v2",
		madeFor: "a service in which the name of a server is unique in its project; it retries timeouts, 502 and 504",
		keys:    honours,
		success: `{"server":{"id":1,"name":"order"},"action":{"id":1},"next_actions":[]}`,
		again:   answer{http.StatusConflict, `{"error":{"code":"uniqueness_error","message":"server name is already used"}}`},
		open: func(e environment) (create, error) {
			c := hcloud.NewClient(hcloud.WithEndpoint(e.url), hcloud.WithToken("key"), hcloud.WithHTTPClient(&http.Client{Timeout: e.timeout}))
			return func(ctx context.Context, order string) error {
				_, _, err := c.Server.Create(ctx, hcloud.ServerCreateOpts{
					Name: order, ServerType: &hcloud.ServerType{Name: "cx22"}, Image: &hcloud.Image{Name: "debian-12"},
				})
				return err
			}, nil
		},
	}
}
