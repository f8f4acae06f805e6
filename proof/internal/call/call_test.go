package call

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Each of these is found when it is broken, or it proves nothing.
func TestBrokenInvoice(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewMemoryServer()
	defer gw.Close()
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(400, "no"))
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
	require.NoError(t, err)
	_, rejected := client.CreateInvoice(t.Context(), Order("A-17"))
	notSent, unknown := &gateway.ArgumentError{}, &gateway.OutcomeUnknownError{}
	for _, tt := range []struct {
		name string
		seen Seen
		err  error
		want string
	}{
		{"a success", Seen{Commits: 1, Bodies: 1, BodyBytes: 9}, nil, ""},
		{"an unknown invoice", Seen{Commits: 1, Bodies: 1, BodyBytes: 9}, unknown, ""},
		{"a refusal", Seen{Bodies: 1, BodyBytes: 9}, rejected, ""},
		{"not sent", Seen{}, notSent, ""},
		{"two invoices", Seen{Commits: 2, Bodies: 1}, nil, "created twice"},
		{"two bodies", Seen{Commits: 1, Bodies: 2}, nil, "sent twice"},
		{"a success of nothing", Seen{Bodies: 1}, nil, "without one invoice"},
		{"a byte of what was not sent", Seen{BodyBytes: 1}, notSent, "a byte of the body arrived"},
		{"an invoice that was rejected", Seen{Commits: 1, Bodies: 1}, rejected, "an invoice exists"},
		{"not understood, and not unknown", Seen{Bodies: 1}, &gateway.DecodeError{}, "was not understood"},
	} {
		broken := strings.Join(brokenInvoice(tt.seen, tt.err, false), "; ")
		assert.Contains(t, broken, tt.want, tt.name)
		assert.Equal(t, tt.want == "", broken == "", "%s: %s", tt.name, broken)
	}
}
