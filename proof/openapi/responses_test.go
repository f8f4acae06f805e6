package openapi

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// The document allows every response of the stand-in.
func TestOpenAPI_responses(t *testing.T) {
	gw := startChecked(t)
	client := gw.client(t)
	cases := everycall.Accepted(gw.Server)
	for _, c := range cases {
		require.NoError(t, c.Send(t.Context(), client), c.Name)
		require.NoError(t, gw.violations(), c.Name)
	}
	assert.Equal(t, len(cases), gw.validated())
}

// A verdict states whether the document allows the responses that a fault leads to.
type verdict func(operation string) string

const (
	allowed   = "allowed"
	forbidden = "forbidden"
	absent    = "no response"
)

func always(what string) verdict { return func(string) string { return what } }

// only is for faults that break the described bodies. The other bodies are not
// described, so that every body is allowed.
func only(ops ...gatewaytest.Operation) verdict {
	return func(operation string) string {
		if slices.Contains(ops, gatewaytest.Operation(operation)) {
			return forbidden
		}
		return allowed
	}
}

// Every fault that is not deliberately invalid leads to responses that the document
// allows, and the validator rejects the others.
func TestOpenAPI_responses_under_every_fault(t *testing.T) {
	const listing, inquiry = gatewaytest.OpCoinNetworks, gatewaytest.OpWithdrawal
	for _, tt := range []struct {
		fault gatewaytest.Fault
		want  verdict
	}{
		{gatewaytest.Fault{}, always(allowed)},
		{gatewaytest.Fault{}.RetryAfter("1"), always(allowed)},
		{gatewaytest.FaultRefuse(400, "no"), always(allowed)},
		{gatewaytest.FaultRefuse(404, `"quoted" and молчание`), always(allowed)},
		{gatewaytest.FaultRefuse(429, "slow down").RetryAfter("120"), always(allowed)},
		{gatewaytest.FaultRefuse(503, "later"), always(allowed)},
		{gatewaytest.FaultRefuse(599, ""), always(allowed)},
		{gatewaytest.FaultRefuse(201, "an error under a success"), only(listing, inquiry)},
		{gatewaytest.FaultRefuseAs(gatewaytest.ErrorNest, 400, "no"), always(forbidden)},
		{gatewaytest.FaultRefuseAs(gatewaytest.ErrorNull, 422, "no"), always(forbidden)},
		{gatewaytest.FaultPage(502), always(forbidden)},
		{gatewaytest.FaultEmpty(200), always(forbidden)},
		{gatewaytest.FaultTruncate(9), always(absent)},
		{gatewaytest.FaultStall(), always(absent)},
		{gatewaytest.FaultReset(), always(absent)},
		{gatewaytest.FaultCommitThenDrop(), always(absent)},
		{gatewaytest.FaultRedirect(307, "/elsewhere"), always(forbidden)},
		{gatewaytest.FaultSlowBody(time.Nanosecond), always(allowed)},
		{gatewaytest.FaultHugeBody(1 << 17), only(listing, inquiry)},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			gw := startChecked(t)
			gw.InjectFault(gatewaytest.AnyOperation, -1, tt.fault)
			for _, c := range everycall.Accepted(gw.Server) {
				assert.Equal(t, tt.want(c.Operation), gw.underFault(t, c, attemptTimeout(tt.fault)), c.Name)
			}
		})
	}
}

// underFault makes a call to a gateway with a fault, and returns whether the
// document allows the response.
func (gw checked) underFault(t *testing.T, c everycall.Case, timeout time.Duration) string {
	client := gw.client(t, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, AttemptTimeout: timeout, InvoiceTimeout: timeout}))
	validated := gw.validated()
	err := c.Send(t.Context(), client)
	wrong := gw.violations()
	switch {
	case gw.validated() == validated:
		assert.NoError(t, wrong)
		assert.Error(t, err)
		return absent
	case wrong != nil:
		assert.ErrorContains(t, wrong, "the response to ")
		return forbidden
	default:
		return allowed
	}
}

// attemptTimeout is short only where the timeout is what the fault leads to.
func attemptTimeout(fault gatewaytest.Fault) time.Duration {
	if fault.String() == "stall" {
		return 50 * time.Millisecond
	}
	return time.Minute
}

// The document allows the errors that the stand-in returns without a fault.
func TestOpenAPI_responses_of_errors(t *testing.T) {
	gw := startChecked(t)
	client := gw.client(t)
	gw.APIKey = "wrong"
	for _, c := range everycall.Accepted(gw.Server) {
		_ = c.Send(t.Context(), gw.client(t))
	}
	gw.SetRateLimit(1, time.Hour)
	for range 2 {
		_, _ = client.ExchangeRates(t.Context())
	}
	gw.SetRateLimit(0, 0)
	_, err := client.CoinNetworkBySymbol(t.Context(), "NO", "SUCH")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	require.NoError(t, gw.violations())
	var statuses []int
	for _, r := range gw.Requests() {
		statuses = append(statuses, r.Status)
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusNotFound} {
		assert.Contains(t, statuses, status)
	}
}
