package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A key for no gateway is a mistake, and no reason to make invoices up.
func TestOpenGateway_aKeyWithoutAGateway(t *testing.T) {
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
