package everycall_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// No method of the client that sends a request is missing: each is in
// [everycall.All] or built on one of them.
func TestAll_isComplete(t *testing.T) {
	t.Parallel()
	sends := map[string]bool{}
	for _, c := range everycall.Variations() {
		sends[c.Name] = true
	}
	for _, c := range everycall.All() {
		assert.True(t, sends[c.Name], "%s has no variation", c.Name)
	}
	others := []string{"Check", "CloseIdleConnections", "Format", "GoString", "LogValue", "MarshalJSON", "MarshalText", "Shutdown", "String"}
	methods := reflect.TypeFor[*gateway.Client]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		assert.True(t, sends[name] || slices.Contains(others, name), "%s is not in the table", name)
		delete(sends, name)
	}
	assert.Equal(t, map[string]bool{"NewCatalogCache": true, "NewRatesCache": true}, sends, "names that no method has")
}

// A stand-in accepts every call with the values that it knows, as that operation. The tests of the client compare the
// rest of the table with what it sends, and those of the OpenAPI document send every variation.
func TestAccepted(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
	require.NoError(t, err)
	cases := everycall.Accepted(gw)
	for _, c := range cases {
		require.NoError(t, c.Send(t.Context(), client), c.Name)
		got := gw.Requests()[len(gw.Requests())-1]
		assert.Equal(t, gatewaytest.Operation(c.Operation), got.Operation, c.Name)
		assert.Equal(t, string(c.Key), got.KeyIn, c.Name)
	}
	assert.Len(t, gw.Requests(), len(everycall.All())+1)
}
