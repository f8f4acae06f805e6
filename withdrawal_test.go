package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// I-143
func TestWithdrawalStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status          gateway.WithdrawalStatus
		known, terminal bool
	}{
		{gateway.WithdrawalPending, true, false},
		{gateway.WithdrawalFailed, true, true},
		{gateway.WithdrawalCompleted, true, true},
		{"PENDING", true, false},
		{"FAILED", true, true},
		{"COMPLETED", true, true},
		{"PROCESSING", false, false},
		{"completed", true, true},
		{"Failed", true, true},
		{"pending", true, false},
		{" COMPLETED", false, false},
		{"COMPLETED\n", false, false},
		{"", false, false},
	} {
		t.Run(""+string(tt.status), func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.known, tt.status.Known())
			assert.Equal(t, tt.terminal, tt.status.Terminal())
		})
	}
}

func TestClient_Withdrawal_status(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, wire string
		want       gateway.WithdrawalStatus
	}{
		{"pending", `"PENDING"`, gateway.WithdrawalPending},                           // I-139
		{"failed", `"FAILED"`, gateway.WithdrawalFailed},                              // I-140
		{"completed", `"COMPLETED"`, gateway.WithdrawalCompleted},                     // I-141
		{"an undocumented status is returned as it is", `"PROCESSING"`, "PROCESSING"}, // I-144
		{"lower case is the documented status", `"completed"`, gateway.WithdrawalCompleted},
		{"mixed case is the documented status", `"Failed"`, gateway.WithdrawalFailed},
		{"an undocumented status in lower case is returned as it is", `"on_hold"`, "on_hold"},
		{"spaces are returned", `" COMPLETED "`, " COMPLETED "},
		{"a status in escapes is the status", `"\u0043OMPLETED"`, gateway.WithdrawalCompleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := enveloped(written(withdrawalFields, "status", tt.wire))
			got, err := cannedClient(t, 201, body).Withdrawal(t.Context(), requestID)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got.Status)
		})
	}
	for _, tt := range []struct{ name, wire, reason string }{
		{"an empty status", `""`, "is empty"},
		{"null", `null`, "is null, not text"},
		{"a number", `2`, "is a number, not text"},
		{"no status", ``, "is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("Withdrawal"),
				enveloped(written(withdrawalFields, "status", tt.wire)), "/result/status", tt.reason)
		})
	}
}

// A record with another identifier is never returned.
func TestClient_mismatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, subject, result, pointer string }{
		// I-150
		{"another withdrawal", "Withdrawal", written(withdrawalFields, "withdrawRequestId", `"other"`), "/result/withdrawRequestId"},
		{"another withdrawal in an array", "Withdrawal", "[" + written(withdrawalFields, "withdrawRequestId", `"other"`) + "]", "/result/0/withdrawRequestId"},
		{"another pair", "CoinNetwork", written(pairFields, "id", `"other"`), "/result/id"},                                         // I-17
		{"a UUID without its dashes", "CoinNetwork", written(pairFields, "id", `"7c9d6d0e2f0f4d7e9a530d1f6f1c2b11"`), "/result/id"}, // I-163
		{"a space more", "CoinNetwork", written(pairFields, "id", `"`+pairID+` "`), "/result/id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := subjectNamed(tt.subject)
			assertNotUnderstood(t, s, enveloped(tt.result), tt.pointer, "another record than the one asked for")
			_, err := s.call(t.Context(), cannedClient(t, s.status, enveloped(tt.result)))
			assert.ErrorIs(t, err, gateway.ErrResponseMismatch)
		})
	}
	t.Run("a UUID in the other case is the one asked for", func(t *testing.T) { // I-163
		t.Parallel()
		body := enveloped(written(pairFields, "id", `"7C9D6D0E-2F0F-4D7E-9A53-0D1F6F1C2B11"`))
		got, err := cannedClient(t, 200, body).CoinNetwork(t.Context(), pairID)
		require.NoError(t, err)
		assert.Equal(t, "7C9D6D0E-2F0F-4D7E-9A53-0D1F6F1C2B11", got.ID, "as it came")
	})
	t.Run("the identifiers within a record are data", func(t *testing.T) { // I-56
		t.Parallel()
		body := enveloped(written(pairFields, "networkId", `"another network"`))
		got, err := cannedClient(t, 200, body).CoinNetwork(t.Context(), pairID)
		require.NoError(t, err)
		assert.Equal(t, "another network", got.NetworkID)
		assert.Equal(t, "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", got.Network.ID)
	})
	t.Run("by symbol any identifier is accepted", func(t *testing.T) { // I-17
		t.Parallel()
		body := enveloped(written(pairFields, "id", `"other"`))
		got, err := cannedClient(t, 200, body).CoinNetworkBySymbol(t.Context(), "USDT", "Tron (TRC20)")
		require.NoError(t, err)
		assert.Equal(t, "other", got.ID)
	})
}
