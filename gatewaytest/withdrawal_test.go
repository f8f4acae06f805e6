package gatewaytest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// statusOf requests a withdrawal and returns the status in the response, as text.
func statusOf(t *testing.T, s *gatewaytest.Server, id string) string {
	t.Helper()
	got := get(t, s, "/api/withdrawal/inquiry/"+id)
	require.Equal(t, 201, got.status)
	return got.body[len(`{"message":"Operation was successful.","result":{"status":"`) : len(got.body)-len(after(id))]
}

// after returns the text after the status of a withdrawal with only an identifier.
func after(id string) string {
	return `","destination":"","amount":"","fee":"","coin":"","network":"","withdrawRequestId":"` + id + `"},"meta":{}}`
}

// I-139, I-141, I-142
func TestServer_withdrawals(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, want := range []string{
		`{"status":"PENDING","destination":"TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE","amount":"120.50","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"`,
		`{"status":"COMPLETED","destination":"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq","amount":"0.01500000","fee":"0.0002","coin":"BTC","network":"Bitcoin","withdrawRequestId":"`,
	} {
		id := s.Withdrawals()[i].WithdrawRequestID
		assert.Equal(t, successBody(want+id+`"}`), get(t, s, "/api/withdrawal/inquiry/"+id).body)
	}
	id := s.AddWithdrawal(gatewaytest.Withdrawal{})
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	assert.Equal(t, "PENDING", statusOf(t, s, id))
	for _, status := range []string{"FAILED", "completed", ""} {
		require.NoError(t, s.SetWithdrawalStatus(id, status))
		assert.Equal(t, status, statusOf(t, s, id))
	}
	require.NoError(t, s.SetStatusAfterRequests(id, 0, "FAILED"))
	assert.Equal(t, id, s.AddWithdrawal(gatewaytest.Withdrawal{WithdrawRequestID: id, Status: "NEW"}))
	assert.Equal(t, "NEW", statusOf(t, s, id), "replaced, with its planned changes")
	assert.Len(t, s.Withdrawals(), 3)
	require.EqualError(t, s.SetWithdrawalStatus("none", "FAILED"), `gatewaytest: no withdrawal "none"`)
}

func TestServer_SetStatusAfterRequests(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.AddWithdrawal(gatewaytest.Withdrawal{})
	require.NoError(t, s.SetStatusAfterRequests(id, 3, "COMPLETED"))
	require.NoError(t, s.SetStatusAfterRequests(id, 1, "PROCESSING"))
	for _, want := range []string{"PENDING", "PROCESSING", "PROCESSING", "COMPLETED", "COMPLETED"} {
		// Neither of these two is an inquiry that counts.
		mustTry(t, s, "GET", "/api/withdrawal/inquiry/"+id, "")
		s.InjectFault(gatewaytest.OpWithdrawal, 1, gatewaytest.FaultRefuse(503, "later"))
		require.Equal(t, 503, get(t, s, "/api/withdrawal/inquiry/"+id).status)
		assert.Equal(t, want, statusOf(t, s, id))
	}
	require.EqualError(t, s.SetStatusAfterRequests(id, -1, "FAILED"), "gatewaytest: SetStatusAfterRequests with -1 inquiries, want 0 or more")
	require.EqualError(t, s.SetStatusAfterRequests("none", 1, "FAILED"), `gatewaytest: no withdrawal "none"`)
}
