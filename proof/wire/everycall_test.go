package wire

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

const (
	maxAttempts = 3
	timeout     = time.Minute // of an attempt
)

// inMemory starts a stand-in and a client of it, for use in a synctest bubble.
func inMemory(t *testing.T) (*gatewaytest.Server, *gateway.Client) {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	policy := gateway.RetryPolicy{MaxAttempts: maxAttempts, AttemptTimeout: timeout, InvoiceTimeout: timeout}
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}), gateway.WithRetry(policy))
	require.NoError(t, err)
	return gw, client
}

// forEachCall runs a test for every call that a stand-in accepts, each in a bubble
// with a stand-in of its own.
func forEachCall(t *testing.T, test func(t *testing.T, gw *gatewaytest.Server, client *gateway.Client, c everycall.Case)) {
	t.Helper()
	list := gatewaytest.NewMemoryServer()
	defer list.Close()
	for i, named := range everycall.Accepted(list) {
		t.Run(named.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gw, client := inMemory(t)
				test(t, gw, client, everycall.Accepted(gw)[i])
			})
		})
	}
}

// Whatever method meets a fault that does not pass returns the typed error of that
// fault. A read is attempted again where that may help; an invoice is sent once, and
// its outcome is unknown.
func TestEveryCall_faults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault    gatewaytest.Fault
		want     error
		timeout  bool
		attempts int // of a read
	}{
		{gatewaytest.FaultReset(), &gateway.TransportError{}, false, maxAttempts},
		{gatewaytest.FaultCommitThenDrop(), &gateway.TransportError{}, false, maxAttempts},
		{gatewaytest.FaultTruncate(9), &gateway.TransportError{}, false, maxAttempts},
		{gatewaytest.FaultStall(), &gateway.TransportError{}, true, maxAttempts},
		{gatewaytest.FaultSlowBody(2 * timeout), &gateway.TransportError{}, true, maxAttempts},
		{gatewaytest.FaultPage(502), &gateway.APIError{}, false, maxAttempts},
		{gatewaytest.FaultPage(200), &gateway.DecodeError{}, false, 1},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			t.Parallel()
			forEachCall(t, func(t *testing.T, gw *gatewaytest.Server, client *gateway.Client, c everycall.Case) {
				gw.InjectFault(gatewaytest.AnyOperation, -1, tt.fault)
				err := c.Send(t.Context(), client)
				require.Error(t, err)
				if c.Writes() {
					var unknown *gateway.OutcomeUnknownError
					require.ErrorAs(t, err, &unknown)
					assert.Equal(t, c.Values.Invoice.OrderID, unknown.OrderID)
					assert.Len(t, gw.Requests(), 1, "an invoice is sent once")
					err = unknown.Cause
				} else {
					assert.Len(t, gw.Requests(), tt.attempts)
				}
				assert.IsType(t, tt.want, err)
				if tt.timeout {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		})
	}
}
