package otelgateway

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

// The type of a failure is one word, of a closed list.
func TestErrorType(t *testing.T) {
	of := func(phase gateway.Phase, err error) error { return &gateway.TransportError{Phase: phase, Err: err} }
	unreadable := func(err error) error { return &gateway.DecodeError{StatusCode: 201, Err: err} }
	other := errors.New("no route to host")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&gateway.APIError{StatusCode: 404}, "404"},
		{&gateway.APIError{StatusCode: 200}, "error_envelope"},
		{unreadable(other), "decode"},
		{unreadable(gateway.ErrResponseMismatch), "response_mismatch"},
		{&gateway.ArgumentError{}, "argument"},
		{of(gateway.PhaseDial, other), "dial"},
		{of(gateway.PhaseWait, context.DeadlineExceeded), "timeout"},
		{of(gateway.PhaseWait, context.Canceled), "canceled"},
		{of(gateway.PhaseWait, gateway.ErrRedirect), "redirect"},
		{of(gateway.PhaseRead, gateway.ErrResponseTooLarge), "response_too_large"},
		{of(gateway.PhaseStart, &gateway.APIError{StatusCode: 418}), "start"}, // of the source of keys
		{of(gateway.PhaseOrder, other), "order"},
		{of(gateway.PhaseOrder, context.DeadlineExceeded), "order"},
		{of(gateway.PhaseOrder, context.Canceled), "canceled"},
		{of(gateway.PhaseOrder, fmt.Errorf("%w: %w", gateway.ErrOrderInFlight, context.DeadlineExceeded)), "order_in_flight"},
		{of(gateway.PhaseOrder, gateway.ErrShutdown), "shutdown"},
		{&gateway.OutcomeUnknownError{Cause: unreadable(other)}, "decode"},
		{&gateway.OutcomeUnknownError{Cause: other, Replayed: true}, "order_outcome_unknown"},
		{&gateway.OrderConflictError{}, "order_conflict"},
		{other, "_OTHER"},
	} {
		assert.Equal(t, tt.want, errorType(tt.err), "%T: %v", tt.err, tt.err)
	}
}

// The attributes show the host and the port of a base URL, and nothing else of it.
func TestOptions_attributes(t *testing.T) {
	for _, tt := range []struct{ baseURL, guard, want string }{
		{"", "", "[]"},
		{"https://%zz", "", "[]"},
		{"http://localhost", "", "[server.address:localhost server.port:80]"},
		{"https://user:password@gateway.example:8443/merchant-7", "shop", "[server.address:gateway.example server.port:8443 gateway.guard:shop]"},
		{"https://[::1]/x", "", "[server.address:::1 server.port:443]"},
	} {
		var got []string
		for _, a := range (Options{BaseURL: tt.baseURL, Guard: tt.guard}).attributes() {
			got = append(got, string(a.Key)+":"+a.Value.String())
		}
		assert.Equal(t, tt.want, fmt.Sprint(got))
	}
}
