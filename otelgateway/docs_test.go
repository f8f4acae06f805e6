package otelgateway_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/otelgateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// The first block of the README is code of the example, and its tables name everything
// that is recorded.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, begun := strings.Cut(string(readme), "```go\n")
	block, _, ended := strings.Cut(rest, "```\n")
	require.True(t, begun && ended)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	assert.Contains(t, string(example), block)

	inBubble(t, nil, func(t *testing.T, f fixture) {
		f.gw.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultReset())
		id := f.gw.Withdrawals()[0].WithdrawRequestID
		require.NoError(t, f.gw.SetWithdrawalStatus(id, "ON_HOLD"))
		opts := f.options()
		opts.BaseURL = "https://gateway.example"
		_, err := f.connect(t, f.gw.Transport(), opts).Withdrawal(t.Context(), id)
		require.NoError(t, err)
		_, err = otelgateway.RegisterPending(&guard{answer: func(context.Context) (sqlguard.PendingSummary, error) {
			return sqlguard.PendingSummary{}, nil
		}}, f.options())
		require.NoError(t, err)
		for name := range f.collect(t) {
			assert.Contains(t, string(readme), "`"+name+"`")
		}
		for _, span := range f.spans() {
			for name := range attributesOf(span) {
				assert.Contains(t, string(readme), "`"+name+"`")
			}
		}
	})
}
