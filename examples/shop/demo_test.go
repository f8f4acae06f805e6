package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Payments require a key.
func TestOpenGateway_missingKey(t *testing.T) {
	t.Setenv("GATEWAY_BASE_URL", "https://gateway.example")
	t.Setenv("GATEWAY_API_KEY", "")
	t.Setenv("GATEWAY_API_KEY_FILE", "")
	_, err := openGateway()
	assert.EqualError(t, err, "GATEWAY_BASE_URL is set, but GATEWAY_API_KEY is not: payments require it")
}

// A key without a gateway is a configuration error; the shop must not fall
// back to the demo.
func TestOpenGateway_missingBaseURL(t *testing.T) {
	for _, name := range []string{"GATEWAY_API_KEY", "GATEWAY_API_KEY_FILE"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GATEWAY_BASE_URL", "")
			t.Setenv("GATEWAY_API_KEY", "")
			t.Setenv("GATEWAY_API_KEY_FILE", "")
			t.Setenv(name, "something")
			_, err := openGateway()
			assert.EqualError(t, err, name+" is set, but GATEWAY_BASE_URL is not")
		})
	}
}
