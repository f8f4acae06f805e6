package invariant_test

import (
	"errors"
	"fmt"
	"net/http"
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

// The dump must be able to find a key, or it proves nothing.
func TestDump_finds(t *testing.T) {
	t.Parallel()
	type inner struct{ hidden any }
	text := key
	for name, v := range map[string]any{
		"a text":               key,
		"a pointer":            &text,
		"an unexported field":  inner{key},
		"a deep field":         &inner{[]any{map[string]*inner{"a": {key}}}},
		"a name":               map[string]int{key: 1},
		"bytes":                []byte(key),
		"hidden bytes":         inner{[]byte(key)},
		"an array of bytes":    inner{[len(key)]byte([]byte(key))},
		"an array":             [...]string{key},
		"a header":             http.Header{"A": {key}},
		"a buffer that is cut": []byte(key)[:0],
		"an error":             fmt.Errorf("a: %w", errors.New(key)),
	} {
		assert.Contains(t, invariant.Dump(v), key, name)
	}
	loop := &inner{}
	loop.hidden = loop
	assert.Empty(t, invariant.Dump(loop), "a loop ends")
}

// Each way of showing a key is found.
func TestShows(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"a text": "the key is " + key, "a hidden member": struct{ hidden any }{key}, "bytes": []byte(key), "an error": errors.New(key),
	} {
		assert.NotEmpty(t, invariant.Shows(v, key), name)
	}
	assert.Empty(t, invariant.Shows("another text", key))
}
