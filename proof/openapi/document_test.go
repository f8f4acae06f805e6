package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The document has the seven operations, and each has the envelope of an error for
// every status that is not a success.
// I-1
func TestOpenAPI_operations(t *testing.T) {
	doc := document(t)
	var operations []string
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			operations = append(operations, method+" "+path)
			failure := operation.Responses.Default()
			require.NotNil(t, failure, path)
			assert.Same(t, doc.Components.Schemas["Error"].Value, failure.Value.Content.Get("application/json").Schema.Value, path)
			assert.Equal(t, 2, operation.Responses.Len(), "%s: one success and the errors", path)
		}
	}
	assert.ElementsMatch(t, []string{
		"GET /api/networks-coins",
		"GET /api/networks-coins/{id}",
		"GET /api/networks-coins/{coinSymbol}/{networkName}",
		"GET /api/exchange-rate",
		"GET /api/balance/",
		"POST /api/invoice/create",
		"GET /api/withdrawal/inquiry/{withdrawRequestId}",
	}, operations)
}

// What the interface does not show is marked in its place, with the reason.
func TestOpenAPI_not_shown(t *testing.T) {
	encoded, err := document(t).MarshalJSON()
	require.NoError(t, err)
	text := string(encoded)
	assert.Equal(t, 5, strings.Count(text, `"#/components/schemas/NotShown"`), "bodies whose shape is not shown")
	assert.Equal(t, 14, strings.Count(text, `"x-not-shown":true`))
	assert.Equal(t, 14, strings.Count(text, `"x-not-shown-reason":"`))
}
