package otelgateway

import (
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/cryptogw/gateway"
)

// Observer returns what [New] adds to a client.
func Observer(o Options) gateway.Observer {
	o.TracerProvider = noop.NewTracerProvider()
	return newObserver(o)
}
