package invariant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/faultserver"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

const key = invariant.Key

// Each invariant is found when it is broken, or it proves nothing.
func TestBroken(t *testing.T) {
	t.Parallel()
	good, long := &gateway.APIError{Operation: "balance", StatusCode: 400}, make([]byte, 8<<10+1)
	for _, tt := range []struct {
		name   string
		result any
		err    error
		want   string // "" for nothing
	}{
		{"a success", &gateway.Balance{}, nil, ""},
		{"an error", (*gateway.Balance)(nil), good, ""},
		{"neither", nil, nil, "a success has no result"},
		{"a nil result", []gateway.CoinNetwork(nil), nil, "a success has no result"},
		{"both", &gateway.Balance{}, good, "an error comes with a result"},
		{"the key in a result", &gateway.Withdrawal{Destination: key}, nil, "the key is in the result"},
		{"the key in the bytes of a result", &gateway.Invoice{Raw: []byte(`"` + key + `"`)}, nil, "the key is in the result"},
		{"the key in an error", nil, &gateway.APIError{Message: key}, "the key is in an error"},
		{"the key in the bytes of an error", nil, &gateway.DecodeError{Body: []byte(key)}, "the key is in an error"},
		{"the key in a cause", nil, &gateway.OutcomeUnknownError{Cause: errors.New(key)}, "the key is in an error"},
		{"the key in hexadecimal", nil, &gateway.APIError{Message: fmt.Sprintf("%x", key)}, "the key is in an error"},
		{"a long body", nil, &gateway.APIError{Body: long}, "8193 bytes"},
		{"a long body in a cause", nil, &gateway.OutcomeUnknownError{Cause: &gateway.DecodeError{Body: long}}, "8193 bytes"},
		{"another type", nil, fmt.Errorf("gateway: %w", good), "another type"},
		{"another prefix", nil, errors.New("balance: 400"), "not one line"},
		{"two lines", nil, errors.New("gateway: a\nb"), "not one line"},
	} {
		broken := strings.Join(invariant.Broken(tt.result, tt.err), "; ")
		assert.Contains(t, broken, tt.want, tt.name)
		assert.Equal(t, tt.want == "", broken == "", "%s: %s", tt.name, broken)
	}
}

func TestBrokenInvoice(t *testing.T) {
	t.Parallel()
	notSent, rejected := &gateway.ArgumentError{}, &gateway.APIError{Operation: "create_invoice", StatusCode: 400}
	unknown := &gateway.OutcomeUnknownError{}
	for _, tt := range []struct {
		name string
		seen faultserver.Seen
		err  error
		want string
	}{
		{"a success", faultserver.Seen{Commits: 1, Bodies: 1, BodyBytes: 9}, nil, ""},
		{"an unknown invoice", faultserver.Seen{Commits: 1, Bodies: 1, BodyBytes: 9}, unknown, ""},
		{"a refusal", faultserver.Seen{Bodies: 1, BodyBytes: 9}, rejected, ""},
		{"not sent", faultserver.Seen{}, notSent, ""},
		{"two invoices", faultserver.Seen{Commits: 2, Bodies: 1}, nil, "created twice"},
		{"two bodies", faultserver.Seen{Commits: 1, Bodies: 2}, nil, "sent twice"},
		{"a success of nothing", faultserver.Seen{Bodies: 1}, nil, "without one invoice"},
		{"a byte of what was not sent", faultserver.Seen{BodyBytes: 1}, notSent, "a byte of the body arrived"},
		{"an invoice that was rejected", faultserver.Seen{Commits: 1, Bodies: 1}, rejected, "an invoice exists"},
		{"not understood, and not unknown", faultserver.Seen{Bodies: 1}, &gateway.DecodeError{}, "was not understood"},
	} {
		broken := strings.Join(invariant.BrokenInvoice(tt.seen, tt.err), "; ")
		assert.Contains(t, broken, tt.want, tt.name)
		assert.Equal(t, tt.want == "", broken == "", "%s: %s", tt.name, broken)
	}
}
