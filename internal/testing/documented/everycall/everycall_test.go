package everycall_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

const key = "CANARY-5f1d8e0b7a64c932"

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

// What the table has of a call is what the client sends and what it reads.
func TestAll_isTrue(t *testing.T) {
	t.Parallel()
	for _, c := range everycall.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var got *http.Request
			var body string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				got, body = r, string(text)
				w.WriteHeader(c.Status)
				_, _ = io.WriteString(w, c.Body())
			}))
			t.Cleanup(server.Close)
			var attempts []gateway.Attempt
			client, err := gateway.New(server.URL, key, gateway.WithObserver(gateway.Observer{
				Attempt: func(_ context.Context, a gateway.Attempt) { attempts = append(attempts, a) },
				Drift:   func(_ context.Context, d gateway.Drift) { t.Error(d) },
			}))
			require.NoError(t, err)
			result, err := c.Do(t.Context(), client, everycall.Documented())
			require.NoError(t, err)
			assert.NotEmpty(t, result)

			require.Len(t, attempts, 1)
			assert.Equal(t, []any{c.Operation, c.Route, c.Method}, []any{attempts[0].Operation, attempts[0].Route, got.Method})
			assert.Equal(t, strings.Count(c.Route, "/"), strings.Count(got.URL.Path, "/"))
			assert.Equal(t, c.Key == everycall.InHeader, got.Header.Get("X-Api-Key") == key)
			assert.Equal(t, c.Key == everycall.InBody, strings.Contains(body, key))
			assert.Equal(t, c.Writes(), body != "")
		})
	}
}

// A stand-in accepts every call with the values that it knows, as that operation.
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

// Every variation sends one request, whatever the gateway knows.
func TestVariations(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	everycall.AddEnded(gw)
	client, err := gateway.New(gw.URL, gw.APIKey, gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
	require.NoError(t, err)
	for i, c := range everycall.Variations() {
		err := c.Send(t.Context(), client)
		require.Len(t, gw.Requests(), i+1, "%s: %v", c.Name, err)
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, c := range everycall.All() {
		assert.Equal(t, c.Route, everycall.Named(c.Name).Route)
	}
	assert.PanicsWithValue(t, "everycall: no method Refund", func() { everycall.Named("Refund") })
}
