package wiremock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/internal/surface"
	"github.com/cryptogw/gateway/gatewaytest"
)

const (
	attempts = 3
	patient  = time.Minute            // a timeout that is not reached
	brief    = 200 * time.Millisecond // one that is
)

func quickly(attempts int, timeout time.Duration) gateway.RetryPolicy {
	return gateway.RetryPolicy{
		MaxAttempts: attempts, BaseDelay: time.Millisecond, MaxDelay: time.Millisecond,
		AttemptTimeout: timeout, InvoiceTimeout: timeout,
	}
}

// TestWireMock shares one server: it takes seconds to start.
func TestWireMock(t *testing.T) {
	s := start(t)
	t.Run("the stubs are answered", s.stubs)
	t.Run("faults are typed errors, and an invoice is sent once", s.faults)
	t.Run("slowness ends with the client's timeout", s.slowness)
	t.Run("a read gets over a fault that passes", s.recovery)
	t.Run("an answer in pieces is read", s.pieces)
}

func (s server) stubs(t *testing.T) {
	for _, q := range surface.Questions() {
		t.Run(q.Name, func(t *testing.T) {
			defer s.reset(t)
			require.NoError(t, q.Call(t.Context(), s.client(t, quickly(attempts, patient)), known()))
			assert.Equal(t, 1, s.arrived(t))
		})
	}
}

// WireMock's own faults. The malformed chunk is said to be compressed, and is not:
// that is an answer, but none that can be read.
func (s server) faults(t *testing.T) {
	for _, tt := range []struct {
		fault string
		want  error
	}{
		{"CONNECTION_RESET_BY_PEER", &gateway.TransportError{}},
		{"EMPTY_RESPONSE", &gateway.TransportError{}},
		{"RANDOM_DATA_THEN_CLOSE", &gateway.TransportError{}},
		{"MALFORMED_RESPONSE_CHUNK", &gateway.DecodeError{}},
	} {
		for _, q := range surface.Questions() {
			t.Run(tt.fault+"/"+q.Name, func(t *testing.T) {
				defer s.reset(t)
				s.stub(t, fmt.Sprintf(`{"status":200,"fault":%q}`, tt.fault), "")
				err := q.Call(t.Context(), s.client(t, quickly(attempts, patient)), known())
				assert.IsType(t, tt.want, cause(t, q, err))
				if q.Op == gatewaytest.OpCreateInvoice {
					assert.Equal(t, 1, s.arrived(t), "an invoice is sent once: %v", err)
				} else {
					assert.Equal(t, attempts, s.arrived(t), "%v", err)
				}
			})
		}
	}
}

// cause looks at the error of a call whose answer did not come or could not be
// read, and returns what is said of that. Of an invoice the outcome is unknown.
func cause(t *testing.T, q surface.Question, err error) error {
	t.Helper()
	require.Error(t, err)
	if q.Op != gatewaytest.OpCreateInvoice {
		return err
	}
	var unknown *gateway.OutcomeUnknownError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
	assert.Equal(t, "order-17", unknown.OrderID)
	return unknown.Cause
}

// Answers that take ten minutes. A hundredth of a second after another there is a
// byte of the one that trickles, so that no timeout between two bytes would end it.
func (s server) slowness(t *testing.T) {
	for name, response := range map[string]string{
		"a header that does not come": `{"status":200,"body":"{}","fixedDelayMilliseconds":600000}`,
		"a body that trickles": fmt.Sprintf(`{"status":200,"body":"%s","chunkedDribbleDelay":{"numberOfChunks":60000,"totalDuration":600000}}`,
			strings.Repeat(" ", 60000)),
	} {
		for _, q := range surface.Questions() {
			t.Run(name+"/"+q.Name, func(t *testing.T) {
				defer s.reset(t)
				s.stub(t, response, "")
				err := q.Call(t.Context(), s.client(t, quickly(1, brief)), known())
				assert.ErrorIs(t, cause(t, q, err), gateway.ErrTimeout)
				assert.Equal(t, 1, s.arrived(t))
			})
		}
	}
}

// One fault, then the stubs again.
func (s server) recovery(t *testing.T) {
	for _, q := range surface.Questions() {
		if q.Op == gatewaytest.OpCreateInvoice {
			continue
		}
		t.Run(q.Name, func(t *testing.T) {
			defer s.reset(t)
			s.stub(t, `{"fault":"CONNECTION_RESET_BY_PEER"}`, `,"scenarioName":"once","requiredScenarioState":"Started","newScenarioState":"over"`)
			require.NoError(t, q.Call(t.Context(), s.client(t, quickly(attempts, patient)), known()))
			assert.Equal(t, 2, s.arrived(t))
		})
	}
}

// A dribble that the client has the time for.
func (s server) pieces(t *testing.T) {
	defer s.reset(t)
	s.stub(t, `{"status":200,"jsonBody":{"message":"Operation was successful.","result":{"id":"inv-9"},"meta":{}},
		"chunkedDribbleDelay":{"numberOfChunks":7,"totalDuration":140}}`, "")
	invoice := gateway.InvoiceRequest{OrderID: "order-17", Price: decimal.NewFromInt(1), Amount: decimal.NewFromInt(1)}
	created, err := s.client(t, quickly(attempts, patient)).CreateInvoice(t.Context(), invoice)
	require.NoError(t, err)
	id, _ := created.Text("id")
	assert.Equal(t, "inv-9", id)
	assert.Equal(t, 1, s.arrived(t))
}
