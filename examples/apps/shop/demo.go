package main

import (
	"net/http"
	"os"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A connector returns a client of the gateway.
type connector func(opts ...gateway.Option) (*gateway.Client, error)

// openGateway returns the gateway of the environment. If none is set, that is a stand-in in this process.
func openGateway() (connector, *gatewaytest.Server) {
	for _, name := range []string{"GATEWAY_BASE_URL", "GATEWAY_API_KEY", "GATEWAY_API_KEY_FILE"} {
		if os.Getenv(name) != "" {
			return gateway.FromEnv, nil
		}
	}
	demo := gatewaytest.NewMemoryServer()
	return connectTo(demo), demo
}

// connectTo returns a connector to a stand-in.
func connectTo(demo *gatewaytest.Server) connector {
	return func(opts ...gateway.Option) (*gateway.Client, error) {
		return gateway.New(demo.URL, demo.APIKey, append(opts, gateway.WithHTTPClient(&http.Client{Transport: demo.Transport()}))...)
	}
}
