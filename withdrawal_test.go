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
		{"completed", false, false},
		{"Completed", false, false},
		{" COMPLETED", false, false},
		{"COMPLETED\n", false, false},
		{"", false, false},
	} {
		t.Run("row 74: "+string(tt.status), func(t *testing.T) {
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
		{"pending", `"PENDING"`, gateway.WithdrawalPending},                                   // I-139
		{"failed", `"FAILED"`, gateway.WithdrawalFailed},                                      // I-140
		{"completed", `"COMPLETED"`, gateway.WithdrawalCompleted},                             // I-141
		{"row 74: an undocumented status is returned as it is", `"PROCESSING"`, "PROCESSING"}, // I-144
		{"row 74: lower case is returned as it is, and is not the status", `"completed"`, "completed"},
		{"row 74: spaces are returned", `" COMPLETED "`, " COMPLETED "},
		{"row 74: a status in escapes is the status", `"\u0043OMPLETED"`, gateway.WithdrawalCompleted},
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
		{"row 74: an empty status", `""`, "is empty"},
		{"row 74: null", `null`, "is null, not text"},
		{"row 74: a number", `2`, "is a number, not text"},
		{"row 74: no status", ``, "is missing"},
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
		{"row 75: another withdrawal", "Withdrawal", written(withdrawalFields, "withdrawRequestId", `"other"`), "/result/withdrawRequestId"},
		{"row 75: another withdrawal in an array", "Withdrawal", "[" + written(withdrawalFields, "withdrawRequestId", `"other"`) + "]", "/result/0/withdrawRequestId"},
		{"row 75: another pair", "CoinNetwork", written(pairFields, "id", `"other"`), "/result/id"}, // I-17
		{"row 75: the same letters in another case", "CoinNetwork", written(pairFields, "id", `"7C9D6D0E-2F0F-4D7E-9A53-0D1F6F1C2B11"`), "/result/id"},
		{"row 75: a space more", "CoinNetwork", written(pairFields, "id", `"`+pairID+` "`), "/result/id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := subjectNamed(tt.subject)
			assertNotUnderstood(t, s, enveloped(tt.result), tt.pointer, "another record than the one asked for")
			_, err := s.call(t.Context(), cannedClient(t, s.status, enveloped(tt.result)))
			assert.ErrorIs(t, err, gateway.ErrResponseMismatch)
		})
	}
	t.Run("row 75: the identifiers within a record are data", func(t *testing.T) { // I-56
		t.Parallel()
		body := enveloped(written(pairFields, "networkId", `"another network"`))
		got, err := cannedClient(t, 200, body).CoinNetwork(t.Context(), pairID)
		require.NoError(t, err)
		assert.Equal(t, "another network", got.NetworkID)
		assert.Equal(t, "n-1", got.Network.ID)
	})
	t.Run("row 75: by symbol any identifier is accepted", func(t *testing.T) { // I-17
		t.Parallel()
		body := enveloped(written(pairFields, "id", `"other"`))
		got, err := cannedClient(t, 200, body).CoinNetworkBySymbol(t.Context(), "USDT", "Tron (TRC20)")
		require.NoError(t, err)
		assert.Equal(t, "other", got.ID)
	})
}
