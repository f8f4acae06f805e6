package invariant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
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
