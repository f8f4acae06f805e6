package contract_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/internal/surface"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Every answer of the stand-in is one that the document allows, in every shape.
func TestOpenAPI_responses_in_every_shape(t *testing.T) {
	for _, shape := range surface.Shapes(t, "../gatewaytest") {
		t.Run(shape, func(t *testing.T) {
			gw := startChecked(t)
			gw.SetShape(gatewaytest.Shape(shape))
			client := gw.client(t)
			for _, q := range surface.Questions() {
				require.NoError(t, q.Call(t.Context(), client, surface.KnownTo(gw.Server)), q.Name)
				require.NoError(t, gw.verdict(), q.Name)
			}
			assert.Equal(t, len(surface.Questions()), gw.judged())
		})
	}
}

// A verdict is what the document says of the answers that a trouble leads to.
type verdict func(gatewaytest.Operation) string

const (
	allowed   = "allowed"
	forbidden = "forbidden"
	absent    = "no answer"
)

func always(what string) verdict { return func(gatewaytest.Operation) string { return what } }

// only is for troubles that break what the pages describe. Of the other bodies
// nothing is known that they could break.
func only(ops ...gatewaytest.Operation) verdict {
	return func(op gatewaytest.Operation) string {
		if slices.Contains(ops, op) {
			return forbidden
		}
		return allowed
	}
}

// Every trouble that is not deliberately broken leads to answers that the
// document allows, and the others are found out.
func TestOpenAPI_responses_in_every_trouble(t *testing.T) {
	const listing, inquiry = gatewaytest.OpCoinNetworks, gatewaytest.OpWithdrawal
	tried := map[string]bool{}
	for _, tt := range []struct {
		made    string // the function that makes it
		trouble gatewaytest.Fault
		want    verdict
	}{
		{"", gatewaytest.Fault{}, always(allowed)},
		{"", gatewaytest.Fault{}.RetryAfter("1"), always(allowed)},
		{"Refuse", gatewaytest.Refuse(400, "no"), always(allowed)},
		{"Refuse", gatewaytest.Refuse(404, `"quoted" and молчание`), always(allowed)},
		{"Refuse", gatewaytest.Refuse(429, "slow down").RetryAfter("120"), always(allowed)},
		{"Refuse", gatewaytest.Refuse(503, "later"), always(allowed)},
		{"Refuse", gatewaytest.Refuse(599, ""), always(allowed)},
		{"Refuse", gatewaytest.Refuse(201, "an error under a success"), only(listing, inquiry)},
		{"BadGateway", gatewaytest.BadGateway(), always(forbidden)},
		{"MalformedJSON", gatewaytest.MalformedJSON(), always(forbidden)},
		{"Truncate", gatewaytest.Truncate(9), always(absent)},
		{"Stall", gatewaytest.Stall(), always(absent)},
		{"Reset", gatewaytest.Reset(), always(absent)},
		{"CommitThenDrop", gatewaytest.CommitThenDrop(), always(absent)},
		{"Redirect", gatewaytest.Redirect(307, "/elsewhere"), always(forbidden)},
		{"SlowBody", gatewaytest.SlowBody(time.Nanosecond), always(allowed)},
		{"HugeBody", gatewaytest.HugeBody(1 << 17), only(listing, inquiry)},
		{"Drift", gatewaytest.Drift(), only(inquiry)},
		{"DriftFields", gatewaytest.DriftFields(), always(allowed)},
		{"DriftStatus", gatewaytest.DriftStatus(), only(inquiry)},
	} {
		tried[tt.made] = true
		t.Run(tt.trouble.String(), func(t *testing.T) {
			gw := startChecked(t)
			gw.InjectFault(gatewaytest.AnyOperation, -1, tt.trouble)
			for _, q := range surface.Questions() {
				assert.Equal(t, tt.want(q.Op), gw.inTrouble(t, q, patience(tt.trouble)), q.Name)
			}
		})
	}
	for _, name := range surface.Faults(t, "../gatewaytest") {
		assert.True(t, tried[name], "%s was not tried", name)
	}
}

// inTrouble asks a gateway that is in trouble, and returns what the document
// says of its answer.
func (c checked) inTrouble(t *testing.T, q surface.Question, timeout time.Duration) string {
	client := c.client(t, gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1, AttemptTimeout: timeout, InvoiceTimeout: timeout}))
	judged := c.judged()
	err := q.Call(t.Context(), client, surface.KnownTo(c.Server))
	wrong := c.verdict()
	switch {
	case c.judged() == judged:
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

// patience is how long a client waits for an answer.
func patience(trouble gatewaytest.Fault) time.Duration {
	if trouble.String() == "stall" {
		return 50 * time.Millisecond
	}
	return time.Minute
}

// The refusals that the stand-in makes up by itself are ones that the document
// allows too.
func TestOpenAPI_responses_that_refuse(t *testing.T) {
	gw := startChecked(t)
	stranger := gw.client(t)
	gw.APIKey = "wrong"
	for _, q := range surface.Questions() {
		_ = q.Call(t.Context(), gw.client(t), surface.KnownTo(gw.Server))
	}
	gw.SetRateLimit(1, time.Hour)
	for range 2 {
		_, _ = stranger.ExchangeRates(t.Context())
	}
	gw.SetRateLimit(0, 0)
	_, err := stranger.CoinNetworkBySymbol(t.Context(), "NO", "SUCH")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	require.NoError(t, gw.verdict())
	var statuses []int
	for _, r := range gw.Requests() {
		statuses = append(statuses, r.Status)
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusNotFound} {
		assert.Contains(t, statuses, status)
	}
}
