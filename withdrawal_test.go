package gateway_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// I-143
func TestWithdrawalStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		statuses        []gateway.WithdrawalStatus
		known, terminal bool
	}{
		{[]gateway.WithdrawalStatus{gateway.WithdrawalPending, "PENDING", "pending"}, true, false},
		{[]gateway.WithdrawalStatus{gateway.WithdrawalFailed, "FAILED", "Failed"}, true, true},
		{[]gateway.WithdrawalStatus{gateway.WithdrawalCompleted, "COMPLETED", "completed"}, true, true},
		{[]gateway.WithdrawalStatus{"PROCESSING", " COMPLETED", "COMPLETED\n", ""}, false, false},
	} {
		for _, status := range tt.statuses {
			assert.Equal(t, tt.known, status.Known(), "%q", status)
			assert.Equal(t, tt.terminal, status.Terminal(), "%q", status)
		}
	}
}

// A documented status has its constant, whatever its case. Any other text is returned as it is.
func TestClient_Withdrawal_status(t *testing.T) {
	t.Parallel()
	for wire, want := range map[string]gateway.WithdrawalStatus{
		`"PENDING"`:        gateway.WithdrawalPending,   // I-139
		`"Failed"`:         gateway.WithdrawalFailed,    // I-140
		`"completed"`:      gateway.WithdrawalCompleted, // I-141
		`"\u0043OMPLETED"`: gateway.WithdrawalCompleted,
		`"on_hold"`:        "on_hold", // I-144
		`" COMPLETED "`:    " COMPLETED ",
	} {
		body := enveloped(written(withdrawalFields, "status", wire))
		got, err := cannedClient(t, 201, body).Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
		assert.Equal(t, want, got.Status)
	}
}

// The status of a withdrawal is not lost with another field.
func TestWithdrawalStatusOf(t *testing.T) {
	t.Parallel()
	broken := strings.NewReplacer("PENDING", "COMPLETED", `"fee":"1.5"`, `"fee":"1 USDT"`).Replace(withdrawalJSON)
	for _, result := range []string{
		broken,
		strings.Replace(strings.Replace(broken, `"status":"COMPLETED",`, "", 1), "}", `,"status":"COMPLETED"}`, 1),
		strings.Replace(broken, "COMPLETED", "completed", 1),
		"[" + broken + "]",
		`{"status":"COMPLETED"}`,
		`{"status":"COMPLETED","note":"` + strings.Repeat("x", 20<<10) + `"}`,
	} {
		c := cannedClient(t, 201, enveloped(result))
		err := withdrawal(t.Context(), c)
		_ = as[*gateway.DecodeError](t, err)
		assert.Equal(t, gateway.WithdrawalCompleted, gateway.WithdrawalStatusOf(err))
		assert.Regexp(t, `\(the status is "(COMPLETED|completed)"\)`, err)
		_, err = c.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
		ended := as[*gateway.WaitError](t, err)
		assert.Equal(t, gateway.WithdrawalCompleted, ended.Status)
		assert.Nil(t, ended.Last)
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
		{"another pair in an array", "CoinNetwork", "[" + written(pairFields, "id", `"other"`) + "]", "/result/0/id"},
		{"a space more", "CoinNetwork", written(pairFields, "id", `"`+pairID+` "`), "/result/id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := subjectNamed(tt.subject)
			assertNotUnderstood(t, s, enveloped(tt.result), tt.pointer, "another record than the requested one")
			_, err := s.call(t.Context(), cannedClient(t, s.status, enveloped(tt.result)))
			assert.ErrorIs(t, err, gateway.ErrResponseMismatch)
		})
	}
	for _, tt := range []struct {
		name, method, member, value string
		got                         func(p *gateway.CoinNetwork) string
	}{
		{"a UUID in the other case is the one asked for", "CoinNetwork", "id", strings.ToUpper(pairID), func(p *gateway.CoinNetwork) string { return p.ID }},    // I-163
		{"the identifiers within a record are data", "CoinNetwork", "networkId", "another network", func(p *gateway.CoinNetwork) string { return p.NetworkID }}, // I-56
		{"by symbol any identifier is accepted", "CoinNetworkBySymbol", "id", "other", func(p *gateway.CoinNetwork) string { return p.ID }},                     // I-17
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := enveloped(written(pairFields, tt.member, strconv.Quote(tt.value)))
			got, err := subjectNamed(tt.method).call(t.Context(), cannedClient(t, 200, body))
			require.NoError(t, err)
			assert.Equal(t, tt.value, tt.got(got.(*gateway.CoinNetwork)), "as it came")
		})
	}
}
